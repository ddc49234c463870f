"""Loops over finished classes, and the routing of rows to fragments."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.native.arrays import (
    Ints,
    address,
    check_below,
    check_count,
    check_starts,
    check_writable,
)
from mondrian_ops.native.library import function

Index: TypeAlias = NDArray[np.int32]
Code = TypeVar("Code", bound=np.integer[Any])
Label = TypeVar("Label", bound=np.integer[Any])

_POINTER, _INTEGER = ctypes.c_void_p, ctypes.c_int64
_UNSIGNED = tuple(map(np.dtype, (np.uint8, np.uint16, np.uint32)))
_CODES = (*_UNSIGNED, np.dtype(np.int64))

_extents = function(
    "mo_extents",
    *(_POINTER, _INTEGER, _POINTER, _INTEGER, _POINTER, _INTEGER, _POINTER, _POINTER),
    result=None,
)
_extents_of_columns = function(
    "mo_extents_of_columns",
    *(_POINTER, _INTEGER, _INTEGER, _INTEGER, _POINTER, _INTEGER, _POINTER, _INTEGER),
    *(_POINTER, _POINTER),
)
_number_pairs = function(
    "mo_number_pairs", _POINTER, _POINTER, _INTEGER, _INTEGER, _INTEGER, _POINTER, _POINTER
)
_sort_classes = function(
    "mo_sort_classes", _POINTER, _POINTER, _INTEGER, _INTEGER, _POINTER, _POINTER
)
_arrange_classes = function(
    "mo_arrange_classes",
    *(_POINTER, _INTEGER, _POINTER, _INTEGER, _POINTER, _POINTER),
    result=None,
)
_repeat = function(
    "mo_repeat",
    *(_POINTER, _INTEGER, _POINTER, _POINTER, _INTEGER, _POINTER),
    result=None,
)
_distinct_per_class = function(
    "mo_distinct_per_class",
    *(_POINTER, _INTEGER, _INTEGER, _POINTER, _INTEGER, _POINTER, _INTEGER, _POINTER, _POINTER),
)
_shuffle_classes = function(
    "mo_shuffle_classes", _POINTER, _INTEGER, _POINTER, _INTEGER, _POINTER, result=None
)


class _Routes(ctypes.Structure):
    _fields_ = (
        ("nodes", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("column", "limit", "left", "right", "leaf")),
    )


_route_rows = function(
    "mo_route_rows",
    *(_POINTER, _INTEGER, _INTEGER, ctypes.POINTER(_Routes), _POINTER, _INTEGER),
)


def extents(codes: NDArray[np.integer[Any]], index: Index, starts: Ints) -> tuple[Ints, Ints]:
    """The least and the greatest code of each class, two (classes,) arrays.

    ``codes`` (rows,) uint8, uint16, uint32 or int64. Class i is the rows
    ``index[starts[i]:starts[i + 1]]``, one at least; the last class ends with ``index``.
    """
    code_arguments = _codes(codes)
    arguments = _classes(index, starts, len(codes), least=1)
    low, high = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
    _extents(*code_arguments, *arguments, low.ctypes.data, high.ctypes.data)
    return low, high


def extents_of_columns(
    codes: NDArray[Code], index: Index, starts: Ints
) -> tuple[NDArray[Code], NDArray[Code]]:
    """The least and the greatest code of each class in each column, two (columns, classes) arrays.

    ``codes`` (columns, rows) uint8, uint16 or uint32; the classes are as for `extents`, which takes
    several times as long for each column.
    """
    if codes.dtype not in _UNSIGNED:
        raise TypeError(f"codes: uint8, uint16 or uint32 expected, got {codes.dtype}")
    where = address(codes, codes.dtype, None, None, what="codes")
    columns, rows = codes.shape
    arguments = _classes(index, starts, rows, least=1)
    low, high = (np.empty((columns, len(starts)), codes.dtype) for _ in range(2))
    ends = low.ctypes.data, high.ctypes.data
    _extents_of_columns(where, codes.dtype.itemsize, columns, rows, *arguments, *ends)
    return low, high


def number_pairs(
    low: NDArray[Code], high: NDArray[Code], size: int
) -> tuple[Ints, NDArray[np.int32]]:
    """The distinct pairs of codes below ``size`` in order, as ``low * size + high``, (pairs,).

    Also the number of the pair of each class, (classes,). ``size`` is 2^15 at most, for there is a
    table of all pairs.
    """
    if low.dtype not in _CODES:
        raise TypeError(f"codes: uint8, uint16, uint32 or int64 expected, got {low.dtype}")
    if not 0 <= size <= 1 << 15:
        raise ValueError(f"size: at most {1 << 15} codes are supported, got {size}")
    codes = [address(each, low.dtype, len(low), what="codes") for each in (low, high)]
    table, number = np.zeros(size * size, np.int32), np.empty(len(low), np.int32)
    of_codes = low.dtype.itemsize, len(low), size
    _number_pairs(*codes, *of_codes, table.ctypes.data, number.ctypes.data)
    return np.flatnonzero(table), number


def sort_classes(
    labels: Sequence[NDArray[np.unsignedinteger[Any]]],
) -> tuple[NDArray[np.int32], Ints]:
    """The order of classes by their labels, the first column before the others, (classes,).

    Also where in that order classes begin that differ from the one before. ``labels``: (classes,)
    each, uint8, uint16 or uint32. Classes with equal labels keep their order.
    """
    classes = len(labels[0])
    for column in labels:
        if column.dtype not in _UNSIGNED:
            raise TypeError(f"labels: uint8, uint16 or uint32 expected, got {column.dtype}")
    check_count(classes, "classes")
    where = np.array([address(c, c.dtype, classes, what="labels") for c in labels], np.uintp)
    widths = np.array([column.dtype.itemsize for column in labels], np.int64)
    order, first = np.empty(classes, np.int32), np.empty(classes, np.uint8)
    columns = where.ctypes.data, widths.ctypes.data, len(labels)
    _sort_classes(*columns, classes, order.ctypes.data, first.ctypes.data)
    return order, np.flatnonzero(first)


def arrange_classes(index: Index, starts: Ints, order: NDArray[np.int32]) -> Index:
    """``index`` with its classes, as for `extents`, in another ``order`` (classes,)."""
    arguments = _runs(index, starts, least=0)
    _check_order(order, len(starts))
    if np.count_nonzero(np.bincount(order, minlength=len(starts))) != len(starts):
        raise ValueError("order: must name every class once")
    if len(starts) and starts[0] != 0:
        raise ValueError("starts: must begin with 0")
    arranged = np.empty(len(index), np.int32)
    _arrange_classes(*arguments, order.ctypes.data, arranged.ctypes.data)
    return arranged


def repeat(values: NDArray[Label], order: NDArray[np.int32], sizes: Ints) -> NDArray[Label]:
    """``values[order]``, each repeated as ``sizes`` says, (classes,) three times.

    Values are integers of 1, 2 or 4 bytes.
    """
    classes, width = len(values), values.dtype.itemsize
    if values.dtype.kind not in "iu" or width not in (1, 2, 4):
        raise TypeError(f"values: integers of 1, 2 or 4 bytes expected, got {values.dtype}")
    _check_order(order, classes)
    where = address(values, values.dtype, classes, what="values")
    sizes_at = address(sizes, np.int64, classes, what="sizes")
    check_below(sizes, 1 << 31, "sizes")
    rows = int(sizes.sum())
    check_count(rows, "rows")
    repeated = np.empty(rows + 8 // width, values.dtype)
    _repeat(where, width, order.ctypes.data, sizes_at, classes, repeated.ctypes.data)
    return repeated[:rows]


def _check_order(order: NDArray[np.int32], classes: int) -> None:
    address(order, np.int32, classes, what="order")
    check_below(order, classes, "order")


def distinct_per_class(
    codes: NDArray[Code], index: Index, starts: Ints, size: int
) -> tuple[NDArray[Code], Ints]:
    """The distinct codes of each class in order, class after class, and where each class ends.

    Arguments are those of `extents`, except that codes are below ``size`` and classes may be empty.
    """
    code_arguments = _codes(codes)
    arguments = _classes(index, starts, len(codes), least=0)
    if not 0 <= size <= 1 << 32:
        raise ValueError(f"size: at most {1 << 32} codes are supported, got {size}")
    check_below(codes, size, "codes")
    members, ends = np.empty(len(index), np.uint32), np.empty(len(starts), np.int64)
    _distinct_per_class(*code_arguments, size, *arguments, members.ctypes.data, ends.ctypes.data)
    total = int(ends[-1]) if len(ends) else 0
    return members[:total].astype(codes.dtype), ends


def shuffle_classes(index: Index, starts: Ints, random: NDArray[np.uint32] | None = None) -> None:
    """Shuffle the rows of every class in place (Fisher-Yates), into another order with every call.

    ``random`` (rows,) uint32 has a random number for each place of ``index``. By default the
    numbers come from the operating system and are stored nowhere. An attacker who could compute the
    order of a release's rows from their codes, the job or a seed could run the job again on a
    made-up table with the same published values, compare the two releases row by row, and learn
    whose row each one is.
    """
    if random is None:
        random = np.frombuffer(os.urandom(4 * len(index)), np.uint32)
    arguments = _runs(index, starts, least=0)
    check_writable(index, "index")
    _shuffle_classes(*arguments, address(random, np.uint32, len(index), what="random"))


def route_rows(
    places: NDArray[np.unsignedinteger[Any]],
    column: Ints,
    limit: Ints,
    left: Ints,
    right: Ints,
    leaf: Ints,
    dtype: Any = np.uint32,
) -> NDArray[np.unsignedinteger[Any]]:
    """The leaf of each row of ``places`` (columns, rows) in a tree; each table is (nodes,) int64.

    Rows start at node 0. At an inner node, whose ``leaf`` is negative, the rows whose place in its
    ``column`` is at most ``limit`` go to its ``left`` node, the others to its ``right`` one.
    ``dtype``: that of the leaves that are returned, unsigned.
    """
    for what, kind in (("places", places.dtype), ("leaves", np.dtype(dtype))):
        if kind not in _UNSIGNED:
            raise TypeError(f"{what}: uint8, uint16 or uint32 expected, got {kind}")
    place_address = address(places, places.dtype, None, None, what="places")
    columns, rows = places.shape
    tree = {"column": column, "limit": limit, "left": left, "right": right, "leaf": leaf}
    nodes = {what: address(table, np.int64, len(leaf), what=what) for what, table in tree.items()}
    cuts = leaf < 0
    for what, limit_of in (("column", columns), ("left", len(leaf)), ("right", len(leaf))):
        check_below(tree[what][cuts], limit_of, what)
    check_below(leaf[~cuts], np.iinfo(dtype).max + 1, "leaf")
    if rows and not len(leaf):
        raise ValueError("leaf: there must be a node")
    leaf_of = np.empty(rows, dtype)
    routes, width = _Routes(nodes=len(leaf), **nodes), places.dtype.itemsize
    into = leaf_of.ctypes.data, leaf_of.dtype.itemsize
    _route_rows(place_address, width, rows, ctypes.byref(routes), *into)
    return leaf_of


def _codes(codes: NDArray[np.integer[Any]]) -> tuple[int, int]:
    """The address of the codes, and the bytes of each."""
    if codes.dtype not in _CODES:
        raise TypeError(f"codes: uint8, uint16, uint32 or int64 expected, got {codes.dtype}")
    return address(codes, codes.dtype, None, what="codes"), codes.dtype.itemsize


def _classes(index: Index, starts: Ints, rows: int, *, least: int) -> tuple[int, int, int, int]:
    arguments = _runs(index, starts, least=least)
    check_below(index, rows, "index")
    return arguments


def _runs(index: Index, starts: Ints, *, least: int) -> tuple[int, int, int, int]:
    """An index, its length, the starts of its classes and how many there are, for C."""
    arguments = (
        address(index, np.int32, None, what="index"),
        len(index),
        address(starts, np.int64, None, what="starts"),
        len(starts),
    )
    check_starts(starts, len(index), "starts", least=least)
    return arguments
