"""Releases that wait for their check: damaged in every way, and checked here or by a cluster."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from drawn_releases import ILLS, figures_of
from mondrian_ops import publish
from mondrian_ops.engines import Engine
from mondrian_ops.engines.release_check import Counted, ReleaseCheck, counted_part
from mondrian_ops.engines.run import Run
from mondrian_ops.job.job import Job
from mondrian_ops.publish import WorkDir
from mondrian_ops.verify import requirements
from mondrian_ops.verify.published_labels import PublishedLabels


class StagedRelease:
    """Parts of a release, each with the person of every row, as wrap-up finds them."""

    def __init__(
        self,
        folder: Path,
        job: Job,
        parts: Sequence[tuple[pa.Table, Any]],
        labels: Mapping[str, PublishedLabels] | None = None,
    ) -> None:
        self.job, self.labels = job, labels or {}
        self.work = WorkDir(str(folder / "work"))
        self.work.create()
        self.run = Run(self.work)
        # What a cluster has to know of a dataset: how its source is reached.
        vars(self.run)["dataset"] = SimpleNamespace(source=SimpleNamespace(url=str(folder)))
        vars(self.run)["labels"] = self.labels
        self.rows = sum(part.num_rows for part, _ in parts)
        self.paths = {number: self.work.part_path(number) for number in range(len(parts))}
        for number, (part, persons) in enumerate(parts):
            self.write(number, part, persons)

    def write(self, number: int, part: pa.Table, persons: Any = None) -> None:
        """Write a part; of its persons somebody's, if they are not given."""
        pq.write_table(part, self.paths[number])
        if self.job.entity_id is not None:
            anybody = pa.chunked_array([[f"p{at % 3}" for at in range(part.num_rows)]], pa.string())
            digest = publish.digest_of(self.paths[number])
            self.work.write_persons(digest, anybody if persons is None else persons)

    def read(self, number: int) -> pa.Table:
        return pq.read_table(self.paths[number])

    def checked_here(self, boundaries: Mapping[str, Any] | None = None) -> Counted:
        (first,) = publish.release_files(self.paths[0])
        counter = requirements.counter_of(self.job, first.columns, labels=self.labels)
        has_persons = self.job.entity_id is not None
        parts = [
            counter.merge(counted_part(self.work, counter, has_persons, path))
            for path in self.paths.values()
        ]
        count = counter.result()
        verdict = requirements.check(count, self.job, {"s": ILLS}, boundaries=boundaries)
        return Counted(count, parts, verdict)

    def checked_by(
        self, engine: Engine, boundaries: Mapping[str, Any] | None = None, buckets: int = 3
    ) -> Counted:
        check = ReleaseCheck.of(self.job, self.paths, self.rows, {"s": ILLS}, boundaries)
        vars(check).update(buckets=buckets, measures_losses=bool(self.labels))
        return check.concluded(engine.check(self.run, check))


def outcome(checked: Callable[[], Counted]) -> Any:
    """All that a report has of a check, or the error that it ends with."""
    try:
        counted = checked()
    except Exception as error:  # of any kind: compared with that of another way
        # "large_string in one part and int64 in another": a bucket may lack the first part.
        return type(error), sorted(str(error).split())
    return counted.verdict, counted.parts, figures_of(counted.count)


def _typed(release: StagedRelease, one: int, _: int) -> None:
    part = release.read(one)
    values = part["q0"].to_pylist()
    texts = pa.array([None if each is None else str(each) for each in values], pa.string())
    release.write(one, part.set_column(part.column_names.index("q0"), "q0", texts))


def _swapped(release: StagedRelease, one: int, other: int) -> None:
    first, second = release.read(one), release.read(other)
    release.write(one, second)
    release.write(other, first)


def _valued(release: StagedRelease, one: int, _: int) -> None:
    """One value of one row becomes another."""
    part = release.read(one)
    values = part["s"].to_pylist()
    values[:1] = ["gout" for _ in values[:1]]
    release.write(one, part.set_column(part.column_names.index("s"), "s", [values]))


DAMAGES: dict[str, Callable[[StagedRelease, int, int], None]] = {
    "none": lambda *_: None,
    "a value changed": _valued,
    "a value of another type": _typed,
    "no quasi-identifier": lambda r, one, _: r.write(one, r.read(one).drop(["q0"])),
    "no sensitive column": lambda r, one, _: r.write(one, r.read(one).drop(["s"])),
    "one more column": lambda r, one, _: r.write(
        one, r.read(one).append_column("more", pa.nulls(r.read(one).num_rows))
    ),
    "no rows": lambda r, one, _: r.write(one, r.read(one)[:0]),
    "a row less": lambda r, one, _: r.write(one, r.read(one)[1:]),
    "swapped": _swapped,
    "doubled": lambda r, one, other: (
        cast("None", shutil.copy(r.paths[one], r.paths[other])) if one != other else None
    ),
    "missing": lambda r, one, _: os.remove(r.paths[one]),
    "of another attempt": lambda r, one, _: pq.write_table(r.read(one)[::-1], r.paths[one]),
    "no Parquet": lambda r, one, _: cast("None", Path(r.paths[one]).write_bytes(b"PAR1")),
}
"""What happened to a release; it is called with two of its parts, which may be the same."""
