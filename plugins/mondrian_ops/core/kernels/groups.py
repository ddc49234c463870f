"""Which groups of counted combinations satisfy the privacy criteria."""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_ops.core.kernels.criteria import JIT, LEAN, group_holds


@njit(**JIT)
def groups_hold(index, starts, sensitive, rows, criteria):
    """Whether each group has k rows and satisfies every criterion: (groups,) bool.

    Group i is the combinations ``index[starts[i]:starts[i + 1]]``, the last one to the end of
    ``index``; ``sensitive`` (sensitive columns, combinations) are their codes and ``rows``
    (combinations,) how many rows have each.
    """
    groups = starts.size
    holds = np.zeros(groups, np.bool_)
    work = _work(criteria)
    for i in range(groups):
        stop = starts[i + 1] if i + 1 < groups else index.size
        holds[i] = _group_holds(index, starts[i], stop, sensitive, rows, criteria, work)
    return holds


@njit(**JIT)
def _work(criteria):
    """Counts of sensitive codes, all zero, and two arrays over the nodes of their hierarchy."""
    codes = nodes = 1
    for j in range(criteria.kind.size):
        codes = max(codes, criteria.codes[j])
        nodes = max(nodes, criteria.parent_first[j + 1] - criteria.parent_first[j])
    return np.zeros(codes, np.int64), np.zeros(nodes), np.zeros(nodes)


@njit(**LEAN)
def _group_holds(index, start, stop, sensitive, rows, criteria, work):
    total = 0
    for i in range(start, stop):
        total += rows[index[i]]
    if total < criteria.k:
        return False
    counts, surplus, deficit = work
    for j in range(criteria.kind.size):
        column = criteria.column[j]
        distinct = 0
        for i in range(start, stop):
            s = sensitive[column, index[i]]
            distinct += counts[s] == 0
            counts[s] += rows[index[i]]
        holds = group_holds(counts, total, distinct, criteria, j, surplus, deficit)
        for i in range(start, stop):  # what was counted only: there may be many codes
            counts[sensitive[column, index[i]]] = 0
        if not holds:
            return False
    return True
