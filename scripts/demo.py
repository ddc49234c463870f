"""`make demo`: the DAG mondrian_anonymize over a million poker hands, by a real Airflow."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from airflow_api import AirflowError
from local_airflow import CHECKOUT, LocalAirflow, termination_as_exit

ROWS = 1_000_000
DATA = CHECKOUT / "data" / "poker.parquet"
OUTPUT = CHECKOUT / "out" / "poker"
HOME = CHECKOUT / ".airflow"
DAG_ID = "mondrian_anonymize"
JOB = {
    "input": str(DATA),
    "output": str(OUTPUT),
    "k": 5,
    "l": 2,
    "identifiers": [],
    "quasi_identifiers": [f"{kind}{card}" for card in range(1, 6) for kind in "sr"],
    "sensitive": ["hand"],
    "fragments": 8,
}


def main() -> int:
    """Generate, start Airflow, run the DAG, show the report; 0 if a release was published."""
    try:
        with termination_as_exit():
            generate()
            run()
    except AirflowError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    show_report()
    return 0


def generate() -> None:
    """Generate the synthetic hands, unless they exist."""
    if DATA.exists():
        return
    from mondrian_ops import datasets

    say(f"generating {ROWS:,} poker hands")
    DATA.parent.mkdir(parents=True, exist_ok=True)
    datasets.generate("poker", rows=ROWS, seed=0, output=str(DATA))


def run() -> None:
    """Run the DAG and show its progress.

    Raises AirflowError if the run fails, with the log of the task that failed.
    """
    say(f"starting Airflow in {HOME.relative_to(CHECKOUT)}/ (scheduler, API server, LocalExecutor)")
    with LocalAirflow(HOME) as airflow:
        say(f"it answers at {airflow.url}; triggering the DAG {DAG_ID}")
        seconds = airflow.show(DAG_ID, airflow.trigger(DAG_ID, JOB))
        say(f"Airflow ran the DAG in {seconds:.1f} s")


def show_report() -> None:
    """The report as a table, and where to look next."""
    from mondrian_ops.report import HTML_NAME, JSON_NAME, render_text

    report = json.loads((OUTPUT / JSON_NAME).read_text())
    print(f"\n{render_text(report, 100, colour=sys.stdout.isatty())}")
    print(
        f"""
The release     {shown(OUTPUT)}/           any Parquet reader opens it as one table
Its report      {shown(OUTPUT / HTML_NAME)}
Airflow's UI    make ui                  trigger a run of your own from the form
Your data       python -m mondrian_ops run JOB.yaml
"""
    )


def shown(path: Path) -> str:
    """The path as seen from the checkout."""
    return str(path.relative_to(CHECKOUT))


def say(line: str) -> None:
    """A line of progress."""
    print(f"· {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
