"""Classes in which persons' values are diverse, where a person may have several rows.

A class of rows with l values may have a value that each of its persons has. So the values of a
class are counted in persons: no l - 1 values may be such that each person who has any value
has one of them. Where each person has one row, that is to say that there are l distinct values
(Machanavajjhala et al. 2006, section 4.1). Where values count as similar within a width, at most
1/l of the persons may have values in an interval of it, wherever it begins. Classes that fail are
joined with their neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.cut.joining import joined_until
from mondrian_ops.data.frequency_set import FrequencySet
from mondrian_ops.data.person_rows import KnownPersons
from mondrian_ops.data.sensitive_domain import SensitiveDomain
from mondrian_ops.generalize.attributes import Classes
from mondrian_ops.late_methods import dataclass

_MOST_STEPS = 5000  # of a search; a class of which it is not known by then counts as failing

_TOLERANCE = 1e-12  # l may be a fraction
_ERRORS = 4  # standard errors by which an estimated share of persons is taken to be higher

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class PersonsColumn(NamedTuple):
    """A sensitive column: the code of each row's value, (rows,), -1 where it does not count.

    ``near_end`` (codes,): the greatest code near each, which ascends, where the job gives a width.
    """

    codes: NDArray[np.integer]
    near_end: NDArray[np.integer] | None = None
    name: str = ""


@dataclass(frozen=True)
class PersonsValues:
    """What l asks of the values of persons.

    ``domains`` of the sensitive columns; ``counts_missing``: the missing value is one, too.
    """

    domains: Sequence[SensitiveDomain]
    level: float
    counts_missing: bool

    def columns(self, sensitive: Sequence[NDArray[np.integer]]) -> list[PersonsColumn]:
        """The sensitive columns as l counts them, from their codes, (rows,) each."""
        columns = []
        for domain, codes in zip(self.domains, sensitive, strict=True):
            if domain.missing and not self.counts_missing:
                codes = np.where(codes == 0, -1, codes)
            columns.append(PersonsColumn(codes, domain.near_end, domain.name))
        return columns

    def satisfied(self, classes: Classes, sensitive: NDArray[np.integer]) -> Bools:
        """(classes,) which classes have them; ``sensitive`` (columns + 1, rows), persons last."""
        *codes, persons = sensitive
        return satisfied(classes, persons, self.columns(codes), self.level)

    def concern(self, frequencies: FrequencySet) -> bool:
        """Whether some person has several rows: else l of rows is l of persons.

        The last column of ``frequencies`` has the persons.
        """
        return len(np.unique(frequencies.column(len(frequencies.sizes) - 1))) < frequencies.total


def joined(
    classes: Classes,
    persons: NDArray[np.integer],
    columns: Sequence[PersonsColumn],
    level: float,
    others: Callable[[Classes], Bools] | None = None,
) -> Classes:
    """The classes, as few as possible of them joined, until all have ``level`` persons' values.

    ``persons`` (rows,): codes of persons. ``others``: what else each class must satisfy, which a
    join may break. One class that is left may still fail.
    """

    def holds(classes: Classes) -> Bools:
        diverse = satisfied(classes, persons, columns, level)
        return diverse if others is None else diverse & others(classes)

    return joined_until(classes, holds)


def satisfied(
    classes: Classes,
    persons: NDArray[np.integer],
    columns: Sequence[PersonsColumn],
    level: float,
) -> Bools:
    """(classes,) whether the persons of each class have ``level`` values of every column."""
    holds = np.ones(len(classes.starts), bool)
    for codes, near_end, _ in columns:
        if near_end is None:
            holds &= _diverse(classes, persons, codes, math.ceil(level - 1e-9))
        else:
            holds &= _spread(*_fullest(classes, persons, codes, near_end), level)
    return holds


def kept(known: KnownPersons, columns: Sequence[PersonsColumn], level: float) -> bool:
    """Whether these persons, as one class, have ``level`` values of every column.

    Of a sample of them: values that a part of the persons leaves out are left out by all. The
    share of persons in an interval is estimated, and taken to be higher by some standard errors.
    """
    whole = _one_class(known)
    for codes, near_end, _ in columns:
        if near_end is None:
            if not _diverse(whole, known.persons, codes, math.ceil(level - 1e-9)).all():
                return False
            continue
        most, people = _fullest(whole, known.persons, codes, near_end)
        if not known.complete:
            share = most / np.maximum(1, people)
            most = most + _ERRORS * np.sqrt(share * (1 - share) * people)
        if not _spread(most, people, level).all():
            return False
    return True


def unattainable(known: KnownPersons, columns: Sequence[PersonsColumn], level: float) -> str:
    """Why no classes of these persons' rows satisfy l, with the remedy; empty if they may.

    It is certain only where no class holds a part of the rows that one person has with the same
    quasi-identifiers. A person counts in each class, so at most once for each such combination. If
    some values are enough for all combinations, they are enough for those of every class. And if
    more persons are in an interval than 1/l of all combinations, so they are in some class.
    """
    if not known.complete:
        return ""
    whole, fewer = _one_class(known), math.ceil(level - 1e-9) - 1
    for codes, near_end, name in columns:
        if near_end is None:
            if not _diverse(whole, known.units, codes, fewer + 1, if_unknown=True).all():
                return (
                    f"l: each person has one of {fewer} value(s) of column {name!r}, even "
                    f"with all rows in one class; {lower_l(columns)}, or choose another column"
                )
            continue
        most, _ = _fullest(whole, known.persons, codes, near_end)
        units = len(np.unique(known.units[codes >= 0]))
        if most[0] * level > units * (1 + _TOLERANCE):
            return (
                f"l: more than 1/{level:g} of the persons have values of column {name!r} within "
                f"its l_width of one another, even with all rows in one class; {lower_l(columns)}"
            )
    return ""


def lower_l(columns: Sequence[PersonsColumn]) -> str:
    """The remedy where persons' values are too few."""
    has_width = any(column.near_end is not None for column in columns)
    return "lower l or the width" if has_width else "lower l"


