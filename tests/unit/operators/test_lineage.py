"""OpenLineage: what its client writes for a catalogue about a release that was made."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from airflow.providers.openlineage.extractors.manager import ExtractorManager
from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import Job as LineageJob
from openlineage.client.event_v2 import Run, RunEvent, RunState
from openlineage.client.transport.file import FileConfig, FileTransport
from openlineage.client.uuid import generate_new_uuid

from mondrian_ops import pipeline
from mondrian_ops.operators import PartitionOperator, WrapUpOperator
from mondrian_ops.operators.lineage import FACET, ROLE, lineage_of

PEOPLE = Path(__file__).parents[3] / "include" / "examples" / "people.csv"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The report of a release of the example, with a column of every role."""
    output = tmp_path_factory.mktemp("lineage") / "people"
    return pipeline.run(
        pipeline.load_job(
            {
                "input": str(PEOPLE),
                "output": str(output),
                "k": 5,
                "l": 2,
                "identifiers": ["name"],
                "identifier_policy": "redact",
                "quasi_identifiers": ["age", "zip=prefix"],
                "sensitive": ["diagnosis"],
                "interval_style": "bounds",
                "cut": "median",
            }
        )
    )


@pytest.fixture
def emitted(report, tmp_path):
    """The event as OpenLineage's client writes it."""
    task = WrapUpOperator(task_id="wrap_up", job={}, summaries=[])
    task._report = report
    lineage = ExtractorManager()._get_extractor(task).extract_on_complete(None)
    file = tmp_path / "events.json"
    client = OpenLineageClient(
        transport=FileTransport(FileConfig(log_file_path=str(file), append=True))
    )
    client.emit(
        RunEvent(
            eventType=RunState.COMPLETE,
            eventTime=datetime.now(UTC).isoformat(),
            run=Run(runId=str(generate_new_uuid())),
            job=LineageJob(namespace="airflow", name="people.wrap_up"),
            inputs=lineage.inputs,
            outputs=lineage.outputs,
        )
    )
    client.close()
    return json.loads(file.read_text())


def test_the_release_and_its_source_are_named_as_others_name_them(emitted, report):
    (source,), (release,) = emitted["inputs"], emitted["outputs"]
    assert (source["namespace"], source["name"]) == ("file", str(PEOPLE))
    assert (release["namespace"], release["name"]) == ("file", report["job"]["output"])


def test_a_catalogue_sees_the_role_of_every_column(emitted):
    def roles(dataset):
        tags = dataset["facets"]["tags"]["tags"]
        return {each["field"]: each["value"] for each in tags if each["key"] == ROLE}

    source = roles(emitted["inputs"][0])
    assert source["name"] == "direct identifier"
    assert source["age"] == source["zip"] == "quasi-identifier"
    assert source["diagnosis"] == "sensitive"
    assert source["income"] == "unlisted"
    header = PEOPLE.read_text().partition("\n")[0].replace('"', "").split(",")
    assert set(source) == set(header)
    release = roles(emitted["outputs"][0])
    assert release["age_min"] == release["age_max"] == release["age_hidden"] == "quasi-identifier"


def test_the_columns_are_those_of_the_release(emitted, report):
    import pyarrow.dataset as ds

    fields = emitted["outputs"][0]["facets"]["schema"]["fields"]
    published = ds.dataset(report["job"]["output"]).schema.names
    assert {each["name"] for each in fields} == set(published)


def test_a_catalogue_sees_which_columns_were_masked(emitted):
    fields = emitted["outputs"][0]["facets"]["columnLineage"]["fields"]

    def made_of(name):
        (field,) = fields[name]["inputFields"]
        (transformation,) = field["transformations"]
        return field["field"], transformation["masking"], transformation["description"]

    assert made_of("age_max") == ("age", True, "generalized by interval")
    assert made_of("zip") == ("zip", True, "generalized by prefix")
    assert made_of("name") == ("name", True, "redacted")
    assert made_of("diagnosis") == ("diagnosis", False, "published as it is")


