"""Counting packed combinations of codes by hashing."""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.native.arrays import (
    Ints,
    Words,
    address,
    check_below,
    check_count,
    check_rows,
    check_starts,
)
from mondrian_ops.native.library import function

_POINTER, _INTEGER, _RESULT = ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64)

_recode = function(
    "mo_recode",
    *(_POINTER, _INTEGER, _INTEGER, _POINTER),
    *(_POINTER, _INTEGER, _POINTER, _POINTER),
    *(_POINTER, _POINTER, _RESULT),
    stoppable=True,
)
_group_by_bits = function(
    "mo_group_by_bits",
    _POINTER,
    _INTEGER,
    _INTEGER,
    _POINTER,
    _POINTER,
    _POINTER,
    _RESULT,
    stoppable=True,
)


def recode(
    words: Words, rows: Ints, places: Words, tables: Words, first: Ints
) -> tuple[Words, Ints]:
    """Replace codes; returns the distinct combinations and how many rows have each.

    ``words`` (words, n) and ``rows`` (n,) are those of a frequency set. For each column that
    changes, ``places`` (columns, 3) holds its word, shift and mask, and code c of column a becomes
    ``tables[first[a] + c]``. The distinct combinations are in the order of their first occurrence.
    """
    n, wide = _size(words)
    columns = len(first)
    starts = np.append(first, len(tables))
    arguments = (
        address(words, np.uint64, wide, n, what="words"),
        wide,
        n,
        address(rows, np.int64, n, what="rows"),
        address(places, np.uint64, columns, 3, what="places"),
        columns,
        address(tables, np.uint64, None, what="tables"),
        address(starts, np.int64, columns + 1, what="first"),
    )
    check_rows(rows)
    check_below(places[:, 0], wide, "words of the places")
    check_below(places[:, 1], 64, "shifts of the places")
    check_starts(starts, len(tables), "first")
    distinct, total = np.empty((wide, n), np.uint64), np.empty(n, np.int64)
    count = ctypes.c_int64()
    _recode(*arguments, distinct.ctypes.data, total.ctypes.data, ctypes.byref(count))
    return distinct[:, : count.value].copy(), total[: count.value].copy()


def group_by_bits(words: Words, keys: Words) -> tuple[NDArray[np.int32], Ints]:
    """Group the combinations whose bits under the masks ``keys`` (words,) are equal.

    Returns an index of the combinations group by group, and where each group begins in it. Groups
    are in the order of their first combination; the combinations of a group keep their order.
    """
    n, wide = _size(words)
    arguments = (
        address(words, np.uint64, wide, n, what="words"),
        wide,
        n,
        address(keys, np.uint64, wide, what="keys"),
    )
    index, starts = np.empty(n, np.int32), np.empty(n, np.int64)
    groups = ctypes.c_int64()
    _group_by_bits(*arguments, index.ctypes.data, starts.ctypes.data, ctypes.byref(groups))
    return index, starts[: groups.value].copy()


def _size(words: Words) -> tuple[int, int]:
    """The number of combinations, and of the words of each."""
    address(words, np.uint64, None, None, what="words")
    wide, n = words.shape
    check_count(n, "combinations")
    return n, wide
