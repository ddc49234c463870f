"""The people of a series whose values are certain to somebody who subtracts its classes."""

from __future__ import annotations

from collections.abc import Iterable

from mondrian_ops.series.intersection.subtraction import Subtraction
from mondrian_ops.verify.attacker import NO_VALUE, Row


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
