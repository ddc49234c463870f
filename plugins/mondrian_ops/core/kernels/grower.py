"""Growing the tree: one permuted index, nodes are ``[start, stop)`` views of it.

A node that has become small is looked at through a block: its rows side by side and coded anew, so
that every loop follows the rows of the node and not the distinct values of a column.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_ops.core.kernels.candidates import collect_candidates
from mondrian_ops.core.kernels.criteria import (
    JIT,
    LEAN,
    cut_holds,
    halves_hold,
    mark_valid,
    order_rows,
)
from mondrian_ops.core.kernels.model import (
    BALANCED,
    GAIN,
    INTERVAL,
    RELAXED,
    WIDEST_GAIN,
    Rows,
)
from mondrian_ops.core.kernels.splitting import (
    INLINE,
    gain_cut,
    gain_group,
    highest_step,
    median_cut,
    tally,
    width,
)
from mondrian_ops.core.kernels.topping import arrange, copy, top_up

BLOCK = 1 << 15  # rows of a block; its codes fit in 16 bits


@njit(**LEAN)
def partition_rows(codes, a, index, start, stop, low, high, order):
    """Bring the rows with codes ``low`` to ``high`` to the front; returns where the others start.

    Stable, so that rows stay in ascending order and are read in it; without a branch that the
    processor could mispredict. ``order`` is working memory for the rows.
    """
    left = start
    right = 0
    span = np.uint64(high - low)  # one comparison: what lies below low wraps around
    for i in range(start, stop):
        row = index[i]
        goes_left = int(np.uint64(codes[a, row] - low) <= span)
        index[left] = row
        order[right] = row
        left += goes_left
        right += 1 - goes_left
    for i in range(right):
        index[left + i] = order[i]
    return left


@njit(**LEAN)
def examine(rows, index, start, stop, k, greedy, groups, work):
    """Fill ``work.low``, ``cut``, ``score``, ``distinct``: the best cut that keeps k of each
    attribute, among ordered cuts and, if ``groups``, those of a group amid the others.

    Returns the loss per row of the node, and the first attribute whose missing values can be parted
    from the present ones (-1: none).
    """
    n = stop - start
    loss = 0.0
    parts_missing = -1
    for a in range(rows.kind.size):
        work.low[a], work.cut[a] = 0, -1
        d = tally(rows.codes, a, index, start, stop, work)
        work.distinct[a] = d
        if d < 2:
            loss += width(rows, a, work.value[0], work.value[0], 1)
            continue
        low, high = work.value[0], work.value[d - 1]
        if low == 0 and parts_missing < 0 and work.below[0] >= k and n - work.below[0] >= k:
            parts_missing = a
        if greedy in (GAIN, WIDEST_GAIN):
            j, fall, whole = gain_cut(
                rows, a, d, n, k, False, work.value, work.below, work.right, work.valid
            )
            if groups and rows.kind[a] != INTERVAL:
                first, last, more = gain_group(rows, a, d, k, n - k, whole, work.value, work.below)
                if more > fall:
                    work.low[a], j, fall = work.value[first], last, more
            work.score[a] = score(fall, n, whole, greedy)
        else:
            j = median_cut(d, n, k, False, work.below, work.valid)
            whole = width(rows, a, low, high, d)
            # Seed, equation 1.
            is_interval = rows.kind[a] == INTERVAL
            work.score[a] = whole if is_interval else d / rows.present[a]
        loss += whole
        if j >= 0:
            work.cut[a] = work.value[j]
    return loss, parts_missing


@njit(**INLINE)
def score(fall, n, whole, greedy):
    """Rank of a cut: its fall of loss; WIDEST_GAIN adds the loss of the attribute."""
    if greedy == WIDEST_GAIN:
        return fall / n + whole
    return fall


@njit(**INLINE)
def leading(work):
    """The attribute of the best score that has a cut, ties broken by distinct codes; -1: none."""
    best = -1
    for a in range(work.cut.size):
        if work.cut[a] >= 0 and (
            best < 0
            or work.score[a] > work.score[best]
            or (work.score[a] == work.score[best] and work.distinct[a] > work.distinct[best])
        ):
            best = a
    return best


@njit(**LEAN)
def best_valid(rows, index, start, stop, a, criteria, greedy, work):
    """Put the best cut of attribute ``a`` that keeps every criterion into ``work.cut[a]``."""
    n = stop - start
    d = tally(rows.codes, a, index, start, stop, work)
    mark_valid(rows, index, start, stop, a, d, criteria, work)
    if greedy in (GAIN, WIDEST_GAIN):
        j, fall, whole = gain_cut(
            rows, a, d, n, criteria.k, True, work.value, work.below, work.right, work.valid
        )
        work.score[a] = score(fall, n, whole, greedy)
    else:
        j = median_cut(d, n, criteria.k, True, work.below, work.valid)
    work.low[a], work.cut[a] = 0, work.value[j] if j >= 0 else -1


@njit(**LEAN)
def decide(rows, index, start, stop, criteria, greedy, groups, work):
    """Attribute of a node's cut (-1: none), first and last code that it parts, and the node's loss.

    The loss is per row. An attribute whose best cut breaks a criterion offers its best ordered one
    that does not; the node is final only when no attribute has any.
    """
    loss, missing = examine(rows, index, start, stop, criteria.k, greedy, groups, work)
    if missing >= 0 and greedy != BALANCED:
        for a in range(missing, rows.kind.size):
            if parts_missing(rows, index, start, stop, a, criteria, work):
                return a, np.int64(0), np.int64(0), loss
    work.checked[:] = False
    while True:
        a = leading(work)
        if a < 0:
            return a, np.int64(0), np.int64(0), loss
        low, high = work.low[a], work.cut[a]
        if work.checked[a] or cut_holds(rows, index, start, stop, a, low, high, criteria, work):
            return a, low, high, loss
        best_valid(rows, index, start, stop, a, criteria, greedy, work)
        work.checked[a] = True


@njit(**LEAN)
def parts_missing(rows, index, start, stop, a, criteria, work):
    """Whether the missing values of an attribute can have classes of their own."""
    missing = 0
    for i in range(start, stop):
        missing += rows.codes[a, index[i]] == 0
    if missing < criteria.k or stop - start - missing < criteria.k:
        return False
    return cut_holds(rows, index, start, stop, a, 0, 0, criteria, work)


@njit(**LEAN)
def loss_of(rows, index, start, stop, work):
    """Loss of a node published as one class."""
    loss = 0.0
    for a in range(rows.kind.size):
        d = tally(rows.codes, a, index, start, stop, work)
        loss += width(rows, a, work.value[0], work.value[d - 1], d)
    return loss * (stop - start)


@njit(**LEAN)
def rollout(rows, index, start, stop, limit, criteria, policy, work):
    """Loss of a node when it is cut greedily to the end; gives up above ``limit``."""
    total = 0.0
    groups = policy.group_rows > 0
    stack = work.stack
    stack[0, 0], stack[1, 0] = start, stop
    top = 0
    while top >= 0 and total < limit:
        start, stop = stack[0, top], stack[1, top]
        top -= 1
        if stop - start < 2 * criteria.k:
            total += loss_of(rows, index, start, stop, work)
            continue
        a, low, high, loss = decide(rows, index, start, stop, criteria, policy.greedy, groups, work)
        if a < 0:
            total += loss * (stop - start)
            continue
        middle = partition_rows(rows.codes, a, index, start, stop, low, high, work.order)
        small_left = middle - start < stop - middle
        for side in range(2):  # the smaller side on top
            left = (side == 1) == small_left
            top += 1
            stack[0, top] = start if left else middle
            stack[1, top] = middle if left else stop
    return total


@njit(**LEAN)
def apply(rows, index, start, stop, a, low, high, k, work):
    """Bring the rows that a cut parts to the front, topped up to k; returns where they end."""
    middle = partition_rows(rows.codes, a, index, start, stop, low, high, work.order)
    if middle - start < k:
        middle = top_up(rows, index, start, middle, stop, k, work)
    return middle


@njit(**LEAN)
def look_ahead(rows, index, start, stop, criteria, policy, work):
    """The candidate cut whose sides, finished greedily, lose least; attribute -1: none holds."""
    n = stop - start
    groups = n <= policy.group_rows
    count = collect_candidates(
        rows, index, start, stop, criteria.k, policy.candidates, groups, work
    )
    ordered = policy.group_rows > 0
    if ordered:
        copy(index, start, work.before, 0, n)
    best, least = -1, np.inf
    for t in range(count):
        loss = loss_ahead(rows, index, start, stop, t, least, criteria, policy, work)
        if loss < least:
            best, least = t, loss
        if ordered:
            copy(work.before, 0, index, start, n)
    if best < 0:
        return np.int64(-1), np.int64(0), np.int64(0)
    return work.try_attribute[best], work.try_low[best], work.try_cut[best]


@njit(**LEAN)
def loss_ahead(rows, index, start, stop, t, limit, criteria, policy, work):
    """Loss of a node cut by candidate ``t`` and then greedily to the end; infinite where the cut
    breaks a criterion; gives up above ``limit``."""
    a, low, high = work.try_attribute[t], work.try_low[t], work.try_cut[t]
    middle = partition_rows(rows.codes, a, index, start, stop, low, high, work.order)
    if middle - start < criteria.k:
        middle = top_up(rows, index, start, middle, stop, criteria.k, work)
        holds = halves_hold(rows, index, start, middle, stop, criteria, work)
    else:
        holds = cut_holds(rows, index, start, stop, a, low, high, criteria, work)
    if not holds:
        return np.inf
    loss = rollout(rows, index, start, middle, limit, criteria, policy, work)
    if loss < limit:
        loss += rollout(rows, index, middle, stop, limit - loss, criteria, policy, work)
    return loss


@njit(**LEAN)
def chosen_cut(rows, index, start, stop, criteria, policy, work):
    """The cut of a node by ``policy``: attribute (-1: the node is final), first and last code of
    the rows that it parts from the others; if they are fewer than k, it tops them up."""
    n = stop - start
    if n <= policy.rollout_rows:
        for a in range(rows.kind.size):
            if parts_missing(rows, index, start, stop, a, criteria, work):
                return a, np.int64(0), np.int64(0)
        a, low, high = look_ahead(rows, index, start, stop, criteria, policy, work)
        if a >= 0:
            return a, low, high
    groups = n <= policy.group_rows
    a, low, high, _ = decide(rows, index, start, stop, criteria, policy.greedy, groups, work)
    return a, low, high


@njit(**LEAN)
def cut_of(rows, index, start, stop, criteria, policy, work):
    """The ordered cut of a node by ``policy``: attribute and code (rows <= code go left).

    Attribute -1: the node is final, or cut by a group, which no comparison with a value tells.
    """
    a, low, high = chosen_cut(rows, index, start, stop, criteria, policy, work)
    if a < 0 or low > 0:
        return np.int64(-1), np.int64(0)
    below = 0
    for i in range(start, stop):
        below += rows.codes[a, index[i]] <= high
    if below < criteria.k:
        return np.int64(-1), np.int64(0)
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
            return partition_rows(rows.codes, a, index, start, stop, 0, 0, work.order)
    examine(rows, index, start, stop, criteria.k, RELAXED, False, work)
    middle = start + (stop - start) // 2
    while True:
        a = -1
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
        middle = -1
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
        small_left = middle - start < stop - middle
        for side in range(2):
            left = (side == 1) == small_left
            top += 1
            waiting[0, top] = start if left else middle
            waiting[1, top] = middle if left else stop


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
    for s in range(sensitive.shape[0]):
        for i in range(n):
            sensitive[s, i] = rows.sensitive[s, index[start + i]]
    return Rows(
        codes, sensitive, rows.kind, first, low, high, step, rows.span, rows.domain, rows.present
    )


@njit(**JIT)
def grow(rows, index, criteria, policy, work, block_work):
    """Cut until no valid cut is left; permutes ``index`` and marks in the result where a class
    starts, (rows,) uint8."""
    count = index.size
    marks = np.zeros(count, np.uint8)
    cut_down(rows, index, BLOCK, criteria, policy, work, marks)
    start = 0
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
            cut_down(block, inner, 0, criteria, policy, block_work, found)
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
