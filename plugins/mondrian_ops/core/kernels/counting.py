"""Counting packed combinations of codes by hashing: one look at each, in no order.

A table of two places for each combination, of which only those are touched that the distinct ones
hash to: where these are few, they stay in the caches.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_ops.core.kernels.criteria import JIT, LEAN


@njit(**JIT)
def recounted(words, rows, places, tables, first):
    """The distinct combinations when codes are replaced, and how many rows have each.

    ``words`` (words, n) and ``rows`` (n,) as in a frequency set. Of each column that changes,
    ``places`` (3, columns) uint64 holds its word, shift and mask, and its code c becomes
    ``tables[first + c]``, uint64, with the column's own entry of ``first``. The distinct ones come
    in the order of their first occurrence.
    """
    wide, n = words.shape
    known = np.empty((wide, n), np.uint64)
    total = np.empty(n, np.int64)
    table = _table(n)
    found = 0
    for i in range(n):
        for w in range(wide):
            known[w, found] = words[w, i]
        for a in range(first.size):
            w, shift = places[0, a], places[1, a]
            code = (known[w, found] >> shift) & places[2, a]
            known[w, found] ^= (code ^ tables[first[a] + code]) << shift
        number = _number(table, known, found)
        if number == found:
            total[found] = 0
            found += 1
        total[number] += rows[i]
    return known[:, :found].copy(), total[:found].copy()


@njit(**JIT)
def grouped(words, keys):
    """An index that brings combinations together which agree in the bits of ``keys`` (words,).

    Also where each group begins in it. Two arrays, int32 and int64; groups come in the order of
    their first combination, and the combinations of a group in theirs.
    """
    wide, n = words.shape
    known = np.empty((wide, n), np.uint64)
    number = np.empty(n, np.int32)
    table = _table(n)
    found = 0
    for i in range(n):
        for w in range(wide):
            known[w, found] = words[w, i] & keys[w]
        number[i] = _number(table, known, found)
        found += number[i] == found
    return _sorted(number, found)


@njit(**LEAN)
def _number(table, known, candidate):
    """The number of the known combination that equals a candidate: its own, if there is none.

    The candidate lies behind those that are known; the table then knows it, too.
    """
    last = np.uint64(table.size - 1)
    slot = _hash(known, candidate) & last
    number = table[slot]
    while number >= 0 and not _same(known, number, candidate):
        slot = (slot + np.uint64(1)) & last
        number = table[slot]
    if number < 0:
        table[slot] = candidate
        return candidate
    return number


@njit(**LEAN)
def _hash(known, number):
    mixed = np.uint64(0)
    for w in range(known.shape[0]):
        mixed = (mixed ^ known[w, number]) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(32)
    return mixed


@njit(**LEAN)
def _same(known, one, other):
    same = True
    for w in range(known.shape[0]):
        same &= known[w, one] == known[w, other]
    return same


@njit(**JIT)
def _table(combinations):
    slots = 1
    while slots < 2 * combinations:
        slots *= 2
    return np.full(slots, -1, np.int32)


@njit(**JIT)
def _sorted(number, groups):
    """A counting sort of the numbers of some groups; where each begins."""
    starts = np.zeros(groups + 1, np.int64)
    for i in range(number.size):
        starts[number[i] + 1] += 1
    for group in range(groups):
        starts[group + 1] += starts[group]
    following = starts.copy()
    index = np.empty(number.size, np.int32)
    for i in range(number.size):
        index[following[number[i]]] = i
        following[number[i]] += 1
    return index, starts[:groups].copy()
