"""Looking ahead twice: the cut of a node whose sides, finished by looking ahead, lose least.

In the literature of games and planning, a nested rollout. The few cuts that `lookahead` finds best
are tried, its first choice among them. The finish is what would become of the sides without
nesting; where all nodes below are nested as well, no more is lost than without.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_ops.core.kernels.criteria import LEAN
from mondrian_ops.core.kernels.greedy import loss_of
from mondrian_ops.core.kernels.known import AHEAD, key_of, recall, remember
from mondrian_ops.core.kernels.lookahead import (
    apply,
    best_ahead,
    cut_by_itself,
    look_ahead,
    missing_first,
    push_sides,
)
from mondrian_ops.core.kernels.model import ZERO
from mondrian_ops.core.kernels.topping import copy

ROUNDING = 1e-9  # sums of the same losses in another order differ by less


@njit(**LEAN)
def chosen_cut(rows, index, start, stop, criteria, policy, work):
    """The cut of a node by ``policy``: attribute (-1: the node is final), first and last code of
    the rows that it parts from the others; if they are fewer than k, it tops them up."""
    n = stop - start
    if n <= policy.nested_rows:
        return best_nested(rows, index, start, stop, criteria, policy, work)
    if n <= policy.rollout_rows:
        return best_ahead(rows, index, start, stop, criteria, policy, work)
    return cut_by_itself(rows, index, start, stop, criteria, policy, work)


@njit(**LEAN)
def best_nested(rows, index, start, stop, criteria, policy, work):
    """The cut of a node whose sides, finished by looking ahead, lose least."""
    a = missing_first(rows, index, start, stop, criteria, work)
    if a >= 0:
        return a, ZERO, ZERO
    count = look_ahead(rows, index, start, stop, policy.finalists, criteria, policy, work)
    if count == 0:
        return cut_by_itself(rows, index, start, stop, criteria, policy, work)
    for t in range(count):
        c = work.best[t]
        work.final_attribute[t] = work.try_attribute[c]
        work.final_low[t], work.final_cut[t] = work.try_low[c], work.try_cut[c]
    best = best_finalist(rows, index, start, stop, count, criteria, policy, work)
    return work.final_attribute[best], work.final_low[best], work.final_cut[best]


@njit(**LEAN)
def best_finalist(rows, index, start, stop, count, criteria, policy, work):
    """Which of ``count`` finalists leaves sides that lose least; equal ones: the first."""
    if count == 1:
        return 0
    copy(index, start, work.final_before, 0, stop - start)
    best, least = 0, np.inf
    for t in range(count):
        a, low, high = work.final_attribute[t], work.final_low[t], work.final_cut[t]
        middle = apply(rows, index, start, stop, a, low, high, criteria.k, work)
        loss = finished(rows, index, start, middle, least, criteria, policy, work)
        if loss < least:
            loss += finished(rows, index, middle, stop, least - loss, criteria, policy, work)
        if loss < least:
            best, least = t, loss
        copy(work.final_before, 0, index, start, stop - start)
    return best


@njit(**LEAN)
def finished(rows, index, start, stop, limit, criteria, policy, work):
    """Loss of a node that is cut to the end by looking ahead; infinite where above ``limit``.

    Losses of nodes are remembered, so they are summed up node by node: ``work.sum`` has a place
    for each that lies around the present one, and an entry of -1 in ``work.open``, below those of
    its sides, closes it.
    """
    most = limit * (1.0 + ROUNDING)
    total = 0.0  # of all classes so far
    depth, top = 0, 0
    work.sum[0] = 0.0
    work.open[0, 0], work.open[1, 0] = start, stop
    while top >= 0 and total <= most:
        start, stop = work.open[0, top], work.open[1, top]
        top -= 1
        if start < 0:
            remember(work.sum_key[depth], work.sum[depth], work)
            depth -= 1
            work.sum[depth] += work.sum[depth + 1]
            continue
        key = key_of(index, start, stop, AHEAD, work)
        loss, middle = finish(rows, index, start, stop, key, criteria, policy, work)
        if middle < 0:
            total += loss
            work.sum[depth] += loss
            continue
        depth += 1
        work.sum[depth], work.sum_key[depth] = 0.0, key
        work.open[0, top + 1] = -1
        top = push_sides(work.open, top + 1, start, middle, stop)
    return work.sum[0] if top < 0 else np.inf


@njit(**LEAN)
def finish(rows, index, start, stop, key, criteria, policy, work):
    """The loss of a node that is known or final, and -1; of others, where the second side starts
    after a cut by looking ahead."""
    if stop - start < 2 * criteria.k:
        return loss_of(rows, index, start, stop, work), -1
    loss = recall(key, work)
    if loss < np.inf:
        return loss, -1
    a, low, high = best_ahead(rows, index, start, stop, criteria, policy, work)
    if a < 0:
        loss = loss_of(rows, index, start, stop, work)
        remember(key, loss, work)
        return loss, -1
    return loss, apply(rows, index, start, stop, a, low, high, criteria.k, work)
