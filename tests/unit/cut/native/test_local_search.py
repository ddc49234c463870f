"""Rows that change their class, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_cases import (
    anonymizer_of,
    loss_of,
    privacy_of,
    requirements,
    tables,
)
from mondrian_ops.cut.algorithms.mondrian import CodedRows, CutPolicy
from native_probes import Opened


def after_local_search(
    coded: CodedRows, classes: list[list[int]], joined: int = 0
) -> list[list[int]]:
    index = np.array([row for rows in classes for row in rows], np.int32)
    class_starts = np.zeros(len(index), np.uint8)
    class_starts[np.cumsum([0, *map(len, classes[:-1])])] = 1
    opened = Opened(
        coded.taken(index).rows, coded.criteria, CutPolicy("gain", joined=joined).kernel()
    )
    opened.local_search(class_starts)
    result = index[opened.numbers()]
    return [part.tolist() for part in np.split(result, np.flatnonzero(class_starts)[1:])]


def any_classes(count: int, k: int, chance) -> list[list[int]]:
    """The rows in classes of k to 2k rows or so, by chance."""
    rows = list(range(count))
    chance.shuffle(rows)
    classes = []
    while len(rows) >= 2 * k:
        size = chance.randint(k, min(2 * k, len(rows) - k))
        classes.append([rows.pop() for _ in range(size)])
    return [*classes, rows]


def joined_until(holds, classes: list[list[int]]) -> list[list[int]]:
    """The classes, each with as many of the next ones as it takes until it ``holds``."""
    made: list[list[int]] = []
    rows: list[int] = []
    for each in classes:
        rows = rows + each
        if holds(rows):
            made.append(rows)
            rows = []
    return [*made[:-1], made[-1] + rows] if made else []


@examples(100)
@given(
    tables(max_rows=24),
    st.integers(2, 4),
    st.none() | requirements(),
    st.sampled_from([0, 2, 3]),
    st.randoms(),
)
def test_less_is_lost_and_every_criterion_still_holds(table, k, required, joined, chance):
    kinds, columns, sensitive = table
    keys = {"k": k, **(required or {})} if sensitive else {"k": k}
    holds = privacy_of(sensitive, keys).of_rows(sensitive)
    before = joined_until(holds, any_classes(len(columns[0]), k, chance))
    assume(before and all(holds(rows) for rows in before))
    anonymizer, data = anonymizer_of(kinds, columns, sensitive, keys, "gain")
    after = after_local_search(anonymizer.encode(data), before, joined)
    assert sorted(row for rows in after for row in rows) == list(range(data.num_rows))
    assert len(after) >= len(before)
    assert joined or len(after) == len(before)
    assert all(holds(rows) for rows in after)
    assert [rows for rows in before if len(rows) >= 2 * k] == [
        rows for rows in after if len(rows) >= 2 * k
    ]

    def lost(classes):
        return loss_of([frozenset(rows) for rows in classes], kinds, columns)

    assert lost(after) <= lost(before) + 1e-9
    if {*map(frozenset, after)} != {*map(frozenset, before)}:
        assert lost(after) < lost(before)


@pytest.mark.parametrize("kind", ["interval", "set", "tree"])
def test_a_row_goes_where_its_like_are(kind):
    """The third row of the first class belongs to the second; nobody has to come for it."""
    one, other = {"interval": (1, 9), "set": ("p", "q"), "tree": ("a1", "b1")}[kind]
    anonymizer, data = anonymizer_of(
        [kind], [[one, one, other, other, other]], [], {"k": 2}, "gain"
    )
    result = after_local_search(anonymizer.encode(data), [[0, 1, 2], [3, 4]])
    assert {*map(frozenset, result)} == {frozenset({0, 1}), frozenset({2, 3, 4})}


@pytest.mark.parametrize("kind", ["interval", "set", "tree"])
def test_two_rows_are_exchanged_where_none_can_be_spared(kind):
    one, other = {"interval": (1, 9), "set": ("p", "q"), "tree": ("a1", "b1")}[kind]
    anonymizer, data = anonymizer_of([kind], [[one, one, other, one, other, other]], [], {"k": 3})
    result = after_local_search(anonymizer.encode(data), [[0, 1, 2], [3, 4, 5]])
    assert {*map(frozenset, result)} == {frozenset({0, 1, 3}), frozenset({2, 4, 5})}


def test_no_row_leaves_where_its_sensitive_value_is_needed():
    columns, sensitive = [[1, 1, 9, 9, 9]], [["x", "x", "y", "x", "y"]]
    anonymizer, data = anonymizer_of(["interval"], columns, sensitive, {"k": 2, "l": 2})
    result = after_local_search(anonymizer.encode(data), [[0, 1, 2], [3, 4]])
    assert {*map(frozenset, result)} == {frozenset({0, 1, 2}), frozenset({3, 4})}


@pytest.mark.parametrize("kind", ["interval", "set", "tree"])
def test_classes_are_cut_anew_where_no_exchange_of_two_rows_loses_less(kind):
    """Two rows of each class belong to the other; one pair exchanged would save nothing."""
    one, other = {"interval": (1, 9), "set": ("p", "q"), "tree": ("a1", "b1")}[kind]
    values = [one, one, other, other, one, one, other, other]
    anonymizer, data = anonymizer_of([kind], [values], [], {"k": 4}, "gain")
    before = [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert after_local_search(anonymizer.encode(data), before) == before
    result = after_local_search(anonymizer.encode(data), before, joined=2)
    assert {*map(frozenset, result)} == {frozenset({0, 1, 4, 5}), frozenset({2, 3, 6, 7})}


@pytest.mark.parametrize("joined", [2, 3])
def test_there_may_be_more_classes_afterwards(joined):
    values = [1, 1, 5, 5, 9, 1, 5, 9, 9]
    anonymizer, data = anonymizer_of(["interval"], [values], [], {"k": 3}, "gain")
    before = [[0, 1, 2, 3, 4], [5, 6, 7, 8]]
    result = after_local_search(anonymizer.encode(data), before, joined)
    expected = 3 if joined == 2 else 2  # there are no three classes to be joined
    assert len(result) == expected
