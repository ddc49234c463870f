"""Rank encoding: a column becomes codes whose order is the order of the attribute.

Code 0 is the missing value (null or NaN); codes 1, 2, ... are the ranks of the values present, in
the narrowest unsigned dtype. Everything after this works on codes and counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.data.small_integers import SmallIntegers, count, look_up
from mondrian_ops.errors import InputError
from mondrian_ops.late_methods import dataclass

Codes: TypeAlias = NDArray[np.unsignedinteger[Any]]

Column: TypeAlias = pa.ChunkedArray | pa.Array

_TICKS_PER_DAY = {
    "s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000
}  # fmt: skip
_UNSIGNED = (np.uint8, np.uint16, np.uint32)
_NARROW = 1 << 12  # integers within so small a range are looked up in a table
_ROWS_PER_NUMBER = 16  # and those of a larger one that has as many rows for each of its numbers


@dataclass(frozen=True)
class Indexed:
    """A column as a list of values, and an index into it for each row.

    A function of values is then computed once per value, not once per row.

    indices
        (rows,) integers.
    values
        As `as_array` returns them, with the missing value at the end. A value may be listed twice,
        or occur in no row.
    """

    indices: NDArray[np.integer[Any]]
    values: pa.Array

    def mapped(self, change: Callable[[pa.Array], pa.Array]) -> Indexed:
        """The column with ``change`` applied to its values; it keeps the missing one missing."""
        return Indexed(self.indices, change(self.values))

    def counted(self) -> tuple[pa.Array, pa.Array]:
        """The values that occur, and the rows of each; a value may still occur twice."""
        rows = count(self.indices, len(self.values))
        present = rows > 0
        return self.values.filter(pa.array(present)), pa.array(rows[present])


def value_type(type_: pa.DataType) -> pa.DataType:
    """The type of a column's values: that of its dictionary, if it has one."""
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def code_dtype(size: int) -> np.dtype[Any]:
    """The narrowest unsigned dtype that holds codes ``0 .. size - 1``."""
    for dtype in _UNSIGNED:
        if size - 1 <= np.iinfo(dtype).max:
            return np.dtype(dtype)
    raise InputError(f"a column has {size - 1} distinct values; at most {2**32 - 1} are supported")


def as_array(column: Column) -> pa.Array:
    """One contiguous array: chunks combined, dictionaries decoded, -0.0 as 0.0, NaN as null."""
    column = combined(column)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    if pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0.0, column.type))
        nan = pc.is_nan(column)
        if pc.any(nan).as_py():
            column = pc.if_else(nan, pa.scalar(None, column.type), column)
    return column


