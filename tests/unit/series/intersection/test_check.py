"""The values left to whoever holds all releases, against sets that are intersected one by one."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops.series.intersection.check import Tonight, follow, unbalanced

VALUES = st.sampled_from([-1, 0, 1, 2, 63, 64, 65])
NOBODY = -1
NIGHT = st.lists(st.tuples(st.integers(0, 3), st.integers(NOBODY, 8), VALUES), max_size=16)
WORDS = 2


def tonight_of(rows):
    class_of, person, value = np.array(rows, np.int64).reshape(-1, 3).T
    real = person != NOBODY
    made_up = np.stack([class_of, value], axis=1)[~real]
    theirs = class_of[real], person[real], value[real]
    return Tonight(*theirs, made_up) if len(made_up) else Tonight(*theirs)


def of_persons(rows):
    return [row for row in rows if row[1] != NOBODY]


def followed_through(nights, *, k, l):  # noqa: E741
    """Each night's result of `follow`, and what is left for each person after the last."""
    left, results = {}, []
    for night in nights:
        rows = of_persons(night)
        before = np.array(
            [left.get(person, np.zeros(WORDS, np.uint64)) for _, person, _ in rows], np.uint64
        ).reshape(-1, WORDS)
        known = np.array([person in left for _, person, _ in rows], bool)
        result = follow(tonight_of(night), before, known, k=k, l=l)
        results.append(result)
        left |= {person: result.common[i] for i, (_, person, _) in enumerate(rows)}
    return results


def one_by_one(nights, *, k, l):  # noqa: E741
    left, results = {}, []
    for rows in nights:
        values, persons = defaultdict(set), defaultdict(set)
        for number, person, value in rows:
            persons[number] |= {person} - {NOBODY}
            values[number] |= {value} - {-1}
        expected = []
        rows = of_persons(rows)
        for number, person, value in rows:
            changed = person in left and value != -1 and value not in left[person]
            before = left.get(person, values[number])
            common = values[number] - before if changed else values[number] & before
            expected.append((common, len(common) < l, len(persons[number]) < k, changed))
        left |= {person: each[0] for (_, person, _), each in zip(rows, expected, strict=True)}
        results.append(expected)
    return results


def set_of(bits):
    return {
        64 * word + bit for word in range(WORDS) for bit in range(64) if int(bits[word]) >> bit & 1
    }


@given(
    st.lists(NIGHT.map(lambda rows: list({row[1]: row for row in rows}.values())), max_size=5),
    st.integers(1, 4),
    st.integers(1, 4),
)
def test_the_values_left_are_those_of_sets_that_are_intersected(nights, k, l):  # noqa: E741
    results = followed_through(nights, k=k, l=l)
    for result, expected in zip(results, one_by_one(nights, k=k, l=l), strict=True):
        found = [
            (set_of(common), bool(below_l), bool(below_k), bool(changed))
            for common, below_l, below_k, changed in zip(*result, strict=True)
        ]
        assert found == expected


def test_rows_of_one_person_count_once():
    result = follow(
        tonight_of([(0, 7, 0), (0, 7, 1), (0, 8, 0)]),
        np.zeros((3, 1), np.uint64),
        np.zeros(3, bool),
        k=3,
        l=2,
    )
    assert result.below_k.all()
    assert not result.below_l.any()


def test_exactly_k_persons_and_l_values_are_enough():
    rows = [(5, 1, 0), (5, 2, 1), (9, 3, 2), (9, 4, 3)]
    everything = np.full((4, 1), 0b1111, np.uint64)
    result = follow(tonight_of(rows), everything, np.ones(4, bool), k=2, l=2)
    assert not result.below_k.any()
    assert not result.below_l.any()
    assert not result.changed.any()
    assert result.common[:, 0].tolist() == [0b11, 0b11, 0b1100, 0b1100]


def test_a_person_with_rows_in_two_classes_counts_in_both():
    result = follow(
        tonight_of([(0, 7, 0), (1, 7, 1)]),
        np.zeros((2, 1), np.uint64),
        np.zeros(2, bool),
        k=1,
        l=1,
    )
    assert not result.below_k.any()


ABC, ABD = 0b0111, 0b1011


def found_out(rows, made_up=(), *, before=(), common=()):
    """Who could be found out, of rows of a class, a value, and a signature; three values each.

    ``before``, ``common``: by row, the signature and the values of before of those who are known.
    """
    class_of, value, signature = np.array(rows, np.int64).reshape(-1, 3).T
    words = [np.zeros((len(rows), 1), np.uint64) for _ in range(2)]
    for column, given_words in zip(words, (common, before), strict=True):
        for row, word in dict(given_words).items():
            column[row] = word
    for row in dict(before):
        words[0][row] |= words[1][row]
    state = SimpleNamespace(common=words[0], signature=words[1])
    tonight = Tonight(
        class_of, np.arange(len(rows)), value, np.array(made_up, np.int64).reshape(-1, 2)
    )
    found = unbalanced(tonight, signature.astype(np.uint64)[:, None], state, 3)
    return np.flatnonzero(found).tolist()


BALANCED = [(0, 0, ABC), (0, 1, ABC), (0, 2, ABC), (1, 0, ABD), (1, 1, ABD)]
MISSING = [(1, 3)]
TOGETHER = [(0, value, signature) for _, value, signature in BALANCED]
TURNED = [(1 - number, value, signature) for number, value, signature in BALANCED]


@pytest.mark.parametrize(
    ("rows", "made_up", "known", "found"),
    [
        (BALANCED, MISSING, {}, []),
        ([*BALANCED, (1, -1, 0)], MISSING, {}, []),  # a missing value is none to be found out
        (BALANCED, [], {}, [3, 4]),
        (BALANCED, [*MISSING, (0, 0)], {}, [0, 1, 2]),
        (BALANCED, [*MISSING, (0, 0), (0, 1), (0, 2)], {}, []),  # as of somebody in each place
        (BALANCED, [*MISSING, (0, 0), (0, 1), (0, 3)], {}, [0, 1, 2]),
        (BALANCED, [(1, 2)], {}, [3, 4]),
        (TOGETHER, [(0, 3), (0, 0), (0, 1), (0, 2)], {}, []),  # one for d, and a whole ABC
        (TURNED, [(0, 3), (0, 0), (0, 1), (0, 3)], {}, []),
        ([(0, value, 0b1111) for value in range(4)], [], {}, []),  # more values than l asks
        ([*BALANCED[:4], (1, 1, ABC)], MISSING, {}, [3, 4]),
        ([*BALANCED[:4], (1, 2, ABD)], [(1, 1), (1, 3)], {}, [4]),
        ([(0, 0, 0b11), (0, 1, 0b11)], [], {}, [0, 1]),
        (BALANCED, MISSING, {"before": {0: ABC, 3: ABD}}, []),
        (BALANCED, MISSING, {"before": {0: ABD}}, [0]),
        (BALANCED, MISSING, {"before": {0: ABD}, "common": {0: ABC | ABD}}, [0]),
        (BALANCED, MISSING, {"common": {0: ABC | ABD}}, []),
        (BALANCED, MISSING, {"common": {0: ABD}}, [0]),
        (BALANCED, MISSING, {"common": {2: 0b11000}}, []),  # the value changed
        (BALANCED, MISSING, {"common": {2: ABD}}, [2]),
    ],
)
def test_who_is_in_a_class_that_is_not_balanced_can_be_found_out(rows, made_up, known, found):
    assert found_out(rows, made_up, **known) == found
