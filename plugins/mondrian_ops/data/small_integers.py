"""Columns of integers within a small range, such as ages and years: tables instead of hashing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.data.native.lookup import SmallRange
from mondrian_ops.late_methods import dataclass

Entry = TypeVar("Entry", bound=np.generic)

_NARROW = 1 << 12


@dataclass(frozen=True)
class SmallIntegers:
    """A column of integers, the ``size`` numbers from its ``least`` to its greatest.

    A table over it has an entry for each of these numbers, and a last one for missing values.
    """

    column: pa.ChunkedArray | pa.Array
    least: int
    size: int

    @classmethod
    def of(cls, column: pa.ChunkedArray | pa.Array, most: int = _NARROW) -> SmallIntegers | None:
        """None where there are more than ``most`` numbers, or no value, or no integers."""
        if not pa.types.is_integer(column.type):
            return None
        least, greatest = pc.min_max(column).as_py().values()
        if least is None or greatest - least >= most:
            return None
        return cls(column, least, greatest - least + 1)

    @property
    def numbers(self) -> pa.Array:
        """The numbers from the least to the greatest, in the column's type."""
        dtype = np.dtype(self.column.type.to_pandas_dtype())
        return pa.array(np.arange(self.size).astype(dtype) + dtype.type(self.least))

    def occurs(self) -> NDArray[np.bool_]:
        """Which entries the column has, (size + 1,)."""
        occurs = np.zeros(self.size + 1, np.bool_)
        for piece in self._pieces():
            piece.mark(occurs)
        return occurs

    def look_up(self, table: NDArray[Entry]) -> NDArray[Entry]:
        """What ``table`` (size + 1,) has for each row, (rows,)."""
        found, start = np.empty(len(self.column), table.dtype), 0
        for piece in self._pieces():
            stop = start + len(piece.values)
            piece.look_up(table, found[start:stop])
            start = stop
        return found

    def _pieces(self) -> Iterator[SmallRange]:
        column = self.column
        dtype = np.dtype(column.type.to_pandas_dtype())
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            if not len(chunk):
                continue
            bits, values = chunk.buffers()
            numbers = np.frombuffer(values, dtype, len(chunk), chunk.offset * dtype.itemsize)
            if not chunk.null_count:
                yield SmallRange(numbers, self.least, self.size)
            else:
                valid = np.frombuffer(bits, np.uint8)
                yield SmallRange(numbers, self.least, self.size, valid, chunk.offset)


def look_up(table: NDArray[Entry], indices: NDArray[np.integer[Any]]) -> NDArray[Entry]:
    """``table[indices]``, with indices from 0 to less than the table's length."""
    found = np.empty(len(indices), table.dtype)
    SmallRange(np.ascontiguousarray(indices), 0, len(table)).look_up(table, found)
    return found


def count(indices: NDArray[np.integer[Any]], size: int) -> NDArray[np.int64]:
    """How often each number below ``size`` is in ``indices``, (size,); there are no others."""
    rows = np.zeros(size, np.int64)
    SmallRange(np.ascontiguousarray(indices), 0, size).tally(rows)
    return rows
