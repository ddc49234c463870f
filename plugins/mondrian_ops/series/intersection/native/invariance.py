"""Classes that keep what people have in common from night to night (invariance.c)."""

from __future__ import annotations

import ctypes
import os

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.cut.native.mondrian import Rows, RowsStruct, rows_struct
from mondrian_ops.native.arrays import Words, address, check_below
from mondrian_ops.native.library import function

_MADE_UP = 2
"""Rows that are made up for a class, at most; as in counterfeits.h."""

_POINTER, _INT = ctypes.c_void_p, ctypes.c_int64
_kept_classes = function(
    "mo_invariant_classes",
    *(ctypes.POINTER(RowsStruct), _POINTER, _POINTER, _INT, _INT, _INT, _INT),
    *(_POINTER, _INT, _INT, _POINTER, ctypes.c_double, ctypes.c_double, _POINTER, _POINTER),
    stoppable=True,
)


def kept_classes(
    rows: Rows,
    values: NDArray[np.int32],
    common: Words,
    class_of: NDArray[np.int32],
    orders: NDArray[np.int32],
    *,
    k: int,
    l: int,  # noqa: E741 - the name of the parameter in every paper
    most: int,
    weight: float,
    price: float | None,
    random: NDArray[np.uint32] | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The class of each row, -1 for a row that no class may take; and which rows are made up.

    (rows,) and (rows, 2) int32. A class has ``k`` rows and, of the ``common`` values of each
    member, at least ``l``, with those of its made-up rows. Numbers of classes have gaps. At one row
    of a class that needs made-up rows the second array has the values of these, at most two; -1
    stands for none.

    Args:
        rows: their codes and tables; the sensitive columns are not used.
        values: (rows,) the sensitive value, -1 where a row has none; otherwise in ``common``.
        common: (rows, words) bits of the values that all classes of the person had so far.
        class_of: (rows,) the class of the night before, or -1.
        orders: (orders, rows) orders of the rows in which neighbours lose little as one class.
        most: rows of the largest class that is joined with others so that it has enough values.
        weight: the loss (rows times attributes) that the risk of one row is worth.
        price: the loss that a made-up row is worth; None: no row may be made up.
        random: (rows, 2) random numbers, which decide what is made up; by default they come from
            the operating system and are stored nowhere. Who knew them could tell what is made up.
    """
    count = rows.codes.shape[1]
    words = common.shape[1]
    of = np.array(class_of, np.int32)
    made_up = np.full((count, _MADE_UP), -1, np.int32)
    if random is None:
        random = np.frombuffer(os.urandom(4 * made_up.size), np.uint32).reshape(made_up.shape)
    check_below(values + 1, 64 * words + 1, "values")
    check_below(of + 1, count + 1, "class_of")
    if k < 1 or l < 1 or not np.isfinite(weight):
        raise ValueError(f"k, l, weight: at least 1, and finite, expected, got {k}, {l}, {weight}")
    if price is not None and not 0 <= price < np.inf:
        raise ValueError(f"price: 0 or more, and finite, expected, got {price}")
    for order in orders:
        if not np.array_equal(np.sort(order), np.arange(count)):
            raise ValueError("orders: each must be a permutation of the rows")
    _kept_classes(
        ctypes.byref(rows_struct(rows)),
        address(values, np.int32, count, what="values"),
        address(common, np.uint64, count, words, what="common"),
        words,
        k,
        l,
        most,
        address(orders, np.int32, len(orders), count, what="orders"),
        len(orders),
        int(of.max(initial=-1)) + 1,
        of.ctypes.data,
        weight,
        np.finfo(np.float64).max if price is None else price,
        address(random, np.uint32, *made_up.shape, what="random"),
        made_up.ctypes.data,
    )
    return of, made_up
