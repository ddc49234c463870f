"""What the classes of a release tell about a sensitive column, for its report."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.native.arrays import Floats, Ints, address
from mondrian_ops.native.library import function

_POINTER, _INTEGER = ctypes.c_void_p, ctypes.c_int64

_ends_of_ranks = function(
    "mo_ends_of_ranks",
    *(_POINTER, _POINTER, _INTEGER, _INTEGER, _POINTER, _INTEGER, _POINTER, _POINTER),
)
_greatest_shares = function(
    "mo_greatest_shares",
    *(_POINTER, _POINTER, _POINTER, _INTEGER),
    *(_POINTER, _INTEGER, _INTEGER, _POINTER, _POINTER),
)


def ends_of_ranks(
    classes: Ints, codes: Ints, class_count: int, ranks: NDArray[np.int32]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The least and the greatest rank of the codes of each class, two (class_count,) int32.

    ``classes`` and ``codes`` (pairs,) say which classes have which codes; ``ranks`` (codes,) are
    from 0 on, or -1 for a code that does not count. Of a class without a code that counts, the
    least is 2**31 - 1 and the greatest -1. Raises ValueError where a number is outside of its
    table.
    """
    low = np.full(class_count, np.iinfo(np.int32).max, np.int32)
    high = np.full(class_count, -1, np.int32)
    pairs = len(classes)
    _ends_of_ranks(
        address(classes, np.int64, pairs, what="classes"),
        *(address(codes, np.int64, pairs, what="codes"), pairs, class_count),
        *(address(ranks, np.int32, None, what="ranks"), len(ranks)),
        *(low.ctypes.data, high.ctypes.data),
    )
    return low, high


def greatest_shares(
    classes: Ints, codes: Ints, counts: Ints, sizes: Ints, code_count: int
) -> tuple[Ints, Floats]:
    """(code_count,) the rows of each code, and its greatest share of the rows of a class.

    ``classes``, ``codes``, ``counts`` (pairs,): how often which class has which code; ``sizes``
    (classes,): the rows of each. Raises ValueError where a number is outside of its table.
    """
    rows, shares, pairs = np.zeros(code_count, np.int64), np.zeros(code_count), len(classes)
    _greatest_shares(
        address(classes, np.int64, pairs, what="classes"),
        address(codes, np.int64, pairs, what="codes"),
        *(address(counts, np.int64, pairs, what="counts"), pairs),
        *(address(sizes, np.int64, None, what="sizes"), len(sizes), code_count),
        *(rows.ctypes.data, shares.ctypes.data),
    )
    return rows, shares
