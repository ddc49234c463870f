"""Loops over finished classes, and the routing of rows to fragments."""

from __future__ import annotations

import ctypes
import os
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.native.arrays import Ints, address, check_below, check_starts, check_writable
from mondrian_ops.native.library import function

Index: TypeAlias = NDArray[np.int32]
Code = TypeVar("Code", bound=np.integer[Any])

_POINTER, _INTEGER = ctypes.c_void_p, ctypes.c_int64
_CODES = tuple(map(np.dtype, (np.uint8, np.uint16, np.uint32, np.int64)))

_extents = function(
    "mo_extents",
    *(_POINTER, _INTEGER, _POINTER, _INTEGER, _POINTER, _INTEGER, _POINTER, _POINTER),
    result=None,
)
_distinct_per_class = function(
    "mo_distinct_per_class",
    *(_POINTER, _INTEGER, _INTEGER, _POINTER, _INTEGER, _POINTER, _INTEGER, _POINTER, _POINTER),
)
_shuffle_classes = function(
    "mo_shuffle_classes", _POINTER, _INTEGER, _POINTER, _INTEGER, _POINTER, result=None
)
_route_rows = function(
    "mo_route_rows",
    *(_POINTER, _INTEGER, _INTEGER, _INTEGER),
    *(_POINTER, _POINTER, _POINTER, _POINTER, _POINTER, _POINTER),
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
    places: NDArray[np.int32], column: Ints, limit: Ints, left: Ints, right: Ints, leaf: Ints
) -> Ints:
    """The leaf of each row of ``places`` (rows, columns) in a tree; each table is (nodes,) int64.

    Rows start at node 0. At an inner node, whose ``leaf`` is negative, the rows whose place in its
    ``column`` is at most ``limit`` go to its ``left`` node, the others to its ``right`` one.
    """
    place_address = address(places, np.int32, None, None, what="places")
    rows, columns = places.shape
    tree = {"column": column, "limit": limit, "left": left, "right": right, "leaf": leaf}
    nodes = [address(table, np.int64, len(leaf), what=what) for what, table in tree.items()]
    cuts = leaf < 0
    for what, limit_of in (("column", columns), ("left", len(leaf)), ("right", len(leaf))):
        check_below(tree[what][cuts], limit_of, what)
    if rows and not len(leaf):
        raise ValueError("leaf: there must be a node")
    leaf_of = np.empty(rows, np.int64)
    _route_rows(place_address, rows, columns, len(leaf), *nodes, leaf_of.ctypes.data)
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
