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
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.cut.joining import joined_until
from mondrian_ops.generalize.attributes import Classes

_MOST_STEPS = 5000  # of a search; a class of which it is not known by then counts as failing

_TOLERANCE = 1e-12  # l may be a fraction

Ints = NDArray[np.int64]


class PersonsColumn(NamedTuple):
    """A sensitive column: the code of each row's value, (rows,), -1 where it does not count.

    ``near_end`` (codes,): the greatest code near each, which ascends, where the job gives a width.
    """

    codes: NDArray[np.integer]
    near_end: NDArray[np.integer] | None = None


def joined(
    classes: Classes,
    persons: NDArray[np.integer],
    columns: Sequence[PersonsColumn],
    level: float,
) -> Classes:
    """The classes, as few as possible of them joined, until all have ``level`` persons' values.

    ``persons`` (rows,): codes of persons. One class that is left may still fail.
    """
    least = math.ceil(level - 1e-9)

    def satisfied(classes: Classes) -> NDArray[np.bool_]:
        holds = np.ones(len(classes.starts), bool)
        for codes, near_end in columns:
            if near_end is None:
                holds &= _diverse(classes, persons, codes, least)
            else:
                holds &= _spread(classes, persons, codes, near_end, level)
        return holds

    return joined_until(classes, satisfied)


def _diverse(
    classes: Classes, persons: NDArray[np.integer], values: NDArray[np.integer], level: int
) -> NDArray[np.bool_]:
    """(classes,) whether no ``level`` - 1 values are such that each person has one of them."""
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
            steps = [_MOST_STEPS]
            diverse[at] = not _covered(sorted(sets.values(), key=len), level - 1, steps)
    return diverse


def _spread(
    classes: Classes,
    persons: NDArray[np.integer],
    values: NDArray[np.integer],
    near_end: NDArray[np.integer],
    level: float,
) -> NDArray[np.bool_]:
    """(classes,) whether no interval has values of more than 1/``level`` of the persons."""
    class_of, member, value, people = _members(classes, persons, values)
    most = np.zeros(len(people), np.int64)
    if not len(value):
        return most > 0
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
    spread: NDArray[np.bool_] = (people > 0) & (most * level <= people * (1 + _TOLERANCE))
    return spread


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


def _covered(sets: Sequence[set[int]], values: int, steps: list[int]) -> bool:
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
