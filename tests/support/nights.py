"""A series of nights that a test runs one by one, and its count from outside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mondrian_ops import pipeline
from mondrian_ops.datasets.people import people
from mondrian_ops.job.job import Job


def silent(*_: Any) -> None:
    """Progress that nobody follows."""


class Nights:
    """A series of people below a folder, with a number of its own, ``row``, in each row.

    ``keys`` of the job beside those of every night; ``series``: its options.

    Attributes:
        keys: the job of all nights, without ``input`` and ``output``.
    """

    def __init__(self, folder: Path, *, series: dict[str, Any], **keys: Any) -> None:
        self.folder = folder
        self.releases = folder / "out"
        self.rows = 0
        self.keys = {
            "k": 5,
            "l": 2,
            "quasi_identifiers": ["age", "zip=prefix", "sex"],
            "sensitive": ["diagnosis"],
            "unlisted": "publish",
            "partitioning": {"fragments": 2, "sample": 1},
            "series": series,
            **keys,
        }

    def deliver(self, day: int, rows: int) -> Path:
        """The drop of a day."""
        drop = self.drop(day)
        drop.parent.mkdir(parents=True, exist_ok=True)
        table = people(rows, day).select(["age", "zip", "sex", "diagnosis"])
        numbers = pa.array(np.arange(self.rows, self.rows + rows))
        pq.write_table(table.append_column("row", numbers), drop)
        self.rows += rows
        return drop

    def job(self, day: int, **changes: Any) -> Job:
        """The job of a day; changes of the series' options go to ``series``."""
        series = {**self.keys["series"], **changes.pop("series", {})}
        places = {
            "input": str(self.drop(day)),
            "output": str(self.output(day)),
        }
        return Job.from_dict({**self.keys, **places, **changes, "series": series})

    def run(self, day: int, rows: int, **changes: Any) -> dict[str, Any]:
        """Deliver a drop and run its night; returns the report."""
        self.deliver(day, rows)
        return pipeline.run(self.job(day, **changes), silent)

    @staticmethod
    def date(day: int) -> str:
        """A date, which tells the night from the others."""
        return f"2025-{1 + day // 28:02d}-{1 + day % 28:02d}"

    def drop(self, day: int) -> Path:
        """Where the drop of a day is."""
        return self.folder / "in" / f"{self.date(day)}.parquet"

    def output(self, day: int) -> Path:
        """The release of a day."""
        return self.releases / self.date(day)

    @property
    def waiting(self) -> Path:
        """The directory of all waiting rows."""
        return self.releases / ".mondrian_waiting"

    def released(self) -> list[int]:
        """The numbers of the rows in all releases."""
        parts = self.releases.glob("2025-*/part-*.parquet")
        return [number for part in parts for number in _numbers(part)]

    def held(self) -> list[int]:
        """The numbers of the rows in all files of waiting rows."""
        return [number for file in self.waiting_files() for number in _numbers(file)]

    def waiting_files(self) -> Iterator[Path]:
        """All files of waiting rows."""
        return self.waiting.rglob("*.parquet")

    def check_each_row_once(self, suppressed: int = 0) -> None:
        """Each delivered row is in one release, waits, or is one of those suppressed."""
        rows = [*self.released(), *self.held()]
        assert len(set(rows)) == len(rows)
        assert len(rows) + suppressed == self.rows


def _numbers(file: Path) -> list[int]:
    numbers: list[int] = pq.read_table(file, columns=["row"])["row"].to_pylist()
    return numbers
