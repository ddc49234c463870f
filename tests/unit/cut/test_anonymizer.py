"""Rows that are made up, in the classes of a fragment."""

from __future__ import annotations

import numpy as np

from mondrian_ops.cut.anonymizer import Counterfeits
from mondrian_ops.generalize.attributes import Classes


def test_counterfeits_are_rows_of_their_classes():
    values = np.array([9, 4, -1, 4, 9], np.int32)
    made_up = Counterfeits.of(np.array([[0, 4], [2, 9], [2, 9]]), values)
    kept = made_up.where(np.array([True, False, True]))
    assert kept.classes.tolist() == [0, 1, 1]
    assert values[kept.rows].tolist() == [4, 9, 9]
    classes = kept.added(Classes(np.array([3, 2, 4], np.int32), np.array([0, 2])), 10)
    assert classes.index.tolist() == [3, 2, 10, 4, 11, 12]
    assert classes.starts.tolist() == [0, 3]
