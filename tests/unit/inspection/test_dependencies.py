"""Columns that follow from others."""

from __future__ import annotations

from collections import Counter, defaultdict

from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops.inspection.dependencies import NEARLY, dependencies
from unknown_tables import column


def test_a_city_follows_from_its_zip_and_not_the_other_way_round():
    zips = [number % 40 for number in range(400)]
    cities = [number // 10 for number in zips]
    (found,) = dependencies([column(zips, "zip"), column(cities, "city")])
    assert (found.by, found.of, found.share) == ("zip", "city", 1)


def test_nothing_follows_from_a_number_of_the_rows_nor_is_a_constant_followed():
    numbers = column(list(range(100)), "id")
    halves = column([number % 2 for number in range(100)], "half")
    constant = column([7] * 100, "seven")
    assert list(dependencies([numbers, halves, constant])) == []


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=8, max_size=60))
def test_the_share_is_that_of_counting_one_by_one(rows):
    by, of = ([row[at] for row in rows] for at in (0, 1))
    times = defaultdict(Counter)
    for one, other in rows:
        times[one][other] += 1
    share = sum(max(each.values()) for each in times.values()) / len(rows)
    found = [each for each in dependencies([column(by, "by"), column(of, "of")]) if each.of == "of"]
    is_plain = max(Counter(of).values()) < NEARLY * len(rows) and len(times) <= len(rows) / 2
    assert [each.share for each in found] == ([share] if share >= NEARLY and is_plain else [])
