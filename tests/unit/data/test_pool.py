"""What is told of the numbers of rows that wait."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops.data.pool import as_shown, shown_by_night


@pytest.mark.parametrize(
    ("waits", "shown"),
    [
        ([], []),
        ([[1, 3]], [[1, 5]]),
        ([[1, 2]], [[1, 0]]),
        ([[1, 3], [2, 7]], [[1, 10]]),  # before: 5 and 7 of 10
        ([[1, 7], [2, 3]], [[1, 10]]),
        ([[1, 5], [2, 5]], [[1, 5], [2, 5]]),
        ([[1, 1], [2, 1], [4, 1]], [[1, 5]]),
        ([[1, 4], [2, 4], [3, 9], [5, 2]], [[1, 8], [3, 11]]),
        ([[1, 6], [2, 2], [3, 4]], [[1, 6], [2, 6]]),
    ],
)
def test_nights_with_few_rows_are_told_with_the_next(waits, shown):
    assert shown_by_night(waits, 5) == shown


@pytest.mark.parametrize(("waits", "shown"), [(0, 0), (1, 0), (2, 4), (3, 4), (4, 4), (5, 5)])
def test_few_rows_are_told_as_none_or_k(waits, shown):
    assert as_shown(waits, 4) == shown


COUNTS = st.lists(st.integers(1, 12), max_size=6)


@given(COUNTS, st.integers(2, 6))
def test_no_count_below_k_is_a_difference_of_what_is_told(counts, k):
    """Who subtracts the nights from all rows is left with none."""
    waits = [[origin, rows] for origin, rows in enumerate(counts, 1)]
    shown = shown_by_night(waits, k)
    assert sum(rows for _, rows in shown) == as_shown(sum(counts), k)
    assert not [rows for _, rows in shown if 0 < rows < k]
    assert [origin for origin, _ in shown] == sorted({origin for origin, _ in shown})
    assert [origin for origin, _ in shown[:1]] == [origin for origin, _ in waits[:1]]


@given(COUNTS)
def test_nights_with_many_rows_are_told_as_they_are(counts):
    waits = [[origin, rows + 5] for origin, rows in enumerate(counts, 1)]
    assert shown_by_night(waits, 5) == waits
