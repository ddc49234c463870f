"""Rows that columns single out, against counting them one by one."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops.inspection.unique_rows import UniqueRows
from unknown_tables import column

VALUES = st.one_of(st.none(), st.integers(0, 3))
TABLES = st.lists(st.tuples(VALUES, VALUES, VALUES, VALUES), min_size=1, max_size=30)


@given(TABLES)
def test_shares_are_those_of_counting_one_by_one(rows):
    names = "abcd"
    found = UniqueRows.of(
        [column([row[at] for row in rows], name) for at, name in enumerate(names)]
    )
    single = {}
    involved = {name: set() for name in names}
    for size in (1, 2, 3):
        for places in combinations(range(4), size):
            keys = [tuple(row[at] for at in places) for row in rows]
            times = Counter(keys)
            single[places] = {n for n, key in enumerate(keys) if times[key] == 1}
            fewer = [single[each] for each in combinations(places, size - 1) if each]
            minimal = single[places] - set().union(*fewer)
            for at in places:
                involved[names[at]] |= minimal
            of = next(
                each
                for each in found.combinations
                if each.columns == tuple(names[at] for at in places)
            )
            pairs = len(rows) * (len(rows) - 1)
            same = sum(count * (count - 1) for count in times.values())
            assert of.single == pytest.approx(len(single[places]) / len(rows))
            assert of.minimal == pytest.approx(len(minimal) / len(rows))
            assert of.distinction == pytest.approx(len(times) / len(rows))
            assert of.separation == pytest.approx(1 - same / pairs if pairs else 0)
    shares = {name: len(each) / len(rows) for name, each in involved.items()}
    assert found.involved == pytest.approx(shares)


def test_no_columns_find_nobody():
    assert UniqueRows.of([]) == UniqueRows()
