"""The check of a release by its number of rows, a billion among them: time, memory and disk.

`python -m benchmarks.checking ROWS ANSWER`: counts and checks a release that is made up as it is
read, as `wrap_up` does; the bytes of the file of spilled classes go to the file `ANSWER`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mondrian_ops.lean_imports import import_lean

if TYPE_CHECKING:
    import pyarrow as pa

    from benchmarks.context import Context
    from benchmarks.tables import Table

CLASS_ROWS = 7  # of hands, k = 5
BATCH_ROWS = CLASS_ROWS << 14
PART_ROWS = 3_125_000  # as 100 million in 32 fragments
COLUMNS = 10
INTERVALS = 91  # of the 13 values of a rank
HANDS = 10


def tables(context: Context) -> Iterator[Table]:
    """A process for each number of rows."""
    from benchmarks import cluster_check
    from benchmarks.context import MILLION
    from benchmarks.measure import process, python
    from benchmarks.tables import Table, gib, seconds

    lines = []
    for rows in context.check_sizes:
        answer = context.scratch / "check.json"
        run = process(python("-m", "benchmarks.checking", str(rows), str(answer)))
        classes, spilled = json.loads(answer.read_text("utf-8"))
        lines.append(
            (f"{rows:,}", f"{classes:,}", seconds(run.seconds), seconds(run.cpu_s),
             f"{1e6 * run.cpu_s / rows:.2f} µs", gib(run.peak_mib), gib(spilled / 2**20))
        )  # fmt: skip
        context.say(" | ".join(lines[-1]))
    yield Table(
        "The check of a release: 10 quasi-identifiers, k = 5, l = 2",
        ("rows", "classes", "takes", "CPU", "CPU of a row", "peak", "spilled"),
        lines,
        note="The release is made up as it is counted, in memory and in the same process: parts of "
        f"{PART_ROWS / MILLION:g} million rows in random classes of {CLASS_ROWS}, ten columns of "
        f"{INTERVALS} intervals, {HANDS} sensitive values; two parts at once. That is counted in "
        "the CPU of a row, reading files is not.",
    )
    yield from cluster_check.tables(context)


def main() -> None:
    import_lean()
    from mondrian_ops.engines.threads import in_threads
    from mondrian_ops.job.job import Job
    from mondrian_ops.verify.requirements import check, counter_of

    rows, answer = int(sys.argv[1]), Path(sys.argv[2])
    names = [f"q{at}" for at in range(COLUMNS)]
    job = Job.from_dict(
        {"k": 5, "l": 2, "quasi_identifiers": names, "sensitive": ["hand"]}, paths_required=False
    )
    with tempfile.TemporaryFile(dir=answer.parent) as spill:
        counter = counter_of(job, [*names, "hand"], spill=spill)
        for part in in_threads(
            lambda start: counter.count(batches(start, min(rows, start + PART_ROWS))),
            range(0, rows, PART_ROWS),
            2,
        ):
            counter.merge(part)
        count = counter.result()
        verdict = check(count, job)
        if not verdict.passed or count.rows != rows:
            raise RuntimeError(f"{count.rows} of {rows} rows: {verdict}")
        answer.write_text(json.dumps([count.classes, spill.seek(0, 2)]), "utf-8")


def batches(start: int, stop: int) -> Iterator[pa.RecordBatch]:
    """The part of some rows. No two classes are the same, but where chance has it."""
    import numpy as np
    import pyarrow as pa

    random = np.random.default_rng(start)
    intervals = pa.array([f"[{at // 13}, {at % 13}]" for at in range(INTERVALS)])
    hands = pa.array([f"hand {at}" for at in range(HANDS)])
    for first in range(start, stop, BATCH_ROWS):
        rows = min(BATCH_ROWS, stop - first)
        classes = max(1, rows // CLASS_ROWS)
        class_of = np.minimum(np.arange(rows) // CLASS_ROWS, classes - 1)
        hand = 2 * random.integers(0, HANDS // 2, rows) + np.arange(rows) % 2
        codes = [random.integers(0, INTERVALS, classes, np.int8)[class_of] for _ in range(COLUMNS)]
        columns = [pa.DictionaryArray.from_arrays(pa.array(each), intervals) for each in codes]
        columns.append(pa.DictionaryArray.from_arrays(pa.array(hand.astype(np.int8)), hands))
        yield pa.record_batch(columns, [*(f"q{at}" for at in range(COLUMNS)), "hand"])


if __name__ == "__main__":
    main()
