"""Measure loss and risk over a grid of k and l, to help you choose both.

Nothing is published. Each point of the grid is a mapped task; `frontier` writes a table (CSV), a
picture (SVG) and a page (HTML) to the output directory, and the table to its log. If the dataset is
large, a sample of whole fragments is measured (``docs/choose-k.md``). For options that the form
lacks, use `frontier_tasks` with a job file. The defaults measure the example dataset that comes
with this project.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from mondrian_ops.forms import Answer, columns, job_answers, job_form
from mondrian_ops.task_groups import frontier_tasks

# A section of the form, which is closed at first.
MEASURED = "Sample size"

GRID = {
    "k": columns(
        ["2", "5", "10", "25", "50", "100"],
        "The minimum number of rows per equivalence class. One value per line.",
        title="Values of k",
        minItems=1,
    ),
    "l": columns(
        ["1", "2", "3"],
        "The minimum number of different sensitive values per equivalence class. One value per "
        "line; 1 sets no requirement, others need sensitive columns.",
        title="Values of l",
        minItems=1,
    ),
    "rows": Param(
        None,
        type=["null", "integer"],
        minimum=1,
        section=MEASURED,
        title="Rows",
        description_md="About how many rows to measure, in whole fragments. "
        "Empty: 200,000, or all rows if there are fewer.",
    ),
    "sample": Param(
        None,
        type=["null", "number"],
        exclusiveMinimum=0,
        maximum=1,
        section=MEASURED,
        title="Share of the rows",
        description_md="Use it instead of a number of rows; 1 measures all rows. "
        "Empty: the number of rows decides.",
    ),
}
FORM = {
    **job_form(
        *("input", "quasi_identifiers", "sensitive", "algorithm", "cut", "cut_budget_s", "seed"),
        input="include/examples/people.csv",
        quasi_identifiers=[
            "age",
            "sex",
            "zip=prefix",
            "country=hierarchy:countries.csv",
            "occupation=hierarchy:occupations.csv",
            "visit_date",
        ],
        sensitive=["diagnosis", "income"],
    ),
    "output": Param(
        "out/people_frontier",
        type="string",
        minLength=1,
        title="Output",
        description_md="The directory for frontier.csv, frontier.svg and frontier.html, which "
        "replace earlier ones.",
    ),
    **GRID,
}

with DAG(
    dag_id="mondrian_frontier",
    dag_display_name="Mondrian: frontier",
    description="Measure loss and risk over a grid of k and l; publishes nothing",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    params=FORM,
    tags=["mondrian_ops", "privacy"],
) as dag:
    frontier_tasks(
        # The job needs a k, but each point has its own.
        {**job_answers(dag, (name for name in FORM if name not in GRID)), "k": 2},
        k=Answer(dag, "k"),
        l=Answer(dag, "l"),
        rows=Answer(dag, "rows"),
        sample=Answer(dag, "sample"),
        folder=Answer(dag, "output"),
    )
