"""Two DAGs of one shape: one anonymizes the job in $BENCHMARK_JOB, the other's tasks do nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, BaseOperator, Context

from mondrian_ops.task_groups import anonymize_tasks

JOB = os.environ.get("BENCHMARK_JOB", "job.json")


class Nothing(BaseOperator):
    """Returns at once, what it is told to; `given` is only there to depend on."""

    template_fields = ("given",)

    def __init__(self, *, given: Any = None, result: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.given = given
        self.result = result

    def execute(self, context: Context) -> Any:
        return self.result


class Fragments(BaseOperator):
    """Returns as many fragments as the file beside the job says."""

    def execute(self, context: Context) -> Any:
        count = int(Path(JOB).with_name("fragments").read_text())
        return [{"id": i, "where": f"column <= {i}"} for i in range(count)]


with DAG("benchmark_release", schedule=None, catchup=False):
    anonymize_tasks(JOB)

with DAG("benchmark_nothing", schedule=None, catchup=False):
    partition = Fragments(task_id="partition")
    anonymize = Nothing.partial(task_id="anonymize_fragment", result={"rows": 1}).expand(
        given=partition.output
    )
    wrap_up = Nothing(task_id="wrap_up", given=anonymize.output, result={"rows": 8})
    clean_up = Nothing(task_id="clean_up").as_teardown()
    [partition, anonymize, wrap_up] >> clean_up
