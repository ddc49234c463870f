"""``clean_up`` behind other tasks of a DAG."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from airflow.sdk import DAG

from mondrian_ops.operators import CleanUpOperator, PartitionOperator


def clean_up_after(job: Any, *before: str) -> CleanUpOperator:
    """The task behind those with the ids ``before``, each of which follows the one before it."""
    with DAG("a_dag", schedule=None):
        tasks = [PartitionOperator(task_id=name, job=job) for name in before]
        clean_up = CleanUpOperator(task_id="clean_up", job=job)
        for one, other in pairwise(tasks):
            one >> other
        tasks >> clean_up
    return clean_up
