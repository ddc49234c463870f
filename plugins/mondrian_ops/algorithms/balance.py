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

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.algorithms.extents import Extents
from mondrian_ops.algorithms.invariance import NOT_TONIGHT, History, words_to_arrow
from mondrian_ops.algorithms.mondrian import CodedRows, CutPolicy
from mondrian_ops.core.generalization import Classes
from mondrian_ops.native import mondrian as native

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

_BITS = 64
_WIDTH = 2.5
"""A cell may be so many times as wide as an independent class is on average."""
_LEAST = 1e-6
_LEAF = 4
"""New people are divided until at most so many times l are left, and join in cells there."""
_NEAREST = 8
"""Places of people who left that are tried for somebody who comes."""
_AROUND = 48
"""Neighbours whose values are looked at for somebody who joins no cell."""


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
    night = _Night(
        Extents(rows.rows),
        history.values[tonight],
        history.common[tonight],
        history.class_of[tonight],
        l,
        max(_LEAST, _WIDTH * mean),
    )
    cells = night.cells()
    of_cell = _joined(night, cells, coded.criteria.k)
    index, starts, made_up, signatures = _laid_out(night, cells, of_cell)
    unmatched = np.ones(coded.count, np.bool_)
    unmatched[tonight[index]] = False
    all_signatures = np.zeros((coded.count, history.common.shape[1]), np.uint64)
    all_signatures[tonight] = signatures
    classes = Classes(tonight[index], starts)
    return Balanced(classes, unmatched, made_up, words_to_arrow(all_signatures))


class _Cell:
    """People with the same signature and different values: a row for each value, or None."""

    __slots__ = ("high", "low", "members")

    def __init__(self, signature: Sequence[int]) -> None:
        self.members: dict[int, int | None] = dict.fromkeys(signature)
        self.low: Ints = np.zeros(0, np.int64)  # of a cell without rows
        self.high: Ints = self.low

    @property
    def signature(self) -> tuple[int, ...]:
        return tuple(self.members)

    @property
    def rows(self) -> list[int]:
        return [row for row in self.members.values() if row is not None]

    def put(self, value: int, row: int, codes: NDArray[Any]) -> None:
        self.members[value] = row
        here = codes[row]
        self.low = np.minimum(self.low, here) if len(self.low) else here
        self.high = np.maximum(self.high, here) if len(self.high) else here


