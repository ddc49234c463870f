"""What the classes of a release tell about sensitive columns, for its report.

Two figures, which say something where nothing is required: how many people stand in classes whose
numbers or dates are similar, and by how much a class raises the share of a value. The second is the
beta of beta-likeness (J. Cao and P. Karras, VLDB 2012, definition 2): the greatest relative gain of
any value in any class.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.job.widths import Width
from mondrian_ops.late_methods import dataclass
from mondrian_ops.verify.native.value_figures import greatest_shares
from mondrian_ops.verify.spread import SensitiveCount, default_width, narrow

MOST_VALUES = 1000
"""Distinct values up to which the gain is measured: where most are unique, it says nothing."""


@dataclass(frozen=True)
class Gain:
    """The value whose share a class raises most: ``share`` of all rows, ``in_class`` of those of a
    class."""

    share: float
    in_class: float

    @property
    def beta(self) -> float:
        """The relative gain."""
        return self.in_class / self.share - 1


@dataclass(frozen=True)
class SensitiveFigures:
    """Of one sensitive column; those of several sets of classes can be joined.

    Attributes:
        width: by which values count as similar; None where they have no width.
        people: in all classes: persons where they are counted, else rows.
        narrow: of these, in classes all whose values are similar.
        rows: of all classes.
        values: by a hash of the value, its rows and its greatest share of a class; None where there
            are more than `MOST_VALUES`.
    """

    width: str | None
    people: int
    narrow: int
    rows: int
    values: Mapping[str, tuple[int, float]] | None

    @classmethod
    def of(
        cls,
        sensitive: SensitiveCount,
        sizes: NDArray[np.int64],
        people: NDArray[np.int64],
        name: str,
        width: Width | None,
    ) -> SensitiveFigures:
        """The figures of some classes, whose sizes and people (classes,) are given."""
        width = width or default_width(sensitive.values.type)
        similar = 0
        if width is not None:
            similar = int(people[narrow(sensitive, len(sizes), name, width)].sum())
        shares = _shares(sensitive, sizes)
        text = None if width is None else width.text
        return cls(text, int(people.sum()), similar, int(sizes.sum()), shares)

    def joined(self, other: SensitiveFigures) -> SensitiveFigures:
        """Of these classes and others."""
        values = None
        if self.values is not None and other.values is not None:
            joined = dict(self.values)
            for value, (rows, share) in other.values.items():
                before, most = joined.get(value, (0, 0.0))
                joined[value] = before + rows, max(most, share)
            values = joined if len(joined) <= MOST_VALUES else None
        return SensitiveFigures(
            self.width or other.width,
            self.people + other.people,
            self.narrow + other.narrow,
            self.rows + other.rows,
            values,
        )

    @property
    def gain(self) -> Gain | None:
        """The greatest; None where it was not measured, or there is no value."""
        gains = [Gain(rows / self.rows, share) for rows, share in (self.values or {}).values()]
        return max(gains, key=lambda gain: (gain.beta, gain.share), default=None)

    def to_json(self) -> list[Any]:
        """A JSON value."""
        return [self.width, self.people, self.narrow, self.rows, self.values]

    @classmethod
    def from_json(cls, value: list[Any]) -> SensitiveFigures:
        """The figures that :meth:`to_json` described."""
        width, people, similar, rows, values = value
        if values is not None:
            values = {each: (count, share) for each, (count, share) in values.items()}
        return cls(width, people, similar, rows, values)

    def to_report(self) -> dict[str, Any]:
        """What a report says: no value, and shares."""
        figures: dict[str, Any] = {}
        if self.width is not None:
            figures = {"width": self.width, "narrow": self.narrow / max(1, self.people)}
        if (gain := self.gain) is not None:
            figures |= {"gain": gain.beta, "gain_from": gain.share, "gain_to": gain.in_class}
        return figures


def _shares(
    sensitive: SensitiveCount, sizes: NDArray[np.int64]
) -> dict[str, tuple[int, float]] | None:
    """The rows of each value that occurs, and its greatest share of a class."""
    values = sensitive.values
    if len(values) > MOST_VALUES:
        return None
    rows, share = greatest_shares(
        sensitive.classes, sensitive.codes, sensitive.counts, sizes, len(values) + 1
    )
    try:
        texts = values.cast(pa.string()).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # bytes that are no text
        texts = [repr(value) for value in values.to_pylist()]
    pairs = zip(texts, rows[1:].tolist(), share[1:].tolist(), strict=True)
    return {_digest(text): (count, most) for text, count, most in pairs if count}


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
