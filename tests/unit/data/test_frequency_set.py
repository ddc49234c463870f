"""The frequency set against a plain count of tuples."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops.data.frequency_set import FrequencySet

SIZES = st.lists(st.sampled_from([1, 2, 3, 200, 2**16, 2**31]), min_size=1, max_size=6)


@st.composite
def coded(draw):
    sizes = draw(SIZES)
    rows = draw(
        st.lists(st.tuples(*(st.integers(0, min(size - 1, 4)) for size in sizes)), max_size=30)
    )
    top = [size - 1 for size in sizes]
    return sizes, [*rows, *[tuple(top)] * draw(st.integers(1, 3))]


def frequency_set(sizes, rows):
    return FrequencySet.of([np.array(column) for column in zip(*rows, strict=True)], sizes)


def tally(result):
    codes = result.codes()
    return dict(zip(map(tuple, codes.T.tolist()), result.rows.tolist(), strict=True))


@given(coded())
def test_counts_every_combination(given_rows):
    sizes, rows = given_rows
    result = frequency_set(sizes, rows)
    assert tally(result) == Counter(rows)
    assert list(tally(result)) == sorted(set(rows))
    assert result.total == len(rows)


@given(coded(), st.data())
def test_it_does_not_depend_on_the_order_of_the_rows(given_rows, data):
    sizes, rows = given_rows
    result = frequency_set(sizes, rows)
    whole = frequency_set(sizes, data.draw(st.permutations(rows)))
    assert np.array_equal(result.words, whole.words)
    assert np.array_equal(result.rows, whole.rows)
    again = FrequencySet.from_table(whole.to_table())
    assert again.sizes == whole.sizes
    assert np.array_equal(again.words, whole.words)


@given(coded(), st.data())
def test_what_is_counted_may_stand_for_several_rows(given_rows, data):
    sizes, rows = given_rows
    weights = data.draw(st.lists(st.integers(1, 9), min_size=len(rows), max_size=len(rows)))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    result = FrequencySet.of(columns, sizes, np.array(weights))
    repeated = [row for row, times in zip(rows, weights, strict=True) for _ in range(times)]
    assert tally(result) == Counter(repeated)


@given(coded(), st.data())
def test_recoding_is_counting_the_recoded_rows(given_rows, data):
    sizes, rows = given_rows
    tables = {
        at: np.array(data.draw(st.permutations(range(5)))) % data.draw(st.integers(1, 5))
        for at, size in enumerate(sizes)
        if 5 < size < 2**16 and data.draw(st.booleans())
    }
    tables = {at: np.resize(table, sizes[at]) for at, table in tables.items()}
    recoded = [
        tuple(int(tables[at][code]) if at in tables else code for at, code in enumerate(row))
        for row in rows
    ]
    assert tally(frequency_set(sizes, rows).recoded(tables)) == Counter(recoded)


@given(coded(), st.data())
def test_groups_agree_in_the_first_columns(given_rows, data):
    sizes, rows = given_rows
    columns = data.draw(st.integers(0, len(sizes)))
    result = frequency_set(sizes, rows)
    index, starts = result.grouped(columns)
    codes = [tuple(code) for code in result.codes()[:columns].T.tolist()]
    groups = [group.tolist() for group in np.split(index, starts[1:])]
    assert sorted(index.tolist()) == list(range(len(result.rows)))
    assert [len({codes[at] for at in group}) for group in groups] == [1] * len(set(codes))
    assert all(group == sorted(group) for group in groups)
    for at in range(len(sizes)):
        assert np.array_equal(result.column(at), result.codes(at)[0])
