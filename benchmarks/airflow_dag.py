"""The DAG over a million rows beside a DAG of the same shape whose tasks do nothing.

Both run in one Airflow of their own: SQLite, LocalExecutor, in the scratch directory.
"""

from __future__ import annotations

import json
import shutil
import statistics
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from benchmarks import required
from benchmarks.context import Context
from benchmarks.measure import ROOT, Run
from benchmarks.tables import Table, seconds, times

if TYPE_CHECKING:
    from local_airflow import LocalAirflow

_RELEASE, _NOTHING = "benchmark_release", "benchmark_nothing"


def beside_empty_dag(context: Context) -> Iterator[Table]:
    """Median durations and CPU of the two DAG runs, for `fragments: auto` and for eight.

    They are taken in turn, after one run each to warm up.
    """
    from local_airflow import LocalAirflow

    file = context.scratch / "dag-job.json"
    settings = {"BENCHMARK_JOB": str(file), **context.allowed}
    with LocalAirflow(
        context.scratch / "airflow", ROOT / "benchmarks" / "dags", settings=settings
    ) as airflow:
        for fragments in ("auto", 8):
            job = context.job(context.rows, cut="median", partitioning={"fragments": fragments})
            file.write_text(json.dumps(job), encoding="utf-8")
            count, taken = _in_turn(context, airflow, job, file.with_name("fragments"))
            yield _table(context, fragments, count, taken)


def _in_turn(
    context: Context, airflow: LocalAirflow, job: dict[str, Any], shape: Path
) -> tuple[int, dict[str, list[Run]]]:
    """The number of fragments, which ``shape`` tells the empty DAG, and the runs of both DAGs."""
    taken: dict[str, list[Run]] = {_RELEASE: [], _NOTHING: []}
    for turn in range(context.rounds + 1):
        for dag, runs in taken.items():
            before = _cpu_s(airflow)
            took = run_dag(airflow, dag)
            run = Run(took, 0, _cpu_s(airflow) - before)
            context.say(f"{dag}: {took:.1f} s, CPU {run.cpu_s:.1f} s{'' if turn else ' (first)'}")
            if turn:
                runs.append(run)
            if dag == _RELEASE:
                report = json.loads(Path(job["output"], "_report.json").read_text("utf-8"))
                shape.write_text(str(len(report["fragments"])))
                shutil.rmtree(job["output"])
    return int(shape.read_text()), taken


def _table(context: Context, asked: str | int, count: int, taken: dict[str, list[Run]]) -> Table:
    def compared(name: str, field: str, most: float) -> tuple[str, ...]:
        nothing, release = (
            statistics.median(getattr(run, field) for run in taken[dag])
            for dag in (_NOTHING, _RELEASE)
        )
        met = context.verdict(release <= most * nothing)
        ratio = times(release / nothing)
        return name, seconds(nothing), seconds(release), ratio, f"≤ {times(most)}", met

    return Table(
        f"The DAG over {context.rows:,} rows, fragments: {asked} ({count}), LocalExecutor",
        ("", "tasks that do nothing", "mondrian_ops", "ratio", "required", ""),
        [
            compared("from start to end", "seconds", required.TIMES_EMPTY_DAG),
            compared("CPU of scheduler and tasks", "cpu_s", required.CPU_TIMES_EMPTY_DAG),
        ],
        note="Beside a DAG of the same shape. The time is that between the start and the end of "
        "the DAG run, as Airflow records them; cut: median. SQLite, runs in turn, median of "
        f"{context.rounds} after one to warm up.",
    )


def _cpu_s(airflow: LocalAirflow) -> float:
    """Seconds of processors that the scheduler and its tasks have taken, also those that ended."""
    scheduler, total = airflow.processes()["scheduler"], 0.0
    for process in (scheduler, *scheduler.children(recursive=True)):
        try:
            of_process = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += of_process.user + of_process.system
        total += of_process.children_user + of_process.children_system
    return total


def run_dag(airflow: LocalAirflow, dag: str) -> float:
    """Seconds from start to end of one run of a DAG."""
    run_id = airflow.trigger(dag)
    if airflow.finish(dag, run_id) != "success":
        raise RuntimeError(f"{dag}: the run failed; see {airflow.home / 'logs'}")
    run = airflow.run(dag, run_id)
    start, end = (datetime.fromisoformat(run[when]) for when in ("start_date", "end_date"))
    return (end - start).total_seconds()
