"""Cells: one person for each value of a signature, or nobody where a row has to be made up.

The cells of a night, all at once: of those who stay, of those who come in the places of others, and
of new people who are near one another. Pairs of what may be joined are found by where they are, and
joined in the order of how wide they are together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.series.intersection.extents import Extents
from mondrian_ops.series.intersection.halving import Halving, halved
from mondrian_ops.series.intersection.invariance import History

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Words = NDArray[np.uint64]

_BITS = 64
_LEAF = 4
"""New people are divided until at most so many times l are left, and join in cells there."""
_AROUND = 24
"""Neighbours on either side whose values are looked at for a cell that lacks some."""
_APART = 8.0
"""More than places are from one another."""
_MOST = 1 << 21
"""Pairs that are measured at a time."""


class Cells(NamedTuple):
    """Cells of l values, ascending, and the row that has each value, -1 where there is none.

    Both (cells, l).
    """

    values: Ints
    rows: Ints


class _Boxes(NamedTuple):
    """The least and greatest codes of some rows, (n, attributes), and how many they are, (n,)."""

    low: Ints
    high: Ints
    rows: Ints

    def taken(self, at: Ints) -> _Boxes:
        return _Boxes(self.low[at], self.high[at], self.rows[at])


def cells_of(
    extents: Extents,
    history: History,
    l: int,  # noqa: E741
    widths: tuple[float, float, float],
) -> Cells:
    """The cells of the people of a night; none lacks a value that nobody has tonight.

    ``widths``: at most so wide are a cell of new people, a cell that somebody joins, and cells
    that are joined.
    """
    return _Night(extents, history, l, *widths).cells()


def numbered(words: Words) -> tuple[Words, Ints]:
    """The distinct ones of some words, (n, words), and which each is, (n,)."""
    if words.shape[1] == 1:
        distinct, which = np.unique(words[:, 0], return_inverse=True)
        return distinct[:, None], which
    distinct, which = np.unique(words, axis=0, return_inverse=True)
    return distinct, which.reshape(-1)


def values_of(words: Words, count: int) -> Ints:
    """(n, count): the values of each of some words, all of which have so many bits."""
    little = np.ascontiguousarray(words.astype("<u8")).view(np.uint8)
    bits = np.unpackbits(little, axis=1, bitorder="little")
    return np.nonzero(bits)[1].reshape(len(words), count)


class _Night:
    """The people of a night: where they are, their values, and the values they may be thought to
    have: for who has a signature, l of them."""

    def __init__(
        self,
        extents: Extents,
        history: History,
        l: int,  # noqa: E741
        of_new: float,
        of_joined: float,
        of_merged: float,
    ) -> None:
        self.extents, self.values, self.allowed, self.l = extents, history.values, history.common, l
        self.of_new, self.of_joined, self.of_merged = of_new, of_joined, of_merged
        self.codes, self.places = extents.codes, extents.places
        count = np.bitwise_count(self.allowed).sum(axis=1)
        own = np.zeros(len(self.values), np.bool_)
        at = np.flatnonzero(self.values >= 0)
        own[at] = self._allows(at, self.values[at].astype(np.int64))
        self.has_signature = own & (count == l)
        self.is_free = own & (count > l)
        self.class_of = history.class_of
        self.signature = np.full((len(count), l), -1, np.int64)
        signed = np.flatnonzero(self.has_signature)
        self.signature[signed] = values_of(self.allowed[signed], l)

    def cells(self) -> Cells:
        """The cells of all who may have one."""
        stays = self.has_signature & (self.class_of >= 0)
        cells = self._merged(self._kept(np.flatnonzero(stays)))
        coming = np.flatnonzero((self.has_signature & ~stays) | self.is_free)
        cells, waiting = self._filled(cells, coming)
        free = self.is_free[waiting]
        new, left = self._new(waiting[free])
        some = self._completed(self._near_groups(left))
        moved = waiting[~free]
        alone = Cells(self.signature[moved], self._placed(moved))
        values, rows = (np.concatenate(each) for each in zip(cells, new, some, alone, strict=True))
        present = np.unique(self.values[self.values >= 0])
        complete = ((rows >= 0) | np.isin(values, present)).all(axis=1)
        return Cells(values[complete], rows[complete])

    def _allows(self, rows: Ints, values: Ints) -> Flags:
        """Whether each of some people may be thought to have a value."""
        word = self.allowed[rows, values // _BITS]
        return ((word >> (values % _BITS).astype(np.uint64)) & np.uint64(1)).astype(bool)

    def _allow_all(self, rows: Ints, values: Ints) -> Flags:
        """The same of several values each, (n, values)."""
        allowed: Flags = np.ones(len(rows), np.bool_)
        for each in values.T:
            allowed &= self._allows(rows, each)
        return allowed

    def _placed(self, rows: Ints) -> Ints:
        """(n, l): each row at the place of its value in its signature, with nobody else."""
        own = self.values[rows][:, None] == self.signature[rows]
        return np.where(own, rows[:, None], -1)

    def _boxes(self, rows: Ints) -> _Boxes:
        """Those of some cells, (n, l) rows or -1."""
        there = (rows >= 0)[:, :, None]
        codes = self.codes[rows]
        low = np.where(there, codes, np.iinfo(np.int64).max).min(axis=1)
        high = np.where(there, codes, -1).max(axis=1)
        return _Boxes(low, high, there.sum(axis=(1, 2)))

    # Who stays

    def _kept(self, rows: Ints) -> Cells:
        """The cells of those who stay with people of their class and of their signature."""
        _, number = numbered(self.allowed[rows])
        value, across = self.values[rows].astype(np.int64), self.places[rows].sum(axis=1)
        order = np.lexsort((across, value, number, self.class_of[rows]))
        rows, number, value = rows[order], number[order], value[order]
        group = _starts_anew(self.class_of[rows], number).cumsum()
        # Of those of a group who have the same value each is in a cell of its own.
        turn = _turns(_starts_anew(group, value))
        in_cell = np.lexsort((turn, group))
        begins = _starts_anew(group[in_cell], turn[in_cell])
        cell = np.empty(len(rows), np.int64)
        cell[in_cell] = begins.cumsum() - 1
        first = rows[in_cell][begins]
        members = np.full((len(first), self.l), -1, np.int64)
        signature = self.signature[first]
        at = (signature[cell] == value[:, None]).argmax(axis=1)
        members[cell, at] = rows
        return Cells(signature, members)

    def _merged(self, cells: Cells) -> Cells:
        """The cells, with those joined that have one signature and lack each other's values."""
        values, rows = cells.values, cells.rows.copy()
        lacking = np.flatnonzero((rows < 0).any(axis=1))
        if len(lacking) < 2:
            return cells
        boxes = self._boxes(rows[lacking])
        key = numbered(values[lacking].astype(np.uint64))[1]
        one, other, width = self._near(boxes, key, boxes, key, self.of_merged)
        there = rows[lacking] >= 0
        fits = (one < other) & ~(there[one] & there[other]).any(axis=1)
        one, other, width = one[fits], other[fits], width[fits]
        gone = np.zeros(len(rows), np.bool_)
        changed: set[int] = set()
        for at in np.argsort(width, kind="stable").tolist():
            a, b = int(lacking[one[at]]), int(lacking[other[at]])
            if gone[a] or gone[b] or ((rows[a] >= 0) & (rows[b] >= 0)).any():
                continue
            both = np.maximum(rows[a], rows[b])
            if (a in changed or b in changed) and self._width(both) > self.of_merged:
                continue
            rows[a], gone[b] = both, True
            changed.add(a)
        return Cells(values[~gone], rows[~gone])

    def _width(self, rows: Ints) -> float:
        boxes = self._boxes(rows[None])
        return float(self.extents.width(*boxes)[0])

    # Who comes

    def _filled(self, cells: Cells, coming: Ints) -> tuple[Cells, Ints]:
        """Give those who come the places of those who left, where that is near; who is left over.

        Who has a value that some cell lacks may take its place, if the cell's signature is theirs,
        or they have none yet.
        """
        rows = cells.rows.copy()
        number, at = np.nonzero(rows < 0)
        of_cells = self._boxes(rows).taken(number)
        here = _Boxes(self.codes[coming], self.codes[coming], np.ones(len(coming), np.int64))
        value = self.values[coming].astype(np.int64)
        one, other, width = self._near(
            here, value, of_cells, cells.values[number, at], self.of_joined
        )
        fits = self._allow_all(coming[one], cells.values[number[other]])
        one, other, width = one[fits], other[fits], width[fits]
        placed = np.zeros(len(coming), np.bool_)
        changed: set[int] = set()
        order = np.argsort(width, kind="stable")
        for who, place in zip(one[order].tolist(), other[order].tolist(), strict=True):
            cell, its = int(number[place]), int(at[place])
            if placed[who] or rows[cell, its] >= 0:
                continue
            if cell in changed:
                both = rows[cell].copy()
                both[its] = coming[who]
                if self._width(both) > self.of_joined:
                    continue
            rows[cell, its] = coming[who]
            placed[who] = True
            changed.add(cell)
        return Cells(cells.values, rows), coming[~placed]

    def _near(
        self, of: _Boxes, key: Ints, others: _Boxes, other_key: Ints, most: float
    ) -> tuple[Ints, Ints, Floats]:
        """Pairs of boxes with the same key that are at most so wide together, and how wide."""
        parts = []
        for one, other in self._by_line(of, key, others, other_key, most):
            low = np.minimum(of.low[one], others.low[other])
            high = np.maximum(of.high[one], others.high[other])
            width = self.extents.width(low, high, of.rows[one] + others.rows[other])
            near = np.flatnonzero(width <= most)
            parts.append((one[near], other[near], width[near]))
        none = np.zeros(0, np.int64)
        parts.append((none, none, np.zeros(0)))
        one, other, width = (np.concatenate(each) for each in zip(*parts, strict=True))
        return one, other, width

    def _by_line(
        self, of: _Boxes, key: Ints, others: _Boxes, other_key: Ints, most: float
    ) -> Iterator[tuple[Ints, Ints]]:
        """Pairs with the same key that are near in the attribute that tells most of them apart."""
        if not len(key) or not len(other_key):
            return
        attribute, reach = self.extents.line, 0.0
        here, there = np.zeros(len(key)), np.zeros(len(other_key))
        if attribute is not None:
            here, there = (
                self.extents.middle(attribute, each.low[:, attribute], each.low[:, attribute])
                for each in (of, others)
            )
            reach = most + 1e-9
        line = other_key * _APART + there
        order = np.argsort(line, kind="stable")
        own = key * _APART + here
        first = np.searchsorted(line[order], own - reach)
        end = np.searchsorted(line[order], own + reach, side="right")
        counts = np.cumsum(end - first)
        start = 0
        while start < len(own):
            before = int(counts[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(counts, before + _MOST)))
            some = slice(start, stop)
            sizes = (end - first)[some]
            one = np.repeat(np.arange(start, min(stop, len(own))), sizes)
            shift = np.repeat(first[some] - (np.cumsum(sizes) - sizes), sizes)
            yield one, order[np.arange(len(one)) + shift]
            start = stop

    # Who is new

    def _new(self, rows: Ints) -> tuple[Cells, Ints]:
        """Cells of new people who are near one another, and who is left over."""
        tree = halved(self.extents, rows, _LEAF * self.l)
        left = np.ones(len(rows), np.bool_)
        found = [np.zeros((0, self.l), np.int64)]
        for starts in reversed(tree.levels):
            open_ = np.flatnonzero(left)
            node = np.searchsorted(starts, open_, side="right") - 1
            cells = self._circular(tree.order[open_], node)  # places among the open ones
            if not len(cells):
                continue
            members = tree.order[open_[cells]]
            good = self.extents.width(*self._boxes(members)) <= self.of_new
            values = self.values[members].astype(np.int64)
            for each in members.T:
                good &= self._allow_all(each, values)
            left[open_[cells[good]]] = False
            found.append(members[good])
        members = np.concatenate(found)
        order = np.argsort(self.values[members], axis=1)
        members = np.take_along_axis(members, order, axis=1)
        return Cells(self.values[members].astype(np.int64), members), tree.order[left]

    def _circular(self, rows: Ints, node: Ints) -> Ints:
        """(cells, l) places in ``rows``: of each node as many cells of different values as can be.

        The people stand in a line by their values; those who stand the same distance apart make a
        cell. No value has more people than there are cells, or they would meet.
        """
        value = self.values[rows].astype(np.int64)
        order = np.lexsort((value, node))
        begins = _starts_anew(node[order], value[order])
        pair_node = node[order][begins]
        pair_value = value[order][begins]
        counts = np.diff(np.append(np.flatnonzero(begins), len(rows)))
        nodes = int(node.max(initial=-1)) + 1
        kept = counts
        while True:
            cells = np.bincount(pair_node, kept, nodes).astype(np.int64) // self.l
            fewer = np.minimum(kept, cells[pair_node])
            if np.array_equal(fewer, kept):
                break
            kept = fewer
        if not cells.any():
            return np.zeros((0, self.l), np.int64)
        first = np.flatnonzero(_starts_anew(node))  # rows of a node follow one another
        low = np.minimum.reduceat(self.codes[rows], first)
        high = np.maximum.reduceat(self.codes[rows], first)
        sizes = np.diff(np.append(first, len(rows)))
        widest = np.zeros(nodes, np.int64)
        widest[node[first]] = self.extents.widths(low, high, sizes).argmax(axis=1)
        place = self.places[rows, widest[node]]
        pair = np.empty(len(rows), np.int64)
        pair[order] = begins.cumsum() - 1
        line = np.lexsort((place, pair_value[pair], -counts[pair], node))
        turn = _turns(_starts_anew(pair[line]))
        line = line[turn < kept[pair[line]]]
        at = _turns(_starts_anew(node[line]))
        of_node = cells[node[line]]
        inside = at < of_node * self.l
        line, at, of_node = line[inside], at[inside], of_node[inside]
        before = np.cumsum(cells) - cells
        cell = before[node[line]] + at % of_node
        return line[np.lexsort((at, cell))].reshape(-1, self.l)

    def _near_groups(self, rows: Ints) -> list[list[int]]:
        """Those who are in no cell, by fewer than l who have different values and are near."""
        here = _Boxes(self.codes[rows], self.codes[rows], np.ones(len(rows), np.int64))
        same = np.zeros(len(rows), np.int64)
        one, other, width = self._near(here, same, here, same, self.of_new)
        value = self.values[rows].tolist()
        differ = (one < other) & (self.values[rows][one] != self.values[rows][other])
        one, other, width = one[differ], other[differ], width[differ]
        group_of = list(range(len(rows)))
        groups = [[at] for at in range(len(rows))]
        order = np.argsort(width, kind="stable")
        for a, b in zip(one[order].tolist(), other[order].tolist(), strict=True):
            mine, theirs = group_of[a], group_of[b]
            both = groups[mine] + groups[theirs]
            if mine == theirs or len(both) > self.l or len({value[at] for at in both}) < len(both):
                continue
            if len(both) > 2 and self._width(rows[both]) > self.of_new:
                continue
            groups[mine], groups[theirs] = both, []
            for at in both:
                group_of[at] = mine
        return [rows[group].tolist() for group in groups if group]

    def _completed(self, groups: list[list[int]]) -> Cells:
        """A cell of each group: the values that it lacks are those of neighbours."""
        values, members = [], []
        around = self._values_around(np.array([group[0] for group in groups], np.int64))
        rest = np.unique(self.values[self.values >= 0]).tolist()
        for group, near in zip(groups, around, strict=True):
            for some in (group, *([one] for one in group if len(group) > 1)):
                chosen = [int(self.values[row]) for row in some]
                for value in (*near, *rest):
                    if len(chosen) == self.l:
                        break
                    if value not in chosen and all(self._allows_one(row, value) for row in some):
                        chosen.append(value)
                together = all(self._allows_one(row, v) for row in some for v in chosen)
                if len(chosen) == self.l and together:
                    chosen.sort()
                    of = {int(self.values[row]): row for row in some}
                    values.append(chosen)
                    members.append([of.get(value, -1) for value in chosen])
                    if len(some) == len(group):
                        break
        shape = (-1, self.l)
        return Cells(
            np.array(values, np.int64).reshape(shape), np.array(members, np.int64).reshape(shape)
        )

    def _allows_one(self, row: int, value: int) -> bool:
        return bool(int(self.allowed[row, value // _BITS]) >> value % _BITS & 1)

    def _values_around(self, rows: Ints) -> list[list[int]]:
        """The values of people around each of some rows, the nearest ones first."""
        if not len(rows):
            return []
        everybody: Halving = halved(self.extents, np.arange(len(self.values)), _AROUND)
        order = everybody.order
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        window = place[rows][:, None] + np.arange(-_AROUND, _AROUND)
        some = order[np.clip(window, 0, len(order) - 1)]
        distance = np.abs(self.places[some] - self.places[rows][:, None]).sum(axis=2)
        distance[(window < 0) | (window >= len(order)) | (self.values[some] < 0)] = np.inf
        nearest = np.argsort(distance, axis=1, kind="stable")
        values = np.take_along_axis(self.values[some], nearest, axis=1)
        known = np.isfinite(distance).sum(axis=1)
        return [
            list(dict.fromkeys(each[:n])) for each, n in zip(values.tolist(), known, strict=True)
        ]


def _starts_anew(*keys: NDArray[Any]) -> Flags:
    """(n,): whether an entry differs from the one before in some key."""
    begins = np.zeros(len(keys[0]), np.bool_)
    begins[:1] = True
    for key in keys:
        begins[1:] |= key[1:] != key[:-1]
    return begins


def _turns(begins: Flags) -> Ints:
    """(n,): how many entries are between each and the last one before it that begins."""
    at = np.arange(len(begins))
    return at - np.maximum.accumulate(np.where(begins, at, 0))
