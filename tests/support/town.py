"""A series about the people of a town whose drops are delivered one by one, and an attacker."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mondrian_ops import pipeline
from mondrian_ops.datasets import Population
from mondrian_ops.job.job import Job
from nights import silent

K, L = 5, 2
COLUMNS = ("person", "age", "zip", "sex", "diagnosis")
POPULATION = Population(
    700, 6, kind="snapshots", leave=0.1, come=0.1, back=0.4, move=0.05, change=0.02
)
PROTECTED = {"kind": "snapshots", "protect": "intersection"}


class Town:
    """A series about the people of a town, and its releases as an attacker sees them."""

    def __init__(self, folder: Path, **series: Any) -> None:
        self.folder, self.series = folder, series
        self.options: dict[str, Any] = {}  # of its jobs, instead of the usual ones
        self.drops: list[pa.Table] = []

    def job(self, day: int) -> Job:
        name = f"2025-01-{day + 1:02d}"
        return Job.from_dict(
            {
                "input": str(self.folder / f"in/{name}.parquet"),
                "output": str(self.folder / f"out/{name}"),
                "k": K,
                "l": L,
                "identifiers": ["person"],
                "entity_id": "person",
                "quasi_identifiers": ["age", "zip=prefix", "sex"],
                "sensitive": ["diagnosis"],
                "series": self.series,
                **self.options,
            }
        )

    def deliver(self, drop: pa.Table) -> Job:
        day = len(self.drops)
        self.drops.append(drop.select([name for name in COLUMNS if name in drop.column_names]))
        job = self.job(day)
        Path(str(job.input)).parent.mkdir(exist_ok=True)
        pq.write_table(self.drops[-1], str(job.input))
        return job

    def run(self, drop: pa.Table) -> dict[str, Any]:
        return pipeline.run(self.deliver(drop), silent)

    def fallen(self) -> set[int]:
        """The persons who were ever left with fewer than L values."""
        return {person for person, values in self._followed() if len(values) < L}

    def left(self) -> dict[int, set[str]]:
        """The values that are left for each person."""
        return dict(self._followed())

    def _followed(self) -> Iterator[tuple[int, set[str]]]:
        """The values left after each night: of a night, those of all classes that fit."""
        left: dict[int, set[str]] = {}
        for day, drop in enumerate(self.drops):
            released = pq.read_table(str(self.job(day).output))
            values = defaultdict(set)
            columns = (released[name].to_pylist() for name in drop.column_names[1:])
            for *label, value in zip(*columns, strict=True):
                values[tuple(label)].add(value)
            for person, *place, own in zip(*drop.to_pydict().values(), strict=True):
                fitting = (label for label in values if all(map(covers, label, place)))
                here = set().union(*(values[label] for label in fitting)) - {None}
                if person not in left or (own is not None and own not in left[person]):
                    left[person] = here  # new, or followed anew with another value
                left[person] = left[person] & here
                yield person, left[person]


def covers(label: str, value: Any) -> bool:
    """Whether a published value may be that of a person."""
    if value is None or label is None:
        return label == "*" or value is label
    interval = re.fullmatch(r"\[(.*), (.*)\]", label)
    if interval:
        return float(interval[1]) <= float(value) <= float(interval[2])
    if label.startswith("{"):
        return str(value) in label[1:-1].split(", ")
    return re.fullmatch(label.replace("*", "."), str(value)) is not None or label == "*"