def combined(column: Column) -> pa.Array:
    """One contiguous array of all chunks."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # zero chunks, or too long for one
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([])
    return column


def indexed(column: Column) -> Indexed:
    """The column by its own dictionary if that is no longer than the column, else by a new one."""
    small = SmallIntegers.of(column)
    if small is not None:
        entries = np.arange(small.size + 1, dtype=np.min_scalar_type(small.size))
        return Indexed(small.look_up(entries), _with_missing(small.numbers))
    column = combined(column)
    if not pa.types.is_dictionary(column.type) or len(column.dictionary) > len(column):
        column = as_array(column).dictionary_encode()
    values = as_array(column.dictionary)
    indices = pc.fill_null(column.indices.cast(pa.int64()), len(values))
    return Indexed(indices.to_numpy(), _with_missing(values))


def _with_missing(values: pa.Array) -> pa.Array:
    return pa.concat_arrays([values, pa.nulls(1, values.type)])


def encode_ranks(column: Column) -> tuple[Codes, pa.Array]:
    """Codes ``(rows,)`` and the distinct values in ascending order; code c is value ``c - 1``."""
    small = SmallIntegers.of(column, max(_NARROW, len(column) // _ROWS_PER_NUMBER))
    if small is not None:
        occurs = small.occurs()[:-1]
        return small.look_up(_ranks(occurs)), small.numbers.filter(pa.array(occurs))
    encoded = as_array(column).dictionary_encode()
    values = encoded.dictionary
    order = pc.array_sort_indices(values, null_placement="at_end").to_numpy()
    present = len(values) - values.null_count
    rank = np.zeros(len(values) + 1, code_dtype(present + 1))
    rank[order[:present]] = np.arange(1, present + 1, dtype=rank.dtype)
    indices = pc.fill_null(encoded.indices, len(values)).to_numpy()
    return rank.take(indices), values.take(pa.array(order[:present]))


def _ranks(present: NDArray[np.bool_]) -> Codes:
    """The code of each of some ascending values, 0 if it is not present; a last 0 for missing."""
    size = int(np.count_nonzero(present)) + 1
    return np.append(np.where(present, np.cumsum(present), 0), 0).astype(code_dtype(size))


def encode_known(column: Indexed, domain: pa.Array) -> tuple[Codes, int]:
    """Codes by position in ``domain``: code c is ``domain[c - 1]``.

    Also returns how many rows hold a value that is not in the domain; their code is 0. Both have
    one type.
    """
    place = _places(column.values, domain)
    known = (place + 1).astype(code_dtype(len(domain) + 1))
    codes = look_up(known, column.indices)
    unknown = (place < 0) & column.values.is_valid().to_numpy(zero_copy_only=False)
    return codes, int(np.count_nonzero(unknown[column.indices])) if unknown.any() else 0


def _places(values: pa.Array, domain: pa.Array) -> NDArray[np.int64]:
    """The place of each value in the domain, (values,); -1 for one that is missing or not there.

    Arrow makes a table of one side and looks up the other, which takes a fourth of the time.
    """
    if len(domain) <= 2 * len(values):
        position = pc.index_in(values, value_set=domain)
        return np.asarray(pc.fill_null(position.cast(pa.int64()), -1).to_numpy())
    listed = values.dictionary_encode()
    found = pc.index_in(domain, value_set=listed.dictionary)
    place = np.full(len(listed.dictionary) + 1, -1, np.int64)
    there = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))[::-1]  # the first wins
    place[found.drop_null().to_numpy()[::-1]] = there
    places: NDArray[np.int64] = place[
        pc.fill_null(listed.indices, len(listed.dictionary)).to_numpy()
    ]
    return places


def positions(values: pa.Array, name: str) -> NDArray[np.float64]:
    """The positions of ascending values on a line, to measure spans: numbers, days or ticks.

    A value may come several times, as in quantiles. Raises InputError on infinite values, and where
    the span is no finite number.
    """
    if pa.types.is_date32(values.type) or pa.types.is_time32(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_temporal(values.type):
        values = values.cast(pa.int64())
    line: NDArray[np.float64] = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    infinite = len(np.unique(line[np.isinf(line)]))
    if infinite:
        raise InputError(
            f"column {name!r}: {infinite} infinite distinct value(s), which no interval can "
            "contain; replace them or make them missing before anonymizing"
        )
    if len(line) and float(line[-1]) / 2 - float(line[0]) / 2 > np.finfo(np.float64).max / 2:
        raise InputError(
            f"column {name!r}: its lowest and highest numbers are so far apart that their "
            "difference overflows; replace the extreme ones or make them missing before "
            "anonymizing"
        )
    return line


def days(values: pa.Array) -> NDArray[np.float64]:
    """The day of each date or timestamp, counted from 1970-01-01, in UTC where it has a zone."""
    days = pa.types.is_date32(values.type)
    ticks = values.cast(pa.int32() if days else pa.int64()).to_numpy(zero_copy_only=False)
    whole: NDArray[np.integer] = ticks // (1 if days else ticks_per_day(values.type))
    return whole.astype(np.float64)


def ticks_per_day(type_: pa.DataType) -> int:
    """Units per day of a timestamp, or of a date in milliseconds."""
    return _TICKS_PER_DAY["ms" if pa.types.is_date64(type_) else type_.unit]
