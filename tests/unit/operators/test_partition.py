"""The partition task, and the list of fragments of several of them."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException

from mondrian_ops import pipeline
from mondrian_ops.cut import planning
from mondrian_ops.engines.handover import Fragment
from mondrian_ops.errors import PrivacyError
from mondrian_ops.operators import GatherFragmentsOperator, PartitionOperator
from mondrian_ops.operators import partition as module
from mondrian_ops.operators.base import work_of
from mondrian_ops.operators.partition import check_fragments, slots_of
from task_contexts import read_job

APPLICATION = {"shape": "application"}


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("error", [OSError(28, "disk"), PrivacyError("l"), KeyboardInterrupt()])
def test_a_partition_that_fails_leaves_no_working_files(monkeypatch, context, job, error, mapped):
    made = []

    def fail(*_arguments):
        made.extend(each for each in folder.iterdir() if each.is_dir())
        raise error

    folder = Path(job["output"]).parent
    Path(job["input"]).write_text("age\n1\n2\n3\n4\n")
    job["algorithm"] = "tds"
    monkeypatch.setattr(sys.modules[pipeline.partition.__module__], "merge_small", fail)
    with pytest.raises((OSError, AirflowFailException, KeyboardInterrupt)):
        PartitionOperator(task_id="t", job=job, map_first_phase=mapped).execute(context)
    assert len(made) == 1
    assert not made[0].exists()


def test_a_column_that_undoes_the_work_fails_for_good(context, job):
    rows = "".join(f"{age},{-7 * age}\n" for age in range(40) for _ in range(2))
    Path(job["input"]).write_text("age,other\n" + rows)
    job |= {"unlisted": "publish", "dependencies": "refuse"}
    with pytest.raises(AirflowFailException, match=r"'other' stays as it is and gives away 'age'"):
        PartitionOperator(task_id="t", job=job).execute(context)
    assert not [each for each in Path(job["output"]).parent.iterdir() if each.is_dir()]


def test_too_many_fragments_are_refused_before_any_work(monkeypatch, context, job):
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "4")
    monkeypatch.setattr(pipeline, "partition", lambda *_a, **_k: pytest.fail("worked"))
    job["partitioning"] = {"fragments": 5}
    with pytest.raises(AirflowFailException, match=r"partitioning\.fragments: 5 .* 4; ask"):
        PartitionOperator(task_id="t", job=job).execute(context)


def test_too_many_parts_are_refused_before_any_work(monkeypatch, context, job):
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "4")
    monkeypatch.setattr(pipeline, "partition", lambda *_a, **_k: pytest.fail("worked"))
    job.update(algorithm="tds", tds={"partitions": 5}, partitioning={"fragments": 1})
    with pytest.raises(AirflowFailException, match=r"tds\.partitions: 5 .* 4; ask"):
        PartitionOperator(task_id="t", job=job, map_first_phase=True).execute(context)


@pytest.mark.parametrize("mapped", [False, True])
def test_more_fragments_than_asked_for_are_counted_too(monkeypatch, context, job, mapped):
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "4")
    job["algorithm"] = "tds"
    Path(job["input"]).write_text("age\n" + "".join(f"{age}\n" for age in range(100)))
    job["partitioning"] = {"fragments": 2, "max_rows": 10, "sample": 1.0}
    task = PartitionOperator(task_id="t", job=job, map_first_phase=mapped)
    with pytest.raises(AirflowFailException, match=r"partitioning\.max_rows: \d+ .* 4; ask"):
        task.execute(context)
    assert [each.name for each in Path(job["output"]).parent.iterdir()] == ["in.csv"]


def test_one_task_may_have_any_number_of_fragments(monkeypatch, context, job):
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "4")
    job.update(engine="spark", spark=APPLICATION, partitioning={"fragments": 5})
    check_fragments(read_job(job))


@pytest.mark.parametrize(
    ("settings", "slots"),
    [
        ({"EXECUTOR": "CeleryExecutor"}, 16),  # of the DAG
        ({"EXECUTOR": "CeleryExecutor", "PARALLELISM": "0"}, 16),
        ({"EXECUTOR": "CeleryExecutor", "PARALLELISM": "5"}, 5),
        ({"EXECUTOR": "CeleryExecutor", "MAX_MAP_LENGTH": "4"}, 4),
        ({"EXECUTOR": "LocalExecutor"}, 3),
        ({"EXECUTOR": "airflow.executors.local_executor.LocalExecutor"}, 3),
        ({"EXECUTOR": "LocalExecutor", "PARALLELISM": "2"}, 2),
    ],
)
def test_as_many_fragments_are_worthwhile_as_run_at_once(
    monkeypatch, context, job, settings, slots
):
    for name, value in settings.items():
        monkeypatch.setenv(f"AIRFLOW__CORE__{name}", value)
    monkeypatch.setattr(module, "available_cores", lambda: 3)
    monkeypatch.setattr(planning, "_VALUE_S", 1e9)
    rows = "".join(f"{age}\n" for age in range(1000))
    Path(job["input"]).write_text(f"age\n{rows}")
    job.update(cut="median", partitioning={"sample": 0.5})
    fragments = PartitionOperator(task_id="t", job=job).execute(context)
    assert len(fragments) == slots
    assert sum(fragment["rows"] for fragment in fragments) == 1000


def test_on_spark_the_cores_of_this_machine_count_for_nothing(monkeypatch, context, job):
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "LocalExecutor")
    monkeypatch.setattr(module, "available_cores", lambda: 3)
    assert slots_of(read_job({**job, "engine": "spark"}), context) == 16
    assert slots_of(read_job({**job, "engine": "spark", "spark": APPLICATION}), context) is None


def test_a_partition_that_is_stopped_removes_its_working_files(monkeypatch, context, job):
    def stopped(_job, *, work, **_options):
        Path(work).mkdir()
        task.on_kill()

    task = PartitionOperator(task_id="t", job=job)
    monkeypatch.setattr(pipeline, "partition", stopped)
    with pytest.raises(SystemExit):
        task.execute(context)
    assert list(Path(job["output"]).parent.iterdir()) == []


def test_on_spark_a_first_phase_is_not_mapped(monkeypatch, context, tds_job):
    partition = PartitionOperator(task_id="g.p", job=tds_job, map_first_phase=True)
    whole = Fragment(id=0, where="", rows=100, work="w")
    monkeypatch.setattr(pipeline, "partition", lambda *_arguments, **_options: [whole])
    monkeypatch.setattr(module, "announce_attempt", lambda *_arguments: None)
    monkeypatch.setattr(partition, "working", lambda *_arguments: nullcontext())
    partition.job = {**tds_job, "engine": "spark"}
    assert partition.execute(context) == []


def test_fragments_of_several_jobs_are_paired_by_working_directory(context, job):
    jobs = [{**job, "output": f"{job['output']}-{name}"} for name in "ab"] + [{"k": 1}]
    task = GatherFragmentsOperator(task_id="g.t", job=jobs, partitions=[])
    works = [work_of(read_job(each), context) for each in jobs[:2]]
    # The first job failed in its partition task: the second's fragments come first.
    task.partitions = [[{"id": 0, "work": works[1]}, {"id": 1, "work": works[1]}]]
    assert task.execute(context) == [
        {"id": 0, "work": works[1], "job": jobs[1], "map_index": 1},
        {"id": 1, "work": works[1], "job": jobs[1], "map_index": 1},
    ]


@pytest.mark.parametrize("announced", [True, False])
def test_two_jobs_of_one_output_are_refused_before_fragments_are_mapped(
    monkeypatch, context, job, announced
):
    """Their partition tasks share a working directory, so that one removes the other's files."""
    folder = Path(job["output"]).parent
    (folder / "link").symlink_to(folder)
    same = str(folder / "link" / Path(job["output"]).name)
    jobs = [
        {**job, "output": f"{job['output']}-b"},
        {"file": str(folder / "job.json"), "name": "first"},
        {"k": 1},
        {**job, "output": same},
    ]
    (folder / "job.json").write_text(json.dumps(job))
    task = GatherFragmentsOperator(task_id="t", job=jobs, partitions=[])
    works = [None if len(each) == 1 else work_of(read_job(each), context) for each in jobs]
    assert works[1] == works[3]
    if announced:
        monkeypatch.setattr(module, "announced_by", lambda *_: works)
    task.partitions = [[{"id": 0, "work": work}] for work in works if work]
    with pytest.raises(
        AirflowFailException,
        match=r"^output: jobs\[1\] \(first\) and jobs\[3\] \(link/out\) have the same one, .*; giv",
    ):
        task.execute(context)


