"""Growing the tree: one permuted index, nodes are ``[start, stop)`` views of it.

A node that has become small is looked at through a block: its rows side by side and coded anew, so
that every loop follows the rows of the node and not the distinct values of a column.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_ops.core.kernels.criteria import JIT, LEAN, halves_hold, order_rows
from mondrian_ops.core.kernels.exchange import exchange_rows
from mondrian_ops.core.kernels.greedy import examine, loss_of, partition_rows, parts_missing
from mondrian_ops.core.kernels.lookahead import apply, push_sides
from mondrian_ops.core.kernels.model import NONE, RELAXED, ZERO, Rows
from mondrian_ops.core.kernels.nesting import chosen_cut
from mondrian_ops.core.kernels.splitting import highest_step, tally
from mondrian_ops.core.kernels.topping import arrange

BLOCK = 1 << 15  # rows of a block; its codes fit in 16 bits


@njit(**LEAN)
def cut_of(rows, index, start, stop, criteria, policy, work):
    """The ordered cut of a node by ``policy``: attribute and code (rows <= code go left).

    Attribute -1: the node is final, or cut by a group, which no comparison with a value tells.
    """
    a, low, high = chosen_cut(rows, index, start, stop, criteria, policy, work)
    if a < 0 or low > 0:
        return NONE, ZERO
    below = 0
    for i in range(start, stop):
        below += rows.codes[a, index[i]] <= high
    if below < criteria.k:
        return NONE, ZERO
    return a, high


@njit(**LEAN)
def halve(rows, index, start, stop, criteria, work):
    """Relaxed partitioning (LeFevre et al. 2006, section 3.2): where the second half starts, or -1.

    Rows of the median value lie on either side of the cut, so both halves have k rows whenever the
    node has 2k; the widest attribute whose halves keep every criterion is taken. Missing values
    are parted from present ones first.
    """
    for a in range(rows.kind.size):
        if parts_missing(rows, index, start, stop, a, criteria, work):
            return partition_rows(rows.codes, a, index, start, stop, ZERO, ZERO, work.order)
    examine(rows, index, start, stop, criteria.k, np.int64(RELAXED), np.bool_(False), work)
    middle = start + (stop - start) // 2
    while True:
        a = NONE
        for b in range(rows.kind.size):
            if work.distinct[b] > 1 and (a < 0 or work.score[b] > work.score[a]):
                a = b
        if a < 0:
            return -1
        d = tally(rows.codes, a, index, start, stop, work)
        order_rows(rows, index, start, stop, a, d, work)
        for i in range(stop - start):
            index[start + i] = work.order[i]
        if halves_hold(rows, index, start, middle, stop, criteria, work):
            return middle
        work.distinct[a] = 0


@njit(**LEAN)
def cut_down(rows, index, floor, criteria, policy, work, marks):
    """Cut until nodes have at most ``floor`` rows or no cut is left; mark where such a node starts.

    ``marks`` (rows,) uint8, all zero before.
    """
    waiting = work.waiting
    waiting[0, 0], waiting[1, 0] = 0, index.size
    top = 0
    while top >= 0:
        start, stop = waiting[0, top], waiting[1, top]
        top -= 1
        middle = NONE
        if stop - start > floor and stop - start >= 2 * criteria.k:
            if policy.greedy == RELAXED:
                middle = halve(rows, index, start, stop, criteria, work)
            else:
                a, low, high = chosen_cut(rows, index, start, stop, criteria, policy, work)
                if a >= 0:
                    middle = apply(rows, index, start, stop, a, low, high, criteria.k, work)
        if middle < 0:
            marks[start] = 1
            continue
        top = push_sides(waiting, top, start, middle, stop)


@njit(**JIT)
def block_of(rows, index, start, stop, work):
    """The rows of a node by themselves, coded anew in 16 bits; 0 stays the missing value."""
    n = stop - start
    q = rows.kind.size
    codes = np.empty((q, n), np.uint16)
    sensitive = np.empty((rows.sensitive.shape[0], n), np.int32)
    first = np.zeros(q + 1, np.int64)
    size = 0
    for a in range(q):
        size += min(n, rows.first[a + 1] - rows.first[a]) + 1
    low, high, step = np.zeros(size), np.zeros(size), np.zeros(size)
    for a in range(q):
        d = tally(rows.codes, a, index, start, stop, work)
        shift = np.int64(work.value[0] != 0)
        first[a + 1] = first[a] + d + shift
        for j in range(d):
            v = work.value[j]
            work.histogram[v] = j + shift
            at = first[a] + j + shift
            low[at] = rows.low[rows.first[a] + v]
            high[at] = rows.high[rows.first[a] + v]
            if j + 1 < d:
                step[at] = highest_step(rows.step, rows.first[a], v, work.value[j + 1])
        for i in range(n):
            codes[a, i] = work.histogram[rows.codes[a, index[start + i]]]
        for j in range(d):
            work.histogram[work.value[j]] = 0
    for s in range(sensitive.shape[0] - rows.persons):
        for i in range(n):
            sensitive[s, i] = rows.sensitive[s, index[start + i]]
    if rows.persons > 0:
        number_persons(rows.sensitive[-1], index, start, sensitive[-1], work)
    return Rows(
        codes, sensitive, rows.kind, first, low, high, step, rows.span, rows.domain, rows.present,
        rows.persons,
    )  # fmt: skip


@njit(**LEAN)
def number_persons(persons, index, start, numbers, work):
    """Number the persons of a block anew, so that what is noted of them stays in the caches."""
    work.clock[0] += 1
    found = 0
    for i in range(numbers.size):
        person = persons[index[start + i]]
        if work.left_seen[person] != work.clock[0]:
            work.left_seen[person] = work.clock[0]
            work.left_counts[person] = found
            found += 1
        numbers[i] = work.left_counts[person]


@njit(**JIT)
def finish_nodes(rows, index, criteria, policy, work, marks):
    """Cut nodes that are small enough for groups to the end, and let their rows change classes."""
    start = ZERO
    while start < index.size:
        stop = start + 1
        while stop < index.size and marks[stop] == 0:
            stop += 1
        if stop - start <= policy.group_rows:
            node, found = index[start:stop], marks[start:stop]
            cut_down(rows, node, ZERO, criteria, policy, work, found)
            exchange_rows(rows, node, found, criteria, work)
        start = stop


@njit(**JIT)
def grow(rows, index, criteria, policy, work, block_work):
    """Cut until no valid cut is left; permutes ``index`` and marks in the result where a class
    starts, (rows,) uint8."""
    count = index.size
    marks = np.zeros(count, np.uint8)
    cut_down(rows, index, np.int64(BLOCK), criteria, policy, work, marks)
    start = ZERO
    while start < count:
        stop = start + 1
        while stop < count and marks[stop] == 0:
            stop += 1
        if 2 * criteria.k <= stop - start <= BLOCK:
            if policy.group_rows > 0:
                arrange(rows, index, start, stop, work)
            block = block_of(rows, index, start, stop, work)
            inner = np.arange(stop - start).astype(np.int32)
            found = np.zeros(stop - start, np.uint8)
            block_work.block[0] += 1
            cut_down(block, inner, policy.group_rows, criteria, policy, block_work, found)
            if policy.group_rows > 0:
                finish_nodes(block, inner, criteria, policy, block_work, found)
            outer = index[start:stop].copy()
            for i in range(inner.size):
                index[start + i] = outer[inner[i]]
                marks[start + i] = found[i]
        start = stop
    return marks


@njit(**LEAN)
def total_loss(rows, index, starts, work):
    """Loss of all classes together, in rows times attributes."""
    total = 0.0
    for i in range(starts.size):
        stop = starts[i + 1] if i + 1 < starts.size else index.size
        total += loss_of(rows, index, starts[i], stop, work)
    return total
