"""`make demo`: the DAG mondrian_anonymize over a million poker hands, by a real Airflow."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from local_airflow import CHECKOUT, FINISHED, LocalAirflow, LocalAirflowError, termination_as_exit

ROWS = 1_000_000
DATA = CHECKOUT / "data" / "poker.parquet"
OUTPUT = CHECKOUT / "out" / "poker"
HOME = CHECKOUT / ".airflow"
DAG_ID = "mondrian_anonymize"
PHASES = ("partition", "anonymize_fragment", "wrap_up", "clean_up")
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
    except LocalAirflowError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    show_report()
    return 0


def generate() -> None:
    """The synthetic hands, once."""
    if DATA.exists():
        return
    from mondrian_ops import datasets

    say(f"generating {ROWS:,} poker hands")
    DATA.parent.mkdir(parents=True, exist_ok=True)
    datasets.generate("poker", rows=ROWS, seed=0, output=str(DATA))


def run() -> None:
    """Run the DAG and tell how far it is.

    Raises LocalAirflowError if the run fails, with the log of the task that failed.
    """
    say(f"starting Airflow in {HOME.relative_to(CHECKOUT)}/ (scheduler, API server, LocalExecutor)")
    with LocalAirflow(HOME) as airflow:
        say(f"it answers at {airflow.url}; triggering the DAG {DAG_ID}")
        run_id = airflow.trigger(DAG_ID, JOB)
        started = time.monotonic()
        tasks: list[dict[str, Any]] = []
        shown = ""
        for tasks in airflow.watch(DAG_ID, run_id):
            states = progress(tasks)
            if states != shown:
                print(f"  {time.monotonic() - started:5.1f} s  {states}", flush=True)
                shown = states
        state = airflow.run(DAG_ID, run_id)["state"]
        if state != "success":
            raise LocalAirflowError(f"the run {state}\n{first_failure(airflow, run_id, tasks)}")
        say(f"Airflow ran the DAG in {time.monotonic() - started:.1f} s")


def progress(tasks: Sequence[Mapping[str, Any]]) -> str:
    """How many tasks of each phase are done: ``partition done   anonymize_fragment 3 of 8``."""
    told = []
    for phase in PHASES:
        states = Counter(task["state"] for task in tasks if task["task_id"] == phase)
        done = sum(count for state, count in states.items() if state in FINISHED)
        total = states.total()
        if states["failed"] or states["upstream_failed"]:
            told.append(f"{phase} failed")
        elif total and done == total:
            told.append(f"{phase} done" if total == 1 else f"{phase} {done} of {total} done")
        elif done or states["running"]:
            told.append(f"{phase} running" if total == 1 else f"{phase} {done} of {total}")
    return "   ".join(told) or "queued"


def first_failure(airflow: LocalAirflow, run_id: str, tasks: Sequence[Mapping[str, Any]]) -> str:
    """The end of the log of the first task that failed by itself."""
    for task in tasks:
        if task["state"] == "failed":
            return f"{task['task_id']}:\n{airflow.log_of(DAG_ID, run_id, task)[-3000:]}"
    return f"see {HOME / 'logs'}"


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
