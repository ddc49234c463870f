"""A sketch of constant size of the persons in a drop: their least keyed hashes (KMV).

K. Beyer, P. J. Haas, B. Reinwald, Y. Sismanis and R. Gemulla, "On synopses for distinct-value
estimation under multiset operations", SIGMOD 2007. Keyed hashes are uniform, so the least ones are
a random sample of the persons, and the same sample in every drop that has them.
"""

from __future__ import annotations

import base64
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.late_methods import dataclass

SIZE = 4096
"""Hashes kept. The standard error of a share estimated from them is at most 0.8 points, half of
1/sqrt(SIZE)."""

ENOUGH = 30
"""Hashes of a drop that suffice to see an overlap: of 30, an overlap of 10 % shares 3."""

_ALL = 1 << 64


@dataclass(frozen=True)
class Sketch:
    """The least hashes of a drop's persons.

    ``least`` (at most SIZE,) uint64, ascending and distinct. ``total`` is the sum of the hashes of
    all rows modulo 2**64, and ``rows`` their number: together they identify a drop.
    """

    least: NDArray[np.uint64]
    total: int = 0
    rows: int = 0

    @classmethod
    def of(cls, hashes: NDArray[np.uint64], counts: NDArray[np.int64]) -> Sketch:
        """The sketch of some distinct persons, (persons,) each, with the rows of each."""
        total = int(np.sum(hashes * counts.astype(np.uint64), dtype=np.uint64))
        return cls(_least(hashes), total, int(counts.sum()))

    @classmethod
    def nothing(cls) -> Sketch:
        """The sketch of no rows."""
        return cls(np.zeros(0, np.uint64))

    def merged(self, other: Sketch) -> Sketch:
        """The sketch of two parts of a drop together, in any order."""
        least = _least(np.concatenate([self.least, other.least]))
        return Sketch(least, (self.total + other.total) % _ALL, self.rows + other.rows)

    @property
    def persons(self) -> int:
        """The number of persons, estimated where not all hashes are kept (section 3)."""
        if len(self.least) < SIZE:
            return len(self.least)
        return round((SIZE - 1) * _ALL / int(self.least[-1]))

    def shared_with(self, other: Sketch) -> tuple[float, float]:
        """The share of this drop's persons that the other one also has, and its standard error.

        The error is 0 where all hashes are known; without a hash to compare, so is the share.
        """
        own, sampled = self._below(other)
        if not len(own):
            return 0.0, 0.0
        share = float(np.isin(own, other.least, assume_unique=True).mean())
        return share, float(np.sqrt(share * (1 - share) / len(own))) if sampled else 0.0

    def tells_of(self, other: Sketch) -> bool:
        """Whether an overlap would show.

        It would not if this drop is so much smaller than the other that hardly any of its hashes
        can be compared.
        """
        own, sampled = self._below(other)
        return not sampled or len(own) >= ENOUGH

    def _below(self, other: Sketch) -> tuple[NDArray[np.uint64], bool]:
        """The hashes of this drop that can be compared, and whether they are only a sample.

        Up to the lesser of both greatest hashes, the sketches have all hashes of their drops: so
        a sample of this drop is compared with all of the other (section 4).
        """
        bounds = [int(each.least[-1]) for each in (self, other) if len(each.least) == SIZE]
        bound = np.uint64(min(bounds, default=_ALL - 1))
        return self.least[self.least <= bound], bool(bounds) and bool(len(self.least))

    def is_drop_of(self, other: Sketch) -> bool:
        """Whether both are sketches of one drop: the same persons, with as many rows each."""
        return (self.rows, self.total) == (other.rows, other.total)

    def to_json(self) -> dict[str, Any]:
        """A JSON value of some 44 KB at most."""
        least = base64.b64encode(self.least.astype("<u8").tobytes()).decode("ascii")
        return {"rows": self.rows, "total": f"{self.total:016x}", "least": least}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Sketch:
        """The sketch that `to_json` wrote; raises ValueError, KeyError or TypeError on others."""
        least = np.frombuffer(base64.b64decode(value["least"], validate=True), "<u8")
        total, rows = int(value["total"], 16), operator.index(value["rows"])
        if rows < len(least) or (rows and not len(least)):
            raise ValueError("rows without persons, or persons without rows")
        if not (np.array_equal(_least(least), least) and 0 <= total < _ALL):
            raise ValueError("hashes that are not ascending and distinct, or a total out of range")
        return cls(least.astype(np.uint64), total, rows)


def _least(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return np.unique(hashes)[:SIZE]