class _Night:
    """The people of a night: where they are, their values, and the values they may be thought to
    have: for who has a signature, l of them."""

    def __init__(
        self,
        extents: Extents,
        values: NDArray[np.int32],
        allowed: Words,
        class_of: NDArray[np.int32],
        l: int,  # noqa: E741
        width: float,
    ) -> None:
        self.extents, self.values, self.allowed, self.l = extents, values, allowed, l
        self.width = width
        self.codes, self.places = extents.codes, extents.places
        count = np.bitwise_count(allowed).sum(axis=1)
        has_value = values >= 0
        own = np.zeros(len(values), np.bool_)
        at = np.flatnonzero(has_value)
        own[at] = (allowed[at, values[at] // _BITS] >> (values[at] % _BITS).astype(np.uint64)) & 1
        self.has_signature = own & (count == l)
        self.is_free = own & (count > l)
        self.lacks_value = ~has_value & (count >= l)
        self.class_of = class_of
        self.present = np.unique(values[has_value])
        self._is_present = {*self.present.tolist()}

    def signature_of(self, row: int) -> tuple[int, ...]:
        bits = np.unpackbits(self.allowed[row].view(np.uint8), bitorder="little")
        return tuple(np.flatnonzero(bits).tolist())

    def allows(self, row: int, signature: Sequence[int]) -> bool:
        words = self.allowed[row]
        return all(int(words[v // _BITS]) >> v % _BITS & 1 for v in signature)

    def cells(self) -> list[_Cell]:
        """The cells of the people; none lacks a value that nobody has tonight."""
        cells, moved = self._kept()
        waiting = self._filled(cells, [*moved, *np.flatnonzero(self.is_free).tolist()])
        new, alone = self._new([row for row in waiting if self.is_free[row]])
        cells += new
        alone += [row for row in waiting if not self.is_free[row]]
        cells += [cell for cell in map(self._alone, alone) if cell is not None]
        return [
            cell
            for cell in cells
            if all(row is not None or v in self._is_present for v, row in cell.members.items())
        ]

    def _kept(self) -> tuple[list[_Cell], list[int]]:
        """The cells of those who stay with people of their class; the rows of those who do not."""
        groups: dict[tuple[int, bytes], list[int]] = defaultdict(list)
        moved: list[int] = []
        for row in np.flatnonzero(self.has_signature).tolist():
            if self.class_of[row] < 0:
                moved.append(row)
            else:
                groups[int(self.class_of[row]), self.allowed[row].tobytes()].append(row)
        cells = []
        for rows in groups.values():
            cells += self._divided(self.signature_of(rows[0]), rows)
        return cells, moved

    def _divided(self, signature: Sequence[int], rows: Sequence[int]) -> list[_Cell]:
        """The fewest cells of some people with the same signature, nearest ones together."""
        by_value: dict[int, list[int]] = {value: [] for value in signature}
        for row in rows:
            by_value[int(self.values[row])].append(row)
        cells = [_Cell(signature) for _ in range(max(map(len, by_value.values())))]
        for value in sorted(signature, key=lambda value: -len(by_value[value])):
            free = list(range(len(cells)))
            for row in by_value[value]:
                costs = [self._width_with(cells[at], row) for at in free]
                at = free.pop(int(np.argmin(costs)))
                cells[at].put(value, row, self.codes)
        return cells

    def _width_with(self, cell: _Cell, row: int) -> float:
        here = self.codes[row]
        if not len(cell.low):
            return 0.0
        low, high = np.minimum(cell.low, here), np.maximum(cell.high, here)
        return float(self.extents.width(low, high))

    def _filled(self, cells: list[_Cell], coming: list[int]) -> list[int]:
        """Give those who come the places of those who left, where that is near; who is left over.

        Who has a value that some cell lacks may take its place, if the cell's signature is theirs,
        or they have none yet.
        """
        lacking: dict[int, list[int]] = defaultdict(list)
        for number, cell in enumerate(cells):
            for value, row in cell.members.items():
                if row is None:
                    lacking[value].append(number)
        placed: set[int] = set()
        for _, row, at in sorted(self._near_places(cells, lacking, coming)):
            value = int(self.values[row])
            if row in placed or cells[at].members[value] is not None:
                continue
            if self._width_with(cells[at], row) <= self.width:
                cells[at].put(value, row, self.codes)
                placed.add(row)
        return [row for row in coming if row not in placed]

    def _near_places(
        self, cells: list[_Cell], lacking: dict[int, list[int]], coming: list[int]
    ) -> Iterator[tuple[float, int, int]]:
        """The width of a cell with somebody who may join it, the row, and the cell's number."""
        bounds = {
            value: tuple(np.stack([getattr(cells[at], name) for at in places])
                         for name in ("low", "high"))
            for value, places in lacking.items()
        }  # fmt: skip
        for row in coming:
            value = int(self.values[row])
            if value not in bounds:
                continue
            (low, high), here = bounds[value], self.codes[row]
            widths = self.extents.width(np.minimum(low, here), np.maximum(high, here))
            nearest = np.argsort(widths, kind="stable")[: 4 * _NEAREST].tolist()
            near = [(float(widths[at]), lacking[value][at]) for at in nearest]
            fitting = [
                (width, at)
                for width, at in near
                if width <= self.width and self.allows(row, cells[at].signature)
            ]
            yield from ((width, row, at) for width, at in fitting[:_NEAREST])

    def _new(self, rows: list[int]) -> tuple[list[_Cell], list[int]]:
        """Cells of new people who are near one another, and who is left over."""
        cells: list[_Cell] = []

        def joined(some: NDArray[np.int64], spread: bool) -> list[int]:
            leaf = len(some) <= _LEAF * self.l or not spread
            if leaf:
                left: list[int] = some.tolist()
            else:
                one, other, further = self._halves(some)
                left = joined(one, further) + joined(other, further)
            if len(left) < self.l:
                return left
            for cell in self._circular(left):
                if self.extents.width(*self._bounds(cell)) > self.width:
                    continue
                signature = sorted(int(self.values[row]) for row in cell)
                if all(self.allows(row, signature) for row in cell):
                    made = _Cell(signature)
                    for row in cell:
                        made.put(int(self.values[row]), row, self.codes)
                    cells.append(made)
                    gone = {*cell}
                    left = [row for row in left if row not in gone]
            return left

        left = joined(np.array(rows, np.int64), True) if rows else []
        return cells, left

    def _bounds(self, rows: Sequence[int] | Ints) -> tuple[NDArray[Any], NDArray[Any]]:
        codes = self.codes[list(rows)]
        return codes.min(axis=0), codes.max(axis=0)

    def _halves(self, rows: NDArray[np.int64]) -> tuple[Any, Any, bool]:
        """The rows on both sides of the median of the attribute in which they are widest."""
        places = self.places[rows]
        low, high = places.min(axis=0), places.max(axis=0)
        attribute = int(np.argmax(self.extents.widths(*self._bounds(rows))))
        order = rows[np.argsort(places[:, attribute], kind="stable")]
        sorted_places = self.places[order, attribute]
        middle = len(rows) // 2
        ends = np.flatnonzero(np.diff(sorted_places) > 0) + 1
        if not len(ends):
            return rows[:middle], rows[middle:], bool((high > low).any())
        middle = int(ends[np.argmin(np.abs(ends - middle))])
        return order[:middle], order[middle:], True

    def _circular(self, rows: list[int]) -> Iterator[list[int]]:
        """Cells of l people with different values, as many as there can be.

        The people stand in a line by their values; those who stand the same distance apart make a
        cell. No value has more people than there are cells, or they would meet.
        """
        by_value: dict[int, list[int]] = defaultdict(list)
        for row in rows:
            by_value[int(self.values[row])].append(row)
        counts = {value: len(each) for value, each in by_value.items()}
        while True:
            cells = sum(counts.values()) // self.l
            fewer = {value: min(count, cells) for value, count in counts.items()}
            if fewer == counts or not cells:
                break
            counts = fewer
        if not cells:
            return
        widest = int(np.argmax(self.extents.widths(*self._bounds(rows))))
        line: list[int] = []
        for value in sorted(counts, key=lambda value: (-counts[value], value)):
            each = sorted(by_value[value], key=lambda row: self.places[row, widest])
            line += each[: counts[value]]
        for first in range(cells):
            yield [line[first + cells * turn] for turn in range(self.l)]

    def _alone(self, row: int) -> _Cell | None:
        """A cell of somebody who joins no other one: its other values are those of neighbours."""
        own = int(self.values[row])
        if self.has_signature[row]:
            signature: Sequence[int] = self.signature_of(row)
        else:
            chosen = [own]
            for value in self._values_near(row):
                if len(chosen) < self.l and value not in chosen and self.allows(row, [value]):
                    chosen.append(value)
            if len(chosen) < self.l:
                return None
            signature = sorted(chosen)
        cell = _Cell(signature)
        cell.put(own, row, self.codes)
        return cell

    def _values_near(self, row: int) -> Iterator[int]:
        """The values of some people near a row, then all others of the night."""
        order, place = self._order
        at = int(place[row])
        some = order[max(0, at - _AROUND) : at + _AROUND]
        distance = np.abs(self.places[some] - self.places[row]).sum(axis=1)
        for other in some[np.argsort(distance, kind="stable")].tolist():
            if self.values[other] >= 0:
                yield int(self.values[other])
        yield from self.present.tolist()

    @property
    def _order(self) -> tuple[Ints, Ints]:
        """The rows in an order in which neighbours are near; the place of each."""
        if not hasattr(self, "_ordered"):
            parts: list[NDArray[np.int64]] = []
            stack: list[tuple[NDArray[np.int64], bool]] = [(np.arange(len(self.values)), True)]
            while stack:
                rows, spread = stack.pop()
                if len(rows) <= _AROUND or not spread:
                    parts.append(rows)
                    continue
                one, other, further = self._halves(rows)
                stack += [(other, further), (one, further)]
            order = np.concatenate([np.zeros(0, np.int64), *parts])
            place = np.empty(len(order), np.int64)
            place[order] = np.arange(len(order))
            self._ordered = order, place
        return self._ordered


def _joined(night: _Night, cells: Sequence[_Cell], k: int) -> Ints:
    """(cells,): the class of each; -1 for all if they are fewer than k people."""
    if not cells:
        return np.zeros(0, np.int64)
    low = np.stack([cell.low for cell in cells])
    high = np.stack([cell.high for cell in cells])
    people = np.array([len(cell.rows) for cell in cells])
    class_of = np.full(len(cells), -1, np.int64)
    if people.sum() < k:
        return class_of
    stack, count = [np.arange(len(cells))], 0
    while stack:
        some = stack.pop()
        sides = _cut(night.extents, some, low, high, people, k)
        if sides is None:
            class_of[some] = count
            count += 1
        else:
            stack += sides
    return class_of


def _cut(
    extents: Extents,
    some: Ints,
    low: NDArray[Any],
    high: NDArray[Any],
    people: Ints,
    k: int,
) -> list[Ints] | None:
    """The two sides of the cut of some cells that loses least, if it loses less than none."""
    total = int(people[some].sum())
    if total < 2 * k:
        return None
    now = float(extents.width(low[some].min(axis=0), high[some].max(axis=0))) * total
    best: tuple[float, Ints, int] | None = None
    for attribute in range(low.shape[1]):
        middle = extents.middle(attribute, low[some, attribute], high[some, attribute])
        order = some[np.argsort(middle, kind="stable")]
        count = np.cumsum(people[order])
        at = np.flatnonzero((count >= k) & (total - count >= k))
        if not len(at):
            continue
        lows, highs = low[order], high[order]
        one = extents.width(np.minimum.accumulate(lows)[at], np.maximum.accumulate(highs)[at])
        other = extents.width(
            np.minimum.accumulate(lows[::-1])[::-1][at + 1],
            np.maximum.accumulate(highs[::-1])[::-1][at + 1],
        )
        losses = one * count[at] + other * (total - count[at])
        least = int(np.argmin(losses))
        if best is None or losses[least] < best[0]:
            best = float(losses[least]), order, int(at[least]) + 1
    if best is None or best[0] > now:
        return None
    _, order, first = best
    return [order[:first], order[first:]]


def _laid_out(
    night: _Night, cells: Sequence[_Cell], of_cell: Ints
) -> tuple[NDArray[np.int32], Ints, Ints, Words]:
    """The rows class by class, where each begins, what is made up, and all signatures."""
    count = int(of_cell.max(initial=-1)) + 1
    members: list[list[int]] = [[] for _ in range(count)]
    made_up: list[tuple[int, int]] = []
    signatures = np.zeros_like(night.allowed)
    has = np.zeros((count, night.allowed.shape[1]), np.uint64)
    people: dict[tuple[int, tuple[int, ...]], Counter[int]] = defaultdict(Counter)
    for cell, number in zip(cells, of_cell.tolist(), strict=True):
        if number < 0:
            continue
        bits = np.zeros(has.shape[1], np.uint64)
        for value in cell.members:
            bits[value // _BITS] |= np.uint64(1) << np.uint64(value % _BITS)
        signatures[cell.rows] = bits
        has[number] |= bits
        members[number] += cell.rows
        people[number, cell.signature].update(night.values[cell.rows].tolist())
    for (number, signature), counts in people.items():  # of all cells of a signature together
        most = max(counts.values())
        made_up += ((number, value) for value in signature for _ in range(most - counts[value]))
    _join_valueless(night, members, has)
    sizes = np.array([len(each) for each in members], np.int64)
    index = np.array([row for each in members for row in each], np.int32)
    pairs = np.array(made_up, np.int64).reshape(-1, 2)
    return index, np.cumsum(sizes) - sizes, pairs, signatures


def _join_valueless(night: _Night, members: list[list[int]], has: Words) -> None:
    """Add the rows without a value to the class nearby that loses least and has values enough."""
    if not members:
        return
    bounds = [night._bounds(rows) for rows in members]
    low, high = (np.stack(each) for each in zip(*bounds, strict=True))
    sizes = np.array([len(rows) for rows in members])
    now = night.extents.width(low, high) * sizes
    for row in np.flatnonzero(night.lacks_value).tolist():
        shared = np.bitwise_count(has & night.allowed[row]).sum(axis=1)
        here = night.codes[row]
        lows, highs = np.minimum(low, here), np.maximum(high, here)
        costs = night.extents.width(lows, highs) * (sizes + 1) - now
        costs[shared < night.l] = np.inf
        at = int(np.argmin(costs))
        if np.isinf(costs[at]):
            continue
        members[at].append(row)
        low[at], high[at] = lows[at], highs[at]
        sizes[at] += 1
        now[at] = float(night.extents.width(low[at], high[at])) * sizes[at]
