"""Rows that change their class: a local search among the classes of one small node.

Row by row, a class hands one over, or gives one in exchange for another's, where all classes
together lose less afterwards and each still satisfies every criterion. It ends where no row of a
class that has changed has a better place. Only classes of k to 2k - 1 rows take part: no cut of
those is valid, before or after.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mondrian_ops.core.kernels.criteria import JIT, LEAN, group_holds
from mondrian_ops.core.kernels.model import DISTINCT, NONE, SET, ZERO, Floats, Ints
from mondrian_ops.core.kernels.splitting import width
from mondrian_ops.core.kernels.topping import copy

NEAREST = 4  # classes that are tried for a row: those that lose least more by taking it
LESS = 1e-9  # losses are sums of rounded numbers


class Neighbours(NamedTuple):
    """The classes of a node that take part.

    Bounds are codes; the second ones, (classes, attributes) like the first, are those of a class
    without one row that has the first.
    """

    members: NDArray[np.int32]  # (classes, 2k - 1): rows
    size: Ints  # (classes,)
    low: Ints
    next_low: Ints
    high: Ints
    next_high: Ints
    distinct: Ints  # (classes, attributes): codes; of a SET only
    loss: Floats  # (classes, attributes): per row
    open: NDArray[np.bool_]  # (classes,): changed since its rows were last looked at
    nearest: Ints  # (NEAREST,): classes
    costs: Floats  # (NEAREST,): how much more they lose with a row


@njit(**JIT)
def exchange_rows(rows, index, marks, criteria, work):
    """Let the rows of a node change their classes, which start where ``marks`` is 1.

    ``index`` and ``marks`` (rows,) are those of the node alone, and both are written anew.
    """
    most = 2 * criteria.k - 1
    near = _neighbours(index, marks, most, rows.kind.size)
    classes = near.size.size
    for c in range(classes):
        _tell(rows, near, c)
    while np.any(near.open):  # ends, for all together lose less with every move
        for c in range(classes):
            if near.open[c]:
                near.open[c] = False
                _place_rows(rows, near, c, criteria, work)
    _put_back(index, marks, most, near)


@njit(**LEAN)
def _place_rows(rows, near, c, criteria, work):
    """Let the rows of a class go where less is lost, until none has a better place."""
    j = ZERO
    while j < near.size[c]:
        if not _moves(rows, near, c, j, criteria, work):
            j += 1


@njit(**JIT)
def _neighbours(index, marks, most, attributes):
    """The classes of at most ``most`` rows, in order."""
    stops = _stops(marks)
    classes = 0
    start = 0
    for stop in stops:
        classes += stop - start <= most
        start = stop
    members = np.full((classes, most), NONE, np.int32)
    size = np.zeros(classes, np.int64)
    c = start = 0
    for stop in stops:
        if stop - start <= most:
            size[c] = stop - start
            copy(index, start, members[c], 0, stop - start)
            c += 1
        start = stop
    return Neighbours(
        members,
        size,
        np.zeros((classes, attributes), np.int64),
        np.zeros((classes, attributes), np.int64),
        np.zeros((classes, attributes), np.int64),
        np.zeros((classes, attributes), np.int64),
        np.zeros((classes, attributes), np.int64),
        np.zeros((classes, attributes)),
        np.ones(classes, np.bool_),
        np.zeros(NEAREST, np.int64),
        np.zeros(NEAREST),
    )


@njit(**JIT)
def _stops(marks):
    """Where each class ends: the next one starts, or the node ends."""
    return np.append(np.flatnonzero(marks[1:]) + 1, marks.size)


@njit(**JIT)
def _put_back(index, marks, most, near):
    """Lay the classes into ``index``, each in the place of its like, and mark anew."""
    before = index.copy()
    stops = _stops(marks)
    marks[:] = 0
    c = start = at = 0
    for stop in stops:
        marks[at] = 1
        if stop - start <= most:
            copy(near.members[c], 0, index, at, near.size[c])
            at += near.size[c]
            c += 1
        else:
            copy(before, start, index, at, stop - start)
            at += stop - start
        start = stop


@njit(**LEAN)
def _tell(rows, near, c):
    """Bounds and loss of a class whose members have changed."""
    for a in range(rows.kind.size):
        low = next_low = np.int64(1 << 62)
        high = next_high = np.int64(-1)
        distinct = 0
        for i in range(near.size[c]):
            v = np.int64(rows.codes[a, near.members[c, i]])
            if rows.kind[a] == SET:
                distinct += _rows_with(rows, near, c, a, v, i) == 0
            if v <= low:
                low, next_low = v, low
            elif v < next_low:
                next_low = v
            if v >= high:
                high, next_high = v, high
            elif v > next_high:
                next_high = v
        near.low[c, a], near.next_low[c, a] = low, next_low
        near.high[c, a], near.next_high[c, a] = high, next_high
        near.distinct[c, a] = distinct
        near.loss[c, a] = width(rows, a, low, high, distinct)


@njit(**LEAN)
def _rows_with(rows, near, c, a, code, among):
    """How many of the first ``among`` members of a class have a code."""
    found = 0
    for i in range(among):
        found += rows.codes[a, near.members[c, i]] == code
    return found


@njit(**LEAN)
def _loss_with(rows, near, c, a, out, new):
    """Loss per row of attribute ``a`` of a class without the row ``out``, with the row ``new``."""
    low, high = near.low[c, a], near.high[c, a]
    if out != NONE:
        v = np.int64(rows.codes[a, out])
        low = near.next_low[c, a] if v == low else low
        high = near.next_high[c, a] if v == high else high
    if new != NONE:
        v = np.int64(rows.codes[a, new])
        low, high = min(low, v), max(high, v)
    if rows.kind[a] == SET:
        return width(rows, a, low, high, _distinct_with(rows, near, c, a, out, new))
    if low == near.low[c, a] and high == near.high[c, a]:
        return near.loss[c, a]
    return width(rows, a, low, high, 2)


@njit(**LEAN)
def _distinct_with(rows, near, c, a, out, new):
    """Distinct codes of a class without the row ``out``, with the row ``new``."""
    distinct = near.distinct[c, a]
    gone = np.int64(rows.codes[a, out]) if out != NONE else NONE
    come = np.int64(rows.codes[a, new]) if new != NONE else NONE
    if gone == come:
        return distinct
    if out != NONE:
        distinct -= _rows_with(rows, near, c, a, gone, near.size[c]) == 1
    if new != NONE:
        distinct += _rows_with(rows, near, c, a, come, near.size[c]) == 0
    return distinct


@njit(**LEAN)
def _moves(rows, near, c, j, criteria, work):
    """Give the j-th row of a class the best other place that it has; whether there is one."""
    row = near.members[c, j]
    size = near.size[c]
    now = without = 0.0
    for a in range(rows.kind.size):
        now += near.loss[c, a]
        without += _loss_with(rows, near, c, a, row, NONE)
    narrows = without < now - LESS
    spare = size > criteria.k
    if now == 0.0 or not (narrows or spare):
        return False
    saved = size * now - (size - 1) * without
    to, place, least = NONE, NONE, -LESS
    count = _rank(rows, near, c, row, saved)
    if spare:
        to, least = _taker(rows, near, c, row, count, saved, least, criteria, work)
    if narrows:
        for t in range(count):
            e = near.nearest[t]
            i, change = _partner(rows, near, c, row, e, least, criteria, work)
            if i != NONE:
                to, place, least = e, i, change
    if to == NONE:
        return False
    _move(near, c, j, to, place)
    near.open[c] = near.open[to] = True
    _tell(rows, near, c)
    _tell(rows, near, to)
    return True


@njit(**LEAN)
def _taker(rows, near, c, row, count, saved, least, criteria, work):
    """The first of the nearest classes that may take a row (NONE: none), and how much more all lose
    then, below ``least``."""
    for t in range(count):
        e = near.nearest[t]
        change = near.costs[t] - saved
        if (
            change < least
            and near.size[e] < near.members.shape[1]
            and _both_hold(rows, near, c, row, e, NONE, criteria, work)
        ):
            return e, change
    return NONE, least


@njit(**LEAN)
def _partner(rows, near, c, row, e, least, criteria, work):
    """The member of class ``e`` that is best exchanged for a row (NONE: none), and how much more
    all lose then, below ``least``."""
    best = NONE
    for i in range(near.size[e]):
        other = near.members[e, i]
        change = _change(rows, near, c, row, e, other, least)
        if change < least and _both_hold(rows, near, c, row, e, other, criteria, work):
            best, least = i, change
    return best, least


@njit(**LEAN)
def _rank(rows, near, c, row, limit):
    """Put the classes that lose least more by taking a row into ``near.nearest``, the first one
    first, and how much into ``near.costs``; returns how many there are below ``limit``."""
    count = ZERO
    for e in range(near.size.size):
        if e == c:
            continue
        cost = _cost(rows, near, e, row, limit)
        if cost >= limit:
            continue
        t = min(count, NEAREST - 1)
        while t > 0 and near.costs[t - 1] > cost:
            near.nearest[t], near.costs[t] = near.nearest[t - 1], near.costs[t - 1]
            t -= 1
        near.nearest[t], near.costs[t] = e, cost
        count = min(count + 1, NEAREST)
        if count == NEAREST:
            limit = near.costs[NEAREST - 1]
    return count


@njit(**LEAN)
def _cost(rows, near, e, row, limit):
    """How much more a class loses by taking a row; gives up above ``limit``."""
    cost = 0.0
    size = near.size[e]
    for a in range(rows.kind.size):
        cost += (size + 1) * _loss_with(rows, near, e, a, NONE, row) - size * near.loss[e, a]
        if cost >= limit:
            break
    return cost


@njit(**LEAN)
def _change(rows, near, c, row, e, other, limit):
    """How much more two classes lose by exchanging two rows; gives up where it is sure to reach
    ``limit``."""
    change = 0.0
    for a in range(rows.kind.size):
        change -= near.size[c] * near.loss[c, a] + near.size[e] * near.loss[e, a]
    for a in range(rows.kind.size):
        change += near.size[c] * _loss_with(rows, near, c, a, row, other)
        change += near.size[e] * _loss_with(rows, near, e, a, other, row)
        if change >= limit:
            break
    return change


@njit(**LEAN)
def _both_hold(rows, near, c, row, e, other, criteria, work):
    """Whether two classes satisfy every criterion after ``row`` went from the first to the second
    and ``other`` the other way."""
    return _holds(rows, near, c, row, other, criteria, work) and _holds(
        rows, near, e, other, row, criteria, work
    )


@njit(**LEAN)
def _holds(rows, near, c, out, new, criteria, work):
    """Whether a class without the row ``out``, with the row ``new``, satisfies every criterion on
    the sensitive attributes."""
    total = near.size[c] - (out != NONE) + (new != NONE)
    for j in range(criteria.kind.size):
        counts, codes = work.left_counts, rows.sensitive[criteria.column[j]]
        _forget(counts, codes, near, c, new, criteria, j)
        distinct = 0
        for i in range(near.size[c]):
            row = near.members[c, i]
            if row != out:
                distinct += counts[codes[row]] == 0
                counts[codes[row]] += 1
        if new != NONE:
            distinct += counts[codes[new]] == 0
            counts[codes[new]] += 1
        if not group_holds(counts, total, distinct, criteria, j, work.surplus, work.deficit):
            return False
    return True


@njit(**LEAN)
def _forget(counts, codes, near, c, new, criteria, j):
    """Zero ``counts`` before they are those of a class; of many codes, such as persons, no others
    than its own and the missing one."""
    if criteria.kind[j] != DISTINCT:
        counts[: criteria.codes[j]] = 0
        return
    counts[0] = 0
    for i in range(near.size[c]):
        counts[codes[near.members[c, i]]] = 0
    if new != NONE:
        counts[codes[new]] = 0


@njit(**LEAN)
def _move(near, c, j, to, place):
    """Hand the j-th row of a class over, or exchange it for the one at ``place`` of the other."""
    row = near.members[c, j]
    if place != NONE:
        near.members[c, j], near.members[to, place] = near.members[to, place], row
        return
    near.members[to, near.size[to]] = row
    near.size[to] += 1
    near.size[c] -= 1
    near.members[c, j] = near.members[c, near.size[c]]
