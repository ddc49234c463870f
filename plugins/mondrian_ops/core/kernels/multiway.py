"""DI-Mondrian: nodes are cut into several parts at once (docs/algorithms.md, DI-Mondrian).

The tables ``low`` and ``high`` of the rows are places here: where a value lies in the range, or in
the order, of the whole dataset, from 0 to 1, for every kind of attribute.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from mondrian_ops.core.kernels.criteria import LEAN, group_holds, mark_valid, order_rows
from mondrian_ops.core.kernels.greedy import partition_rows, parts_missing
from mondrian_ops.core.kernels.model import NONE, ZERO, Ints
from mondrian_ops.core.kernels.splitting import (
    INLINE,
    loss_below,
    losses_above,
    median_cut,
    tally,
    width,
)

# Sums of n ln n are of whole numbers, in these units: so the order of the rows does not matter.
_UNIT = float(1 << 20)


class PartsWork(NamedTuple):
    """Working memory of cuts into parts, beside `Work`; its size is the most points of a cut.

    A node has several points only where its parts have ``room`` times k rows on average.
    """

    room: int
    point: Ints  # (cut points,): which of the node's distinct codes; once decided: the codes
    counts: Ints  # (sensitive codes,), zero between uses
    waiting: Ints  # (2, nodes): start, stop of the nodes to be cut


def new_parts_work(
    rows: int, k: int, cut_points: int, room: int, sensitive_codes: int
) -> PartsWork:
    """Working memory for at most ``cut_points`` cut points at once."""
    points = max(1, min(cut_points, rows // k))
    return PartsWork(
        room=room,
        point=np.zeros(points, np.int64),
        counts=np.zeros(sensitive_codes, np.int64),
        waiting=np.zeros((2, rows // k + 1), np.int64),  # they share no row, and have k or more
    )


# Where an attribute is cut


@njit(**INLINE)
def nearest_quantile(rank, n, points):
    """Which of the ``points`` inner quantiles of n rows is nearest to a rank, and how far it is.

    The quantile is counted from 0: below that, or ``points``, is an end of the node. The distance
    is in rows times ``points`` + 1.
    """
    q = (2 * rank * (points + 1) + n) // (2 * n) - 1
    return q, abs(rank * (points + 1) - (q + 1) * n)


@njit(**LEAN)
def seek_point(rows, a, first, last, n, k, q, points, work):
    """Of the cuts nearest to quantile ``q`` the one after which rows lose least; -1: none keeps k.

    Only the rows of the distinct codes ``first`` to ``last`` are looked at. Of equal losses the cut
    nearer to the quantile wins, then the lower one.
    """
    value, right = work.value[first : last + 1], work.right[first : last + 1]
    losses_above(rows, a, last - first + 1, value, right)
    before = work.below[first - 1] if first > 0 else 0
    best = -1
    best_rest = np.inf
    best_away = 0
    loss = 0.0
    for j in range(first, last):
        rank = work.below[j]
        loss = loss_below(rows, a, j - first, value, loss)
        nearest, away = nearest_quantile(rank, n, points)
        if nearest != q or rank < k or n - rank < k:
            continue
        rest = (rank - before) * loss + (work.below[last] - rank) * right[j - first]
        if rest < best_rest or (rest == best_rest and away < best_away):
            best, best_rest, best_away = j, rest, away
    return best


@njit(**LEAN)
def seek_points(rows, a, n, k, points, work, parts):
    """For each quantile the best cut near it, in ``parts.point``; -1 where none keeps k.

    A cut is judged by the rows between the two quantiles beside its own.
    """
    first = last = ZERO
    for q in range(points):
        while work.below[first] * (points + 1) <= q * n:
            first += 1
        while work.below[last] * (points + 1) < (q + 2) * n:
            last += 1
        parts.point[q] = -1
        if first < last:
            parts.point[q] = seek_point(rows, a, first, last, n, k, q, points, work)


@njit(**LEAN)
def place_points(rows, a, d, n, k, work, parts):
    """Put the cuts of an attribute that keep k into ``parts.point``, ascending; returns how many.

    Tallies must be those of the node. Where no cut near a quantile keeps k, the one that balances
    best is the only one.
    """
    if d < 2:
        return 0
    points = max(1, min(parts.point.size, n // (parts.room * k) - 1))
    seek_points(rows, a, n, k, points, work, parts)
    count = 0
    last = 0
    for q in range(points):
        j = parts.point[q]
        if j >= 0 and work.below[j] - last >= k:
            parts.point[count] = j
            last = work.below[j]
            count += 1
    if count == 0:
        j = median_cut(d, n, k, False, work.below, work.valid)
        if j >= 0:
            parts.point[0] = j
            count = 1
    return count


# Which attribute is cut


@njit(**LEAN)
def variation(rows, a, d, n, work):
    """Coefficient of variation of an attribute's values in the node, one added to their places."""
    place = rows.low[rows.first[a] :]
    mean = 0.0
    for j in range(d):
        here = work.below[j] - (work.below[j - 1] if j > 0 else 0)
        mean += here * place[work.value[j]] / n
    variance = 0.0
    for j in range(d):
        here = work.below[j] - (work.below[j - 1] if j > 0 else 0)
        variance += here * (place[work.value[j]] - mean) ** 2 / n
    return np.sqrt(variance) / (1.0 + mean)


