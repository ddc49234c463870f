"""The check of a release by Spark, beside that by one process: the same files, the same figures.

`python -m benchmarks.cluster_check ROWS WORK`: writes a release to the working files `WORK`.
`python -m benchmarks.cluster_check ROWS WORK ANSWER [REMOTE]`: checks it, here or by the Spark
Connect server `REMOTE`, and leaves what was found in the file `ANSWER`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.checking import COLUMNS, PART_ROWS, batches
from mondrian_ops.lean_imports import import_lean

if TYPE_CHECKING:
    from benchmarks.context import Context
    from benchmarks.tables import Table
    from mondrian_ops.job.job import Job
    from mondrian_ops.publish import WorkDir

MOST_ROWS = 100_000_000  # the files of more fill the disk


def tables(context: Context) -> Iterator[Table]:
    """A process each for the release, its check here and its check by Spark."""
    from benchmarks.context import MILLION
    from benchmarks.measure import process, python
    from benchmarks.spark_memory import Peaks
    from benchmarks.tables import Table, gib, seconds
    from servers.spark import SparkCluster

    lines = []
    with SparkCluster(context.scratch / "spark") as cluster:
        for rows in (rows for rows in context.check_sizes if rows <= MOST_ROWS):
            work = context.scratch / f"checked-{rows}"
            process(python("-m", "benchmarks.cluster_check", str(rows), str(work)))
            took, found = {}, {}
            for remote in ("", cluster.remote):
                answer = context.scratch / "answer.json"
                command = ["-m", "benchmarks.cluster_check", str(rows), str(work), str(answer)]
                with Peaks().watched() as peaks:
                    run = process(python(*command, *filter(None, [remote])))
                took[remote], found[remote] = run.seconds, answer.read_text("utf-8")
                others = ", ".join(f"{kind} {gib(mib)}" for kind, mib in sorted(peaks.mib.items()))
                times = f"{run.seconds / took['']:.2f} ×" if remote else ""
                lines.append(
                    (f"{rows:,}", "Spark" if remote else "local", seconds(run.seconds), times,
                     gib(run.peak_mib), others if remote else "")
                )  # fmt: skip
                context.say(" | ".join(lines[-1]))
            if len({*found.values()}) > 1:
                raise RuntimeError(f"the two checks of {rows} rows found different things")
    yield Table(
        "The check of a release on disk, by one process and by Spark",
        ("rows", "engine", "takes", "", "peak of the task", "peaks of Spark's processes"),
        lines,
        note=f"The same release: parts of {PART_ROWS / MILLION:g} million rows, {COLUMNS} "
        "quasi-identifiers, k = 5, l = 2. Both find the same figures. Spark: a Connect server that "
        "is already running, two workers of one core; the time is that of the whole process.",
    )


def main() -> None:
    import_lean()
    from mondrian_ops.job.job import Job
    from mondrian_ops.publish import WorkDir

    rows, work, *where = sys.argv[1:]
    names = [f"q{at}" for at in range(COLUMNS)]
    described = {"input": work, "output": f"{work}-out", "k": 5, "l": 2}
    job = Job.from_dict({**described, "quasi_identifiers": names, "sensitive": ["hand"]})
    if not where:
        directory = WorkDir(work)
        directory.create()
        _write(directory, int(rows))
        return
    found = _checked(job, WorkDir(work), int(rows), *where[1:])
    Path(where[0]).write_text(json.dumps(found), "utf-8")


def _numbers(rows: int) -> range:
    return range(-(-rows // PART_ROWS))


def _write(directory: WorkDir, rows: int) -> None:
    import pyarrow.parquet as pq

    for number in _numbers(rows):
        start = number * PART_ROWS
        written = batches(start, min(rows, start + PART_ROWS))
        first = next(written)
        with pq.ParquetWriter(directory.part_path(number), first.schema) as writer:
            writer.write_batch(first)
            for batch in written:
                writer.write_batch(batch)


def _checked(job: Job, directory: WorkDir, rows: int, remote: str = "") -> list[Any]:
    """What was found, in a form in which it may be compared."""
    from types import SimpleNamespace

    from mondrian_ops.engines.release_check import ReleaseCheck
    from mondrian_ops.engines.run import Run
    from mondrian_ops.engines.spark import SparkEngine, session_of
    from mondrian_ops.pipeline.wrapping_up import counted_here

    paths = {number: directory.part_path(number) for number in _numbers(rows)}
    if remote:
        run = Run(directory)
        vars(run)["dataset"] = SimpleNamespace(source=SimpleNamespace(url=directory.root))
        session = session_of(remote)
        check = ReleaseCheck.of(job, paths, rows, {}, None)
        counted = check.concluded(SparkEngine(session).check(run, check))
        session.stop()
    else:
        counted = counted_here(job, directory, list(paths.values()), lambda *_: None, 2, {}, None)
    count, verdict = counted.count, counted.verdict
    if not verdict.passed or count.rows != rows:
        raise RuntimeError(f"{count.rows} of {rows} rows: {verdict}")
    return [count.histogram, count.dp, verdict.achieved, verdict.checked, len(counted.parts)]


if __name__ == "__main__":
    main()
