"""Tasks that are cleared after their run published, runs that failed before, and test runs."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowFailException

from mondrian_ops import pipeline, publish
from mondrian_ops.errors import InputError
from task_runs import TaskRun


@pytest.fixture
def job(job):
    """A job that makes three fragments."""
    rows = "".join(f"{20 + at % 40},{at % 3}\n" for at in range(300))
    Path(job["input"]).write_text("age,ill\n" + rows)
    return {**job, "sensitive": ["ill"], "partitioning": {"fragments": 3, "sample": 1.0}}


@pytest.fixture
def over(job):
    """A run that has published; its working files are gone."""
    run = TaskRun(job)
    run.summary = run.whole()
    return run


def contents(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def states(kept):
    return [(entry["state"], entry["reason"]) for entry in kept()]


def test_wrap_up_of_a_published_run_is_cleared_and_succeeds(over, job, kept):
    before, (entry,) = contents(job["output"]), kept()
    assert over.wrap_up() == over.summary
    over.clean_up()
    assert contents(job["output"]) == before
    assert kept() == [entry]


@pytest.mark.parametrize("job_is", ["the same", "gone"])
def test_a_fragment_of_a_published_run_is_cleared_with_what_follows(over, job, kept, job_is):
    if job_is == "gone":
        over.job = "/no/such/job.yaml"
    before, (entry,) = contents(job["output"]), kept()
    over.anonymize(only=1)
    assert over.wrap_up() == over.summary
    over.clean_up()
    assert contents(job["output"]) == before
    assert kept() == [entry]


def test_a_cleared_wrap_up_announces_its_release_again(job):
    asset = Asset("people")
    run = TaskRun(job, asset=asset)
    run.context["outlet_events"] = Events()
    summary = run.whole()
    task = run.task("wrap_up", summaries=run.summaries)
    task.execute({**run.context, "outlet_events": (events := Events())})
    assert events[asset].extra == summary


class Events(dict):
    class Accessor:
        extra = None

    def __missing__(self, outlet):
        return self.setdefault(outlet, self.Accessor())


def test_a_release_that_another_run_has_replaced_is_recognized_in_the_catalogue(over, job, kept):
    other = TaskRun({**job, "k": 3})
    other.context["dag_run"].run_id = "manual__2"
    other.whole()
    before = contents(job["output"])
    over.anonymize(only=0)
    assert over.wrap_up() == over.summary
    assert contents(job["output"]) == before
    assert [entry["state"] for entry in kept()] == ["published", "published"]


def test_without_its_catalogue_a_release_is_known_by_its_token(over, monkeypatch, tmp_path):
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__CATALOGUE", str(tmp_path / "another.db"))
    over.anonymize(only=2)
    assert over.wrap_up() == over.summary


def test_the_release_of_an_attempt_before_is_not_taken_for_this_one_s(over, job, kept):
    """The run was cleared as a whole, and its new attempt was lost before it published."""
    over.partition()
    shutil.rmtree(over.fragments[0]["work"])
    over.context["ti"].ended["anonymize_fragment"] = "failed"
    with pytest.raises(AirflowFailException, match="published"):
        over.context["ti"].ended["wrap_up"] = "upstream_failed"
        over.clean_up()
    with pytest.raises(AirflowFailException, match="vanished"):
        over.anonymize(only=0)
    assert [entry["state"] for entry in kept()].count("failed") == 1


def test_a_recoding_of_a_published_run_is_cleared(context, tds_job, kept):
    del tds_job["sensitive"]
    run = TaskRun(tds_job, map_first_phase=True)
    parts = run._done("partition")
    summaries = []
    for index, part in enumerate(parts):
        task = run.task("specialize_part").unmap({"part": part})
        summaries.append(run._outcome(task, index))
    run.fragments = run._done("recode", parts=summaries)
    run.anonymize()
    summary = run.wrap_up()
    run.clean_up()
    again = run._outcome(run.task("specialize_part").unmap({"part": parts[0]}), 0)
    fragments = run._done("recode", parts=[again, summaries[1]])
    assert [each["id"] for each in fragments] == [each["id"] for each in run.fragments]
    run.fragments = fragments
    run.anonymize(only=0)
    assert run.wrap_up() == summary
    assert states(kept) == [("published", None)]


# Runs that fail before there is a release


@pytest.mark.parametrize(
    ("content", "changed", "reason"),
    [
        ("", {}, "first line is empty"),
        ("age,ill\n", {}, "no rows"),
        ("age,ill\n1,2,3,4\n", {}, "values"),
        ("name,ill\n1,2\n", {}, "the input has no column 'age'"),
        ("age,ill\n1,2\n", {"k": 1}, "k: must be"),
    ],
    ids=["empty", "no rows", "corrupt", "wrong column", "wrong job"],
)
def test_a_run_that_fails_in_partition_is_listed_with_its_reason(
    job, kept, content, changed, reason
):
    Path(job["input"]).write_text(content)
    run = TaskRun({**job, **changed})
    with pytest.raises(AirflowFailException):
        run.partition()
    run.ended["wrap_up"] = "upstream_failed"
    with pytest.raises(AirflowFailException):
        run.clean_up()
    ((state, why),) = states(kept)
    assert state == "failed"
    assert reason in why
    assert kept()[0]["dataset"] == job["output"]


def test_too_few_rows_are_a_refusal(job, kept):
    Path(job["input"]).write_text("age,ill\n1,1\n")
    with pytest.raises(AirflowFailException):
        TaskRun(job).partition()
    assert kept()[0]["state"] == "refused"


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        (
            {"anonymize_fragment": "failed", "wrap_up": "upstream_failed"},
            "anonymize_fragment",
        ),
        ({"anonymize_fragment": "skipped", "wrap_up": "skipped"}, "marked as failed"),
    ],
    ids=["killed", "marked failed"],
)
def test_a_run_that_ends_without_an_error_of_ours_is_listed_too(job, kept, ended, reason):
    run = TaskRun(job)
    run.partition()
    run.ended.update(ended)
    with pytest.raises(AirflowFailException):
        run.clean_up()
    ((state, why),) = states(kept)
    assert (state, reason in why) == ("failed", True)
    # Its failed tasks are cleared, and it goes on.
    run.context["dag_run"].start_date = datetime.now(UTC)
    run.anonymize()
    run.wrap_up()
    run.clean_up()
    assert states(kept) == [("published", None)]


def test_a_run_marked_failed_before_its_first_task_is_listed(job, kept):
    run = TaskRun(job)
    run.ended.update(dict.fromkeys(("partition", "anonymize_fragment", "wrap_up"), "skipped"))
    with pytest.raises(AirflowFailException):
        run.clean_up()
    assert [(entry["state"], entry["dataset"]) for entry in kept()] == [("failed", job["output"])]


def test_the_first_failure_of_a_run_tells_the_cause(job, kept, monkeypatch):
    run = TaskRun(job)
    run.context["dag_run"].start_date = datetime.now(UTC) - timedelta(minutes=1)
    run.partition()
    changed = Mock(side_effect=InputError("in.csv: changed while it was read"))
    monkeypatch.setattr(pipeline, "anonymize_fragment", changed)
    with pytest.raises(AirflowFailException, match="changed while it was read"):
        run.anonymize()
    with pytest.raises(AirflowFailException):
        run.wrap_up()
    ((state, why),) = states(kept)
    assert state == "failed"
    assert "changed while it was read" in why


# airflow tasks test


def test_a_tested_task_publishes_and_records_nothing(job, kept, monkeypatch):
    run = TaskRun({**job, "require_approval": True}, asset=Asset("people"))
    run.partition()
    run.anonymize()
    monkeypatch.setenv("AIRFLOW_TEST_MODE", "True")
    task = run.task("wrap_up", summaries=run.summaries)
    assert task.execute(run.context)["achieved"]["k"] >= 2
    assert task.outlets == []
    assert not Path(job["output"]).exists()
    assert kept() == []
    assert publish.WorkDir(run.fragments[0]["work"]).has_release
    monkeypatch.delenv("AIRFLOW_TEST_MODE")


def test_the_task_that_was_tested_publishes_afterwards(job, kept, monkeypatch):
    run = TaskRun(job)
    run.partition()
    run.anonymize()
    monkeypatch.setenv("AIRFLOW_TEST_MODE", "True")
    run.wrap_up()
    monkeypatch.delenv("AIRFLOW_TEST_MODE")
    run.wrap_up()
    assert states(kept) == [("published", None)]
    assert (Path(job["output"]) / "_SUCCESS").exists()


def test_a_tested_failure_is_not_listed(job, kept, monkeypatch):
    Path(job["input"]).write_text("")
    monkeypatch.setenv("AIRFLOW_TEST_MODE", "True")
    with pytest.raises(AirflowFailException):
        TaskRun(job).partition()
    assert kept() == []
