"""Classes of a night that tell nothing to somebody who subtracts classes of one night from others.

After X. Xiao and Y. Tao, "m-invariance", SIGMOD 2007: each person has a signature of l sensitive
values for good, and of the people of a class who have the same signature, each of its values is
that of as many. Whoever knows everybody's class in every night could exchange the values of a
signature among all who have it, and see the same releases: so each of them is as likely.

The classes are made of *cells*: one person for each value of a signature, or a row that is made up
where nobody has that value. Cells are kept from night to night; who comes takes the place of
somebody who left and had the same value, if one is near.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.cut.algorithms.mondrian import CodedRows, CutPolicy
from mondrian_ops.cut.native import mondrian as native
from mondrian_ops.generalize.attributes import Classes
from mondrian_ops.series.intersection.balanced_cells import Cells, cells_of, numbered
from mondrian_ops.series.intersection.extents import Extents
from mondrian_ops.series.intersection.halving import cut_cells, halved
from mondrian_ops.series.intersection.invariance import NOT_TONIGHT, History, words_to_arrow

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

_BITS = 64
_NEW, _JOINED, _MERGED = 2.25, 2.25, 2.25
"""So many times as wide as an independent class is on average may be a cell of new people, one that
somebody joins, and two that are joined."""
_LEAST = 1e-6
_AROUND = 24
"""Neighbours on either side whose classes are tried for a row without a value."""


class Balanced(NamedTuple):
    """The classes of a night.

    ``unmatched`` (rows,) bool: rows that are in none of them. ``counterfeits`` (n, 2) int64: the
    number of a class and the code of a value, of each row that is made up. ``signatures`` (rows,):
    the values of each row's signature as bits; none where a row has no value, or no class.
    """

    classes: Classes
    unmatched: NDArray[np.bool_]
    counterfeits: Ints
    signatures: pa.Array


def balanced_classes(coded: CodedRows, history: History, l: int) -> Balanced:  # noqa: E741
    """Classes of at least k rows that are balanced, of the same rows always the same ones."""
    tonight = np.flatnonzero(history.class_of != NOT_TONIGHT).astype(np.int32)
    rows = coded.taken(tonight)
    policy = CutPolicy("widest gain").kernel()
    index, starts = native.classes(rows.rows, rows.criteria, policy, 1)
    mean = native.loss(rows.rows, rows.criteria, policy, index, starts) / max(1, len(tonight))
    mean = max(_LEAST, mean)
    extents = Extents(rows.rows)
    now = History(history.values[tonight], history.common[tonight], history.class_of[tonight])
    cells = cells_of(extents, now, l, (_NEW * mean, _JOINED * mean, _MERGED * mean))
    laid_out = _LaidOut(extents, now, cells, coded.criteria.k)
    index, starts, made_up, signatures = laid_out.classes(l)
    unmatched = np.ones(coded.count, np.bool_)
    unmatched[tonight[index]] = False
    all_signatures = np.zeros((coded.count, history.common.shape[1]), np.uint64)
    all_signatures[tonight] = signatures
    classes = Classes(tonight[index], starts)
    return Balanced(classes, unmatched, made_up, words_to_arrow(all_signatures))


class _LaidOut:
    """Cells in classes of at least k people."""

    def __init__(self, extents: Extents, history: History, cells: Cells, k: int) -> None:
        self.extents, self.history = extents, history
        there = cells.rows >= 0
        people = there.sum(axis=1)
        codes = extents.codes[cells.rows]
        low = np.where(there[:, :, None], codes, np.iinfo(np.int64).max).min(axis=1)
        high = np.where(there[:, :, None], codes, -1).max(axis=1)
        of_cell = cut_cells(extents, low, high, people, k)
        placed = of_cell >= 0
        self.cells = Cells(cells.values[placed], cells.rows[placed])
        self.of_cell = of_cell[placed]
        self.count = int(of_cell.max(initial=-1)) + 1

    def classes(self, l: int) -> tuple[NDArray[np.int32], Ints, Ints, Words]:  # noqa: E741
        """The rows class by class, where each begins, what is made up, and all signatures."""
        number, at = np.nonzero(self.cells.rows >= 0)
        rows, class_of = self.cells.rows[number, at], self.of_cell[number]
        words = self._signatures()
        signatures = np.zeros_like(self.history.common)
        signatures[rows] = words[number]
        has = np.zeros((self.count, signatures.shape[1]), np.uint64)
        np.bitwise_or.at(has, self.of_cell, words)
        more, of_more = self._valueless(rows, class_of, has, l)
        rows, class_of = np.append(rows, more), np.append(class_of, of_more)
        order = np.argsort(class_of, kind="stable")
        starts = np.searchsorted(class_of[order], np.arange(self.count))
        return rows[order].astype(np.int32), starts, self._made_up(words), signatures

    def _signatures(self) -> Words:
        """(cells, words): the values of each cell as bits."""
        words = np.zeros((len(self.of_cell), self.history.common.shape[1]), np.uint64)
        for value in self.cells.values.T:
            bits = np.uint64(1) << (value % _BITS).astype(np.uint64)
            words[np.arange(len(value)), value // _BITS] |= bits
        return words

    def _made_up(self, words: Words) -> Ints:
        """The class and the value of each row that all cells of a signature together lack."""
        distinct, which = numbered(words)
        key = self.of_cell * len(distinct) + which
        groups, first, group = np.unique(key, return_index=True, return_inverse=True)
        people = np.zeros((len(groups), self.cells.values.shape[1]), np.int64)
        np.add.at(people, group, self.cells.rows >= 0)
        lacking = (people.max(axis=1, keepdims=True) - people).ravel()
        pairs = np.stack(
            [np.repeat(self.of_cell[first], people.shape[1]), self.cells.values[first].ravel()],
            axis=1,
        )
        return pairs.repeat(lacking, axis=0)

    def _valueless(
        self,
        rows: Ints,
        class_of: Ints,
        has: Words,
        l: int,  # noqa: E741
    ) -> tuple[Ints, Ints]:
        """The rows without a value, and the class nearby that each joins: the one that loses least
        of those that have values enough for it."""
        allowed, extents = self.history.common, self.extents
        enough = np.bitwise_count(allowed).sum(axis=1) >= l
        lacking = np.flatnonzero((self.history.values < 0) & enough)
        joined: list[tuple[int, int]] = []
        if not self.count or not len(lacking):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        order = np.argsort(class_of, kind="stable")
        starts = np.searchsorted(class_of[order], np.arange(self.count))
        codes = extents.codes[rows[order]]
        low, high = np.minimum.reduceat(codes, starts), np.maximum.reduceat(codes, starts)
        sizes = np.bincount(class_of, minlength=self.count)
        now = extents.width(low, high, sizes) * sizes
        around = self._classes_around(lacking, rows, class_of)
        for row, near in zip(lacking.tolist(), around, strict=True):
            for some in (np.unique(near[near >= 0]), np.arange(self.count)):
                shared = np.bitwise_count(has[some] & allowed[row]).sum(axis=1)
                some = some[shared >= l]
                if len(some):
                    break
            else:
                continue
            here = extents.codes[row]
            lows, highs = np.minimum(low[some], here), np.maximum(high[some], here)
            losses = extents.width(lows, highs, sizes[some] + 1) * (sizes[some] + 1)
            least = int(np.argmin(losses - now[some]))
            at = int(some[least])
            joined.append((row, at))
            low[at], high[at], now[at] = lows[least], highs[least], losses[least]
            sizes[at] += 1
        pairs = np.array(joined, np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def _classes_around(self, some: Ints, rows: Ints, class_of: Ints) -> Ints:
        """(some, neighbours): the classes of ``rows`` near each row, -1 where there is none."""
        classes = np.full(len(self.history.values), -1, np.int64)
        classes[rows] = class_of
        order = halved(self.extents, np.append(rows, some), _AROUND).order
        place = np.empty(len(classes), np.int64)
        place[order] = np.arange(len(order))
        window = place[some][:, None] + np.arange(-_AROUND, _AROUND + 1)
        around: Ints = classes[order[np.clip(window, 0, len(order) - 1)]]
        return around
