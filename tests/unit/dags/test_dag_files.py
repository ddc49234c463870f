"""The DAG files: quick to parse, and what is promised of them."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest
from airflow.serialization.serialized_objects import DagSerialization

from mondrian_ops.forms import Answer
from mondrian_ops.job.job import Job
from mondrian_ops.job.options import flat_options
from mondrian_ops.job.sections import Samarati, Spark, Tds

CHECKOUT = Path(__file__).resolve().parents[3]

FILES = {
    path.stem: path
    for folder in ("dags", "examples/dags")
    for path in sorted((CHECKOUT / folder).glob("*.py"))
}

# In a process for each, as Airflow does.
PARSE = """
import json, runpy, sys, time
known = set(sys.modules)
started = time.process_time()
runpy.run_path(sys.argv[1])
seconds = time.process_time() - started
print(json.dumps({"seconds": seconds, "modules": sorted(set(sys.modules) - known)}))
"""

HEAVY = {"numpy", "pandas", "pyarrow", "pyspark", "rich", "yaml"}


def load(name):
    """The DAG of a file, and the file's globals."""
    module = runpy.run_path(str(FILES[name]))
    return module["dag"], module


@pytest.fixture(scope="module")
def anonymize():
    dag, module = load("mondrian_anonymize")
    return dag, module["FORM"], module


@pytest.mark.parametrize("name", FILES)
def test_a_dag_file_parses_in_under_a_second_and_imports_nothing_heavy(name, airflow_process):
    parsed = json.loads(airflow_process.run(PARSE, str(FILES[name]))[-1])
    assert parsed["seconds"] < 1
    imported = {module.partition(".")[0] for module in parsed["modules"]}
    assert not imported & HEAVY
    assert not any(module.startswith("airflow.providers.apache") for module in parsed["modules"])
    assert not {"mondrian_ops.pipeline", "mondrian_ops.publish"} & set(parsed["modules"])


@pytest.mark.parametrize("name", FILES)
def test_a_dag_that_is_parsed_again_is_no_new_version(name):
    first, second = (load(name)[0] for _ in range(2))
    assert DagSerialization.to_dict(first) == DagSerialization.to_dict(second)


def test_the_three_phases_have_the_promised_ids(anonymize):
    dag, _form, _module = anonymize
    assert set(dag.task_ids) == {"partition", "anonymize_fragment", "wrap_up", "clean_up"}
    assert dag.get_task("partition").downstream_task_ids == {"anonymize_fragment", "clean_up"}
    assert dag.get_task("anonymize_fragment").downstream_task_ids == {"wrap_up", "clean_up"}
    assert dag.get_task("wrap_up").downstream_task_ids == {"clean_up"}
    assert dag.get_task("clean_up").is_teardown


def test_the_form_has_every_option_of_the_job_but_those_that_are_no_matter_of_one_run(anonymize):
    _dag, form, _module = anonymize
    missing = {name for name in flat_options(Job) if not name.startswith("series_")} - set(form)
    assert missing == {"min_sample", "schema"}


@pytest.mark.parametrize("name", ["mondrian_anonymize", "mondrian_frontier", "mondrian_inspect"])
def test_every_field_of_a_form_explains_itself(name):
    _dag, module = load(name)
    for field, param in module["FORM"].items():
        schema = param.schema
        assert schema["title"], field
        assert schema["description_md"].endswith("."), field
        assert "`" not in schema["description_md"], field  # it would hide the line above
        assert {*schema.get("enum", ())} == {*schema.get("values_display", ())}, field
        assert schema["type"] != "object", field


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("k", 1),
        ("l", 1),
        ("t", 0),
        ("t", 1.5),
        ("fragments", 0),
        ("sample", 0),
        ("sample", 2),
        ("cut", "best"),
        ("algorithm", "datafly"),
        ("max_gcp", 1.5),
        ("max_risk", -0.1),
        ("max_suppressed", -1),
        ("approval_hours", 0),
        ("approval_hours", 8761),
        ("on_exceeded", "warn"),
        ("di_mondrian_cut_points", 0),
        ("di_mondrian_cut_points", 101),
        ("samarati_choice", "best"),
        ("samarati_max_suppressed", -1),
        ("tds_partitions", 0),
        ("tds_k_intermediate", 1),
        ("engine", "flink"),
        ("max_rows", 0),
        ("spark_shape", "stage"),
        ("spark_connection", ""),
        ("quasi_identifiers", []),
        ("quasi_identifiers", [{"name": "age"}]),
        ("input", ""),
    ],
)
def test_the_form_refuses_what_the_job_would(anonymize, name, value):
    from airflow.sdk.exceptions import ParamValidationError

    _dag, form, _module = anonymize
    with pytest.raises(ParamValidationError):
        form[name].resolve(value)


