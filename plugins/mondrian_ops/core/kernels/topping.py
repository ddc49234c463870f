"""Groups of fewer than k rows, topped up with the rows that fit them best; the order of ties."""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_ops.core.kernels.criteria import JIT, LEAN, order_rows
from mondrian_ops.core.kernels.model import TREE
from mondrian_ops.core.kernels.splitting import tally, width

DIGIT = 0xFFFF


@njit(**LEAN)
def copy(source, start, target, at, count):
    """Copy ``count`` entries; a slice that is assigned would allocate."""
    for i in range(count):
        target[at + i] = source[start + i]


@njit(**JIT)
def arrange(rows, index, start, stop, work):
    """Sort a node's rows by all their codes, so that ties do not depend on the source's order.

    A radix sort: by one column after another, each time stable; by 16 bits of the sensitive codes,
    which may tell millions of persons apart, at a time.
    """
    for s in range(rows.sensitive.shape[0]):
        values = rows.sensitive[s]
        most = 0
        for i in range(start, stop):
            most = max(most, values[index[i]])
        for shift in range(0, 32, 16):
            if shift > 0 and most >> shift == 0:
                break
            place = np.zeros(min(most, DIGIT) + 2, np.int64)
            for i in range(start, stop):
                place[((values[index[i]] >> shift) & DIGIT) + 1] += 1
            place = np.cumsum(place)
            for i in range(start, stop):
                v = (values[index[i]] >> shift) & DIGIT
                work.order[place[v]] = index[i]
                place[v] += 1
            copy(work.order, 0, index, start, stop - start)
    for a in range(rows.kind.size):
        d = tally(rows.codes, a, index, start, stop, work)
        order_rows(rows, index, start, stop, a, d, work)
        copy(work.order, 0, index, start, stop - start)


@njit(**LEAN)
def top_up(rows, index, start, middle, stop, k, work):
    """Bring into the group [start, middle) the rows that widen it least, until it has k.

    One after another, ties by their order; those that widen it no more all at once. Returns where
    the group ends; the rows left over keep their order.
    """
    while middle - start < k:
        work.widening[: stop - middle] = 0.0
        for a in range(rows.kind.size):
            add_widening(rows, index, start, middle, stop, a, work)
        least = np.inf
        for i in range(stop - middle):
            least = min(least, work.widening[i])
        most = 1 if least > 0 else k - (middle - start)
        middle = take(index, middle, stop, least, most, work)
    return middle


@njit(**LEAN)
def take(index, middle, stop, least, most, work):
    """Bring the first ``most`` rows of the least widening to the front; returns where they end."""
    first = middle
    left = 0
    for i in range(stop - first):
        row = index[first + i]
        if most > 0 and work.widening[i] <= least:
            index[middle] = row
            middle += 1
            most -= 1
        else:
            work.order[left] = row
            left += 1
    copy(work.order, 0, index, middle, left)
    return middle


@njit(**LEAN)
def add_widening(rows, index, start, middle, stop, a, work):
    """Add to ``work.widening`` how much each row from ``middle`` widens attribute ``a`` of a group.

    ``work.right`` holds it by code.
    """
    d = tally(rows.codes, a, index, start, middle, work)
    low, high = work.value[0], work.value[d - 1]
    first, last = low, high
    for i in range(middle, stop):
        v = np.int64(rows.codes[a, index[i]])
        first, last = min(first, v), max(last, v)
    if first == last:
        return
    now = width(rows, a, low, high, d)
    if rows.kind[a] == TREE:
        for code in range(low, high + 1):
            work.right[code] = 0.0
        widen_down(rows, a, first, low, high, d, now, work.right)
        widen_up(rows, a, low, high, last, d, now, work.right)
    else:
        for i in range(middle, stop):
            v = np.int64(rows.codes[a, index[i]])
            work.right[v] = width(rows, a, min(v, low), max(v, high), d + 1) - now
        for j in range(d):
            work.right[work.value[j]] = 0.0
    for i in range(stop - middle):
        work.widening[i] += work.right[rows.codes[a, index[middle + i]]]


@njit(**LEAN)
def widen_down(rows, a, first, low, high, d, now, right):
    """``right[v]`` of a TREE for ``first`` <= v < ``low``: what v adds to the loss of the group."""
    loss = now
    for v in range(low - 1, first - 1, -1):
        if v == 0:
            loss = width(rows, a, v, high, d + 1)
        loss = max(loss, rows.step[rows.first[a] + v])
        right[v] = loss - now


@njit(**LEAN)
def widen_up(rows, a, low, high, last, d, now, right):
    """``right[v]`` of a TREE for ``high`` < v <= ``last``: what v adds to the loss of the group."""
    loss = now
    for v in range(high + 1, last + 1):
        if low > 0:
            loss = max(loss, rows.step[rows.first[a] + v - 1])
        else:
            loss = width(rows, a, low, v, d + 1)
        right[v] = loss - now
