"""The DAG over a million rows beside a DAG of the same shape whose tasks do nothing.

Both run in one Airflow of their own: SQLite, LocalExecutor, in the scratch directory.
"""

from __future__ import annotations

import json
import shutil
import statistics
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from benchmarks import required
from benchmarks.context import Context
from benchmarks.measure import ROOT
from benchmarks.tables import Table, seconds, times

if TYPE_CHECKING:
    from local_airflow import LocalAirflow

_RELEASE, _NOTHING = "benchmark_release", "benchmark_nothing"


def beside_empty_dag(context: Context) -> Iterator[Table]:
    """Median durations of the two DAG runs, taken in turn after one run each to warm up."""
    from local_airflow import LocalAirflow

    job = context.job(context.rows, cut="median", partitioning={"fragments": 8})
    file = context.scratch / "dag-job.json"
    file.write_text(json.dumps(job), encoding="utf-8")
    taken: dict[str, list[float]] = {_NOTHING: [], _RELEASE: []}
    settings = {"BENCHMARK_JOB": str(file), **context.allowed}
    with LocalAirflow(
        context.scratch / "airflow", ROOT / "benchmarks" / "dags", settings=settings
    ) as airflow:
        for turn in range(context.rounds + 1):
            for dag, durations in taken.items():
                shutil.rmtree(job["output"], ignore_errors=True)
                took = run_dag(airflow, dag)
                context.say(f"{dag}: {took:.1f} s{'' if turn else ' (to warm up)'}")
                if turn:
                    durations.append(took)
    nothing, release = (statistics.median(taken[dag]) for dag in (_NOTHING, _RELEASE))
    yield Table(
        f"The DAG over {context.rows:,} rows, 8 fragments, LocalExecutor",
        ("", "required", "here", ""),
        [
            ("a DAG of the same shape whose tasks do nothing", "", seconds(nothing), ""),
            ("mondrian_ops", f"≤ {times(required.TIMES_EMPTY_DAG)}", seconds(release),
             context.verdict(release <= required.TIMES_EMPTY_DAG * nothing)),
            ("ratio", "", times(release / nothing), ""),
        ],
        note="From the start to the end of the DAG run, as Airflow records them; cut: median. "
        f"SQLite, runs in turn, median of {context.rounds} after one to warm up.",
    )  # fmt: skip


def run_dag(airflow: LocalAirflow, dag: str) -> float:
    """Seconds from start to end of one run of a DAG."""
    run_id = airflow.trigger(dag)
    if airflow.finish(dag, run_id) != "success":
        raise RuntimeError(f"{dag}: the run failed; see {airflow.home / 'logs'}")
    run = airflow.run(dag, run_id)
    start, end = (datetime.fromisoformat(run[when]) for when in ("start_date", "end_date"))
    return (end - start).total_seconds()