@njit(**LEAN)
def fall_of_parts(rows, a, d, n, count, work, parts):
    """How much less a row loses on an attribute when the node is cut at its points."""
    rest = 0.0
    first = below = 0
    for p in range(count + 1):
        last = parts.point[p] if p < count else d - 1
        loss = width(rows, a, work.value[first], work.value[last], last - first + 1)
        rest += (work.below[last] - below) * loss
        first, below = last + 1, work.below[last]
    return width(rows, a, work.value[0], work.value[d - 1], d) - rest / n


@njit(**LEAN)
def concentration(rows, s, first, last, work, parts):
    """Sum of c ln c over the counts c of a sensitive attribute among rows ``first`` to ``last`` of
    ``work.order``, in units; and how many distinct values there are."""
    codes, counts = rows.sensitive[s], parts.counts
    for i in range(first, last):
        counts[codes[work.order[i]]] += 1
    total = np.int64(0)
    distinct = 0
    for i in range(first, last):
        code = codes[work.order[i]]
        if counts[code] > 0:
            total += np.int64(np.rint(counts[code] * np.log(counts[code]) * _UNIT))
            distinct += 1
            counts[code] = 0
    return total, distinct


@njit(**LEAN)
def information_gain(rows, s, n, count, work, parts):
    """Share of the entropy of a sensitive attribute that cutting at the points takes away.

    Less what chance would take: half the logarithm of n for each free parameter (Schwarz 1978).
    ``work.order`` must hold the rows in the attribute's order.
    """
    whole, distinct = concentration(rows, s, ZERO, n, work, parts)
    if distinct < 2:
        return 0.0
    inside = np.int64(0)
    sizes = 0.0
    first = ZERO
    for p in range(count + 1):
        last = work.below[parts.point[p]] if p < count else n
        part, _ = concentration(rows, s, first, last, work, parts)
        inside += part
        sizes += (last - first) * np.log(last - first)
        first = last
    entropy = n * np.log(n) - whole / _UNIT
    gained = entropy - sizes + inside / _UNIT
    chance = 0.5 * count * (distinct - 1) * np.log(n)
    return max(0.0, gained - chance) / entropy


@njit(**LEAN)
def score(rows, a, index, start, stop, d, count, work, parts):
    """Rank of an attribute: variation, fall of loss and, on average, information gain."""
    n = stop - start
    found = variation(rows, a, d, n, work) + fall_of_parts(rows, a, d, n, count, work, parts)
    sensitive = rows.sensitive.shape[0] - rows.persons
    if sensitive > 0:
        order_rows(rows, index, start, stop, a, d, work)
    for s in range(sensitive):
        found += information_gain(rows, s, n, count, work, parts) / sensitive
    return found


# Which of its cuts keep everything


@njit(**LEAN)
def part_holds(rows, first, last, criteria, work, parts):
    """Whether rows ``first`` to ``last`` of ``work.order`` keep k and every criterion."""
    if last - first < criteria.k:
        return False
    counts = parts.counts
    for j in range(criteria.kind.size):
        codes = rows.sensitive[criteria.column[j]]
        distinct = 0
        for i in range(first, last):
            code = codes[work.order[i]]
            distinct += counts[code] == 0
            counts[code] += 1
        holds = group_holds(counts, last - first, distinct, criteria, j, work.surplus, work.deficit)
        for i in range(first, last):
            counts[codes[work.order[i]]] = 0
        if not holds:
            return False
    return True


