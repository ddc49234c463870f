"""The cuts of a node that are compared by looking ahead.

A cut parts the rows whose codes of one attribute lie in a range from the others. An ordered cut
takes the lowest codes, and leaves k rows on both sides. In small nodes two more are tried: a group
amid the others (one value or a subtree of theirs), and a group of fewer than k rows, which
`topping.top_up` fills with those that fit best.
"""

from __future__ import annotations

from numba import njit

from mondrian_ops.core.kernels.criteria import LEAN
from mondrian_ops.core.kernels.model import INTERVAL, ZERO
from mondrian_ops.core.kernels.splitting import (
    allowed,
    gain_group,
    loss_below,
    losses_above,
    tally,
    width,
)


@njit(**LEAN)
def collect_candidates(rows, index, start, stop, k, candidates, groups, work):
    """Put the cuts of each attribute that leave least loss into ``work.try_*``; returns how many.

    At most ``candidates`` that leave k rows on both sides; as many groups of fewer if ``groups``.
    """
    count = ZERO
    for a in range(rows.kind.size):
        d = tally(rows.codes, a, index, start, stop, work)
        if d < 2:
            continue
        losses_above(rows, a, d, work.value, work.right)
        count = collect_cuts(rows, a, d, stop - start, k, candidates, groups, count, work)
        if groups:
            count = collect_short(rows, a, d, stop - start, k, candidates, count, work)
    return count


@njit(**LEAN)
def collect_cuts(rows, a, d, n, k, most, groups, begin, work):
    """Keep the cuts of attribute ``a`` that leave k rows on both sides; returns how many in all."""
    count = begin
    loss = 0.0
    for j in range(d - 1):
        loss = loss_below(rows, a, j, work.value, loss)
        if allowed(j, n, k, False, work.below, work.valid):
            rest = work.below[j] * loss + (n - work.below[j]) * work.right[j]
            count = keep(a, ZERO, work.value[j], -rest, begin, count, most, work)
    if groups and rows.kind[a] != INTERVAL:
        whole = width(rows, a, work.value[0], work.value[d - 1], d)
        i, j, fall = gain_group(rows, a, d, k, n - k, whole, work.value, work.below)
        if i >= 0:
            low, high = work.value[i], work.value[j]
            count = keep(a, low, high, fall - n * whole, begin, count, most, work)
    return count


@njit(**LEAN)
def collect_short(rows, a, d, n, k, most, begin, work):
    """Keep groups of attribute ``a`` with fewer than k rows, as if topped up at no further loss."""
    whole = width(rows, a, work.value[0], work.value[d - 1], d)
    count = begin
    loss = 0.0
    for j in range(d - 1):
        loss = loss_below(rows, a, j, work.value, loss)
        above = n - work.below[j]
        rest = n * whole
        low, high = ZERO, work.value[j]
        if work.below[j] < k:
            rest = k * loss + (n - k) * work.right[j]
        elif above < k:
            rest = k * work.right[j] + (n - k) * loss
            low, high = work.value[j + 1], work.value[d - 1]
        if rest < n * whole:
            count = keep(a, low, high, -rest, begin, count, most, work)
    if rows.kind[a] != INTERVAL:
        i, j, fall = gain_group(rows, a, d, 1, k - 1, whole, work.value, work.below)
        if i >= 0:
            low, high = work.value[i], work.value[j]
            count = keep(a, low, high, fall - n * whole, begin, count, most, work)
    return count


@njit(**LEAN)
def keep(a, low, high, fall, begin, count, most, work):
    """Insert a cut into ``work.try_*`` from ``begin``, in order, at most ``most`` of them."""
    if count - begin < most:
        count += 1
    elif fall <= work.try_fall[count - 1]:
        return count
    at = count - 1
    while at > begin and work.try_fall[at - 1] < fall:
        work.try_fall[at] = work.try_fall[at - 1]
        work.try_low[at] = work.try_low[at - 1]
        work.try_cut[at] = work.try_cut[at - 1]
        work.try_attribute[at] = work.try_attribute[at - 1]
        at -= 1
    work.try_fall[at] = fall
    work.try_low[at] = low
    work.try_cut[at] = high
    work.try_attribute[at] = a
    return count
