"""Two DAGs of one shape: one anonymizes the job in $BENCHMARK_JOB, the other's tasks do nothing."""

from __future__ import annotations

import os
from typing import Any

from airflow.sdk import DAG, BaseOperator, Context

from mondrian_ops.task_groups import anonymize_tasks

FRAGMENTS = 8


class Nothing(BaseOperator):
    """Returns at once, what it is told to; `given` is only there to depend on."""

    template_fields = ("given",)

    def __init__(self, *, given: Any = None, result: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.given = given
        self.result = result

    def execute(self, context: Context) -> Any:
        return self.result


with DAG("benchmark_release", schedule=None, catchup=False):
    anonymize_tasks(os.environ.get("BENCHMARK_JOB", "job.json"))

with DAG("benchmark_nothing", schedule=None, catchup=False):
    fragments = [{"id": i, "where": f"column <= {i}"} for i in range(FRAGMENTS)]
    partition = Nothing(task_id="partition", result=fragments)
    anonymize = Nothing.partial(task_id="anonymize_fragment", result={"rows": 1}).expand(
        given=partition.output
    )
    wrap_up = Nothing(task_id="wrap_up", given=anonymize.output, result={"rows": 8})
    clean_up = Nothing(task_id="clean_up").as_teardown()
    [partition, anonymize, wrap_up] >> clean_up
