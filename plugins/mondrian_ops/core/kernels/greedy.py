"""The best cut of a node by itself: by medians, or by the fall of loss."""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_ops.core.kernels.criteria import LEAN, cut_holds, mark_valid
from mondrian_ops.core.kernels.model import BALANCED, GAIN, INTERVAL, NONE, WIDEST_GAIN, ZERO
from mondrian_ops.core.kernels.splitting import (
    INLINE,
    gain_cut,
    gain_group,
    median_cut,
    tally,
    width,
)


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
    best = NONE
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
                return a, ZERO, ZERO, loss
    work.checked[:] = False
    while True:
        a = leading(work)
        if a < 0:
            return a, ZERO, ZERO, loss
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
    return cut_holds(rows, index, start, stop, a, ZERO, ZERO, criteria, work)


@njit(**LEAN)
def loss_of(rows, index, start, stop, work):
    """Loss of a node published as one class."""
    loss = 0.0
    for a in range(rows.kind.size):
        d = tally(rows.codes, a, index, start, stop, work)
        loss += width(rows, a, work.value[0], work.value[d - 1], d)
    return loss * (stop - start)
