"""The three phases, with a second try soon after the first; the job is in the run's conf."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, Param

from mondrian_ops.task_groups import anonymize_tasks

for dag_id, deferrable in (("retried", False), ("deferred", True)):
    with DAG(dag_id, schedule=None, catchup=False, params={"job": Param({}, type="object")}) as dag:
        anonymize_tasks(
            dag.param("job"),
            deferrable=deferrable,
            retries=1,
            retry_delay=timedelta(seconds=1),
        )
