"""What is counted of the classes of a release, and the figures of a report that follow from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.job.widths import Width
from mondrian_ops.late_methods import dataclass
from mondrian_ops.verify.gain import SensitiveFigures
from mondrian_ops.verify.spread import SensitiveCount

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ClassCounts:
    """Some equivalence classes of a release, all of them if they fit in memory.

    Attributes:
        class_sizes: (classes,) int64, rows of each class.
        first_rows: (classes,) int64, a row of each class, numbered through all parts.
        sensitive: by sensitive column; its values and totals are those of the whole release.
        persons: (classes,) int64, distinct persons of each class; None where they were not counted.
    """

    class_sizes: Ints
    first_rows: Ints
    sensitive: dict[str, SensitiveCount]
    persons: Ints | None


class Figures:
    """Histograms and figures of classes, a partition at a time.

    ``classes``: by size, how many there are. ``persons``: by persons, how many classes have them,
    ``person_rows``: and how many rows these have. ``sensitive``: by sensitive column.
    """

    def __init__(self, widths: Mapping[str, Width] | None = None) -> None:
        self._widths = widths or {}
        self.sensitive: dict[str, SensitiveFigures] = {}
        self.classes = Counter[int]()
        self.persons: Counter[int] | None = None
        self.person_rows = Counter[int]()

    @property
    def rows(self) -> int:
        """Rows of the classes."""
        return sum(size * number for size, number in self.classes.items())

    @property
    def persons_histogram(self) -> list[tuple[int, int, int]] | None:
        """As :attr:`ReleaseCount.persons_histogram`."""
        if self.persons is None:
            return None
        return [(n, self.persons[n], self.person_rows[n]) for n in sorted(self.persons)]

    def add(self, counts: ClassCounts) -> None:
        """Add some classes."""
        sizes, classes = np.unique(counts.class_sizes, return_counts=True)
        self.classes.update(dict(zip(sizes.tolist(), classes.tolist(), strict=True)))
        people = counts.class_sizes if counts.persons is None else counts.persons
        for name, sensitive in counts.sensitive.items() if len(sizes) else ():
            width = self._widths.get(name)
            figures = SensitiveFigures.of(sensitive, counts.class_sizes, people, name, width)
            self._add_sensitive(name, figures)
        if counts.persons is None:
            return
        persons, place, classes = np.unique(counts.persons, return_inverse=True, return_counts=True)
        rows = np.zeros(len(persons), np.int64)
        np.add.at(rows, place, counts.class_sizes)
        self.persons = self.persons or Counter[int]()
        self.persons.update(dict(zip(persons.tolist(), classes.tolist(), strict=True)))
        self.person_rows.update(dict(zip(persons.tolist(), rows.tolist(), strict=True)))

    def to_json(self) -> dict[str, Any]:
        """A JSON value."""
        return {
            "sizes": sorted(self.classes.items()),
            "persons": self.persons_histogram,
            "sensitive": {name: each.to_json() for name, each in self.sensitive.items()},
        }

    def add_json(self, value: Mapping[str, Any]) -> None:
        """Add the figures that :meth:`to_json` described."""
        self.classes.update(dict(value["sizes"]))
        for name, each in value["sensitive"].items():
            self._add_sensitive(name, SensitiveFigures.from_json(each))
        if value["persons"] is None:
            return
        self.persons = self.persons or Counter[int]()
        self.persons.update({persons: classes for persons, classes, _ in value["persons"]})
        self.person_rows.update({persons: rows for persons, _, rows in value["persons"]})

    def _add_sensitive(self, name: str, figures: SensitiveFigures) -> None:
        before = self.sensitive.get(name)
        self.sensitive[name] = figures if before is None else before.joined(figures)
