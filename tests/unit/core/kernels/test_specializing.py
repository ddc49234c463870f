"""Rows are dealt to parts by their combinations."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mondrian_ops.algorithms import tds
from mondrian_ops.core.frequency_set import FrequencySet


@settings(deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.integers(1, 7), st.integers(0, 9))
def test_every_row_falls_to_one_part(rows, parts, seed):
    values = np.arange(len(rows))
    whole = FrequencySet.of([np.repeat(values, rows)], [len(rows)])
    dealt = [tds.partition(whole, part, parts, seed) for part in range(parts)]
    assert sum(part.total for part in dealt) == whole.total
    together = np.zeros(len(rows), int)
    for part in dealt:
        together[part.column(0)] += part.rows
    assert together.tolist() == rows
    assert all((part.rows > 0).all() for part in dealt)


def test_parts_are_alike_and_differ_from_seed_to_seed():
    whole = FrequencySet.of([np.repeat(np.arange(4), 5000)], [4])
    dealt = [tds.partition(whole, part, 5, 3).rows.tolist() for part in range(5)]
    assert all(abs(rows - 1000) < 200 for part in dealt for rows in part)
    assert dealt[0] != dealt[1]
    assert tds.partition(whole, 0, 5, 4).rows.tolist() != dealt[0]
