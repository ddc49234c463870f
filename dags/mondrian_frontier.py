"""What k and l cost: loss and risk over a grid, to choose them by looking.

Nothing is published. Each point of the grid is a mapped task; `frontier` writes a table (CSV), a
picture (SVG) and a page (HTML) to the output folder, and the table to its log. Of large data whole
fragments are drawn and measured (``docs/frontier.md``). Other options of a job need a job file and
`frontier_tasks`. The defaults measure the example that comes
with this project.
"""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import DAG, Param

from mondrian_ops.core import job as options
from mondrian_ops.forms import Answer, choice, columns, text
from mondrian_ops.task_groups import frontier_tasks

HOME = Path(__file__).resolve().parents[1]

# Sections of the form, closed at first; what has none is open.
MORE = "More"

FORM = {
    "input": text(
        str(HOME / "include" / "examples" / "people.csv"),
        title="Input",
        description="Path or URL of the data: a file, a directory or a glob; Parquet or CSV.",
    ),
    "output": text(
        str(HOME / "out" / "people_frontier"),
        title="Output",
        description="Directory of `frontier.csv`, `frontier.svg` and `frontier.html`; those that "
        "are there are replaced. Working files lie beside it meanwhile.",
    ),
    "quasi_identifiers": columns(
        [
            "age",
            "sex",
            "zip=prefix",
            "country=hierarchy:countries.csv",
            "occupation=hierarchy:occupations.csv",
            "visit_date",
        ],
        title="Quasi-identifiers",
        description="Columns that others know too, one a line: `age` (interval for numbers and "
        "dates, set for text), `zip=prefix`, `country=hierarchy:countries.csv`, `job=set`, "
        "`age=ladder:5/10/20@16`.",
        minItems=1,
    ),
    "sensitive": columns(
        ["diagnosis", "income"],
        title="Sensitive columns",
        description="Columns nobody shall learn of a person. Needed for an l above 1.",
    ),
    "k": columns(
        ["2", "5", "10", "25", "50", "100"],
        title="Values of k",
        description="The least rows that share a combination of quasi-identifiers; one a line.",
        minItems=1,
    ),
    "l": columns(
        ["1", "2", "3"],
        title="Values of l",
        description="The least well-represented sensitive values among them; one a line. 1: not "
        "asked for.",
        minItems=1,
    ),
    "rows": Param(
        None,
        type=["null", "integer"],
        minimum=1,
        section=MORE,
        title="Rows to measure",
        description="About so many, in whole fragments. Empty: 200,000. All of them, if there are "
        "not more.",
    ),
    "sample": Param(
        None,
        type=["null", "number"],
        exclusiveMinimum=0,
        maximum=1,
        section=MORE,
        title="Share of the rows to measure",
        description="Instead of a number of rows; 1 measures all of them.",
    ),
    "algorithm": choice(
        options.ALGORITHMS,
        section=MORE,
        title="Algorithm",
        description="How equivalence classes are found.",
    ),
    "cut": choice(
        options.Cut,
        section=MORE,
        title="Cut",
        description="median: classic. gain: the cut that saves most information. lookahead: "
        "saves yet more, slower. auto: the best that the time budget allows.",
    ),
    "cut_budget_s": Param(
        5,
        type="number",
        exclusiveMinimum=0,
        section=MORE,
        title="Time budget (s)",
        description="Seconds of one core that `cut: auto` may plan for, on all rows.",
    ),
    "seed": Param(
        0,
        type="integer",
        minimum=0,
        section=MORE,
        title="Seed",
        description="Of the draw. The same data, job and seed give the same figures.",
    ),
}
OF_THE_GRID = ("k", "l", "rows", "sample")

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
            **{name: Answer(dag, name) for name in FORM if name not in (*OF_THE_GRID, "seed")},
            "k": 2,  # each point has its own
            "partitioning": {"seed": Answer(dag, "seed")},
        },
        **{name: Answer(dag, name) for name in OF_THE_GRID},
        folder=Answer(dag, "output"),
    )
