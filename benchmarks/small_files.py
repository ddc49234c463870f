"""A source of many small Parquet files beside one file with the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from benchmarks.context import Context
from benchmarks.tables import Table, seconds

FILE_ROWS = 100
_MOST = 4
"""Times the processor time of the one file that many may take, by the project's own goal."""


def tables(context: Context) -> Iterator[Table]:
    """The whole job in a process of its own, of each."""
    import pyarrow.parquet as pq

    one = context.hands(context.rows)
    many = context.scratch / "small-files"
    many.mkdir()
    table = pq.read_table(one)
    for first in range(0, table.num_rows, FILE_ROWS):
        rows = table.slice(first, FILE_ROWS)
        pq.write_table(rows, many / f"part-{first // FILE_ROWS:07d}.parquet")
    job = context.job(context.rows, cut="median")
    runs = {
        given: [context.run({**job, "input": str(given)}) for _ in range(context.rounds)]
        for given in (one, many)
    }
    cpu_s = {given: median(run.cpu_s for run in runs[given]) for given in runs}
    wall_s = {given: median(run.seconds for run in runs[given]) for given in runs}
    times = cpu_s[many] / cpu_s[one]
    files = len(list(many.iterdir()))
    yield Table(
        f"{files:,} files of {FILE_ROWS} rows",
        ("source", "CPU", "wall", "times the CPU of one file", ""),
        [
            ("one file", seconds(cpu_s[one]), seconds(wall_s[one]), "", ""),
            (
                f"{files:,} files",
                seconds(cpu_s[many]),
                seconds(wall_s[many]),
                f"{times:.1f}",
                context.verdict(times <= _MOST),
            ),
        ],
        note=f"{context.rows:,} hands as Parquet, `cut: median`, the command `run` on this machine "
        f"alone, median of {context.rounds}. Required: at most {_MOST} times the one file.",
    )
