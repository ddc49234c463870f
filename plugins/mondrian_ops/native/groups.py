"""Which groups of counted combinations satisfy the privacy criteria."""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.native.bounds import check_below, check_rows, check_starts
from mondrian_ops.native.library import address, function
from mondrian_ops.native.model import Criteria, CriteriaStruct, Ints

__all__ = ["groups_hold"]

_groups_hold = function(
    "groups_hold",
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.POINTER(CriteriaStruct),
    ctypes.c_void_p,
)


def groups_hold(
    index: NDArray[np.int32],
    starts: Ints,
    sensitive: NDArray[np.int32],
    rows: Ints,
    criteria: Criteria,
) -> NDArray[np.bool_]:
    """Whether each group has k rows and satisfies every criterion: (groups,) bool.

    Group i is the combinations ``index[starts[i]:starts[i + 1]]``, the last one to the end of
    ``index``; ``sensitive`` (sensitive columns, combinations) are their codes and ``rows``
    (combinations,) how many rows have each.
    """
    combinations = len(rows)
    holds = np.zeros(len(starts), np.bool_)
    where = address(sensitive, np.int32, None, combinations, what="sensitive")
    made = CriteriaStruct.made(criteria, len(sensitive))
    arguments = (
        address(index, np.int32, None, what="index"),
        len(index),
        address(starts, np.int64, None, what="starts"),
        len(starts),
        where,
        combinations,
        address(rows, np.int64, None, what="rows"),
    )
    check_rows(rows)
    check_below(index, combinations, "index")
    check_starts(starts, len(index), "starts")
    for column, codes in zip(criteria.column.tolist(), criteria.codes.tolist(), strict=True):
        check_below(sensitive[column], codes, "sensitive")
    _groups_hold(*arguments, made, holds.ctypes.data)
    return holds
