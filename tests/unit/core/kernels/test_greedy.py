"""The cut of a node by itself: medians, and missing values first."""

from __future__ import annotations

import pytest

from mondrian_cases import anonymizer_of, classes_of
from mondrian_ops.algorithms.mondrian import Cut


@pytest.mark.parametrize("greedy", ["median", "gain", "widest gain", "relaxed"])
def test_missing_values_get_classes_of_their_own_where_k_allows(greedy):
    columns = [[None, None, None, 1, 2, 3, 4], [5, 6, 7, 5, 6, 7, 5]]
    anonymizer, data = anonymizer_of(["interval", "interval"], columns, [], {"k": 3}, greedy)
    assert classes_of(anonymizer, data, Cut(greedy)) == {
        frozenset({0, 1, 2}),
        frozenset({3, 4, 5, 6}),
    }
    anonymizer, data = anonymizer_of(["interval", "interval"], columns, [], {"k": 4}, greedy)
    assert classes_of(anonymizer, data, Cut(greedy)) == {frozenset(range(7))}


def test_a_median_equal_to_the_minimum_loses_no_valid_cut():
    columns = [[1, 1, 1, 1, 1, 2, 3]]
    anonymizer, data = anonymizer_of(["interval"], columns, [], {"k": 2})
    assert classes_of(anonymizer, data, Cut("median")) == {
        frozenset(range(5)),
        frozenset({5, 6}),
    }


def test_a_median_equal_to_the_maximum_loses_no_valid_cut():
    columns = [[1, 2, 3, 3, 3, 3, 3]]
    anonymizer, data = anonymizer_of(["interval"], columns, [], {"k": 2})
    assert classes_of(anonymizer, data, Cut("median")) == {
        frozenset({0, 1}),
        frozenset(range(2, 7)),
    }


def test_the_next_attribute_is_tried_when_the_first_has_no_valid_cut():
    columns = [[0, 9, 9, 9, 9, 9], [1, 1, 1, 2, 2, 2]]  # the first: one row below any cut
    anonymizer, data = anonymizer_of(["interval", "interval"], columns, [], {"k": 3})
    assert classes_of(anonymizer, data, Cut("median")) == {
        frozenset({0, 1, 2}),
        frozenset({3, 4, 5}),
    }