def test_the_privacy_model_and_what_was_reached_are_a_facet(emitted, report):
    (release,) = emitted["outputs"]
    facet = release["facets"][FACET]
    assert facet["privacyModel"] == {"k": 5, "l": 2}
    assert facet["achieved"] == report["achieved"]
    assert facet["algorithm"] == "mondrian"
    assert facet["metrics"] == report["metrics"]
    assert facet["risk"] == report["risk"]
    assert facet["columns"]["quasi-identifier"] == ["age", "zip"]
    assert release["outputFacets"]["outputStatistics"]["rowCount"] == 2000


@pytest.mark.parametrize(
    ("location", "named"),
    [
        ("s3://bucket/a/b", ("s3://bucket", "a/b")),
        ("hdfs://namenode:9000/a/b", ("hdfs://namenode:9000", "/a/b")),
        ("hdfs://namenode/a/b", ("hdfs://namenode:8020", "/a/b")),
        ("hdfs://a_conn@namenode/a", ("hdfs://namenode:8020", "/a")),
        ("hdfs:///a", ("hdfs://default.namenode:8020", "/a")),
        ("webhdfs://namenode:9870/a", ("hdfs://namenode:8020", "/a")),
        ("swebhdfs://a_conn@namenode:9871/a", ("hdfs://namenode:8020", "/a")),
        ("s3://a_conn@bucket/a", ("s3://bucket", "a")),
        ("/data/a", ("file", "/data/a")),
        ("file:///data/a", ("file", "/data/a")),
        ("/data/part-?.csv", ("file", "/data/part-?.csv")),
        ("/data/a#1/b", ("file", "/data/a#1/b")),
        ("s3://bucket/a/part-?.csv", ("s3://bucket", "a/part-?.csv")),
        ("hdfs://namenode:8020/a#1", ("hdfs://namenode:8020", "/a#1")),
        ("data/a", ("file", str(Path.cwd() / "data" / "a"))),
    ],
)
def test_locations_are_named_by_the_rules_of_openlineage(report, location, named, monkeypatch):
    monkeypatch.setenv("MONDRIAN_OPS_WEBHDFS", "http://default.namenode:9870")
    moved = {**report, "job": {**report["job"], "output": location}}
    (release,) = lineage_of(moved).outputs
    assert (release.namespace, release.name) == named


@pytest.fixture
def told(job):
    """Names of the inputs and outputs that OpenLineage is told by an operator, by the event."""

    def tell(operator, event, **arguments):
        task = operator(task_id="t", job=job, **arguments)
        extractor = ExtractorManager()._get_extractor(task)
        of_event = {
            "START": extractor.extract,
            "COMPLETE": lambda: extractor.extract_on_complete(None),
            "FAIL": lambda: extractor.extract_on_failure(None),
        }
        lineage = of_event[event]()
        return [each.name for each in lineage.inputs], [each.name for each in lineage.outputs]

    return tell


@pytest.mark.parametrize("event", ["START", "COMPLETE", "FAIL"])
def test_the_dataset_is_named_when_it_is_read(told, job, event):
    assert told(PartitionOperator, event) == ([job["input"]], [])


@pytest.mark.parametrize("event", ["COMPLETE", "FAIL"])
def test_a_release_that_was_not_published_is_no_output(told, job, event):
    assert told(WrapUpOperator, event, summaries=[]) == ([job["input"]], [])


def test_a_release_is_named_when_its_task_begins(told, job):
    assert told(WrapUpOperator, "START", summaries=[]) == ([job["input"]], [job["output"]])


def test_a_release_that_was_published_is_an_output_even_if_its_task_failed(report):
    task = WrapUpOperator(task_id="t", job={}, summaries=[])
    task._report = report
    lineage = ExtractorManager()._get_extractor(task).extract_on_failure(None)
    assert [each.name for each in lineage.outputs] == [report["job"]["output"]]


def test_the_operators_do_without_openlineage(airflow_process):
    program = (
        "import sys; sys.modules['openlineage'] = None; import mondrian_ops.operators, "
        "mondrian_ops.task_groups"
    )
    airflow_process.run(program)
