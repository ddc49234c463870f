"""An attacker who holds all releases of a series, and knows in which nights each person was.

The attacker intersects the sensitive values of a person's classes (Ganta, Kasiviswanathan and Smith
2008). This module shares no code with the cutting, nor with the check before a release is
published (:mod:`mondrian_ops.series.intersection.check`): it works with plain sets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

NO_VALUE = NOBODY = 0


class Row(NamedTuple):
    """A person's row in a release: the person, the own value, and the classes it may be in.

    ``value`` is NO_VALUE where it is missing. NOBODY has the rows without a person.
    """

    person: int
    value: int
    classes: Sequence[int]


class Attacker:
    """Intersects the classes of each person, night after night.

    ``knows_changes``: whether it finds out that a person's value changed.

    Attributes:
        below_l: the persons who were ever left with fewer than l values.
        given_away: those who were left with one value, or none.
        below_k: those who were in a class of fewer than k persons.
    """

    def __init__(self, k: int, l: int, *, knows_changes: bool) -> None:  # noqa: E741
        self._k, self._l, self._knows = k, l, knows_changes
        self._left: dict[int, int] = {}
        self._bits: dict[int, int] = {NO_VALUE: 0}
        self.below_l: set[int] = set()
        self.given_away: set[int] = set()
        self.below_k: set[int] = set()

    @property
    def persons(self) -> Collection[int]:
        """All persons so far."""
        return self._left.keys()

    def see(
        self, values: Sequence[Iterable[int]], rows: Sequence[Row], company: Sequence[Row] = ()
    ) -> None:
        """Intersect with a release: the sensitive ``values`` of each class, and the rows in it.

        ``company``: rows that are in a class with the others, and are not intersected themselves:
        those that were seen in an earlier release, but may be in this one instead, or whose drop
        is gone.

        A person whose value was excluded before has another one since, and is followed anew. Where
        a night that leaves fewer than l values is refused, the attacker finds out that the value
        changed, so it is none of those that were left before.
        """
        persons: list[set[int]] = [set() for _ in values]
        for row in (*rows, *company):
            for number in row.classes:
                persons[number].add(row.person)
        masks = [self._mask(each) for each in values]
        for person, value, classes in rows:
            if person == NOBODY:
                continue
            here = 0
            for number in classes:
                here |= masks[number]
            left = self._left.get(person, here)
            own = self._mask([value])
            if own and not own & left:
                left = ~left if self._knows else here
            left &= here
            self._left[person] = left
            if left.bit_count() < self._l:
                self.below_l.add(person)
            if left.bit_count() < 2:
                self.given_away.add(person)
            if max(len(persons[number]) for number in classes) < self._k:
                self.below_k.add(person)

    def differing(self, left: Mapping[int, Iterable[int]]) -> int:
        """For how many persons other values are left than ``left`` says; persons may lack there."""
        masks = {person: self._mask(values) for person, values in left.items()}
        return sum(
            masks.get(person) != self._left.get(person) for person in masks.keys() | self._left
        )

    def _mask(self, values: Iterable[int]) -> int:
        """The values as bits; each new one has the next."""
        mask = 0
        for value in values:
            mask |= self._bits.setdefault(value, 1 << len(self._bits))
        return mask