def values_of(job, form):
    """The job of a task, with the defaults of the form in place of its answers."""
    if isinstance(job, Answer):
        return form[job._name].resolve()
    return {key: values_of(of, form) for key, of in job.items()} if isinstance(job, dict) else job


def test_the_defaults_are_a_job_over_data_that_is_there(anonymize):
    dag, form, _module = anonymize
    job = Job.from_dict(values_of(dag.get_task("partition").job, form))
    assert (job.spark, job.samarati, job.tds) == (Spark(), Samarati(), Tds())
    file = CHECKOUT / job.input
    assert file.is_file()
    named = [each.hierarchy for each in job.quasi_identifiers if each.hierarchy]
    assert named
    assert all((CHECKOUT / "include" / "hierarchies" / name).is_file() for name in named)
    header = file.read_text().partition("\n")[0].replace('"', "").split(",")
    roles = [*job.identifiers, *job.quasi_identifier_names, *job.sensitive]
    assert sorted(roles) == sorted(header)


def test_the_frontier_maps_over_its_grid_and_cleans_up():
    dag, _module = load("mondrian_frontier")
    assert {task.task_id for task in dag.tasks if task.is_mapped} == {"point"}
    assert dag.get_task("sample").downstream_task_ids == {"point", "frontier", "clean_up"}
    assert dag.get_task("point").downstream_task_ids == {"frontier", "clean_up"}
    assert dag.get_task("frontier").downstream_task_ids == {"clean_up"}
    assert dag.get_task("clean_up").is_teardown


def test_the_form_of_the_frontier_is_a_job_over_data_that_is_there():
    dag, module = load("mondrian_frontier")
    job = Job.from_dict(values_of(dag.get_task("sample").job, module["FORM"]))
    header = (CHECKOUT / job.input).read_text().partition("\n")[0].replace('"', "").split(",")
    assert {*job.quasi_identifier_names, *job.sensitive} <= set(header)


@pytest.mark.parametrize(
    ("name", "value"), [("k", []), ("l", []), ("k", [2]), ("rows", 0), ("sample", 0), ("seed", -1)]
)
def test_the_form_of_the_frontier_refuses_what_makes_no_sense(name, value):
    from airflow.sdk.exceptions import ParamValidationError

    _dag, module = load("mondrian_frontier")
    with pytest.raises(ParamValidationError):
        module["FORM"][name].resolve(value)


@pytest.mark.parametrize(
    ("name", "follower"), [("mondrian_etl_example", "load"), ("customers", "refresh_mart")]
)
def test_what_follows_a_group_follows_its_wrap_up(name, follower):
    dag, _module = load(name)
    assert dag.get_task(follower).upstream_task_ids == {"anonymize.wrap_up"}
    assert dag.get_task("extract").downstream_task_ids >= {"anonymize.partition"}


def test_the_nightly_dag_maps_over_drops_and_over_all_their_fragments():
    dag, _module = load("mondrian_nightly")
    mapped = {task.task_id for task in dag.tasks if task.is_mapped}
    assert mapped == {"partition", "anonymize_fragment", "wrap_up"}
    assert dag.get_task("overdue_drops").upstream_task_ids == {"find_drops"}
    assert dag.get_task("find_drops").max_active_tis_per_dag == 1
    assert dag.catchup is False
    assert dag.max_active_runs > 1


@pytest.mark.parametrize("value", [None, [], ["1a2b3c4d"], ["1a2b3c4d", "00000000"]])
def test_the_nightly_form_takes_the_ids_of_accepted_changes(value):
    dag, _module = load("mondrian_nightly")
    assert dag.params.get_param("accept").resolve(value) == value


@pytest.mark.parametrize("value", ["1a2b3c4d", [7], {"id": "1a2b3c4d"}])
def test_the_nightly_form_takes_nothing_else_for_ids(value):
    from airflow.sdk.exceptions import ParamValidationError

    dag, _module = load("mondrian_nightly")
    with pytest.raises(ParamValidationError):
        dag.params.get_param("accept").resolve(value)
