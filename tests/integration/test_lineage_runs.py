"""OpenLineage in a real Airflow: what it hears of a release, and of one that is refused."""

from __future__ import annotations

import csv
import json

import pytest

from observing import form
from projects import Project, airflow_of, copied

pytestmark = pytest.mark.airflow

# The listener in the scheduler forks in the middle of transactions, which SQLite does not bear.
ONLY_WRAP_UP = [
    {"scope": {}, "controls": {"emit": False}},
    {
        "scope": {"operator": "mondrian_ops.operators.wrap_up.WrapUpOperator"},
        "controls": {"emit": True},
    },
]


@pytest.fixture(scope="module")
def catalogued(tmp_path_factory, airflow_database):
    """A project whose Airflow writes OpenLineage's events to a file."""
    root = copied(tmp_path_factory.mktemp("lineage"))
    transport = {"type": "file", "log_file_path": str(root / "lineage.jsonl"), "append": True}
    settings = {
        "AIRFLOW__OPENLINEAGE__EMISSION_POLICY": json.dumps(ONLY_WRAP_UP),
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
    }
    with airflow_of(root, airflow_database(), settings, parallelism=2) as airflow:
        yield Project(root, airflow)


def heard(project, kind, name, **changed):
    """The events of a kind that a run of `mondrian_anonymize` makes."""
    run_id = project.airflow.trigger("mondrian_anonymize", form(project.job(name, **changed)))
    project.airflow.finish("mondrian_anonymize", run_id)
    events = map(json.loads, (project.root / "lineage.jsonl").read_text().splitlines())
    return [
        event
        for event in events
        if event["eventType"] == kind
        and event["run"]["facets"]["airflow"]["dagRun"]["run_id"] == run_id
    ]


def test_a_catalogue_learns_how_a_release_was_anonymized(catalogued):
    (event,) = heard(catalogued, "COMPLETE", "published")
    (source,), (release,) = event["inputs"], event["outputs"]
    assert source["name"] == str(catalogued.root / "include" / "examples" / "people.csv")
    assert release["name"] == str(catalogued.output("published"))
    report = json.loads((catalogued.output("published") / "_report.json").read_text())
    facet = release["facets"]["mondrian_ops_anonymization"]
    assert facet["privacyModel"] == {"k": 5, "l": 2}
    assert facet["metrics"] == report["metrics"]
    assert facet["columns"]["direct identifier"] == ["name"]
    assert release["outputFacets"]["outputStatistics"]["rowCount"] == 2000


def test_a_refused_release_is_no_output(catalogued):
    (event,) = heard(catalogued, "FAIL", "refused", max_gcp=0.01)
    assert all("mondrian_ops_anonymization" not in each["facets"] for each in event["outputs"])
    assert str(catalogued.output("refused")) not in [each["name"] for each in event["outputs"]]


def test_no_name_of_a_person_is_told(catalogued):
    heard(catalogued, "COMPLETE", "again")
    with (catalogued.root / "include" / "examples" / "people.csv").open() as file:
        names = {row["name"] for row in csv.DictReader(file)}
    told = (catalogued.root / "lineage.jsonl").read_text()
    assert not [name for name in names if name in told]