def _one_class(known: KnownPersons) -> Classes:
    return Classes(np.arange(len(known.persons), dtype=np.int32), np.zeros(1, np.int64))


def _diverse(
    classes: Classes,
    persons: NDArray[np.integer],
    values: NDArray[np.integer],
    level: int,
    if_unknown: bool = False,
) -> Bools:
    """(classes,) whether no ``level`` - 1 values are such that each person has one of them.

    ``if_unknown``: what it says where the search takes too long.
    """
    count = len(classes.starts)
    class_of, member, value, people = _members(classes, persons, values)
    size = int(value.max(initial=0)) + 1
    # The persons of each value, the most frequent values of a class first.
    keys, having = np.unique(class_of * size + value, return_counts=True)
    of_class = keys // size
    order = np.lexsort((-having, of_class))
    of_class, having = of_class[order], having[order]
    rank = np.arange(len(of_class)) - np.searchsorted(of_class, of_class)
    most = np.bincount(of_class, np.where(rank < level - 1, having, 0), minlength=count)
    # Some values that all persons together have fewer times than there are persons leave one out.
    diverse: NDArray[np.bool_] = most < people
    distinct = np.bincount(of_class, minlength=count)
    if level > 2:
        bounds = np.searchsorted(class_of, np.arange(count + 1))
        for at in np.flatnonzero(~diverse & (distinct >= level)):
            own = slice(bounds[at], bounds[at + 1])
            sets: dict[int, set[int]] = {}
            for one, its in zip(member[own].tolist(), value[own].tolist(), strict=True):
                sets.setdefault(one, set()).add(its)
            steps, different = [_MOST_STEPS], {frozenset(each) for each in sets.values()}
            covered = _covered(sorted(different, key=len), level - 1, steps)
            diverse[at] = if_unknown if steps[0] < 0 else not covered
    return diverse


def _spread(most: NDArray[np.number], people: Ints, level: float) -> Bools:
    """(classes,) whether no interval has more than 1/``level`` of the persons."""
    spread: Bools = (people > 0) & (most * level <= people * (1 + _TOLERANCE))
    return spread


def _fullest(
    classes: Classes,
    persons: NDArray[np.integer],
    values: NDArray[np.integer],
    near_end: NDArray[np.integer],
) -> tuple[Ints, Ints]:
    """(classes,) the most persons who have values in one interval, and all who have any value."""
    class_of, member, value, people = _members(classes, persons, values)
    most = np.zeros(len(people), np.int64)
    if not len(value):
        return most, people
    # A person is in the intervals that begin above the person's next lower value, up to the own
    # one, and reach it: so each is counted once, by the first of the values in an interval.
    lower = np.where(member[1:] == member[:-1], value[:-1], -1)
    begin = np.maximum(np.append(-1, lower) + 1, np.searchsorted(near_end, value))
    size = int(value.max()) + 1
    keys = np.unique(class_of * size + value)
    change = np.bincount(np.searchsorted(keys, class_of * size + begin), minlength=len(keys) + 1)
    change -= np.bincount(
        np.searchsorted(keys, class_of * size + value) + 1, minlength=len(keys) + 1
    )
    np.maximum.at(most, keys // size, np.cumsum(change)[:-1])
    return most, people


def _members(
    classes: Classes, persons: NDArray[np.integer], values: NDArray[np.integer]
) -> tuple[Ints, Ints, Ints, Ints]:
    """What the persons of the classes have, and (classes,) how many of them have any value.

    Once each, in this order: a class, the number of a person in it, and a value.
    """
    count = len(classes.starts)
    class_of = np.repeat(np.arange(count), classes.sizes)
    value = values[classes.index].astype(np.int64)
    counts = value >= 0
    class_of, value = class_of[counts], value[counts]
    person = persons[classes.index][counts].astype(np.int64)
    _, member = np.unique(
        class_of * (int(persons.max(initial=0)) + 1) + person, return_inverse=True
    )
    size = int(value.max(initial=0)) + 1
    pairs, first = np.unique(member * size + value, return_index=True)
    class_of, member, value = class_of[first], member[first], pairs % size
    people = np.bincount(class_of[np.unique(member, return_index=True)[1]], minlength=count)
    return class_of, member, value, people


def _covered(sets: Sequence[frozenset[int]], values: int, steps: list[int]) -> bool:
    """Whether so many values are enough for each set to have one; True if it takes too long."""
    if not sets:
        return True
    if not values:
        return False
    steps[0] -= 1
    if steps[0] < 0:
        return True
    smallest = min(sets, key=len)
    return any(_covered([each for each in sets if one not in each], values - 1, steps)
               for one in smallest)  # fmt: skip
