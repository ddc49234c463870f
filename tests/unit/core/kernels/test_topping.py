"""Groups of fewer than k rows, topped up with others."""

from __future__ import annotations

from mondrian_cases import anonymizer_of, classes_of
from mondrian_ops.algorithms.mondrian import Cut


def test_a_rare_value_is_topped_up_with_the_rows_nearest_to_it():
    """No ordered cut holds on the set; the value of two rows takes the nearest with it."""
    columns = [["p"] * 6 + ["q"] * 2 + ["r"] * 6, [*range(6), 20, 20, *range(21, 27)]]
    anonymizer, data = anonymizer_of(["set", "interval"], columns, [], {"k": 3}, "gain")
    classes = classes_of(anonymizer, data, Cut("gain", 100, 100))
    assert frozenset({6, 7, 8}) in classes
    assert {6, 7, 8} <= max(classes_of(anonymizer, data, Cut("gain", 100)), key=lambda c: 7 in c)
