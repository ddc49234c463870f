"""Show what an unknown table holds of people, and propose a job.

Nothing is published, and no value of fewer than five people is shown. The log of the task has what
was found by column; the task returns a job to begin with, as YAML (tab *XCom*).
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from mondrian_ops.forms import Answer
from mondrian_ops.operators import InspectOperator

FORM = {
    "input": Param(
        "include/examples/people.csv",
        type="string",
        minLength=1,
        title="Input",
        description_md="The path or URL of a file, a directory or a glob; Parquet or CSV. Or a "
        "table: iceberg://CATALOG/NAMESPACE.TABLE.",
    ),
    "rows": Param(
        None,
        type=["null", "integer"],
        minimum=1,
        title="Rows",
        description_md="About how many random rows to look at. Empty: a million.",
    ),
}

with DAG(
    dag_id="mondrian_inspect",
    dag_display_name="Mondrian: inspect",
    description="Show what an unknown table holds of people, and propose a job",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    params=FORM,
    tags=["mondrian_ops", "privacy"],
) as dag:
    InspectOperator(task_id="inspect", input=Answer(dag, "input"), rows=Answer(dag, "rows"))
