"""The DAGs over a landing folder: one for all datasets, or one for each that has a job."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.sdk import Asset, AssetAlias
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException
from airflow.serialization.serialized_objects import DagSerialization

from mondrian_ops.errors import JobError
from mondrian_ops.nightly_dags import SHIPPED, anonymize_folder, try_again, whole
from mondrian_ops.stores import shipped

PARSE = """
import json, sys, time
known = set(sys.modules)
started = time.process_time()
from mondrian_ops.nightly_dags import anonymize_folder
dags = anonymize_folder(sys.argv[1])
seconds = time.process_time() - started
modules = sorted(set(sys.modules) - known)
print(json.dumps({"seconds": seconds, "dags": len(dags), "modules": modules}))
"""


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    """A folder of jobs, which are not read."""
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__HOME", str(tmp_path))
    folder = tmp_path / "include" / "jobs"
    folder.mkdir(parents=True)
    for name in ("visits", "labs", "_draft"):
        (folder / f"{name}.yaml").write_text("{no job")
    (folder / "notes.txt").write_text("")
    return folder


def test_each_dataset_has_a_dag_of_its_own(jobs):
    dags = anonymize_folder("include/jobs", owner="data", each={
        "visits": {"owner": "clinic", "schedule": "0 3 * * *", "pool": "clinic", "tags": ("ward",),
                   "stewards": ["eve"], "lookback_days": 3},
    })  # fmt: skip
    assert list(dags) == ["mondrian_labs", "mondrian_visits"]
    visits, labs = dags["mondrian_visits"], dags["mondrian_labs"]
    assert {task.owner for task in visits.tasks} == {"clinic"}
    assert {task.pool for task in visits.tasks} == {"clinic"}
    assert {task.owner for task in labs.tasks} == {"data"}
    assert "0 3 * * *" in str(DagSerialization.to_dict(visits))
    assert {"ward", "mondrian_ops"} <= visits.tags
    assert visits.get_task("wrap_up").partial_kwargs["stewards"] == ["eve"]
    asked = visits.get_task("find_drops").op_kwargs
    assert (asked["dataset"], asked["lookback_days"], asked["jobs"]) == ("visits", 3, str(jobs))


def test_a_release_is_an_event_of_the_asset_of_its_dataset_and_of_the_alias(jobs):
    dag = anonymize_folder("include/jobs")["mondrian_visits"]
    wrap_up = dag.get_task("wrap_up").partial_kwargs
    assert wrap_up["outlets"] == [AssetAlias("mondrian_nightly_release"), Asset("mondrian_visits")]
    assert wrap_up["by_night"] is True


def test_fifty_parse_in_under_a_second_and_import_nothing_heavy(jobs, airflow_process):
    for number in range(50):
        (jobs / f"d{number}.yaml").write_text("")
    parsed = json.loads(airflow_process.run(PARSE, str(jobs))[-1])
    assert parsed["dags"] == 52
    assert parsed["seconds"] < 1
    heavy = {"numpy", "pandas", "pyarrow", "pyspark", "yaml"}
    assert not heavy & {module.partition(".")[0] for module in parsed["modules"]}


@pytest.mark.parametrize(
    ("folder", "each", "message"),
    [
        ("nowhere", {}, "nowhere: no such folder of jobs"),
        ("include/jobs", {"visit": {}}, r"each: include/jobs has no job visit\.yaml"),
    ],
)
def test_a_folder_or_a_dataset_that_is_not_there_is_refused(jobs, folder, each, message):
    with pytest.raises(JobError, match=message):
        anonymize_folder(folder, each=each)


@pytest.mark.parametrize(
    "other", ["a b", *(name.removeprefix("mondrian_") for name in sorted(SHIPPED))]
)
def test_two_jobs_do_not_make_one_dag(jobs, other):
    for name in ("a+b", other):
        (jobs / f"{name}.yaml").write_text("")
    with pytest.raises(JobError, match="again; rename the file"):
        anonymize_folder("include/jobs")


def test_the_dags_that_come_with_the_package_are_known():
    assert {path.stem for path in Path(shipped("dags")).glob("*.py")} == SHIPPED


@pytest.mark.parametrize("value", ["0", "-1", "a week", "1.5", ""])
def test_a_look_back_that_is_no_number_of_days_is_refused(value):
    with pytest.raises(JobError, match="lookback_days: must be"):
        whole("lookback_days", value, least=1)


@pytest.mark.parametrize(
    ("waited", "expected"),
    [
        (None, AirflowRescheduleException),
        (timedelta(days=3.9), AirflowRescheduleException),
        (timedelta(days=4.1), AirflowFailException),
    ],
)
def test_a_run_that_waits_for_another_one_gives_up_in_the_end(waited, expected):
    """It holds one of the slots of `max_active_runs`."""
    since = waited and datetime.now(UTC) - waited
    ti = SimpleNamespace(get_first_reschedule_date=lambda context: since)
    with pytest.raises(expected) as raised:
        try_again(["people/2025-06-09: the run a is at work"], {"ti": ti})
    if expected is AirflowFailException:
        assert "4 days: people/2025-06-09: the run a is at work; see to" in str(raised.value)