@njit(**LEAN)
def keep_points(rows, n, count, criteria, work, parts):
    """Drop the points below which, or after which, a part would break a criterion.

    From the lowest on, a point is kept if the part between it and the last kept one holds; then the
    highest are dropped until what is above them holds too. Returns how many are left.
    """
    kept = 0
    first = ZERO
    for p in range(count):
        last = work.below[parts.point[p]]
        if part_holds(rows, first, last, criteria, work, parts):
            parts.point[kept] = parts.point[p]
            kept += 1
            first = last
    while kept > 0:
        first = work.below[parts.point[kept - 1]]
        if part_holds(rows, first, n, criteria, work, parts):
            break
        kept -= 1
    return kept


@njit(**LEAN)
def valid_points(rows, index, start, stop, a, criteria, work, parts):
    """Put the codes at which attribute ``a`` is cut into ``parts.point``; returns how many.

    Of the points of `place_points` those that keep every criterion; if there are none, the cut
    that balances best of all that keep it; 0: there is none.
    """
    n = stop - start
    d = tally(rows.codes, a, index, start, stop, work)
    count = place_points(rows, a, d, n, criteria.k, work, parts)
    order_rows(rows, index, start, stop, a, d, work)
    count = keep_points(rows, n, count, criteria, work, parts)
    if count == 0:
        mark_valid(rows, index, start, stop, a, d, criteria, work)
        j = median_cut(d, n, criteria.k, True, work.below, work.valid)
        if j >= 0:
            parts.point[0] = j
            count = 1
    for p in range(count):
        parts.point[p] = work.value[parts.point[p]]
    return count


@njit(**LEAN)
def offers(rows, index, start, stop, k, work, parts):
    """Fill ``work.score`` and ``work.distinct``; ``work.checked``: no cut of it keeps k."""
    n = stop - start
    for a in range(rows.kind.size):
        d = tally(rows.codes, a, index, start, stop, work)
        count = place_points(rows, a, d, n, k, work, parts)
        work.distinct[a] = d
        work.checked[a] = count == 0
        if count > 0:
            work.score[a] = score(rows, a, index, start, stop, d, count, work, parts)


@njit(**LEAN)
def parts_of(rows, index, start, stop, criteria, work, parts):
    """The cut of a node: its attribute (-1: the node is final), and at how many codes.

    The codes are the first of ``parts.point``: rows up to each of them are a part, and the others.
    Missing values are parted from present ones first. The attribute of the highest score is cut;
    one that has no valid cut leaves it to the next.
    """
    for a in range(rows.kind.size):
        if parts_missing(rows, index, start, stop, a, criteria, work):
            parts.point[0] = 0
            return a, 1
    offers(rows, index, start, stop, criteria.k, work, parts)
    while True:
        best = NONE
        for a in range(rows.kind.size):
            if not work.checked[a] and (
                best < 0
                or work.score[a] > work.score[best]
                or (work.score[a] == work.score[best] and work.distinct[a] > work.distinct[best])
            ):
                best = a
        if best < 0:
            return -1, 0
        count = valid_points(rows, index, start, stop, best, criteria, work, parts)
        if count > 0:
            return best, count
        work.checked[best] = True


@njit(**LEAN)
def cut_into_parts(rows, index, floor, criteria, work, parts, marks):
    """Cut until nodes have at most ``floor`` rows or no cut is left; mark where such a node starts.

    ``marks`` (rows,) uint8, all zero before.
    """
    waiting = parts.waiting
    waiting[0, 0], waiting[1, 0] = 0, index.size
    top = 0
    while top >= 0:
        start, stop = waiting[0, top], waiting[1, top]
        top -= 1
        a, count = -1, 0
        if stop - start > floor and stop - start >= 2 * criteria.k:
            a, count = parts_of(rows, index, start, stop, criteria, work, parts)
        if a < 0:
            marks[start] = 1
            continue
        for p in range(count):
            middle = partition_rows(
                rows.codes, a, index, start, stop, 0, parts.point[p], work.order
            )
            top += 1
            waiting[0, top], waiting[1, top] = start, middle
            start = middle
        top += 1
        waiting[0, top], waiting[1, top] = start, stop
