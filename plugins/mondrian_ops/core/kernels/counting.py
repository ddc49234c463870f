"""Counting equal combinations of codes."""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_ops.core.kernels.criteria import JIT, LEAN


@njit(**JIT)
def distinct(words, rows):
    """Where each distinct combination of ``words`` (words, n) first is, and all rows that have it.

    Two (distinct,) arrays, int32 and int64, in the order of the first occurrences. Hashing: one
    look at each combination, and where few are distinct the table stays in the caches.
    """
    n = words.shape[1]
    slots = 1
    while slots < 2 * n:
        slots *= 2
    table = np.full(slots, -1, np.int32)
    first = np.empty(n, np.int32)
    total = np.empty(n, np.int64)
    found = 0
    for i in range(n):
        slot = _hash(words, i) & np.uint64(slots - 1)
        while table[slot] >= 0 and not _equal(words, first[table[slot]], i):
            slot = (slot + np.uint64(1)) & np.uint64(slots - 1)
        if table[slot] < 0:
            table[slot] = found
            first[found] = i
            total[found] = 0
            found += 1
        total[table[slot]] += rows[i]
    return first[:found].copy(), total[:found].copy()


@njit(**LEAN)
def _hash(words, i):
    mixed = np.uint64(0)
    for w in range(words.shape[0]):
        mixed = (mixed ^ words[w, i]) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(32)
    return mixed


@njit(**LEAN)
def _equal(words, i, j):
    same = True
    for w in range(words.shape[0]):
        same &= words[w, i] == words[w, j]
    return same
