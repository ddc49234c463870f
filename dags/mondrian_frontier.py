"""What k and l cost: loss and risk over a grid, to choose them by looking.

Nothing is published. Each point of the grid is a mapped task; `frontier` writes a table (CSV), a
picture (SVG) and a page (HTML) to the output folder, and the table to its log. Of large data whole
fragments are drawn and measured (``docs/choose-k.md``). Other options of a job need a job file and
`frontier_tasks`. The defaults measure the example that comes
with this project.
"""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import DAG, Param

from mondrian_ops.forms import Answer, columns, job_answers, job_form
from mondrian_ops.task_groups import frontier_tasks

HOME = Path(__file__).resolve().parents[1]

# A section of the form, closed at first.
MEASURED = "What is measured"

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
        description_md="About this number of rows is measured, in whole fragments. "
        "Empty: 200,000, or all rows if there are fewer.",
    ),
    "sample": Param(
        None,
        type=["null", "number"],
        exclusiveMinimum=0,
        maximum=1,
        section=MEASURED,
        title="Share of the rows",
        description_md="In place of a number of rows; 1 measures all of them. "
        "Empty: the number of rows decides.",
    ),
}
FORM = {
    **job_form(
        *("input", "quasi_identifiers", "sensitive", "algorithm", "cut", "cut_budget_s", "seed"),
        input=str(HOME / "include" / "examples" / "people.csv"),
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
        str(HOME / "out" / "people_frontier"),
        type="string",
        minLength=1,
        title="Output",
        description_md="The directory of `frontier.csv`, `frontier.svg` and `frontier.html`. "
        "Earlier ones are replaced.",
    ),
    **GRID,
}

with DAG(
    dag_id="mondrian_frontier",
    dag_display_name="Mondrian: frontier",
    description="Loss and risk against k and l; publishes nothing",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    params=FORM,
    tags=["mondrian_ops", "privacy"],
) as dag:
    frontier_tasks(
        {
            **job_answers(dag, (name for name in FORM if name not in GRID)),
            "k": 2,
        },  # each point has a k of its own
        k=Answer(dag, "k"),
        l=Answer(dag, "l"),
        rows=Answer(dag, "rows"),
        sample=Answer(dag, "sample"),
        folder=Answer(dag, "output"),
    )
