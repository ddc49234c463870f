"""Looking ahead: what is remembered of a node that was finished before."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_cases import anonymizer_of, skewed_table
from mondrian_ops.algorithms.mondrian import Cut
from mondrian_ops.native.mondrian import classes
from native_probes import classes_by


@pytest.mark.parametrize("group_rows", [0, 800])
def test_what_is_remembered_saves_time_and_changes_nothing(group_rows):
    kinds, columns = skewed_table(seed=7, rows=800)
    anonymizer, data = anonymizer_of(kinds, columns, [], {"k": 4}, "gain")
    coded, policy = anonymizer.encode(data), Cut("gain", 800, group_rows, 800).policy()
    # With a single place the next one that is remembered takes it.
    forgetful = classes_by("-DMO_KNOWN=1", coded.rows, coded.criteria, policy)
    for found, expected in zip(forgetful, classes(coded.rows, coded.criteria, policy), strict=True):
        assert np.array_equal(found, expected)
