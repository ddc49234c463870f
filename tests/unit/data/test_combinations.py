"""Combinations of values against a plain count of tuples."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mondrian_ops.data.combinations import Combinations, CombinationTally
from mondrian_ops.data.encoding import indexed

VALUES = {
    "text": st.none() | st.sampled_from(["", "a", "b", "c d", "é"]),
    "number": st.none() | st.integers(-3, 3) | st.sampled_from([2**62, -(2**63)]),
    "fraction": st.none() | st.sampled_from([0.5, -1.5, float("inf")]),
}
TYPES = {"text": pa.string(), "number": pa.int64(), "fraction": pa.float64()}

rows_of = st.lists(st.tuples(*VALUES.values()), min_size=1, max_size=60)


def combined(rows, encode: bool = False) -> Combinations:
    columns = {}
    for name, column in zip(VALUES, zip(*rows, strict=True), strict=True):
        array = pa.array(column, TYPES[name])
        columns[name] = indexed(array.dictionary_encode() if encode else array)
    return Combinations.of(columns)


def tallied(found: Combinations) -> Counter:
    values = [found.values[name].take(pa.array(found.indices(name))) for name in VALUES]
    tuples = zip(*(each.to_pylist() for each in values), strict=True)
    counted = Counter()
    for each, rows in zip(tuples, found.frequencies.rows.tolist(), strict=True):
        counted[each] += rows
    return counted


@settings(deadline=None)
@given(rows_of, st.integers(1, 9), st.data())
def test_parts_come_to_the_same_as_the_whole(rows, size, data):
    tally = CombinationTally()
    for at in range(0, len(rows), size):
        tally.add(combined(rows[at : at + size], encode=data.draw(st.booleans())))
    found = tally.result()
    assert tallied(found) == Counter(rows)
    for name, column in zip(VALUES, zip(*rows, strict=True), strict=True):
        values, counts = found.counted(name)
        assert dict(zip(values.to_pylist(), counts.to_pylist(), strict=True)) == Counter(column)
    again = Combinations.from_columns(found.to_columns())
    assert tallied(again) == Counter(rows)
    assert again.frequencies.sizes == found.frequencies.sizes


def test_memory_follows_the_combinations_and_not_the_parts():
    """However many parts there are, few of them wait; the parts waited for are ever smaller."""
    tally = CombinationTally()
    waiting = []
    for at in range(200):
        tally.add(combined([("a", at % 50, None), ("b", at % 7, 0.5)]))
        waiting.append(sum(len(part.frequencies.rows) for part in tally._parts))
    assert max(waiting) <= 2 * (50 + 7)
    assert len(tally.result().frequencies.rows) == 57


@pytest.mark.parametrize("values", [[None, None], ["a", "a"]])
def test_a_value_in_no_row_is_not_told(values):
    array = pa.DictionaryArray.from_arrays(
        pa.array([None if each is None else 1 for each in values], pa.int32()), ["hidden", "a"]
    )
    tally = CombinationTally()
    tally.add(Combinations.of({"text": indexed(array)}))
    assert tally.result().values["text"].to_pylist() == [*{*values}]


def test_places_outgrow_a_word():
    """Many columns of many values need several words, and more as values are met."""
    generator = np.random.default_rng(1)
    columns = {f"c{at}": generator.integers(0, 10 ** (at % 5), 3_000) for at in range(30)}
    tally = CombinationTally()
    for at in range(0, 3_000, 100):
        part = {name: indexed(pa.array(each[at : at + 100])) for name, each in columns.items()}
        tally.add(Combinations.of(part))
    found = tally.result()
    values = [found.values[n].take(pa.array(found.indices(n))).to_pylist() for n in columns]
    expected = Counter(zip(*(each.tolist() for each in columns.values()), strict=True))
    assert dict(zip(zip(*values, strict=True), found.frequencies.rows.tolist(), strict=True)) == (
        expected
    )
