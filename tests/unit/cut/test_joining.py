"""Classes that fail are joined with the smaller neighbour."""

from __future__ import annotations

import numpy as np

from mondrian_ops.cut.joining import joined_until
from mondrian_ops.generalize.attributes import Classes


def classes(*starts: int, rows: int = 6) -> Classes:
    return Classes(np.arange(rows, dtype=np.int32), np.array(starts))


def with_rows(least: int):
    return lambda these: these.sizes >= least


def test_a_class_is_joined_with_its_smaller_neighbour():
    assert joined_until(classes(0, 2, 3), with_rows(2)).starts.tolist() == [0, 3]
    assert joined_until(classes(0, 3, 4), with_rows(2)).starts.tolist() == [0, 3]


def test_the_first_and_the_last_class_have_one_neighbour():
    assert joined_until(classes(0, 1), with_rows(2)).starts.tolist() == [0]
    assert joined_until(classes(0, 5), with_rows(2)).starts.tolist() == [0]
    assert joined_until(classes(0, 1, 5), with_rows(2)).starts.tolist() == [0]


def test_one_class_that_is_left_may_fail():
    assert joined_until(classes(0, 2, 4), with_rows(7)).starts.tolist() == [0]
    assert joined_until(classes(0), with_rows(7)).starts.tolist() == [0]
