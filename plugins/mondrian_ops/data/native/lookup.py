"""Integers within a small range: which of them occur, how often, and what a table has for each."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.native.arrays import Ints, address
from mondrian_ops.native.library import function

Entry = TypeVar("Entry", bound=np.generic)

_POINTER, _INTEGER, _WORD = ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64
_RANGE = (_POINTER, _INTEGER, _INTEGER, _POINTER, _INTEGER, _WORD, _WORD)

_mark_values = function("mo_mark_values", *_RANGE, _POINTER)
_tally_values = function("mo_tally_values", *_RANGE, _POINTER)
_look_up = function("mo_look_up", *_RANGE, _POINTER, _INTEGER, _POINTER)
_count_pairs = function(
    "mo_count_pairs", *(_POINTER, _INTEGER, _POINTER, _INTEGER, _INTEGER, _INTEGER, _POINTER)
)


class SmallRange(NamedTuple):
    """Some integers, none of which is ``size`` or more above the ``least``.

    An entry of a table stands for each of the ``size`` numbers from the least on; the next one for
    missing values, which a table needs only where there may be some: ``valid`` has Arrow's bits of
    the values that are there, from bit ``first`` on, None where all are. The functions raise
    ValueError where a value is outside of the range.
    """

    values: NDArray[np.integer[Any]]  # (rows,)
    least: int
    size: int
    valid: NDArray[np.uint8] | None = None
    first: int = 0

    def mark(self, occurs: NDArray[np.bool_]) -> None:
        """Set ``occurs`` (entries,) for the entries that the values have."""
        _mark_values(*self._range(), self._table(occurs, np.bool_))

    def tally(self, rows: Ints) -> None:
        """Add to ``rows`` (entries,) how many values each entry has."""
        _tally_values(*self._range(), self._table(rows, np.int64))

    def look_up(self, table: NDArray[Entry], found: NDArray[Entry]) -> None:
        """Write what ``table`` (entries,) has for each value to ``found`` (rows,)."""
        if table.dtype.itemsize not in (1, 2, 4, 8) or table.dtype.hasobject:
            raise TypeError(f"table: entries of 1, 2, 4 or 8 bytes expected, got {table.dtype}")
        given = self._table(table, table.dtype)
        into = address(found, table.dtype, len(self.values), what="found")
        _look_up(*self._range(), given, table.dtype.itemsize, into)

    def _table(self, table: NDArray[Any], dtype: Any) -> int:
        if len(table) < self.size + (self.valid is not None):
            raise ValueError(f"table: {self.size} entries expected, got {len(table)}")
        return address(table, dtype, None, what="table")

    def _range(self) -> tuple[int, int, int, int | None, int, int, int]:
        values, valid, bits = self.values, self.valid, None
        if values.dtype.kind not in "iu":
            raise TypeError(f"values: integers expected, got {values.dtype}")
        where = address(values, values.dtype, None, what="values")
        if not 0 <= self.size < 1 << 40 or not 0 <= self.first < 1 << 62:
            raise ValueError(f"size, first: {self.size} and {self.first} are out of range")
        if valid is not None:
            bits = address(valid, np.uint8, None, what="valid")
            if 8 * len(valid) < self.first + len(values):
                raise ValueError("valid: has fewer bits than there are values")
        least = self.least & (1 << 64) - 1
        return where, values.dtype.itemsize, len(values), bits, self.first, least, self.size


def count_pairs(
    leaf: NDArray[np.unsignedinteger[Any]], codes: NDArray[np.int32], leaves: int, size: int
) -> Ints:
    """How often each ``leaf`` (rows,) is beside each code (rows,): (leaves, size).

    Raises ValueError where one is not below the number of its kind.
    """
    if leaf.dtype.kind != "u":
        raise TypeError(f"leaf: unsigned integers expected, got {leaf.dtype}")
    where = address(leaf, leaf.dtype, None, what="leaf")
    beside = address(codes, np.int32, len(leaf), what="codes")
    if leaves < 0 or size < 0:
        raise ValueError(f"leaves, size: 0 or more expected, got {leaves} and {size}")
    rows = np.zeros((leaves, size), np.int64)
    numbers = len(leaf), leaves, size
    _count_pairs(where, leaf.dtype.itemsize, beside, *numbers, rows.ctypes.data)
    return rows
