"""Fragments of several jobs, for one task to be mapped over."""

from __future__ import annotations

import pytest
from airflow.sdk.exceptions import AirflowFailException

from mondrian_ops.operators import GatherFragmentsOperator
from mondrian_ops.operators.base import read_job, work_of


def test_fragments_of_several_jobs_are_paired_by_working_directory(context, job):
    jobs = [{**job, "output": f"{job['output']}-{name}"} for name in "ab"] + [{"k": 1}]
    task = GatherFragmentsOperator(task_id="g.t", job=jobs, partitions=[])
    works = [work_of(read_job(each), task, context) for each in jobs[:2]]
    # The first job failed in its partition task: the second's fragments come first.
    task.partitions = [[{"id": 0, "work": works[1]}, {"id": 1, "work": works[1]}]]
    assert task.execute(context) == [
        {"id": 0, "work": works[1], "job": jobs[1]},
        {"id": 1, "work": works[1], "job": jobs[1]},
    ]


def test_jobs_that_have_no_fragments_at_all_fail_for_good(context, job):
    """Tasks mapped over nothing would be skipped, and the run a success."""
    task = GatherFragmentsOperator(task_id="t", job=[job, {"k": 1}], partitions=[])
    with pytest.raises(AirflowFailException, match=r"none of 2 data set\(s\) was partitioned"):
        task.execute(context)


def test_the_fragments_of_all_jobs_together_are_limited(monkeypatch, context, job):
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "1")
    task = GatherFragmentsOperator(task_id="t", job=[job], partitions=[])
    work = work_of(read_job(job), task, context)
    task.partitions = [[{"id": 0, "work": work}, {"id": 1, "work": work}]]
    with pytest.raises(AirflowFailException, match="2 mapped tasks are more than"):
        task.execute(context)
