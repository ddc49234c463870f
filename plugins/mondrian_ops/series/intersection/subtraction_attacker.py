"""An attacker who knows everybody's class in every night, and subtracts classes from one another.

Each class says how many of its people have which value. Two classes that share most of their
people, or all classes that have exchanged people between two nights, also say it of those whom they
do not share: their difference. From these sums follows how many of some people may, and must, have
a value; whoever can only have one is found out, which makes the other sums sharper, until nothing
new follows. What this attacker finds is certain; it does not find all that follows (an exact search
takes exponential time), so the numbers are lower bounds.

This module shares no code with the cutting, nor with the check before a release is published.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.verify.attacker import NO_VALUE, Row

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_WIDEST = 60
"""People in the difference of many classes that is looked at."""


class _Sides(NamedTuple):
    """How many of some people of each sum may have, and must have, each value; (sums, values)."""

    may: Ints
    must: Ints


class _Sums:
    """Of each of n sums: people who are added, people who are subtracted, and ``counts``
    (n, values): how many of the ones have a value, less how many of the others."""

    def __init__(
        self, added: Sequence[Sequence[int]], taken: Sequence[Sequence[int]], counts: Ints
    ) -> None:
        self.counts = counts
        self.people = [np.array([p for each in side for p in each], np.int64)
                       for side in (added, taken)]  # fmt: skip
        self.of = [np.repeat(np.arange(len(side)), [*map(len, side)]) for side in (added, taken)]
        self.sizes = [np.array([*map(len, side)], np.int64)[:, None] for side in (added, taken)]

    def narrow(self, possible: Flags) -> bool:
        """Strike out of ``possible`` (people, values) what cannot be; whether there was any."""
        before = int(possible.sum())
        is_known = possible.sum(axis=1) == 1
        one, other = (self._side(possible, is_known, number) for number in (0, 1))
        least = np.maximum(one.must, self.counts + other.must)
        most = np.minimum(one.may, self.counts + other.may)
        for _ in range(2):  # everybody has one value, so the rest bounds each value
            least, most = _within(least, most, self.sizes[0])
            fewer = np.maximum(other.must, least - self.counts)
            greater = np.minimum(other.may, most - self.counts)
            fewer, greater = _within(fewer, greater, self.sizes[1])
            least = np.maximum(least, fewer + self.counts)
            most = np.minimum(most, greater + self.counts)
        self._strike(possible, is_known, 0, one, least, most)
        self._strike(possible, is_known, 1, other, fewer, greater)
        return int(possible.sum()) < before

    def _side(self, possible: Flags, is_known: Flags, side: int) -> _Sides:
        people, of = self.people[side], self.of[side]
        may, must = (np.zeros(self.counts.shape, np.int64) for _ in range(2))
        if len(people):
            first = np.flatnonzero(np.diff(of, prepend=-1))
            values = possible[people].astype(np.int64)
            may[of[first]] = np.add.reduceat(values, first, axis=0)
            must[of[first]] = np.add.reduceat(values * is_known[people][:, None], first, axis=0)
        return _Sides(may, must)

    def _strike(
        self, possible: Flags, is_known: Flags, side: int, of: _Sides, least: Ints, most: Ints
    ) -> None:
        people, sums = self.people[side], self.of[side]
        if not len(people):
            return
        is_open = ~is_known[people]
        nobody_else = (most == of.must)[sums] & is_open[:, None]
        np.logical_and.at(possible, people, ~nobody_else)
        everybody = ((least == of.may) & (least > 0))[sums] & possible[people]
        rows = np.flatnonzero(everybody.any(axis=1) & is_open)
        np.logical_and.at(possible, people[rows], everybody[rows])


def _within(least: Ints, most: Ints, size: Ints) -> tuple[Ints, Ints]:
    """Bounds that agree with the number of people, (sums, 1)."""
    most = np.minimum(most, size - (least.sum(axis=1, keepdims=True) - least))
    least = np.maximum(least, size - (most.sum(axis=1, keepdims=True) - most))
    return least, most


class _Night(NamedTuple):
    """The people of each class, ``counts`` (classes, values), and the class of each person."""

    classes: Sequence[Sequence[int]]
    counts: Ints
    class_of: Mapping[int, int]


class Subtraction:
    """What follows from all nights for each person."""

    def __init__(self) -> None:
        self._number: dict[Hashable, int] = {}
        self._values: dict[Hashable, int] = {}
        self._nights: list[tuple[list[list[int]], list[list[int]]]] = []

    def see(self, classes: Iterable[tuple[Sequence[Hashable], Sequence[Hashable]]]) -> None:
        """Take in a night: of each class the people, and the values of its rows.

        Where it has more rows than people, some are counterfeits, and the attacker does not know
        which. Somebody whose value has changed is to be another person from then on.
        """
        night = len(self._nights)
        people: list[list[int]] = []
        values: list[list[int]] = []
        for number, (some, rows) in enumerate(classes):
            nobody = [(night, number, at) for at in range(len(rows) - len(some))]
            people.append([self._number.setdefault(each, len(self._number))
                           for each in (*some, *nobody)])  # fmt: skip
            values.append([self._values.setdefault(each, len(self._values)) for each in rows])
        self._nights.append((people, values))

    def left(self) -> dict[Hashable, set[Hashable]]:
        """The values that each person may have; counterfeits are people here, too."""
        sums, before = [], None
        for people, values in self._nights:
            counts = np.zeros((len(people), len(self._values)), np.int64)
            of = np.repeat(np.arange(len(values)), [*map(len, values)])
            np.add.at(counts, (of, np.array([v for each in values for v in each], np.int64)), 1)
            whose = {person: at for at, some in enumerate(people) for person in some}
            night = _Night(people, counts, whose)
            sums.append(_Sums(people, [()] * len(people), counts))
            if before is not None:
                sums.append(_differences(before, night))
            before = night
        possible = np.ones((len(self._number), len(self._values)), np.bool_)
        while any(each.narrow(possible) for each in sums):
            pass
        names = list(self._values)
        return {
            person: {names[value] for value in np.flatnonzero(possible[number])}
            for person, number in self._number.items()
        }


def _differences(one: _Night, other: _Night) -> _Sums:
    """What classes of two nights say of those whom they do not share."""
    added: list[Sequence[int]] = []
    taken: list[Sequence[int]] = []
    counts = [np.zeros((0, one.counts.shape[1]), np.int64)]
    for at, people in enumerate(one.classes):
        shared: dict[int, int] = defaultdict(int)
        for person in people:
            if (with_ := other.class_of.get(person)) is not None:
                shared[with_] += 1
        for with_, number in shared.items():
            left = [p for p in people if other.class_of.get(p) != with_]
            came = [p for p in other.classes[with_] if one.class_of.get(p) != at]
            if 0 < max(len(left), len(came)) <= number:
                added.append(left)
                taken.append(came)
                counts.append((one.counts[at] - other.counts[with_])[None])
    for mine, theirs in _connected(one, other):
        left = [p for at in mine for p in one.classes[at] if p not in other.class_of]
        came = [p for at in theirs for p in other.classes[at] if p not in one.class_of]
        if len(mine) + len(theirs) > 2 and 0 < len(left) + len(came) < _WIDEST:
            added.append(left)
            taken.append(came)
            difference = one.counts[mine].sum(axis=0) - other.counts[theirs].sum(axis=0)
            counts.append(difference[None])
    return _Sums(added, taken, np.concatenate(counts))


def _connected(one: _Night, other: _Night) -> Iterable[tuple[list[int], list[int]]]:
    """The classes of both nights that exchange people only with one another."""
    above = list(range(len(one.classes) + len(other.classes)))

    def root(at: int) -> int:
        while above[at] != at:
            above[at] = above[above[at]]
            at = above[at]
        return at

    for person, at in one.class_of.items():
        if (with_ := other.class_of.get(person)) is not None:
            above[root(at)] = root(len(one.classes) + with_)
    found: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for at in range(len(one.classes)):
        found[root(at)][0].append(at)
    for at in range(len(other.classes)):
        found[root(len(one.classes) + at)][1].append(at)
    return found.values()


class Subtractor:
    """Shows the nights of a series to :class:`Subtraction`, which assumes that values stay.

    Somebody whose value changes is another person to it from then on: the worst case, in which the
    attacker knows that the value changed.
    """

    def __init__(self) -> None:
        self._attacker = Subtraction()
        self._seen: dict[int, tuple[int, int]] = {}  # how often it changed, and to what

    def see(
        self,
        classes: int,
        published: Iterable[tuple[int, int]],
        rows: Iterable[Row],
        gone: Iterable[Row] = (),
    ) -> None:
        """Take in a night: the class and the value of each row, and the rows of persons.

        ``gone``: rows of persons whose own value nobody can look up any more.
        """
        values: list[list[int]] = [[] for _ in range(classes)]
        people: list[list[tuple[int, int]]] = [[] for _ in range(classes)]
        for number, value in published:
            values[number].append(value)
        for person, value, (number, *_) in rows:
            times, before = self._seen.get(person, (0, value))
            self._seen[person] = times + (value != before), value
            people[number].append((person, self._seen[person][0]))
        for person, _, (number, *_) in gone:
            people[number].append((person, self._seen.get(person, (0, NO_VALUE))[0]))
        agree = (pair for pair in zip(people, values, strict=True) if len(pair[0]) <= len(pair[1]))
        self._attacker.see(agree)

    def certain(self) -> int:
        """How many persons have a value that is certain, at some time; a missing one is none."""
        return len(
            {
                name[0]
                for name, values in self._attacker.left().items()
                if isinstance(name, tuple) and len(name) == 2 and len(values - {NO_VALUE}) == 1
                if NO_VALUE not in values
            }
        )
