"""How often each code occurs in each class, against Counters."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.verify.native.value_counts import (
    CountedPairs,
    count_values,
    least_type,
    sum_by_code,
    sum_values,
)

KINDS = [np.uint8, np.uint16, np.uint32]
PLACES, STARTS = np.array([0, 1, 1], np.int32), np.array([0, 2], np.int32)
CODES = np.array([3, 1], np.uint8)


def counters(pairs: CountedPairs) -> list[Counter[int]]:
    """What each class has; each code must be there once."""
    found = []
    for start, stop in pairwise(pairs.first.tolist()):
        codes, counts = pairs.codes[start:stop].tolist(), pairs.counts[start:stop].tolist()
        assert len(set(codes)) == len(codes)
        assert all(counts)
        found.append(Counter(dict(zip(codes, counts, strict=True))))
    assert pairs.first[0] == 0
    assert pairs.first[-1] == len(pairs.codes) == len(pairs.counts)
    return found


@st.composite
def runs(draw):
    """Places of rows in a table of codes, divided into runs of one row at least."""
    values = draw(st.integers(1, 9))
    codes = np.array(
        draw(st.lists(st.integers(0, 11), min_size=values, max_size=values)),
        draw(st.sampled_from(KINDS)),
    )
    lengths = draw(st.lists(st.integers(1, 20), max_size=12))
    rows = sum(lengths)
    drawn = draw(st.lists(st.integers(0, values - 1), min_size=rows, max_size=rows))
    starts = np.cumsum([0, *lengths])[: len(lengths)]
    return np.array(drawn, np.int32), starts.astype(np.int32), codes


@examples(300)
@given(runs())
def test_codes_of_runs_are_counted(drawn):
    places, starts, codes = drawn
    pairs = count_values(places, starts, codes, 12)
    of_row = codes[places].tolist()
    ends = [*starts.tolist(), len(places)]
    assert counters(pairs) == [Counter(of_row[a:b]) for a, b in pairwise(ends)]
    assert pairs.codes.dtype == codes.dtype
    assert pairs.codes[pairs.first[:-1]].tolist() == [of_row[at] for at in starts]


@examples(300)
@given(runs(), st.data())
def test_classes_of_a_group_are_summed(drawn, data):
    places, starts, codes = drawn
    pairs = count_values(places, starts, codes, 12)
    before = counters(pairs)
    group_of = data.draw(st.lists(st.integers(0, 3), min_size=len(before), max_size=len(before)))
    order = np.argsort(group_of, kind="stable").astype(np.int32)
    _, first = np.unique(np.sort(group_of), return_index=True)
    times = data.draw(st.sampled_from([1, 300, 2**40]))
    many = pairs._replace(counts=least_type(pairs.counts.astype(np.int64) * times))
    groups = counters(sum_values(many, order, first.astype(np.int32), 12))
    expected: dict[int, Counter[int]] = {}
    for group, of_class in zip(group_of, before, strict=True):
        expected.setdefault(group, Counter()).update(
            {code: times * count for code, count in of_class.items()}
        )
    assert groups == [expected[group] for group in sorted(expected)]


@examples(100)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 250)), max_size=30),
    st.sampled_from(KINDS),
    st.sampled_from([np.uint8, np.uint16, np.uint32, np.uint64, np.int64]),
)
def test_weights_are_summed_by_code(rows, kind, weight):
    codes, weights = np.array(rows, np.int64).reshape(-1, 2).T
    expected: Counter[int] = Counter()
    for code, of_row in rows:
        expected[code] += of_row
    sums = sum_by_code(codes.astype(kind), weights.astype(weight), 7)
    assert sums.tolist() == [expected[code] for code in range(7)]


def test_counts_are_of_the_least_type_that_holds_them():
    pairs = count_values(np.zeros(300, np.int32), np.array([0], np.int32), CODES, 4)
    assert (pairs.counts.dtype, pairs.counts.tolist()) == (np.uint16, [300])
    twice = CountedPairs(np.array([0, 1, 2]), CODES[:1].repeat(2), np.array([200, 55], np.uint8))
    both = np.array([0, 1], np.int32)
    assert sum_values(twice, both, both[:1], 4).counts.dtype == np.uint8
    more = twice._replace(counts=np.array([200, 56], np.uint8))
    assert sum_values(more, both, both[:1], 4).counts.tolist() == [256]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", [-1, 2])
def test_a_place_outside_of_the_codes_is_an_error(kind, place):
    places = np.array([0, place], np.int32)
    with pytest.raises(ValueError, match="outside of its table"):
        count_values(places, STARTS[:1], CODES.astype(kind), 4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_code_outside_of_its_table_is_an_error(kind):
    codes = CODES.astype(kind)
    pairs = count_values(PLACES, STARTS, codes, 4)
    order = np.array([1, 0], np.int32)
    sum_values(pairs, order, order[1:], 4)
    for call in (
        lambda: count_values(PLACES, STARTS, codes, 3),
        lambda: sum_values(pairs, order, order[1:], 3),
        lambda: sum_by_code(codes, codes, 3),
    ):
        with pytest.raises(ValueError, match="outside of its table"):
            call()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", [[0, 2], [0, -1], [0, 0]])
def test_classes_that_are_none_or_there_twice_are_an_error(kind, order):
    pairs = count_values(PLACES, STARTS, CODES.astype(kind), 4)
    assert len(pairs.codes) == 3
    with pytest.raises(ValueError, match="outside of its table"):
        sum_values(pairs, np.array(order, np.int32), np.array([0, 1], np.int32), 4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_that_is_in_a_group_twice_is_not_counted_twice(kind):
    pairs = count_values(PLACES, STARTS, CODES.astype(kind), 4)
    with pytest.raises(ValueError, match="outside of its table"):
        sum_values(pairs, np.zeros(2, np.int32), np.zeros(1, np.int32), 4)


def test_arrays_are_checked():
    with pytest.raises(TypeError, match="places: int32 expected"):
        count_values(PLACES.astype(np.int64), STARTS, CODES, 4)
    with pytest.raises(TypeError, match="codes: uint8, uint16 or uint32 expected, got int64"):
        count_values(PLACES, STARTS, CODES.astype(np.int64), 4)
    for starts in ([0, 4], [2, 0], [-1, 2]):
        with pytest.raises(ValueError, match="starts: "):
            count_values(PLACES, np.array(starts, np.int32), CODES, 4)
    pairs = count_values(PLACES, STARTS, CODES, 4)
    order = np.array([0, 1], np.int32)
    for first in ([0, 2, 4], [0, 2, 1], [-1, 2, 3]):
        with pytest.raises(ValueError, match="first: "):
            sum_values(pairs._replace(first=np.array(first)), order, order, 4)
    with pytest.raises(ValueError, match="first: shape"):
        sum_values(pairs, order[:1], order[:1], 4)
    with pytest.raises(ValueError, match="counts: shape"):
        sum_values(pairs._replace(counts=pairs.counts[:1]), order, order, 4)
    for code_count in (-1, 1 << 33):
        for call in (
            lambda size: count_values(PLACES, STARTS, CODES, size),
            lambda size: sum_values(pairs, order, order, size),
            lambda size: sum_by_code(CODES, CODES, size),
        ):
            with pytest.raises(ValueError, match="code_count: from 0 to"):
                call(code_count)
    with pytest.raises(ValueError, match="weights: shape"):
        sum_by_code(CODES, CODES[:1], 4)
