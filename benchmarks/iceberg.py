"""A job from a table of Iceberg to another, beside the same files; a commit of many parts."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from unittest import mock

from benchmarks.context import Context
from benchmarks.tables import Table, seconds, times, verdict

FILES = 100
_MOST = 1.15  # times the CPU of the same files to a directory, by the project's own goal
_MOST_S = 30.0  # of a commit of 10,000 parts
_CATALOG = "bench"


def tables(context: Context) -> Iterator[Table]:
    """The catalog is a file of SQLite, in the scratch directory as the tables are."""
    folder = context.scratch / "lake"
    folder.mkdir()
    properties = {
        "TYPE": "sql",
        "URI": f"sqlite:///{folder}/catalog.db",
        "WAREHOUSE": f"file://{folder}/warehouse",
    }
    named = {f"PYICEBERG_CATALOG__{_CATALOG.upper()}__{key}": properties[key] for key in properties}
    with mock.patch.dict(os.environ, named):
        yield _whole(context, folder)
        yield _commits(context, folder)


def _whole(context: Context, folder: Path) -> Table:
    """The whole job in a process of its own, of each in turn."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyiceberg.catalog import load_catalog

    catalog = load_catalog(_CATALOG)
    catalog.create_namespace("bench")
    rows = pq.read_table(context.hands(context.rows))
    # Iceberg has no smaller integers; both ways read the same files.
    kinds = [pa.int32() if pa.types.is_integer(each.type) else each.type for each in rows.schema]
    rows = rows.cast(pa.schema(zip(rows.column_names, kinds, strict=True)))
    files = folder / "files"
    files.mkdir()
    step = -(-rows.num_rows // FILES)
    for at in range(FILES):
        pq.write_table(rows.slice(at * step, step), files / f"part-{at:03d}.parquet")
    source = catalog.create_table("bench.hands", rows.schema)
    source.add_files([f"file://{path}" for path in sorted(files.iterdir())])
    ways = {
        "files to a directory": (str(files), str(context.scratch / "release")),
        "table to a directory": (f"iceberg://{_CATALOG}/bench.hands", f"{folder}/release"),
        "table to a table": (
            f"iceberg://{_CATALOG}/bench.hands",
            f"iceberg://{_CATALOG}/bench.out",
        ),
    }
    runs = {name: list[float]() for name in ways}
    for _ in range(context.rounds):
        for name, (given, output) in ways.items():
            job = context.job(context.rows, cut="median", input=given, output=output)
            runs[name].append(context.run(job).cpu_s)
    cpu_s = {name: median(taken) for name, taken in runs.items()}
    base = cpu_s["files to a directory"]
    return Table(
        f"Iceberg: a job of {FILES} files",
        ("from and to", "CPU", "times the CPU of files", ""),
        [
            (
                name,
                seconds(taken),
                "" if taken == base else times(taken / base),
                context.verdict(taken <= _MOST * base) if name == "table to a table" else "",
            )
            for name, taken in cpu_s.items()
        ],
        note=f"{context.rows:,} hands, `cut: median`, the command `run`, median of "
        f"{context.rounds}. Required from a table to a table: at most {_MOST} times the files. The "
        "catalog is a file of SQLite.",
    )


def _commits(context: Context, folder: Path) -> Table:
    """Seconds of processor time, and of the clock, of each step of a release of many parts."""
    rows = [
        (f"{parts:,}", which, *_measured(parts, which, folder))
        for parts in context.parts
        for which in ("first", "replacing")
    ]
    return Table(
        "Iceberg: publishing releases of many parts",
        ("parts", "release", "to a branch, audited", "to main", "CPU of both", ""),
        rows,
        note="Parts of ten rows. Required of 10,000 parts: at most 30 s.",
    )


def _measured(parts: int, which: str, folder: Path) -> Iterator[str]:
    import pyarrow as pa

    from mondrian_ops import publish, stores

    output = f"iceberg://{_CATALOG}/bench.of_{parts}"
    work = publish.WorkDir(publish.work_path(output, which))
    work.create()
    paths = work.part_paths(range(parts))
    publish.write_part(paths[0], pa.table({"value": ["a"] * 10}))
    for path in paths[1:]:
        shutil.copyfile(paths[0], path)
    stores.write_file(f"{work.staging}/_report.json", b'{"job": {}, "equivalence_classes": 1}')
    candidate = publish.Candidate(work.token, dict.fromkeys(paths, 10), {"k": "5"})
    cpu, start = time.process_time(), time.perf_counter()
    with publish.staged(output, candidate):
        staged = time.perf_counter()
    publish.publish(work.staging, output, work.token)
    taken, cpu = time.perf_counter() - start, time.process_time() - cpu
    work.remove()
    yield seconds(staged - start)
    yield seconds(taken - (staged - start))
    yield seconds(cpu)
    yield verdict(cpu <= _MOST_S) if parts == 10_000 else ""
