"""Loops over finished classes, and the routing of rows to fragments."""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_ops.core.kernels.criteria import JIT


@njit(**JIT)
def extents(codes, index, starts):
    """Least and greatest code of each class, two (classes,) int64 arrays."""
    classes = starts.size
    low = np.empty(classes, np.int64)
    high = np.empty(classes, np.int64)
    for i in range(classes):
        stop = starts[i + 1] if i + 1 < classes else index.size
        least = greatest = np.int64(codes[index[starts[i]]])
        for j in range(starts[i] + 1, stop):
            v = np.int64(codes[index[j]])
            least = min(least, v)
            greatest = max(greatest, v)
        low[i], high[i] = least, greatest
    return low, high


@njit(**JIT)
def distinct_per_class(codes, index, starts, size):
    """Distinct codes of each class in order, one class after another, and where each class ends."""
    classes = starts.size
    seen = np.full(size, -1, np.int64)
    members = np.empty(index.size, codes.dtype)
    ends = np.empty(classes, np.int64)
    total = 0
    for i in range(classes):
        stop = starts[i + 1] if i + 1 < classes else index.size
        begin = total
        for j in range(starts[i], stop):
            v = codes[index[j]]
            if seen[v] != i:
                seen[v] = i
                members[total] = v
                total += 1
        members[begin:total].sort()
        ends[i] = total
    return members[:total], ends


@njit(**JIT)
def shuffle_classes(index, starts, random):
    """Shuffle the rows of every class in place (Fisher-Yates).

    ``random`` (rows,) uint64 has a random number for each place of ``index``.
    """
    for i in range(starts.size):
        start = starts[i]
        stop = starts[i + 1] if i + 1 < starts.size else index.size
        for j in range(stop - 1, start, -1):
            other = start + np.int64(random[j] % np.uint64(j - start + 1))
            index[j], index[other] = index[other], index[j]


@njit(**JIT)
def route_rows(places, column, limit, left, right, leaf):
    """Leaf of each row of ``places`` (rows, columns) in a tree of cuts given node by node."""
    found = np.empty(places.shape[0], np.int64)
    for i in range(places.shape[0]):
        node = 0
        while leaf[node] < 0:
            node = left[node] if places[i, column[node]] <= limit[node] else right[node]
        found[i] = leaf[node]
    return found
