"""Working files are removed, wherever they were announced, or kept for a repair."""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import Mock

import pytest
from airflow.providers.standard.operators.branch import BaseBranchOperator
from airflow.sdk import DAG, BaseOperator, task
from airflow.sdk.exceptions import AirflowFailException

from mondrian_ops import pipeline, publish
from mondrian_ops.operators import CleanUpOperator, PartitionOperator, WrapUpOperator
from mondrian_ops.operators.base import announce_work, work_of
from mondrian_ops.operators.release_records import record
from mondrian_ops.task_groups import anonymize_each, anonymize_tasks
from releases import recorded_releases
from report_samples import make
from task_contexts import begun_work, read_job
from teardowns import clean_up_after


def test_clean_up_takes_one_job_or_many_or_none(context, job):
    task = clean_up_after(job)
    work = Path(work_of(read_job(job), context))
    for given in (job, [{"k": 1}, job], "/no/such/job.yaml", None):
        work.mkdir(exist_ok=True)
        task.job = given
        task.execute(context)
        assert work.exists() == (given in ("/no/such/job.yaml", None))


def test_working_files_are_announced_before_there_are_any(monkeypatch, context, job):
    """A partition task that is killed returns nothing, and leaves raw rows behind."""
    task = PartitionOperator(task_id="t", job=job)
    monkeypatch.setattr(pipeline, "partition", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        task.execute(context)
    clean_up = clean_up_after("/no/such/job.yaml", "t")
    work = Path(work_of(read_job(job), context))
    work.mkdir()
    clean_up.execute(context)
    assert not work.exists()


def test_working_files_where_jobs_may_not_write_any_more_are_not_left_silently(
    context, job, monkeypatch, tmp_path
):
    """An administrator narrows the limits while a run is under way."""
    there = {**job, "output": str(tmp_path / "still" / "out")}
    task = clean_up_after([job, there], "t")
    works = [Path(work_of(read_job(each), context)) for each in (job, there)]
    for work in works:
        work.mkdir(parents=True)
    announce_work(context, str(works[0]))
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__ALLOWED_OUTPUTS", str(tmp_path / "still"))
    with pytest.raises(AirflowFailException, match="allowed_outputs again") as caught:
        task.execute(context)
    assert str(works[0]) in str(caught.value)
    assert str(works[1]) not in str(caught.value)
    assert [work.exists() for work in works] == [True, False]
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__ALLOWED_OUTPUTS", str(tmp_path))
    task.execute(context)
    assert not works[0].exists()


def test_an_error_that_a_retry_may_cure_comes_after_all_other_files_are_removed(
    context, job, monkeypatch, tmp_path
):
    jobs = [{**job, "output": str(tmp_path / name)} for name in "abc"]
    works = [Path(work_of(read_job(each), context)) for each in jobs]
    for work in works:
        work.mkdir()
    remove = publish.WorkDir.remove

    def away(directory):
        if directory.root == str(works[1]):
            raise TimeoutError("the store does not answer")
        remove(directory)

    monkeypatch.setattr(publish.WorkDir, "remove", away)
    with pytest.raises(TimeoutError, match="does not answer"):
        clean_up_after(jobs).execute(context)
    assert [work.exists() for work in works] == [False, True, False]


PHASES = ("partition", "anonymize_fragment", "wrap_up")
UNDER_WAY = {"partition": "success", "anonymize_fragment": "success failed"}
GIVEN_UP = {"partition": "success", "anonymize_fragment": "success skipped", "wrap_up": "skipped"}


def begun(job, context, task: str = "partition") -> Path:
    """The working files of a run whose partition task is over."""
    work = publish.WorkDir(work_of(read_job(job), context))
    work.create(publish.Owner("a_dag/manual__1", task))
    return Path(work.root)


@pytest.mark.parametrize(
    ("ended", "keep_hours", "is_kept"),
    [
        ({**UNDER_WAY, "wrap_up": "upstream_failed"}, "24", True),
        ({**UNDER_WAY, "wrap_up": "upstream_failed"}, "0", False),
        (GIVEN_UP, "24", True),
        ({"partition": "failed", "wrap_up": "upstream_failed"}, "24", False),
    ],
    ids=["failed", "nothing is kept", "marked failed by hand", "a repair begins anew"],
)
def test_a_failed_run_keeps_what_its_repair_needs_and_shows_as_failed(
    context, job, monkeypatch, ended, keep_hours, is_kept
):
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__KEEP_HOURS", keep_hours)
    work, task = begun(job, context), clean_up_after(job, *PHASES)
    context["ti"].ended.update(ended)
    says = "kept for 24 hours: clear the failed tasks" if is_kept else "clear the run"
    with pytest.raises(AirflowFailException, match=says):
        task.execute(context)
    assert work.exists() == is_kept
    if is_kept:
        assert work.stat().st_mode & 0o777 == 0o700
    context["ti"].ended.update(dict.fromkeys(PHASES, "success"))
    task.execute(context)
    assert not work.exists()


def test_of_several_jobs_those_are_kept_that_are_not_published(context, job):
    jobs = [job, {**job, "output": f"{job['output']}2"}]
    published, failed = (begun(each, context) for each in jobs)
    (published / "release").rmdir()
    context["ti"].ended.update({**UNDER_WAY, "wrap_up": "success failed"})
    with pytest.raises(AirflowFailException):
        clean_up_after(jobs, *PHASES).execute(context)
    assert (published.exists(), failed.exists()) == (False, True)


@task
def jobs_of_the_night():
    """They come from a task."""


def test_of_several_releases_the_one_is_told_whose_task_was_marked_as_success(context, job):
    """Also of one that follows another that failed."""
    jobs = [{**job, "output": f"{job['output']}{number}"} for number in range(5)]
    with DAG("a_dag", schedule=None) as dag:
        anonymize_each(jobs_of_the_night())
    works = [begun_work(context, each, "partition") for each in jobs]
    context["ti"].xcoms["mondrian_ops_work"] = [work.root for work in works]
    publish.publish(works[0].staging, jobs[0]["output"], works[0].token)
    every = ("jobs_of_the_night", "partition", "fragments", "anonymize_fragment")
    context["ti"].ended.update(dict.fromkeys(every, "success success success success success"))
    context["ti"].ended["wrap_up"] = "success success failed upstream_failed success"
    clean_up = dag.get_task("clean_up")
    clean_up.job = jobs
    with pytest.raises(AirflowFailException, match="marked as success by hand"):
        clean_up.execute(context)
    assert [Path(work.root).exists() for work in works] == [False, True, True, True, True]
    reasons = {each["map_index"]: each["reason"] for each in recorded_releases()}
    assert reasons.keys() == {1, 2, 3, 4}
    marked = [number for number, why in reasons.items() if "marked as success by hand" in why]
    assert sorted(marked) == [1, 4]


def test_the_one_of_a_run_is_told_although_nobody_announced_its_files(context, job, monkeypatch):
    """Whoever may mark a task may also remove an XCom. A trial publishes and tells nothing."""
    with DAG("a_dag", schedule=None) as dag:
        anonymize_tasks(job)
    work = begun_work(context, job, "partition")
    context["ti"].ended.update(dict.fromkeys(PHASES, "success"))
    with pytest.raises(AirflowFailException, match="marked as success by hand"):
        dag.get_task("clean_up").execute(context)
    (entry,) = recorded_releases()
    assert (entry["map_index"], entry["state"]) == (-1, "failed")
    monkeypatch.setenv("AIRFLOW_TEST_MODE", "True")
    dag.get_task("clean_up").execute(context)
    assert not Path(work.root).exists()


def test_a_success_tells_nothing_of_the_release_of_another_task(context, job, monkeypatch):
    """Each of two tasks publishes what the partition task before it has announced."""
    jobs = {name: {**job, "output": f"{job['output']}_{name}"} for name in ("a", "b")}
    with DAG("a_dag", schedule=None):
        clean_up = CleanUpOperator(task_id="clean_up", job=list(jobs.values()))
        for name, each in jobs.items():
            first = PartitionOperator(task_id=f"partition_{name}", job=each)
            last = WrapUpOperator(task_id=f"wrap_up_{name}", job=each, summaries=[])
            first >> last >> clean_up
            first >> clean_up
    works = {
        f"partition_{name}": begun_work(context, each, f"partition_{name}").root
        for name, each in jobs.items()
    }

    def pulled(task_ids, key, map_indexes=None):
        return [works.get(task_id) if key == "mondrian_ops_work" else None for task_id in task_ids]

    monkeypatch.setattr(context["ti"], "xcom_pull", pulled, raising=False)
    ended = {**dict.fromkeys(works, "success"), "wrap_up_a": "success", "wrap_up_b": "failed"}
    context["ti"].ended.update(ended)
    publish.publish(
        publish.WorkDir(works["partition_a"]).staging,
        jobs["a"]["output"],
        publish.WorkDir(works["partition_a"]).token,
    )
    with pytest.raises(AirflowFailException, match="see the log of the failed task"):
        clean_up.execute(context)
    assert [Path(work).exists() for work in works.values()] == [False, True]


def test_a_release_that_is_gone_since_was_published(context, job):
    with DAG("a_dag", schedule=None) as dag:
        anonymize_tasks(job)
    work = begun_work(context, job, "partition")
    publish.publish(work.staging, job["output"], work.token)
    shutil.rmtree(job["output"])
    context["ti"].ended.update(dict.fromkeys(PHASES, "success"))
    for _ in range(2):  # the working files are gone then
        dag.get_task("clean_up").execute(context)
        assert not Path(work.root).exists()
    assert recorded_releases() == []


def test_a_night_that_is_held_is_a_success(context, job):
    """Nothing is published, and nobody has marked its task."""
    with DAG("a_dag", schedule=None) as dag:
        anonymize_tasks(job)
    work = begun_work(context, job, "partition")
    context["ti"].task_id = "wrap_up"
    record(context, read_job(job), make(state="held"))
    context["ti"].ended.update(dict.fromkeys(PHASES, "success"))
    dag.get_task("clean_up").execute(context)
    assert not Path(work.root).exists()


@pytest.mark.parametrize(
    ("ended", "has_failed"),
    [
        ({"before": "success"}, True),
        ({"before": "failed"}, True),
        ({"before": "skipped"}, False),
        ({"branch": "success"}, False),
    ],
    ids=["marked failed", "marked failed before", "skipped before", "another branch taken"],
)
def test_a_run_that_is_marked_failed_before_its_first_task_shows_as_failed(
    context, job, ended, has_failed
):
    """If the tasks were skipped for a reason, it does not; another branch's files stay."""
    work, task = begun(job, context, "other.partition"), clean_up_after(job, *PHASES)
    (name,) = ended
    with task.dag:
        kind = BaseBranchOperator if name == "branch" else BaseOperator
        kind(task_id=name) >> task.dag.get_task("partition")
    context["ti"].ended.update(dict.fromkeys(PHASES, "skipped"), **ended)
    with pytest.raises(AirflowFailException) if has_failed else nullcontext():
        task.execute(context)
    assert work.exists()
