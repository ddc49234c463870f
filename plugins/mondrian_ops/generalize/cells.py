"""The cells that the values of an interval attribute are put into before rows are cut.

A published interval is then a union of cells: of equal width on a `Grid`, or between the boundaries
that the nights of a series share (`Boundaries`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from mondrian_ops.data.encoding import days, encode_ranks, positions, value_type
from mondrian_ops.data.exact_intervals import DecimalUnits
from mondrian_ops.data.values import (
    before,
    date_or_number,
    greatest_below,
    json_value,
    read_value,
)
from mondrian_ops.errors import InputError
from mondrian_ops.generalize.rounding import Round, round_between
from mondrian_ops.late_methods import dataclass
from mondrian_ops.native.arrays import Floats, Ints

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # of the years 1 and 9999, counted from 1970-01-01

Json: TypeAlias = int | float | str | bool


class Cells(ABC):
    """Numbered cells in the order of a column's values."""

    @abstractmethod
    def of(self, values: pa.Array, name: str) -> Ints:
        """The cell of each of some distinct ascending values of column ``name``, (values,).

        Raises InputError on values that have none.
        """

    @abstractmethod
    def ends(self, cells: Ints, low: float, high: float) -> tuple[Floats, Floats]:
        """The positions where cells begin and end, two arrays (cells,).

        ``low`` and ``high``: where the data begins and ends, for cells that do not.
        """

    @abstractmethod
    def published(self, cells: Ints, type_: pa.DataType) -> tuple[pa.Array, pa.Array]:
        """The ends of cells as they are published, null where a cell has none."""

    @abstractmethod
    def are_closed(self) -> bool:
        """Whether a cell is published with its greatest value, not with the least above it."""

    @abstractmethod
    def greatest(self, cell: int, type_: pa.DataType) -> Json | None:
        """The greatest value of a cell as JSON; None where it has no end."""

    def cut_round(self, cell: int, following: int, type_: pa.DataType) -> Round | None:
        """A round value above a cell and below the greatest of a ``following`` one, if any."""
        type_ = value_type(type_)
        type_ = pa.float32() if pa.types.is_float16(type_) else type_
        try:
            ends = self.greatest(cell, type_), self.greatest(following, type_)
            below, last = (read_value(end, type_) for end in ends if end is not None)
        except (pa.ArrowInvalid, ArithmeticError, ValueError):  # there is no next cell's end
            return None
        return round_between(below, last)


@dataclass(frozen=True)
class Grid(Cells):
    """Half-open cells of equal width, counted from an origin, with exact edges.

    Cells of dates and timestamps are whole days, counted from 1970-01-01.
    """

    step: float
    origin: float

    @cached_property
    def _decimals(self) -> DecimalUnits:
        return DecimalUnits([self.step, self.origin])

    def of(self, values: pa.Array, name: str) -> Ints:
        """The cell of each value.

        Raises InputError on infinite numbers, and where an edge would not be exact, or beyond the
        calendar.
        """
        line, decimals = self._line(values, name), self._decimals
        if not decimals.holds(line):
            raise InputError(
                f"column {name!r}: holds numbers too large for a grid with step {self.step}; use "
                "a larger step"
            )
        return decimals.bins(line, decimals.units(self.step), decimals.units(self.origin))

    def _line(self, values: pa.Array, name: str) -> Floats:
        """The positions of values: numbers, or days."""
        if not pa.types.is_temporal(values.type):
            return positions(values, name)
        line = days(values)
        if len(line) and not _FIRST_DAY + self.step <= line.min() <= line.max() <= (
            _LAST_DAY - self.step
        ):
            raise InputError(
                f"column {name!r}: holds days so close to the start of year 1 or the end of year "
                "9999 that an edge of the grid would lie outside the calendar; make these days "
                "missing, or generalize the column without a grid"
            )
        return line

    def edges(self, cells: Ints) -> Floats:
        """Where each cell begins."""
        decimals = self._decimals
        return decimals.floats(decimals.units(self.origin) + cells * decimals.units(self.step))

    def ends(self, cells: Ints, low: float, high: float) -> tuple[Floats, Floats]:
        return self.edges(cells), self.edges(cells + 1)

    def published(self, cells: Ints, type_: pa.DataType) -> tuple[pa.Array, pa.Array]:
        low, high = (date_or_number(edges, type_) for edges in self.ends(cells, 0, 0))
        return low, high

    def are_closed(self) -> bool:
        return False

    def greatest(self, cell: int, type_: pa.DataType) -> Json:
        return greatest_below(float(self.edges(np.array([cell + 1]))[0]), type_)


@dataclass(frozen=True, eq=False)
class Boundaries(Cells):
    """Cells between given boundaries, and one on either side of them.

    A value beyond the boundaries, which a later night may bring, so has a cell: one without an end.

    Attributes:
        values: (boundaries,) ascending, of the type of the column's values. Cell 0 holds the values
            below the first, cell c those from ``values[c - 1]`` on.
    """

    values: pa.Array

    def of(self, values: pa.Array, name: str) -> Ints:
        """The cell of each value; compared as they are, for positions may be rounded."""
        codes, _ = encode_ranks(pa.concat_arrays([self.values, values.cast(self.values.type)]))
        edges, ranks = np.split(codes, [len(self.values)])
        return np.searchsorted(edges, ranks, side="right").astype(np.int64)

    def ends(self, cells: Ints, low: float, high: float) -> tuple[Floats, Floats]:
        starts = np.concatenate([[low], positions(self.values, "")])
        stops = np.concatenate([positions(self._last, ""), [high]])
        return starts[cells], stops[cells]

    def published(self, cells: Ints, type_: pa.DataType) -> tuple[pa.Array, pa.Array]:
        starts = self.values.take(pa.array(cells - 1, mask=cells == 0))
        return starts, self._last.take(pa.array(cells, mask=cells == len(self.values)))

    def are_closed(self) -> bool:
        """Whole numbers and dates are: [25, 29] is the cell from 25 to before 30."""
        return bool(pa.types.is_integer(self.values.type) or pa.types.is_date(self.values.type))

    def greatest(self, cell: int, type_: pa.DataType) -> Json | None:
        return json_value(self._greatest[cell]) if cell < len(self.values) else None

    @cached_property
    def _greatest(self) -> pa.Array:
        """The greatest value of each cell but the last."""
        return before(self.values)

    @property
    def _last(self) -> pa.Array:
        return self._greatest if self.are_closed() else self.values
