"""The published texts of classes, as Arrow dictionaries of distinct texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.generalize.native.classes import number_pairs
from mondrian_ops.native.arrays import Ints

Code = TypeVar("Code", bound=np.integer[Any])

STAR_TEXT = "*"
_UNCLEAR = re.compile(r'[,{}"]|^\s|\s$|^\*?$')


def distinct_pairs(
    low: NDArray[Code], high: NDArray[Code], size: int
) -> tuple[Ints, Ints, NDArray[np.integer[Any]]]:
    """The distinct pairs of codes below ``size``, two arrays (pairs,), and the pair of each class,
    (classes,)."""
    inverse: NDArray[np.integer[Any]]
    if size * size <= 1 << 22:
        unique, inverse = number_pairs(low, high, size)
    else:
        unique, inverse = np.unique(low.astype(np.int64) * size + high, return_inverse=True)
    return unique // size, unique % size, inverse.astype(index_dtype(len(unique)), copy=False)


def index_dtype(size: int) -> np.dtype[Any]:
    """The narrowest dtype of indices into a dictionary of so many labels, and of their number."""
    return np.dtype(np.int8 if size < 1 << 7 else np.int16 if size < 1 << 15 else np.int32)


def of_codes(values: pa.Array, codes: NDArray[np.int64], is_null: NDArray[np.bool_]) -> pa.Array:
    """The value of each code; ``values`` are those of codes 1, 2, ..."""
    return values.take(pa.array(np.maximum(codes - 1, 0), mask=is_null))


def labels_of_pairs(
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    lower: pa.Array,
    upper: pa.Array,
    single: NDArray[np.bool_],
    close: str,
) -> pa.Array:
    """Text of the interval from code ``low`` to code ``high``, (pairs,) each.

    ``lower`` and ``upper`` are the texts of the ends of codes 1, 2, ..., null where there is none.
    ``single`` (pairs,): the interval is one value, published as its text. ``close`` is the bracket
    behind an upper end.
    """
    start = pc.fill_null(pc.binary_join_element_wise("[", lower, ""), "(-inf")
    stop = pc.fill_null(pc.binary_join_element_wise(upper, close, ""), "inf)")
    first, last = of_codes(start, low, low == 0), of_codes(stop, high, high == 0)
    pair = pc.binary_join_element_wise(first, last, ", ")
    labels = pc.if_else(pa.array(single), of_codes(lower, low, low == 0), pair)
    return pc.if_else(pa.array((low == 0) & (high > 0)), STAR_TEXT, labels)


def dictionary(ids: NDArray[np.int64], texts: pa.Array) -> pa.DictionaryArray:
    """``texts[ids]``, without unused texts; an id of -1 is null."""
    unique, inverse = np.unique(ids, return_inverse=True)
    used = texts.take(pa.array(np.maximum(unique, 0), mask=unique < 0))
    return dictionary_of_texts(inverse, used)


def dictionary_of_texts(
    ids: NDArray[np.integer[Any]] | pa.Array, texts: pa.Array
) -> pa.DictionaryArray:
    """``texts[ids]`` with distinct texts: a duplicate would tell equal texts apart.

    Nulls are indices, as Parquet writes none in a dictionary. Indices are as narrow as they can be.
    """
    encoded = texts.dictionary_encode()
    narrow = pa.from_numpy_dtype(index_dtype(len(encoded.dictionary)))
    indices = encoded.indices.cast(narrow).take(pa.array(ids))
    return pa.DictionaryArray.from_arrays(indices, encoded.dictionary)


def starred(labels: pa.DictionaryArray, star: NDArray[np.bool_]) -> pa.DictionaryArray:
    """``labels`` with "*" where ``star``."""
    if not star.any():
        return labels
    texts = pa.concat_arrays([labels.dictionary, pa.array([STAR_TEXT], pa.string())])
    indices = labels.indices.cast(pa.int32())
    ids = pc.if_else(pa.array(star), pa.scalar(len(texts) - 1, pa.int32()), indices)
    return dictionary_of_texts(ids, texts)


def edge_text(edges: pa.Array) -> pa.Array:
    """The ends of cells as text, whole numbers without a point."""
    if not pa.types.is_floating(edges.type):
        return edges.cast(pa.string())
    numbers = edges.cast(pa.float64())
    whole = pc.and_(pc.equal(numbers, pc.floor(numbers)), pc.less(pc.abs(numbers), 2.0**53))
    plain = pc.if_else(whole, numbers, 0.0).cast(pa.int64()).cast(pa.string())
    return pc.if_else(whole, plain, edges.cast(pa.string()))


def set_text(members: Sequence[str]) -> str:
    """The text of a set: ``{France, Italy}``; what a reader could not tell apart is quoted."""
    return (
        "{" + ", ".join(quoted(each) if _UNCLEAR.search(each) else each for each in members) + "}"
    )


def single_text(value: str) -> str:
    """The text of one value, quoted where it could be read as a set, a prefix or as hidden."""
    return quoted(value) if value.startswith(("{", '"')) or value.endswith(STAR_TEXT) else value


def quoted(text: str) -> str:
    """A text between quotation marks; those inside are doubled, as in CSV."""
    return '"' + text.replace('"', '""') + '"'
