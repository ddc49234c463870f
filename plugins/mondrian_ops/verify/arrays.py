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
