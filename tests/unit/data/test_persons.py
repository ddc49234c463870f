"""Persons in the leaves of a plan, against sets."""

from __future__ import annotations

import hashlib
import math
from decimal import Decimal
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.data.persons import LeafPersons, encode_persons

LEAVES = 3
ROWS = st.lists(st.tuples(st.integers(0, LEAVES - 1), st.none() | st.integers(0, 9)), max_size=12)


def persons_in(enough, leaf, column):
    return next(LeafPersons.of_each(enough, [leaf], column))


@examples(300)
@given(st.lists(ROWS, max_size=4), st.integers(2, 6), st.sets(st.integers(0, LEAVES - 1)))
def test_batches_together_tell_whether_there_are_enough(batches, enough, leaves):
    met = LeafPersons.nobody(enough)
    result = [
        persons_in(
            enough,
            np.array([leaf for leaf, _ in rows], np.int64),
            pa.array([person for _, person in rows], pa.int64()),
        )
        for rows in batches
    ]
    for each in result:
        met = met.added([each])
    persons = {person for rows in batches for leaf, person in rows if leaf in leaves}
    # Up to `enough` of them the number is exact; then it says that there are as many.
    for counted in (met, LeafPersons.nobody(enough).added(result)):
        assert min(enough, counted.within(sorted(leaves))) == min(enough, len(persons))
        assert np.bincount(counted.leaf, minlength=LEAVES).max(initial=0) <= enough
        for first, stop in combinations(range(LEAVES + 1), 2):
            assert counted.between(first, stop) == counted.within(range(first, stop))


@pytest.mark.parametrize("enough", [2, 5, 40])
def test_many_rows_are_counted_as_few_are(enough):
    """Leaves that are full early, that fill up late, and that only the last rows are in."""
    draw = np.random.default_rng(enough)
    leaf = draw.choice([0, 0, 0, 0, 2, 3], 20_000)
    leaf[5_000] = leaf[9_000] = 1
    leaf[-30:] = 5
    person = draw.integers(0, 500, 20_000)
    counted = persons_in(enough, leaf, pa.array(person))
    for number in range(6):
        met = len(set(person[leaf == number].tolist()))
        assert counted.between(number, number + 1) == min(enough, met)


def test_rows_are_in_one_leaf_by_each_of_several_ways():
    column, ways = pa.array(["a", "b", "a", None]), [np.array([0, 0, 1, 1]), np.array([5, 2, 5, 2])]
    result = LeafPersons.of_each(2, ways, column)
    for each, leaf in zip(result, ways, strict=True):
        alone = persons_in(2, leaf, column)
        assert each.leaf.tolist() == alone.leaf.tolist()
        assert each.person.tolist() == alone.person.tolist()


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, None, 1],
        ["a", "b", None, "a"],
        [b"\xff\x00", b"\xfe", None, b"\xff\x00"],
        [Decimal("1.50"), Decimal("2.00"), None, Decimal("1.50")],
        [0.5, math.nan, None, 0.5, -1.0],
    ],
    ids=str,
)
@pytest.mark.parametrize("encoded", [False, True])
def test_missing_values_are_one_person(values, encoded):
    column = pa.array(values)
    column = column.dictionary_encode() if encoded else column
    counted = persons_in(9, np.zeros(len(values), np.int64), column)
    assert counted.within([0]) == 3
    domain, codes = encode_persons("id", column)
    assert len(domain.counts) == 3
    assert domain.counts.sum() == len(values)
    assert codes[0] == codes[3] != codes[1]
    assert codes[2] == 0
    present, codes = encode_persons("id", column.take(pa.array([0, 3])))
    assert present.counts.tolist() == [2]
    assert codes.tolist() == [0, 0]


@pytest.mark.parametrize("type_", [pa.binary(2), pa.large_binary(), pa.large_string()])
def test_persons_of_bytes_and_long_texts_are_the_same_ones(type_):
    values = [b"ab", b"cd", b"ab"] if not pa.types.is_large_string(type_) else ["ab", "cd", "ab"]
    if pa.types.is_fixed_size_binary(type_):
        values = [b"\xff\xfe" if each == b"cd" else each for each in values]
    counted = persons_in(9, np.zeros(3, np.int64), pa.array(values, type_))
    assert counted.within([0]) == 2
    digest = hashlib.blake2b(b"ab", digest_size=8).digest()
    assert int.from_bytes(digest, "little", signed=True) in counted.person


def test_a_person_is_the_same_in_every_process():
    """The engines count in many, and add up what they met."""
    met = persons_in(5, np.zeros(2, np.int64), pa.array(["ann", None]))
    digest = hashlib.blake2b(b"ann", digest_size=8).digest()
    assert met.person.tolist() == [0, int.from_bytes(digest, "little", signed=True)]