def test_what_a_cleared_run_has_no_more_is_left_out(context, job):
    """Airflow keeps what the last mapped tasks returned when there were more jobs."""
    jobs = [{**job, "output": f"{job['output']}-{name}"} for name in "ab"]
    task = GatherFragmentsOperator(task_id="g.t", job=jobs[1:], partitions=[])
    gone, here = (work_of(read_job(each), context) for each in jobs)
    before = [{"id": 0, "work": here, "rows": 5}, {"id": 1, "work": here, "rows": 5}]
    task.partitions = [[{"id": 0, "work": here, "rows": 9}], [{"id": 0, "work": gone}], [], before]
    assert task.execute(context) == [
        {"id": 0, "work": here, "rows": 9, "job": jobs[1], "map_index": 0}
    ]


def test_jobs_that_have_no_fragments_at_all_fail_for_good(context, job):
    """Tasks mapped over nothing would be skipped, and the run a success."""
    task = GatherFragmentsOperator(task_id="t", job=[job, {"k": 1}], partitions=[])
    with pytest.raises(AirflowFailException, match=r"none of 2 dataset\(s\) was partitioned"):
        task.execute(context)


def test_the_fragments_of_all_jobs_together_are_limited(monkeypatch, context, job):
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "1")
    task = GatherFragmentsOperator(task_id="t", job=[job], partitions=[])
    work = work_of(read_job(job), context)
    task.partitions = [[{"id": 0, "work": work}, {"id": 1, "work": work}]]
    with pytest.raises(AirflowFailException, match="2 mapped tasks are more than"):
        task.execute(context)
