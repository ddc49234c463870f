"""How often each value occurs in each class of a release, for its recount."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.native.arrays import Ints, address, check_count, check_starts
from mondrian_ops.native.library import function
from mondrian_ops.verify.native.equal_rows import Codes, Places, code_address

_POINTER, _INTEGER = ctypes.c_void_p, ctypes.c_int64

_count_values = function(
    "mo_count_values",
    *(_POINTER, _INTEGER, _POINTER, _INTEGER),
    *(_POINTER, _INTEGER, _INTEGER, _INTEGER, _POINTER, _POINTER, _POINTER),
)
_sum_values = function(
    "mo_sum_values",
    *(_POINTER, _INTEGER, _POINTER, _INTEGER),
    *(_POINTER, _POINTER, _INTEGER, _POINTER, _INTEGER),
    *(_INTEGER, _POINTER, _POINTER, _POINTER),
)
_sum_by_code = function(
    "mo_sum_by_code", _POINTER, _INTEGER, _POINTER, _INTEGER, _INTEGER, _INTEGER, _POINTER
)


class CountedPairs(NamedTuple):
    """How often each code of a sensitive column occurs in each class.

    Class ``i`` has the pairs ``first[i]`` to ``first[i + 1]``, each of a code of its own, in the
    order in which its rows have them first. ``first`` (classes + 1,) int64; ``codes`` (pairs,)
    uint8, uint16 or uint32; ``counts`` (pairs,) unsigned, of the least type that holds them.
    """

    first: Ints
    codes: Codes
    counts: NDArray[np.unsignedinteger[Any]]


def count_values(places: Places, starts: Places, codes: Codes, code_count: int) -> CountedPairs:
    """Count the codes of each run of rows.

    ``places`` (rows,) int32 are places in ``codes`` (values,), which are below ``code_count``.
    ``starts`` (runs,) int32: where each run begins; the last one ends with the rows. Raises
    ValueError where a place or a code is outside of its table.
    """
    rows, runs = len(places), len(starts)
    check_count(rows, "places")
    _check_size(code_count)
    where, width = code_address(codes, None, "codes")
    arguments = (
        *(address(places, np.int32, rows, what="places"), rows),
        *(address(starts, np.int32, runs, what="starts"), runs),
    )
    check_starts(starts, rows, "starts")
    first, found = np.empty(runs + 1, np.int64), np.empty(rows, codes.dtype)
    counts = np.empty(rows, np.int32)
    addresses = first.ctypes.data, found.ctypes.data, counts.ctypes.data
    _count_values(*arguments, where, width, len(codes), code_count, *addresses)
    return CountedPairs(first, found[: first[-1]].copy(), least_type(counts[: first[-1]]))


def sum_values(pairs: CountedPairs, order: Places, starts: Places, code_count: int) -> CountedPairs:
    """Join classes: the sums of the equal pairs of each group of them.

    ``order`` (classes,) int32 has the classes group by group, each once; ``starts`` (groups,)
    int32: where each group begins there. Codes are below ``code_count``. Raises ValueError where a
    number is outside of its table.
    """
    classes, groups, count = len(order), len(starts), len(pairs.codes)
    _check_size(code_count)
    where, width = code_address(pairs.codes, count, "codes")
    counts = pairs.counts.astype(np.int64)
    arguments = (
        *(address(order, np.int32, classes, what="order"), classes),
        *(address(starts, np.int32, groups, what="starts"), groups),
        address(pairs.first, np.int64, classes + 1, what="first"),
        *(where, width, address(counts, np.int64, count, what="counts"), count),
    )
    check_starts(starts, classes, "starts")
    check_starts(pairs.first, count, "first")
    first, found = np.empty(groups + 1, np.int64), np.empty(count, pairs.codes.dtype)
    sums = np.empty(count, np.int64)
    addresses = first.ctypes.data, found.ctypes.data, sums.ctypes.data
    _sum_values(*arguments, code_count, *addresses)
    return CountedPairs(first, found[: first[-1]].copy(), least_type(sums[: first[-1]]))


def sum_by_code(codes: Codes, weights: NDArray[np.integer[Any]], code_count: int) -> Ints:
    """(code_count,) int64 the sums of the weights of each code.

    ``codes`` (rows,) are below ``code_count``; ``weights`` (rows,), of any type of whole numbers,
    are not below 0. Raises ValueError where a code is outside of its table.
    """
    rows = len(codes)
    _check_size(code_count)
    where, width = code_address(codes, rows, "codes")
    unsigned = weights.view(f"u{weights.itemsize}")
    sums = np.zeros(code_count, np.int64)
    _sum_by_code(
        *(where, width, address(unsigned, unsigned.dtype, rows, what="weights"), weights.itemsize),
        *(rows, code_count, sums.ctypes.data),
    )
    return sums


def least_type(numbers: NDArray[Any]) -> NDArray[np.unsignedinteger[Any]]:
    """Numbers from 0 on in the least unsigned type that holds them all."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def _check_size(code_count: int) -> None:
    if not 0 <= code_count <= 1 << 32:
        raise ValueError(f"code_count: from 0 to {1 << 32} expected, got {code_count}")
