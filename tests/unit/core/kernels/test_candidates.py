"""Cuts that take a group of values out of the others."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from examples import examples
from mondrian_cases import anonymizer_of, classes_of, loss_of, tables
from mondrian_ops.algorithms.mondrian import Cut
from mondrian_tables import skewed_table


@examples(150)
@given(tables(max_rows=14), st.integers(3, 5), st.data())
def test_of_two_classes_groups_lose_no_more_than_cuts_and_no_less_than_the_best(table, k, data):
    """Between 2k and 3k - 1 rows make two classes at most; the best two are known by trying all."""
    kinds, columns, _ = table
    assume(2 * k <= len(columns[0]))
    count = data.draw(st.integers(2 * k, min(len(columns[0]), 3 * k - 1)))
    columns = [column[:count] for column in columns]
    # Missing values are parted first, whatever is lost.
    assume(not any(None in column for column in columns))
    anonymizer, rows = anonymizer_of(kinds, columns, [], {"k": k}, "gain")
    found, ordered = (
        loss_of(classes_of(anonymizer, rows, Cut("gain", 100, groups)), kinds, columns)
        for groups in (100, 0)
    )
    every = frozenset(range(count))
    best = min(
        loss_of({frozenset(side), every - set(side)}, kinds, columns)
        for size in range(k, count - k + 1)
        for side in combinations(range(count), size)
    )
    assert best - 1e-9 <= found <= ordered + 1e-9


@pytest.mark.parametrize("k", [5, 20])
def test_groups_lose_less_than_ordered_cuts_where_values_are_rare(k):
    """On the whole: after a first cut that looked better a single dataset may fare worse."""
    losses = []
    for seed in range(5):
        kinds, columns = skewed_table(seed, rows=800)
        anonymizer, data = anonymizer_of(kinds, columns, [], {"k": k}, "gain")
        losses.append(
            [
                loss_of(classes_of(anonymizer, data, Cut("gain", 800, groups)), kinds, columns)
                for groups in (0, 800)
            ]
        )
    ordered, grouped = np.array(losses).sum(axis=0)
    assert grouped < 0.95 * ordered
