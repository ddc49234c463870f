"""A billion rows on one machine, from Parquet to published release, beside a tenth of them.

And what ten billion would take on a cluster.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks import required
from benchmarks.context import MILLION, Context
from benchmarks.estimate import CLUSTER, estimated
from benchmarks.growth import costs_of
from benchmarks.load import SLOTS, Measured, Setting, measured, started
from benchmarks.measure import process, python
from benchmarks.tables import Table, gib, seconds, times, verdict

SIZES = (100 * MILLION, 1000 * MILLION)
_FILE_ROWS = 25 * MILLION
_AS_IT_COMES = Setting("local", "auto", "auto")  # retrieval and fragments as a job leaves them


def tables(context: Context) -> Iterator[Table]:
    """Every task of each run, the runs beside one another, the estimate from the largest."""
    few, runs = started(context), []
    for rows in context.billion_sizes:
        source = _hands(context, rows)
        runs.append(measured(context, rows, _AS_IT_COMES, source=source))
        shutil.rmtree(source)  # before the next one is made
        for line in _lines(runs[-1]):
            context.say(" | ".join(line))
    yield Table(
        "A billion rows, task by task: hands, 10 quasi-identifiers, k = 5, l = 2",
        ("rows", "task", "processes", "take, all", "longest", "CPU", "CPU of a row",
         "largest peak", "written"),
        [line for run in runs for line in _lines(run)],
        note="From Parquet to published release with the local engine on two cores; a job that "
        "leaves retrieval and number of fragments open. Each task is a process of its own, without "
        f"Airflow, `anonymize_fragment` {SLOTS} at a time. Peaks are of resident memory, files "
        "that are mapped among them. Written: by all processes of the task, temporary files "
        "without a name among it.",
    )  # fmt: skip
    yield Table(
        "The runs beside one another",
        ("rows", "source", "fragments", "run", "of the first", f"≤ {required.TENFOLD:g} × tenfold",
         "CPU", "of the first", "largest peak", "≤ 4 GiB", "source read", "working disk",
         "release"),
        [_whole(run, runs[0]) for run in runs],
        note="Each once, from the start of the first task to the end of the last. Asked: at most "
        f"{required.TENFOLD:g} times the time for ten times the rows; where a machine has other "
        "work beside, which the load before tells, CPU compares better. Working disk: scattered "
        "rows and the unpublished release when they are most; the source, compressed Parquet of "
        f"{_FILE_ROWS // MILLION} million rows a file, is not in it.",
    )  # fmt: skip
    yield estimated(costs_of(runs[-1], few), CLUSTER)


def _hands(context: Context, rows: int) -> Path:
    """A directory of hands, generated two files at once."""
    folder = context.scratch / f"poker-{rows}"
    folder.mkdir()

    def generate(number: int, first: int) -> None:
        output = folder / f"hands-{number:03d}.parquet"
        command = ("-m", "mondrian_ops", "generate", "poker", "--seed", str(number))
        size = min(_FILE_ROWS, rows - first)
        process(python(*command, "--rows", str(size), "--output", str(output)))

    with ThreadPoolExecutor(SLOTS) as slots:
        firsts = range(0, rows, _FILE_ROWS)
        list(slots.map(generate, range(len(firsts)), firsts))
    return folder


def _lines(run: Measured) -> Iterator[tuple[str, ...]]:
    for phase, tasks in run.tasks.items():
        yield (
            f"{run.rows:,}", phase, str(len(tasks)), seconds(run.spent(phase)),
            seconds(max(task.seconds for task in tasks)), seconds(run.cpu_s(phase)),
            f"{1e6 * run.cpu_s(phase) / run.rows:.2f} µs", gib(run.peak_mib(phase)),
            gib(sum(task.written_mib for task in tasks)),
        )  # fmt: skip


def _cpu_s(run: Measured) -> float:
    return sum(map(run.cpu_s, run.tasks))


def _whole(run: Measured, first: Measured) -> tuple[str, ...]:
    tenfold = run.seconds / first.seconds
    peak = max(map(run.peak_mib, run.tasks))
    return (
        f"{run.rows:,}", gib(run.source / 2**20), str(run.fragments), seconds(run.seconds),
        times(tenfold), "" if run is first else verdict(tenfold <= required.TENFOLD),
        seconds(_cpu_s(run)), times(_cpu_s(run) / _cpu_s(first)), gib(peak),
        verdict(peak <= required.PEAK_MIB), f"{2 + run.reads:.1f} ×",
        gib(run.disk / 2**20), gib(run.published / 2**20),
    )  # fmt: skip
