"""The task that recodes what the first phase has decided."""

from __future__ import annotations

import pytest
from airflow.sdk.exceptions import AirflowFailException

from mondrian_ops.operators import PartitionOperator, RecodeOperator


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
