"""Which rows of a release are equal, for its recount."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.native.arrays import Words, address, check_count, check_writable
from mondrian_ops.native.library import function

Places: TypeAlias = NDArray[np.int32]
Codes: TypeAlias = NDArray[np.unsignedinteger[Any]]

_POINTER, _INTEGER, _RESULT = ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64)
_WIDEST = 4  # bytes of a code

_equal_runs = function(
    "mo_equal_runs", _POINTER, _INTEGER, _INTEGER, _POINTER, result=ctypes.c_int64
)
_distances = function(
    "mo_distances",
    *(_POINTER, _INTEGER, _INTEGER, ctypes.c_uint64, _INTEGER, _POINTER, _POINTER),
)
_join_codes = function("mo_join_codes", _POINTER, _POINTER, _POINTER, _INTEGER, _INTEGER, _POINTER)
_group_keys = function("mo_group_keys", _POINTER, _INTEGER, _POINTER, _POINTER, _RESULT)


def equal_runs(columns: Sequence[Places], rows: int) -> Places:
    """Where the runs of equal neighbours begin, (runs,) int32: one of all rows without columns.

    ``columns``: of each (rows,) int32; rows are equal where they are in all.
    """
    check_count(rows, "rows")
    places = [address(column, np.int32, rows, what="columns") for column in columns]
    starts = np.empty(rows, np.int32)
    pointers = np.array(places, np.uintp)
    runs = _equal_runs(pointers.ctypes.data, len(places), rows, starts.ctypes.data)
    return starts[:runs].copy()


def distances(
    numbers: NDArray[np.integer[Any]], least: int, size: int
) -> tuple[Places, NDArray[np.bool_]]:
    """How far whole numbers (rows,) are from the least one, (rows,) int32; which occur, (size,).

    Raises ValueError where a number is less than the least one, or as far as ``size`` or further.
    """
    if numbers.dtype.kind not in "iu":
        raise TypeError(f"numbers: whole numbers expected, got {numbers.dtype}")
    limits = np.iinfo(numbers.dtype)
    if not limits.min <= least <= limits.max:
        raise ValueError(f"least: a number of type {numbers.dtype} expected, got {least}")
    check_count(size, "distances")
    rows, first = len(numbers), np.array(least, numbers.dtype)
    places, met = np.empty(rows, np.int32), np.zeros(size, np.bool_)
    _distances(
        *(address(numbers, numbers.dtype, rows, what="numbers"), numbers.itemsize, rows),
        *(int(first.view(f"u{first.itemsize}")), size, places.ctypes.data, met.ctypes.data),
    )
    return places, met


def join_codes(columns: Sequence[Codes], radices: Sequence[int], keys: Words) -> None:
    """Append codes to keys in mixed radix: key becomes key * radix + code, column by column.

    ``columns``: of each (rows,) uint8, uint16 or uint32, below its radix; ``keys`` (rows,) uint64.
    The caller sees to it that no key exceeds 64 bits. Raises ValueError, and may have changed the
    keys, where a code is not below its radix.
    """
    check_writable(keys, "keys")
    rows = len(keys)
    places = [code_address(column, rows, "columns") for column in columns]
    if len(radices) != len(columns):
        raise ValueError(f"radices: one for each column expected, got {len(radices)}")
    pointers = np.array([place for place, _ in places], np.uintp)
    widths = np.array([width for _, width in places], np.int64)
    limits = np.array(radices, np.uint64)
    _join_codes(
        *(pointers.ctypes.data, widths.ctypes.data, limits.ctypes.data),
        *(len(columns), rows, address(keys, np.uint64, rows, what="keys")),
    )


def group_keys(keys: Words) -> tuple[Places, Places]:
    """Group equal keys (rows,) uint64: the rows group by group, and where each group begins there.

    Two int32 arrays, (rows,) and (groups,). Groups are in the order of their first row, as are the
    rows of each group: if no two keys are equal, both arrays are the numbers of the rows.
    """
    rows = len(keys)
    check_count(rows, "keys")
    where = address(keys, np.uint64, rows, what="keys")
    order, starts, groups = np.empty(rows, np.int32), np.empty(rows, np.int32), ctypes.c_int64()
    _group_keys(where, rows, order.ctypes.data, starts.ctypes.data, ctypes.byref(groups))
    return order, starts[: groups.value].copy()


def code_address(codes: NDArray[Any], rows: int | None, what: str) -> tuple[int, int]:
    """The address of unsigned codes (rows,), and the bytes of each: 1, 2 or 4."""
    if codes.dtype.kind != "u" or codes.dtype.itemsize > _WIDEST:
        raise TypeError(f"{what}: uint8, uint16 or uint32 expected, got {codes.dtype}")
    return address(codes, codes.dtype, rows, what=what), codes.dtype.itemsize
