"""Looking ahead twice, against every cut there is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import brute_force
from examples import examples
from mondrian_cases import (
    anonymizer_of,
    classes_of,
    loss_of,
    privacy_of,
    reference_attributes,
    requirements,
    tables,
)
from mondrian_ops.algorithms import mondrian
from mondrian_ops.algorithms.mondrian import Cut
from mondrian_tables import skewed_table


def loss_ahead(coded, cut, rows) -> float:
    """Loss of some of the rows, cut by looking ahead once."""
    return mondrian.loss(coded.taken(np.array(rows)), cut) if rows else 0.0


def ordered_cuts(rows, kinds, columns, holds):
    """Every ordered cut of the rows, attribute and both sides, that holds on both."""
    attributes = reference_attributes(kinds, columns, "gain")
    for a, (attribute, column) in enumerate(zip(attributes, columns, strict=True)):
        is_prefix = isinstance(attribute, brute_force.Prefix)
        places = {i: column[i] if is_prefix else attribute.place(column[i]) for i in rows}
        for at in sorted(set(places.values()))[:-1]:
            left = [i for i in rows if places[i] <= at]
            right = [i for i in rows if places[i] > at]
            if holds(left) and holds(right):
                yield a, left, right


@examples(200)
@given(
    tables(max_rows=16),
    st.integers(2, 3),
    st.none() | requirements(),
    st.sampled_from(["gain", "widest gain"]),
)
def test_the_nested_cut_is_the_best_of_all_that_are_finished_by_looking_ahead(
    table, k, asked, greedy
):
    """With every ordered cut a finalist, the one taken loses least of all that there are."""
    kinds, columns, sensitive = table
    assume(not any(None in column for column in columns))  # missing values would be parted first
    keys = {"k": k, **(asked or {})} if sensitive else {"k": k}
    holds = privacy_of(sensitive, keys).of_rows(sensitive)
    every = list(range(len(columns[0])))
    assume(holds(every))
    anonymizer, data = anonymizer_of(kinds, columns, sensitive, keys, greedy)
    coded = anonymizer.encode(data)
    ahead, nested = Cut(greedy, 100), Cut(greedy, 100, 0, 100)
    policy = nested.policy()._replace(candidates=99, finalists=99)
    once = ahead.policy()._replace(candidates=99)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Cut, "policy", lambda cut: policy if cut.nested_rows else once)
        a, codes = nested.splitter(coded, np.arange(len(every), dtype=np.int32))(0, len(every))
        losses = {
            (b, frozenset(left)): loss_ahead(coded, ahead, left) + loss_ahead(coded, ahead, right)
            for b, left, right in ordered_cuts(every, kinds, columns, holds)
        }
    if not losses:
        assert a == -1
        return
    left = frozenset(np.flatnonzero(coded.rows.codes[a] <= codes[0]).tolist())
    assert losses[a, left] == pytest.approx(min(losses.values()), abs=1e-6)


@pytest.mark.parametrize("group_rows", [0, 100])
@examples(150)
@given(
    tables(max_rows=24),
    st.integers(2, 3),
    st.none() | requirements(),
    st.sampled_from(["gain", "widest gain"]),
)
def test_nesting_never_loses_more_than_looking_ahead_once(group_rows, table, k, asked, greedy):
    """The first choice of looking ahead once is a finalist everywhere, and is finished as it."""
    kinds, columns, sensitive = table
    keys = {"k": k, **(asked or {})} if sensitive else {"k": k}
    assume(privacy_of(sensitive, keys).of_rows(sensitive)(list(range(len(columns[0])))))
    anonymizer, data = anonymizer_of(kinds, columns, sensitive, keys, greedy)
    once, nested = (
        loss_of(classes_of(anonymizer, data, Cut(greedy, 100, group_rows, rows)), kinds, columns)
        for rows in (0, 100)
    )
    assert nested <= once + 1e-6


@pytest.mark.parametrize("k", [2, 5, 20])
def test_nesting_loses_less_on_real_sizes(k):
    losses = []
    for seed in range(3):
        kinds, columns = skewed_table(seed, rows=600)
        anonymizer, data = anonymizer_of(kinds, columns, [], {"k": k}, "gain")
        losses.append(
            [
                loss_of(classes_of(anonymizer, data, Cut("gain", 600, 600, rows)), kinds, columns)
                for rows in (0, 600)
            ]
        )
    once, nested = np.array(losses).sum(axis=0)
    assert nested < 0.99 * once
