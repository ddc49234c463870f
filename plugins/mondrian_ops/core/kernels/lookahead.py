"""The cut of a node whose sides, once finished greedily, lose least (a rollout)."""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_ops.core.kernels.candidates import collect_candidates
from mondrian_ops.core.kernels.criteria import LEAN, cut_holds, halves_hold
from mondrian_ops.core.kernels.greedy import decide, loss_of, partition_rows, parts_missing
from mondrian_ops.core.kernels.known import QUICKLY, key_of, recall, remember
from mondrian_ops.core.kernels.model import ONE, ZERO
from mondrian_ops.core.kernels.splitting import INLINE
from mondrian_ops.core.kernels.topping import copy, top_up


@njit(**INLINE)
def push_sides(stack, top, start, middle, stop):
    """Put the sides of a cut on a stack of nodes, the smaller one on top; returns the new top."""
    small_left = middle - start < stop - middle
    for side in range(2):
        left = (side == 1) == small_left
        top += 1
        stack[0, top] = start if left else middle
        stack[1, top] = middle if left else stop
    return top


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
        top = push_sides(stack, top, start, middle, stop)
    return total


@njit(**LEAN)
def rolled_out(rows, index, start, stop, limit, criteria, policy, work):
    """`rollout`, remembered where nodes are nested: there the same sides come again."""
    if policy.nested_rows == 0 or stop - start < 2 * criteria.k:
        return rollout(rows, index, start, stop, limit, criteria, policy, work)
    key = key_of(index, start, stop, QUICKLY, work)
    loss = recall(key, work)
    if 0 <= loss < np.inf or -loss >= limit:
        return abs(loss)
    loss = rollout(rows, index, start, stop, limit, criteria, policy, work)
    remember(key, loss if loss < limit else -loss, work)
    return loss


@njit(**LEAN)
def apply(rows, index, start, stop, a, low, high, k, work):
    """Bring the rows that a cut parts to the front, topped up to k; returns where they end."""
    middle = partition_rows(rows.codes, a, index, start, stop, low, high, work.order)
    if middle - start < k:
        middle = top_up(rows, index, start, middle, stop, k, work)
    return middle


@njit(**LEAN)
def look_ahead(rows, index, start, stop, most, criteria, policy, work):
    """Put the ``most`` candidates whose sides, finished greedily, lose least into ``work.best``.

    The least comes first; returns how many hold.
    """
    n = stop - start
    groups = n <= policy.group_rows
    count = collect_candidates(
        rows, index, start, stop, criteria.k, policy.candidates, groups, work
    )
    ordered = policy.group_rows > 0
    if ordered:
        copy(index, start, work.before, 0, n)
    found, limit = 0, np.inf
    for t in range(count):
        if limit <= 0.0:
            break  # nothing loses less
        loss = loss_ahead(rows, index, start, stop, t, limit, criteria, policy, work)
        if loss < limit:
            found = rank(t, loss, found, most, work)
            limit = work.best_loss[most - 1] if found == most else np.inf
        if ordered:
            copy(work.before, 0, index, start, n)
    return found


@njit(**LEAN)
def rank(t, loss, count, most, work):
    """Insert a candidate into ``work.best``, after those of equal loss; returns how many are in."""
    at = min(count, most - 1)
    while at > 0 and work.best_loss[at - 1] > loss:
        work.best[at], work.best_loss[at] = work.best[at - 1], work.best_loss[at - 1]
        at -= 1
    work.best[at], work.best_loss[at] = t, loss
    return min(count + 1, most)


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
    loss = rolled_out(rows, index, start, middle, limit, criteria, policy, work)
    if loss < limit:
        loss += rolled_out(rows, index, middle, stop, limit - loss, criteria, policy, work)
    return loss


@njit(**LEAN)
def cut_by_itself(rows, index, start, stop, criteria, policy, work):
    """The best cut of a node without looking ahead: attribute (-1: none), first and last code."""
    groups = stop - start <= policy.group_rows
    a, low, high, _ = decide(rows, index, start, stop, criteria, policy.greedy, groups, work)
    return a, low, high


@njit(**LEAN)
def missing_first(rows, index, start, stop, criteria, work):
    """The first attribute whose missing values can have classes of their own; -1: none."""
    for a in range(rows.kind.size):
        if parts_missing(rows, index, start, stop, a, criteria, work):
            return a
    return -1


@njit(**LEAN)
def best_ahead(rows, index, start, stop, criteria, policy, work):
    """The cut of a node whose sides, finished greedily, lose least: attribute (-1: none), first
    and last code of the rows that it parts from the others."""
    a = missing_first(rows, index, start, stop, criteria, work)
    if a >= 0:
        return a, ZERO, ZERO
    if look_ahead(rows, index, start, stop, ONE, criteria, policy, work) == 0:
        return cut_by_itself(rows, index, start, stop, criteria, policy, work)
    t = work.best[0]
    return work.try_attribute[t], work.try_low[t], work.try_cut[t]
