"""Classes that fail are joined where it costs least."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_ops.cut.joining import joined_until, widening
from mondrian_ops.generalize.attributes import Classes

CODES = np.array([[1, 2, 50, 51, 52, 53]], np.uint8)


def classes(*starts: int, rows: int = CODES.shape[1]) -> Classes:
    return Classes(np.arange(rows, dtype=np.int32), np.array(starts))


def with_rows(least: int):
    return lambda these: these.sizes >= least


@pytest.mark.parametrize(
    ("costs", "starts"),
    [
        (None, [0, 3]),  # with the two rows below it, fewer than the three above it
        (widening(CODES), [0, 2]),  # with those above it, which lie near
    ],
)
def test_a_class_is_joined_with_one_of_its_neighbours(costs, starts):
    """Of 1 and 2, of 50, and of 51 to 53, the second has too few rows."""
    assert joined_until(classes(0, 2, 3), with_rows(2), costs).starts.tolist() == starts


def test_attributes_count_by_what_they_span():
    """By the first the second class lies nearer to the third, by a hundredth of its range; by the
    second it lies in the first class, and half of the range from the third."""
    codes = np.array([[1, 1, 3, 4, 4, 4, 201, 201], [0, 0, 0, 1, 1, 1, 2, 2]], np.uint16)
    of_all = classes(0, 2, 3, 6, rows=8)
    for some, starts in ((codes[:1], [0, 2, 6]), (codes, [0, 3, 6])):
        assert joined_until(of_all, with_rows(2), widening(some)).starts.tolist() == starts


def test_the_first_and_the_last_class_have_one_neighbour():
    for costs in (None, widening(CODES)):
        assert joined_until(classes(0, 1), with_rows(2), costs).starts.tolist() == [0]
        assert joined_until(classes(0, 5), with_rows(2), costs).starts.tolist() == [0]
        assert joined_until(classes(0, 1, 5), with_rows(2), costs).starts.tolist() == [0]


def test_one_class_that_is_left_may_fail():
    assert joined_until(classes(0, 2, 4), with_rows(7)).starts.tolist() == [0]
    assert joined_until(classes(0), with_rows(7), widening(CODES)).starts.tolist() == [0]
