"""Classes with the pairs of a class and a value, in arrays."""

from __future__ import annotations

import numpy as np

from mondrian_ops.verify.classes import (
    CountedClasses,
    CountedPairs,
    divided,
    one_by_one,
    recoded,
    rows_without,
)

PAIRS = CountedPairs(
    np.array([0, 2, 3, 3, 5]), np.array([0, 3, 2, 0, 1]), np.array([4, 1, 2, 7, 9])
)


def test_the_rows_of_each_class_that_have_no_value() -> None:
    assert rows_without(PAIRS).tolist() == [4, 0, 0, 7]


def test_pairs_one_by_one() -> None:
    assert [each.tolist() for each in one_by_one(PAIRS)] == [
        [0, 0, 1, 3, 3],
        [0, 3, 2, 0, 1],
        [4, 1, 2, 7, 9],
    ]


def test_classes_are_divided_with_their_pairs() -> None:
    classes = CountedClasses([np.arange(4)], np.array([5, 2, 1, 16]), np.arange(4), [PAIRS])
    (whole,) = divided(classes, 100)
    assert whole.sizes.tolist() == [5, 2, 1, 16]
    parts = list(divided(classes, 4))
    assert [part.sizes.tolist() for part in parts] == [[5, 2], [1, 16]]
    assert [part.codes[0].tolist() for part in parts] == [[0, 1], [2, 3]]
    assert [part.first_rows.tolist() for part in parts] == [[0, 1], [2, 3]]
    assert [part.pairs[0].first.tolist() for part in parts] == [[0, 2, 3], [0, 0, 2]]
    assert [part.pairs[0].codes.tolist() for part in parts] == [[0, 3, 2], [0, 1]]
    assert [part.pairs[0].counts.tolist() for part in parts] == [[4, 1, 2], [7, 9]]


def test_codes_in_another_numbering() -> None:
    codes = np.array([2, 0, 1, 1])
    assert recoded(codes, np.arange(3)) is codes
    assert recoded(codes, np.array([0, 5, 7])).tolist() == [7, 0, 5, 5]
