"""Rank encoding: a column becomes codes whose order is the order of the attribute.

Code 0 is the missing value (null or NaN); codes 1, 2, ... are the ranks of the values present, in
the narrowest unsigned dtype. Everything after this works on codes and counts.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.core.errors import InputError

__all__ = [
    "Codes",
    "as_array",
    "code_dtype",
    "encode_known",
    "encode_ranks",
    "positions",
    "without_dictionaries",
]

Codes: TypeAlias = NDArray[np.unsignedinteger[Any]]

_UNSIGNED = (np.uint8, np.uint16, np.uint32)


def code_dtype(size: int) -> np.dtype[Any]:
    """The narrowest unsigned dtype that holds codes ``0 .. size - 1``."""
    for dtype in _UNSIGNED:
        if size - 1 <= np.iinfo(dtype).max:
            return np.dtype(dtype)
    raise InputError(f"a column has {size - 1} distinct values; at most {2**32 - 1} are supported")


def as_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """One contiguous array: chunks combined, dictionaries decoded, -0.0 as 0.0, NaN as null."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # zero chunks, or too long for one
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([])
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


def encode_ranks(column: pa.Array) -> tuple[Codes, pa.Array]:
    """Codes ``(rows,)`` and the distinct values in ascending order; code c is value ``c - 1``.

    ``column`` comes from `as_array`, as that of `encode_known` does.
    """
    encoded = column.dictionary_encode()
    values = encoded.dictionary
    order = pc.array_sort_indices(values, null_placement="at_end").to_numpy()
    present = len(values) - values.null_count
    rank = np.zeros(len(values), code_dtype(present + 1))
    rank[order[:present]] = np.arange(1, present + 1, dtype=rank.dtype)
    return _take(rank, encoded.indices), values.take(pa.array(order[:present]))


def encode_known(column: pa.Array, domain: pa.Array) -> tuple[Codes, int]:
    """Codes by position in ``domain`` (code c is ``domain[c - 1]``), and the rows of no position.

    ``column`` and ``domain`` have one type. Rows whose value is not in the domain get code 0.
    """
    encoded = column.dictionary_encode()
    position = pc.index_in(encoded.dictionary, value_set=domain)
    known = np.zeros(len(encoded.dictionary), code_dtype(len(domain) + 1))
    found = position.is_valid().to_numpy(zero_copy_only=False)
    known[found] = position.drop_null().to_numpy() + 1
    codes = _take(known, encoded.indices)
    if found.all():
        return codes, 0
    return codes, int(np.count_nonzero(codes == 0)) - column.null_count


def _take(table: NDArray[Any], indices: pa.Array) -> Codes:
    """``table[indices]``, and code 0 where an index is null."""
    if len(table) == 0:
        return np.zeros(len(indices), table.dtype)
    codes: Codes = table[pc.fill_null(indices, 0).to_numpy()]
    if indices.null_count:
        codes[indices.is_null().to_numpy(zero_copy_only=False)] = 0
    return codes


def positions(values: pa.Array, name: str) -> NDArray[np.float64]:
    """Where ordered values lie on a line, for spans: numbers themselves, days, ticks.

    Raises InputError on infinite values, which have no position.
    """
    if pa.types.is_date32(values.type) or pa.types.is_time32(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_temporal(values.type):
        values = values.cast(pa.int64())
    line: NDArray[np.float64] = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    infinite = np.count_nonzero(np.isinf(line))
    if infinite:
        raise InputError(
            f"column {name!r}: {infinite} infinite distinct value(s), which have no place in an "
            "interval; replace them or make them missing before anonymizing"
        )
    return line


def without_dictionaries(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with plain values, in lists and structs too.

    A dictionary lists values that no row has, and can list them in the order of the source's rows.
    """
    plain = _plain_type(column.type)
    return column if plain == column.type else column.cast(plain)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(each) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_plain_field(kind.value_field), kind.list_size)
    if pa.types.is_list(kind):
        return pa.list_(_plain_field(kind.value_field))
    if pa.types.is_large_list(kind):
        return pa.large_list(_plain_field(kind.value_field))
    return kind


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(_plain_type(field.type))
