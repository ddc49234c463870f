"""Rows and cells divided into two, and these again: all parts of a level at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.series.intersection.extents import Extents

Ints = NDArray[np.int64]

_FAR = 1 << 40  # more than any code


class Halving(NamedTuple):
    """Rows in an order in which neighbours are near.

    ``levels``: where the parts of each level begin in it; those of the first are all of the rows.
    """

    order: Ints
    levels: list[Ints]


def halved(extents: Extents, rows: Ints, leaf: int) -> Halving:
    """Halve at the median of the attribute in which they are widest, until ``leaf`` are left."""
    order, starts = rows, np.zeros(min(1, len(rows)), np.int64)
    levels = [starts]
    while len(starts):
        sizes = np.diff(np.append(starts, len(order)))
        node = np.repeat(np.arange(len(starts)), sizes)
        codes = extents.codes[order]
        low, high = np.minimum.reduceat(codes, starts), np.maximum.reduceat(codes, starts)
        widest = extents.widths(low, high, sizes).argmax(axis=1)
        place = np.where(sizes[node] > leaf, extents.places[order, widest[node]], 0.0)
        by_place = np.lexsort((place, node))
        order, place = order[by_place], place[by_place]
        ends = np.flatnonzero((np.diff(place) > 0) & (np.diff(node) == 0)) + 1
        if not len(ends):
            break
        from_middle = np.abs(ends - (starts + sizes // 2)[node[ends]])
        nearest = np.lexsort((from_middle, node[ends]))
        _, first = np.unique(node[ends], return_index=True)
        starts = np.union1d(starts, ends[nearest[first]])
        levels.append(starts)
    return Halving(order, levels)


def cut_cells(extents: Extents, low: Ints, high: Ints, people: Ints, k: int) -> Ints:
    """(cells,): the class of each; -1 for all if they are fewer than k people.

    A class is cut where that loses least, if it loses less than none.
    """
    count = len(people)
    if people.sum() < k:
        return np.full(count, -1, np.int64)
    order, starts = np.arange(count), np.zeros(1, np.int64)
    done: list[Ints] = []
    while len(order):
        sizes = np.diff(np.append(starts, len(order)))
        node = np.repeat(np.arange(len(starts)), sizes)
        total = np.add.reduceat(people[order], starts)
        best = np.full(len(starts), np.inf)
        attribute, stop = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64)
        for a in range(low.shape[1]):
            middle = extents.middle(a, low[order, a], high[order, a])
            some = order[np.lexsort((middle, node))]
            before = np.cumsum(people[some])
            before -= (np.cumsum(total) - total)[node]
            at = np.flatnonzero((before >= k) & (total[node] - before >= k))
            if not len(at):
                continue
            losses = _losses(extents, low[some], high[some], node, at, before[at], total)
            at_node = node[at]
            _, first = np.unique(at_node, return_index=True)
            least = np.lexsort((losses, at_node))[first]
            nodes = at_node[first]
            better = losses[least] < best[nodes]
            best[nodes[better]] = losses[least[better]]
            attribute[nodes[better]], stop[nodes[better]] = a, at[least[better]] + 1
        whole = [
            each.reduceat(of[order], starts) for each, of in ((np.minimum, low), (np.maximum, high))
        ]
        cut = np.isfinite(best) & (best <= extents.width(whole[0], whole[1], total) * total)
        done += [order[first : first + size] for first, size in
                 zip(starts[~cut].tolist(), sizes[~cut].tolist(), strict=True)]  # fmt: skip
        if not cut.any():
            break
        middle = np.zeros(len(order))
        for a in range(low.shape[1]):
            mine = attribute[node] == a
            middle[mine] = extents.middle(a, low[order[mine], a], high[order[mine], a])
        order = order[np.lexsort((middle, node))]
        begins = np.zeros(len(order), np.bool_)
        begins[starts] = True
        begins[stop[cut]] = True
        stays = cut[node]
        order, starts = order[stays], np.flatnonzero(begins[stays])
    class_of = np.empty(count, np.int64)
    for number, some in enumerate(done):
        class_of[some] = number
    return class_of


def _losses(
    extents: Extents, low: Ints, high: Ints, node: Ints, at: Ints, before: Ints, total: Ints
) -> NDArray[np.float64]:
    """(at,) the loss of the cells of a node on both sides of each cut, which comes after ``at``."""
    far = (node * _FAR)[:, None]
    one = (np.minimum.accumulate(low - far)[at] + far[at],
           np.maximum.accumulate(high + far)[at] - far[at])  # fmt: skip
    after = at + 1
    other = (np.minimum.accumulate((low + far)[::-1])[::-1][after] - far[after],
             np.maximum.accumulate((high - far)[::-1])[::-1][after] + far[after])  # fmt: skip
    rest = total[node[at]] - before
    losses: NDArray[np.float64] = extents.width(*one, before) * before
    losses += extents.width(*other, rest) * rest
    return losses
