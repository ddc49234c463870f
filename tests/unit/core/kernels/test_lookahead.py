"""Looking ahead: each cut by what its sides lose once they are finished."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from examples import examples
from mondrian_cases import (
    anonymizer_of,
    classes_of,
    is_final,
    loss_of,
    privacy_of,
    requirements,
    spelled,
    tables,
)
from mondrian_ops.algorithms.mondrian import Cut
from mondrian_tables import contents, random_table


@pytest.mark.parametrize(
    ("rollout_rows", "group_rows", "nested_rows"),
    [(6, 0, 0), (1000, 0, 0), (6, 6, 0), (1000, 1000, 0), (1000, 0, 6), (1000, 6, 1000)],
)
@examples(120)
@given(
    tables() | spelled(tables()),
    st.integers(2, 4),
    st.none() | requirements(),
    st.sampled_from(["gain", "widest gain"]),
)
def test_lookahead_gives_final_valid_classes(
    rollout_rows, group_rows, nested_rows, table, k, asked, greedy
):
    kinds, columns, sensitive = table
    keys = {"k": k, **(asked or {})} if sensitive else {"k": k}
    holds = privacy_of(sensitive, keys).of_rows(sensitive)
    assume(holds(list(range(len(columns[0])))))
    anonymizer, data = anonymizer_of(kinds, columns, sensitive, keys, greedy)
    cut = Cut(greedy, rollout_rows, group_rows, nested_rows)
    classes = classes_of(anonymizer, data, cut)
    assert all(holds(sorted(rows)) for rows in classes)
    assert all(is_final(rows, kinds, columns, holds) for rows in classes)
    again = classes_of(anonymizer, data, cut)
    assert contents(classes, data, kinds) == contents(again, data, kinds)


@pytest.mark.parametrize("k", [2, 5, 20])
def test_lookahead_loses_no_more_than_gain_on_real_sizes(k):
    kinds, columns = random_table(seed=1, rows=1500)
    anonymizer, data = anonymizer_of(kinds, columns, [], {"k": k}, "gain")
    losses = {
        cut: loss_of(classes_of(anonymizer, data, cut), kinds, columns)
        for cut in (Cut("gain"), Cut("widest gain"), Cut("gain", 1500))
    }
    assert losses[Cut("gain", 1500)] < min(losses[Cut("gain")], losses[Cut("widest gain")])
