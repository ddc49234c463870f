"""Remove the working files that no run needs any more.

Working files hold original rows. A run that succeeds removes its own. A failed run keeps them for
`[mondrian_ops] keep_hours`, so that its failed tasks can be cleared; and a run that was deleted, or
met its `dagrun_timeout`, removes none. This DAG looks below each of `[mondrian_ops]
allowed_outputs`. If it is paused, such files stay.
"""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG

from mondrian_ops.operators import SweepOperator

with DAG(
    dag_id="mondrian_sweep",
    dag_display_name="Mondrian: sweep",
    description="Remove working files that no run needs",
    doc_md=__doc__,
    schedule="@hourly",
    start_date=datetime(2025, 1, 1),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    default_args={"retries": 2},
    tags=["mondrian_ops", "privacy"],
) as dag:
    SweepOperator(task_id="sweep")
