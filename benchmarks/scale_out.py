"""The DAG over fragments and engines, and the Spark engine beside the published reference.

The Spark cluster is the tests' own: a standalone master, two workers of one core and 2 GB each and
a Spark Connect server, all on this machine. What two cores can show is that more fragments and
another engine cost little; that twelve machines are faster than one needs twelve machines.
"""

from __future__ import annotations

import json
import shutil
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import required
from benchmarks.airflow_dag import run_dag
from benchmarks.context import MILLION, Context
from benchmarks.measure import ROOT
from benchmarks.tables import Table, change, seconds
from mondrian_ops.job.options import options_of
from mondrian_ops.job.sections import Spark

if TYPE_CHECKING:
    from local_airflow import LocalAirflow
    from mondrian_ops.engines import Engine

FRAGMENTS = (1, 2, 4, 8, 12)
ENGINES = ("local", "spark")
K, L = (5, 10, 20), (2, 3, 4)  # as in De Capitani di Vimercati et al. 2023, figure 10

_NOTE = (
    "Wall time of the DAG run as Airflow records it, LocalExecutor on SQLite, cut: median, one "
    "run each; engine spark through a Spark Connect server that is already running, two workers "
    "of one core. In parentheses what is saved against the centralized run (one fragment, engine "
    "local), or how many times as long it takes. Two cores do two fragments at once and no more, "
    "and scheduler, API server and Spark's processes share them: beyond two fragments only the "
    "cost of more tasks shows, and what twelve machines would save does not."
)


def figure_10(context: Context) -> Iterator[Table]:
    """Wall time of the DAG for 1 to 12 fragments, as in their figure 10."""
    from local_airflow import LocalAirflow
    from servers.spark import SparkCluster

    file = context.scratch / "dag-job.json"
    file.write_text(json.dumps(context.job(context.rows)), encoding="utf-8")
    with SparkCluster(context.scratch / "spark") as cluster:
        settings = {
            "BENCHMARK_JOB": str(file),
            **context.allowed,
            "AIRFLOW_CONN_SPARK_CONNECT_DEFAULT": _connection(cluster.remote),
        }
        folder = ROOT / "benchmarks" / "dags"
        with LocalAirflow(context.scratch / "airflow", folder, settings=settings) as airflow:
            grid = [(k, l) for l in L for k in K]  # noqa: E741
            yield _grid(context, airflow, file, context.rows, grid)
            if context.rows == MILLION:
                yield _grid(context, airflow, file, 10 * MILLION, grid)


def _connection(remote: str) -> str:
    host, _, port = remote.removeprefix("sc://").partition(":")
    return json.dumps({"conn_type": "spark_connect", "host": host, "port": int(port)})


def _grid(
    context: Context,
    airflow: LocalAirflow,
    file: Path,
    rows: int,
    grid: Sequence[tuple[int, int]],
) -> Table:
    lines = []
    centralized: dict[tuple[int, int], float] = {}
    for engine in ENGINES:
        for k, l in grid:  # noqa: E741 - as in every paper
            took = []
            for fragments in FRAGMENTS:
                changes = {"k": k, "l": l, "cut": "median", "engine": engine}
                job = context.job(rows, **changes, partitioning={"fragments": fragments})
                file.write_text(json.dumps(job), encoding="utf-8")
                shutil.rmtree(job["output"], ignore_errors=True)
                took.append(run_dag(airflow, "benchmark_release"))
            whole = centralized.setdefault((k, l), took[0])  # the local engine comes first
            lines.append((f"{engine}, k = {k}, l = {l}", *(_saved(t, whole) for t in took)))
            context.say(f"{rows:,} rows: {'  '.join(lines[-1])}")
    head = ("", *(f"{n} fragment{'s' * (n > 1)}" for n in FRAGMENTS))
    return Table(f"The DAG over {rows:,} rows, by fragments and engine", head, lines, note=_NOTE)


def _saved(took: float, whole: float) -> str:
    """A time, and what it saves of that for the whole, or how many times as long it takes."""
    if took < whole:
        return f"{took:.1f} s (saves {100 * (1 - took / whole):.0f} %)"
    return f"{took:.1f} s ({took / whole:.1f} ×)"


def spark_engine(context: Context) -> Iterator[Table]:
    """The three phases by the Spark engine, Spark already running, beside the reference's."""
    from mondrian_ops.engines.spark import SparkEngine, session_of
    from servers.spark import SparkCluster

    reference = required.REFERENCE_DISTRIBUTED["multidimensional", 10][2]
    limit = reference / required.REFERENCE_SPARK_SHARE
    local, loss = _run(context, None, engine="local")
    lines = [("local engine", "", seconds(local), "", "")]
    with SparkCluster(context.scratch / "spark") as cluster, ExitStack() as stack:
        session = session_of(cluster.remote)
        stack.callback(session.stop)
        engine = SparkEngine(session)
        for shape in options_of(Spark)["shape"].words:
            took, ncp = _run(context, engine, engine="spark", spark={"shape": shape})
            verdict = context.verdict(took <= limit)
            name = f"Spark engine, shape: {shape}"
            lines.append((name, f"≤ {seconds(limit)}", seconds(took), change(ncp, loss), verdict))
    lines.append(("the reference's program, 2 cores", "", seconds(reference), "", ""))
    yield Table(
        f"All three phases over {context.rows:,} rows, 10 fragments, Spark on 2 cores",
        ("", "required", "here", "NCP against local", ""),
        lines,
        note="From file to verified, published release; cut: median, 0.1 % sample; Spark is "
        f"already running, median of {context.rounds} after one to warm up. The reference ran "
        "on another machine.",
    )


def _run(context: Context, on: Engine | None, **changes: Any) -> tuple[float, float]:
    """Median seconds of a run, and its NCP."""
    from mondrian_ops import pipeline

    changes |= {"cut": "median", "partitioning": {"fragments": 10}}
    job = pipeline.load_job(context.job(context.rows, **changes))
    taken = []
    for _ in range(context.rounds + 1):
        started = time.perf_counter()
        report = pipeline.run(job, engine=on)
        taken.append(time.perf_counter() - started)
    return statistics.median(taken[1:]), report["metrics"]["NCP"]
