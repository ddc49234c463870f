"""Mondrian against a brute-force reference, and the seed's figure 2."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
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
    spelled,
    tables,
)
from mondrian_ops.algorithms.anonymizer import Anonymizer
from mondrian_ops.algorithms.mondrian import Cut, better_gain
from mondrian_ops.core.hierarchy import Hierarchy
from mondrian_ops.core.job import Job
from mondrian_ops.core.survey import Surveyor
from mondrian_tables import contents, random_table


@pytest.mark.parametrize("greedy", ["median", "gain", "widest gain"])
@examples(250)
@given(tables() | spelled(tables()), st.integers(2, 4), st.none() | requirements())
def test_the_classes_are_those_of_the_brute_force_reference(greedy, table, k, asked):
    kinds, columns, sensitive = table
    keys = {"k": k, **(asked or {})} if sensitive else {"k": k}
    privacy = privacy_of(sensitive, keys)
    holds = privacy.of_rows(sensitive)
    assume(holds(list(range(len(columns[0])))))
    anonymizer, data = anonymizer_of(kinds, columns, sensitive, keys, greedy)
    expected = brute_force.mondrian(
        list(zip(*columns, strict=True)),
        reference_attributes(kinds, columns, greedy),
        greedy,
        holds,
    )
    assert classes_of(anonymizer, data, Cut(greedy)) == expected


@pytest.mark.parametrize("cut", [Cut("gain", 100, 100), Cut("gain", 100, 100, 100), Cut("relaxed")])
@examples(120)
@given(tables(max_rows=24), st.integers(2, 5), st.none() | requirements(), st.randoms())
def test_classes_do_not_depend_on_the_order_of_the_rows(cut, table, k, asked, chance):
    kinds, columns, sensitive = table
    keys = {"k": k, **(asked or {})} if sensitive else {"k": k}
    assume(privacy_of(sensitive, keys).of_rows(sensitive)(list(range(len(columns[0])))))
    anonymizer, data = anonymizer_of(kinds, columns, sensitive, keys, "gain")
    places = list(range(data.num_rows))
    chance.shuffle(places)
    shuffled = data.take(places)
    assert contents(classes_of(anonymizer, data, cut), data, kinds) == contents(
        classes_of(anonymizer, shuffled, cut), shuffled, kinds
    )


def test_better_gain_is_the_one_that_loses_less():
    kinds, columns = random_table(seed=2, rows=600)
    anonymizer, data = anonymizer_of(kinds, columns, [], {"k": 5}, "gain")
    losses = {
        greedy: loss_of(classes_of(anonymizer, data, Cut(greedy)), kinds, columns)
        for greedy in ("gain", "widest gain")
    }
    assert better_gain(anonymizer.encode(data)) == min(losses, key=losses.get)


@examples(80)
@given(tables(max_rows=30), st.integers(2, 4), st.none() | requirements())
def test_relaxed_classes_have_k_to_2k_minus_1_rows(table, k, asked):
    kinds, columns, sensitive = table
    keys = {"k": k, **(asked or {})} if sensitive else {"k": k}
    holds = privacy_of(sensitive, keys).of_rows(sensitive)
    assume(holds(list(range(len(columns[0])))))
    anonymizer, data = anonymizer_of(kinds, columns, sensitive, keys, "relaxed")
    classes = classes_of(anonymizer, data, Cut("relaxed"))
    assert all(holds(sorted(rows)) for rows in classes)
    if not sensitive or not asked:
        wide = [rows for rows in classes if len(rows) > 2 * k - 1]
        assert not [r for r in wide if len({tuple(c[i] for c in columns) for i in r}) > 1]


# The seed's figure 2: nine tuples, k = 3, l = 2

WORLD = Hierarchy.from_rows(
    [
        [country, region, "World"]
        for region, countries in {
            "Europe": ["Italy", "France", "Spain"],
            "North America": ["USA", "Canada", "Greenland"],
            "Asia": ["China", "Japan", "India"],
        }.items()
        for country in countries
    ],
    "countries.csv",
)

FIGURE_2 = pa.table(
    {
        "Age": [25, 25, 30, 42, 50, 43, 38, 38, 38],
        "Country": ["Italy", "Italy", "France", "China", "Japan", "China", "USA", "USA", "USA"],
        "TopSpeed": [132, 132, 126, 120, 128, 120, 135, 131, 135],
    }
)


@pytest.mark.parametrize("greedy", ["median", "gain", "widest gain"])
def test_figure_2(greedy):
    job = Job.from_dict(
        {
            "k": 3,
            "l": 2,
            "sensitive": ["TopSpeed"],
            "quasi_identifiers": ["Age=interval", "Country=hierarchy:countries.csv"],
        },
        paths_required=False,
    )
    surveyor = Surveyor(job, FIGURE_2.schema, {"Country": WORLD})
    surveyor.add(FIGURE_2)
    anonymizer = Anonymizer(job, surveyor.finish(), {"Country": WORLD}, Cut(greedy))
    assert classes_of(anonymizer, FIGURE_2, Cut(greedy)) == {
        frozenset({0, 1, 2}),
        frozenset({3, 4, 5}),
        frozenset({6, 7, 8}),
    }
    released, summary, _ = anonymizer.release(FIGURE_2)
    published = Counter(
        (row["Age"], row["Country"], row["TopSpeed"]) for row in released.to_pylist()
    )
    assert published == Counter(
        [
            *[("[25, 30]", "Europe", speed) for speed in (132, 132, 126)],
            *[("[42, 50]", "Asia", speed) for speed in (120, 128, 120)],
            *[("38", "USA", speed) for speed in (135, 131, 135)],
        ]
    )
    assert summary["equivalence_classes"] == 3
    assert summary["DP"] == 27
    # Equations 3 and 4: 3 (5/25 + 3/9) + 3 (8/25 + 3/9) + 3 (0 + 0).
    assert summary["NCP"] == pytest.approx(3 * (5 / 25 + 3 / 9) + 3 * (8 / 25 + 3 / 9))
