"""Columns as plain arrays, and their values as ranks and digests, apart from what cutting uses."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def in_one(column: pa.Array[Any] | pa.ChunkedArray[Any]) -> pa.Array[Any]:
    """All chunks of a column as one array."""
    if isinstance(column, pa.Array):
        return column
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def decoded(column: pa.Array[Any] | pa.ChunkedArray[Any]) -> pa.Array[Any]:
    """A column as one array of its values: no dictionary, no -0.0, and null in place of NaN."""
    values = in_one(column)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    if not pa.types.is_floating(values.type):
        return values
    values = pc.add(values, pa.scalar(0.0, values.type))  # -0.0 + 0.0 is 0.0
    return pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)


def ends_of(numbers: pa.Array[Any]) -> tuple[int, int] | None:
    """The least and the greatest of some whole numbers; None where all are missing."""
    ends = pc.min_max(numbers).as_py()
    return None if ends["min"] is None else (ends["min"], ends["max"])


def distances(numbers: pa.Array[Any], least: int, most: int, kind: Any) -> NDArray[Any]:
    """(rows,) how far each whole number is from the least one; a missing one follows the greatest.

    ``kind``: the type of the distances, which can hold those of all from ``least`` to ``most``, and
    of the one behind.
    """
    plain = (numbers.fill_null(least) if numbers.null_count else numbers).to_numpy()
    # Subtraction of unsigned numbers wraps around, so that the distance is right.
    unsigned = plain.view(f"u{plain.itemsize}")
    found: NDArray[Any] = (unsigned - _unsigned(least, plain.dtype)).astype(kind)
    if numbers.null_count:
        found[numbers.is_null().to_numpy(zero_copy_only=False)] = most - least + 1
    return found


def numbers_from(least: int, distances: NDArray[Any], type_: pa.DataType) -> NDArray[Any]:
    """The numbers of a type of whole numbers that are so far from the least one."""
    kind = np.dtype(type_.to_pandas_dtype())
    first = _unsigned(least, kind)
    numbers: NDArray[Any] = (distances.astype(first.dtype) + first).view(kind)
    return numbers


def _unsigned(number: int, kind: np.dtype[Any]) -> Any:
    return np.array(number, kind).view(f"u{kind.itemsize}")


def ranks_of(values: pa.Array[Any]) -> tuple[Ints, pa.Array[Any]]:
    """The rank of each value, (rows,), from 1 on, 0 where it is missing; and the distinct values.

    ``values`` come from `decoded`.
    """
    encoded = values.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary, null_placement="at_end")
    ascending = encoded.dictionary.take(order).drop_null()
    rank = np.zeros(len(order) + 1, np.int64)  # the last is that of a missing value
    rank[order.to_numpy()[: len(ascending)]] = np.arange(1, len(ascending) + 1)
    place: Ints = encoded.indices.fill_null(len(order)).to_numpy()
    return rank.take(place), ascending


def persons_of(values: pa.Array[Any]) -> Ints:
    """A number for each row's person, the same in all parts of a release; 0 where it is missing."""
    encoded = values.dictionary_encode()
    texts = encoded.dictionary
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    if not any(is_kind(texts.type) for is_kind in kinds):
        texts = texts.cast(pa.string()).cast(pa.binary())
    digests = [
        0 if text is None else int.from_bytes(_digest(text), "little", signed=True)
        for text in texts.to_pylist()
    ]
    persons: Ints = np.array([*digests, 0], np.int64)
    place: Ints = encoded.indices.fill_null(len(texts)).to_numpy()
    return persons.take(place)


def _digest(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=8).digest()
