"""Who holds all releases of a series: the values that are left for each person, and how many rows.

The attacker knows where a person is in each release, so which class the person is in, and the
nights in which the person was there. The classes have some sensitive values in common: one of them
is the person's. This module shares no code with the cutting; it sees the classes as published.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_BITS = 64


class Tonight(NamedTuple):
    """The rows of a release as published, one entry per row.

    ``class_of``: (rows,) the number of the class; ``person``: (rows,) int64, the same number for
    the same person; ``value``: (rows,) the code of the sensitive value, -1 for a missing one.
    ``made_up``: (n, 2) class and value of each counterfeit. They are no entries of the
    other three.
    """

    class_of: NDArray[np.int64]
    person: NDArray[np.int64]
    value: NDArray[np.int64]
    made_up: NDArray[np.int64] = np.zeros((0, 2), np.int64)


class Remainder(NamedTuple):
    """What is left after a night, one entry per row.

    common
        (rows, words) the values that all classes of the person have had, as bits; of whom is
        ``changed``, those of tonight's class that were excluded before.
    below_l
        (rows,) whether these are fewer than l.
    below_k
        (rows,) whether fewer than k persons have a row in the class.
    changed
        (rows,) whether the person's value is not among those that earlier classes had in common.
        The person is followed anew, among all other values. An attacker who notices the change
        knows that the new value is none of the earlier ones.
    """

    common: Words
    below_l: NDArray[np.bool_]
    below_k: NDArray[np.bool_]
    changed: NDArray[np.bool_]


def follow(
    tonight: Tonight,
    before: Words,
    known: NDArray[np.bool_],
    *,
    k: int,
    l: int,  # noqa: E741
) -> Remainder:
    """Intersect what was left for each person with the values of the person's class.

    ``before``: (rows, words) what was left before tonight, where the person is ``known`` (rows,).
    """
    rows, words = before.shape
    order = np.argsort(tonight.class_of, kind="stable")
    classes, first, number = np.unique(
        tonight.class_of[order], return_index=True, return_inverse=True
    )
    own = _bits(tonight.value, words)
    of_class = np.bitwise_or.reduceat(own[order], first, axis=0) if rows else own
    made_up = tonight.made_up[np.isin(tonight.made_up[:, 0], classes)]
    at = np.searchsorted(classes, made_up[:, 0])
    np.bitwise_or.at(of_class, at, _bits(made_up[:, 1], words))
    has = np.empty_like(own)
    has[order] = of_class[number]
    changed = known & (tonight.value >= 0) & ~(before & own).any(axis=1)
    before = np.where(known[:, None], before, ~np.uint64(0))
    common = np.where(changed[:, None], ~before, before) & has
    persons = np.empty(rows, np.int64)
    persons[order] = _persons(tonight.person[order], number)[number]
    left = np.unpackbits(np.ascontiguousarray(common).view(np.uint8), axis=1).sum(axis=1)
    return Remainder(common, left < l, persons < k, changed)


def _bits(values: NDArray[np.int64], words: int) -> Words:
    """(rows, words): the bit of each row's value; none for a missing value."""
    bits = np.zeros((len(values), words), np.uint64)
    rows = np.flatnonzero(values >= 0)
    bits[rows, values[rows] // _BITS] = np.uint64(1) << (values[rows] % _BITS).astype(np.uint64)
    return bits


def _persons(person: NDArray[np.int64], number: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many distinct persons each class has."""
    _, rank = np.unique(person, return_inverse=True)
    distinct = np.unique(number * len(person) + rank)
    return np.bincount(distinct // len(person))


class Before(Protocol):
    """What was known before a night, one entry per row of it.

    ``common``, ``signature``: (rows, words) the values that were left for the person, and those of
    the person's signature, as bits; 0 where there are none.
    """

    @property
    def common(self) -> Words: ...
    @property
    def signature(self) -> Words: ...


def unbalanced(
    tonight: Tonight,
    signature: Words,
    before: Before,
    l: int,  # noqa: E741
) -> NDArray[np.bool_]:
    """(rows,): who could be found out by subtracting classes of one night from those of others.

    ``signature``: (rows, words) the values, as bits, of which each is to be as likely for a person.
    It has ``l`` values, the own one among them, and stays as long as it has. All are values that
    were left for the person, or none is. Rows without a value need none. In a class, each value of
    a signature is that of as many people; rows that are made up count too, and each of them makes
    up for somebody.
    """
    rows = np.flatnonzero(tonight.value >= 0)
    wrong = np.zeros(len(tonight.value), np.bool_)
    own = _bits(tonight.value, signature.shape[1])
    count = np.bitwise_count(signature).sum(axis=1)
    stays = (before.signature & own).any(axis=1)
    is_left = (before.common & own).any(axis=1, keepdims=True)
    left = np.where(is_left, before.common, ~before.common)
    outside = (signature & ~left).any(axis=1)  # of who is new, nothing is: all is left
    lost = stays & (signature != before.signature).any(axis=1)
    wrong[rows] = ((count < l) | ~(signature & own).any(axis=1) | outside | lost)[rows]
    if not len(rows):
        return wrong
    classes = tonight.class_of[rows]
    distinct, which = np.unique(signature[rows], axis=0, return_inverse=True)
    of_class, with_signature = np.unique(
        np.stack([classes, which.reshape(-1)]), axis=1, return_inverse=True
    )
    groups = with_signature.reshape(-1)
    bits = np.unpackbits(
        np.ascontiguousarray(distinct.astype("<u8")).view(np.uint8), axis=1, bitorder="little"
    )
    group, value = np.nonzero(bits[of_class[1]])  # one entry for each value of each group
    values = bits.shape[1]
    people = np.bincount(groups * values + tonight.value[rows], minlength=0)
    at = group * values + value
    there = np.where(at < len(people), people[np.minimum(at, len(people) - 1)], 0)
    most = np.zeros(len(of_class[0]), np.int64)
    np.maximum.at(most, group, there)
    lacking = most[group] - there
    more: dict[int, Counter[int]] = defaultdict(Counter)  # rows that are made up beyond need
    for number, each in tonight.made_up.tolist():
        more[number][each] += 1
    pairs = zip(of_class[0][group].tolist(), value.tolist(), lacking.tolist(), strict=True)
    for number, each, lacks in pairs:
        if lacks:
            more[number][each] -= lacks
    bad = []
    for number, counts in more.items():
        if any(counts.values()):
            mine = distinct[of_class[1][of_class[0] == number]]
            if not _is_sum(counts, [_values_of(each) for each in mine]):
                bad.append(number)
    return wrong | np.isin(tonight.class_of, bad)


def _values_of(signature: Words) -> list[int]:
    bits = np.unpackbits(signature.astype("<u8").view(np.uint8), bitorder="little")
    return [int(each) for each in np.flatnonzero(bits)]


def _is_sum(counts: Counter[int], signatures: Sequence[Sequence[int]]) -> bool:
    """Whether so many of each value are some signatures, each any number of times."""
    if any(count < 0 for count in counts.values()):
        return False
    left = +counts
    if not left:
        return True
    least = min(left)
    return any(
        _is_sum(left - Counter(each), signatures)
        for each in signatures
        if least in each and all(left[value] for value in each)
    )
