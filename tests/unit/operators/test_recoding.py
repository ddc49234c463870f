"""Two-phase top-down specialization with its first phase in mapped tasks."""

from __future__ import annotations

import pytest
from airflow.sdk.exceptions import AirflowFailException

from mondrian_ops.operators import PartitionOperator, RecodeOperator, SpecializePartOperator


def test_a_first_phase_is_mapped_over_its_parts(context, tds_job):
    partition = PartitionOperator(task_id="g.p", job=tds_job, map_first_phase=True)
    parts = partition.execute(context)
    assert [each["part"] for each in parts] == [0, 1]
    task = SpecializePartOperator(task_id="g.s", job=tds_job, part=parts[0])
    assert task.part_name == "part 1 of 2"
    summaries = [task.execute(context)]
    task.part = parts[1]
    summaries.append(task.execute(context))
    assert sum(each["rows"] for each in summaries) == 100
    recode = RecodeOperator(task_id="g.r", job=tds_job, parts=summaries)
    assert recode.execute(context) == PartitionOperator(task_id="g.p", job=tds_job).execute(context)


def test_a_part_task_that_is_not_mapped_says_so(context, job):
    task = SpecializePartOperator(task_id="t", job=job, part=[{"part": 0}])
    with pytest.raises(AirflowFailException, match="map this task over"):
        task.execute(context)


@pytest.mark.parametrize("changed", [{"algorithm": "mondrian"}, {"tds": {"partitions": 1}}])
def test_other_jobs_have_nothing_to_map_but_their_fragments(context, tds_job, changed):
    tds_job.update(changed)
    partition = PartitionOperator(task_id="g.p", job=tds_job, map_first_phase=True)
    assert partition.execute(context) == []
    (fragment,) = RecodeOperator(task_id="g.r", job=tds_job, parts=[]).execute(context)
    assert fragment["rows"] == 100


def test_without_its_working_files_a_recoding_fails_for_good(context, job):
    with pytest.raises(AirflowFailException, match="run again from the partition task"):
        RecodeOperator(task_id="t", job=job, parts=[]).execute(context)
