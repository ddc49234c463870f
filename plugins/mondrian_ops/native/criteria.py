"""Whether a group of rows satisfies a privacy criterion."""

from __future__ import annotations

import ctypes

import numpy as np

from mondrian_ops.native.bounds import check_below
from mondrian_ops.native.library import address, function
from mondrian_ops.native.model import Criteria, CriteriaStruct, Ints

__all__ = ["group_holds"]

_counts_hold = function(
    "counts_hold",
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.POINTER(CriteriaStruct),
    ctypes.c_int64,
)


def group_holds(counts: Ints, total: int, distinct: int, criteria: Criteria, j: int) -> bool:
    """Whether ``total`` rows with these sensitive ``counts`` (codes,) satisfy criterion ``j``.

    ``distinct`` of the counts are not zero. Where the missing value is ``uncounted``, l-diversity
    is asked of the other rows by themselves.
    """
    made = CriteriaStruct.made(criteria, int(criteria.column.max(initial=0)) + 1)
    if not 0 <= j < len(criteria.kind):
        raise ValueError(f"there are {len(criteria.kind)} criteria, and none of number {j}")
    where = address(counts, np.int64, int(criteria.codes[j]), what="counts")
    if not 0 <= total < 1 << 62 or not 0 <= distinct <= len(counts):
        raise ValueError(f"total, distinct: got {total} rows of {distinct} of {len(counts)} codes")
    check_below(counts, total + 1, "counts")
    return bool(_counts_hold(where, total, distinct, made, j))
