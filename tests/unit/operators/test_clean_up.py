"""Working files are removed, wherever they were announced."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest
from airflow.sdk.exceptions import AirflowFailException

from mondrian_ops import pipeline
from mondrian_ops.operators import CleanUpOperator, PartitionOperator
from mondrian_ops.operators.base import announce_work, read_job, work_of


def test_clean_up_takes_one_job_or_many_or_none(context, job):
    task = CleanUpOperator(task_id="t", job=job)
    work = Path(work_of(read_job(job), task, context))
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
    clean_up = CleanUpOperator(task_id="c", job="/no/such/job.yaml")
    clean_up.upstream_task_ids.add("t")
    work = Path(work_of(read_job(job), task, context))
    work.mkdir()
    clean_up.execute(context)
    assert not work.exists()


def test_working_files_where_jobs_may_not_write_any_more_are_not_left_silently(
    context, job, monkeypatch, tmp_path
):
    """An administrator narrows the limits while a run is under way."""
    there = {**job, "output": str(tmp_path / "still" / "out")}
    task = CleanUpOperator(task_id="c", job=[job, there])
    task.upstream_task_ids.add("t")
    works = [Path(work_of(read_job(each), task, context)) for each in (job, there)]
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
