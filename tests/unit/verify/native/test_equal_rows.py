"""Runs of equal rows, their keys, and the groups of equal keys."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.verify.native.equal_rows import (
    distances,
    equal_runs,
    group_keys,
    join_codes,
)

LONG = 2048 * 3 + 5  # more than two blocks of rows


def in_groups(keys: list[int]) -> list[list[int]]:
    """The rows of each key, by their first row."""
    rows = defaultdict(list)
    for row, key in enumerate(keys):
        rows[key].append(row)
    return list(rows.values())


@examples(200)
@given(st.integers(0, 3), st.sampled_from([0, 1, 5, 40, 2048, 2049, LONG]), st.integers(0, 99))
def test_a_run_begins_where_a_column_differs(columns, rows, seed):
    random = np.random.default_rng(seed)
    drawn = [np.repeat(random.integers(-1, 2, rows), 3)[:rows].astype(np.int32)] * columns
    drawn = [np.roll(column, at).copy() for at, column in enumerate(drawn)]
    starts = equal_runs(drawn, rows)
    rows_of = list(zip(*(column.tolist() for column in drawn), strict=True)) or [()] * rows
    expected = [0][:rows] + [
        at for at, (one, other) in enumerate(pairwise(rows_of), 1) if one != other
    ]
    assert starts.tolist() == expected


@pytest.mark.parametrize("at", [0, 1, 2047, 2048, 2049, 4095, 4096, LONG - 1])
def test_one_row_that_differs_is_a_run_wherever_it_is(at):
    columns = [np.zeros(LONG, np.int32), np.zeros(LONG, np.int32)]
    columns[1][at] = 1
    assert equal_runs(columns, LONG).tolist() == sorted({0, at, at + 1} - {LONG})


@examples(200)
@given(st.sampled_from(["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]), st.data())
def test_distances_are_from_the_least_number(kind, data):
    """Also from the least that the type has, and to its greatest."""
    limits = np.iinfo(kind)
    least = data.draw(st.sampled_from([limits.min, limits.max - 9]) | st.integers(0, 100))
    most = min(limits.max, least + 9)
    drawn = data.draw(st.lists(st.integers(least, most), max_size=20))
    size = data.draw(st.integers(1, most - least + 1))
    numbers = np.array([min(each, least + size - 1) for each in drawn], kind)
    places, met = distances(numbers, least, size)
    assert places.tolist() == [number - least for number in numbers.tolist()]
    assert np.flatnonzero(met).tolist() == sorted(set(places.tolist()))


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("number", [4, 9])
def test_a_number_outside_of_its_range_is_an_error(kind, number):
    numbers = np.array([5, number, 5], kind)
    with pytest.raises(ValueError, match="outside of its table"):
        distances(numbers, 5, 4)


@examples(200)
@given(st.data(), st.sampled_from([0, 1, 7, 2048, LONG]))
def test_keys_are_the_codes_in_mixed_radix(data, rows):
    kinds = data.draw(st.lists(st.sampled_from([np.uint8, np.uint16, np.uint32]), max_size=3))
    radices = [data.draw(st.integers(1, np.iinfo(kind).max)) for kind in kinds]
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    columns = [
        random.integers(0, radix, rows).astype(kind)
        for kind, radix in zip(kinds, radices, strict=True)
    ]
    keys = np.zeros(rows, np.uint64)
    if np.prod([float(radix) for radix in radices]) > 1 << 64:
        return
    join_codes(columns, radices, keys)
    expected = [0] * rows
    for column, radix in zip(columns, radices, strict=True):
        expected = [key * radix + code for key, code in zip(expected, column.tolist(), strict=True)]
    assert keys.tolist() == expected


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("at", [0, 2048, LONG - 1])
def test_a_code_that_is_not_below_its_radix_is_an_error(kind, at):
    """It would make two different rows equal."""
    column = np.zeros(LONG, kind)
    column[at] = 4
    join_codes([column], [5], np.zeros(LONG, np.uint64))
    with pytest.raises(ValueError, match="outside of its table"):
        join_codes([column], [4], np.zeros(LONG, np.uint64))


@examples(300)
@given(
    st.lists(
        st.one_of(
            st.integers(0, 5),
            st.integers(0, 2**64 - 1),
            # Such as differ in a few bits only, high or low ones.
            st.sampled_from([1 << at for at in range(64)]),
        ),
        max_size=60,
    )
)
def test_groups_are_of_equal_keys_in_the_order_of_their_first_row(keys):
    order, starts = group_keys(np.array(keys, np.uint64))
    ends = [*starts.tolist(), len(keys)]
    groups = [order[start:stop].tolist() for start, stop in pairwise(ends)]
    assert groups == in_groups(keys)


@pytest.mark.parametrize("distinct", [1, 7, 900, 20_000])
def test_many_keys_are_grouped(distinct):
    keys = np.random.default_rng(1).integers(0, 1 << 63, distinct).astype(np.uint64)
    keys = keys[np.random.default_rng(2).integers(0, distinct, 20_000)]
    order, starts = group_keys(keys)
    groups = in_groups(keys.tolist())
    assert order.tolist() == [row for rows in groups for row in rows]
    assert np.diff(starts, append=len(keys)).tolist() == [len(rows) for rows in groups]


def colliding(count: int) -> list[int]:
    """Different keys with one hash: those of the hash's formula, turned round."""
    mask = (1 << 64) - 1
    first, second = (pow(each, -1, 1 << 64) for each in (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93))
    keys = []
    for low in range(count):
        mixed = (low * second) & mask  # hashes that differ in their lowest bits only
        mixed ^= mixed >> 32
        keys.append((mixed * first) & mask)
    return keys


def test_keys_whose_hashes_look_alike_are_not_one():
    """The part of the hash that a slot holds is the same, and so is the slot."""
    keys = colliding(5_000)
    assert len(set(keys)) == 5_000
    order, starts = group_keys(np.array(keys + keys[:100], np.uint64))
    assert len(starts) == 5_000
    assert order[:4].tolist() == [0, 5_000, 1, 5_001]


def test_arrays_are_checked():
    places, keys = np.zeros(3, np.int32), np.zeros(3, np.uint64)
    with pytest.raises(TypeError, match="columns: int32 expected"):
        equal_runs([places.astype(np.int64)], 3)
    with pytest.raises(ValueError, match="columns: shape"):
        equal_runs([places], 4)
    with pytest.raises(TypeError, match="numbers: whole numbers expected, got float64"):
        distances(np.zeros(3), 0, 1)
    with pytest.raises(ValueError, match="least: a number of type int32 expected"):
        distances(places, 1 << 31, 1)
    with pytest.raises(TypeError, match="columns: uint8, uint16 or uint32 expected, got int32"):
        join_codes([places], [2], keys)
    with pytest.raises(TypeError, match="columns: uint8, uint16 or uint32 expected, got uint64"):
        join_codes([keys], [2], keys)
    with pytest.raises(ValueError, match="radices: one for each column"):
        join_codes([places.view(np.uint32)], [2, 2], keys)
    with pytest.raises(TypeError, match="keys: uint64 expected"):
        group_keys(places)
    keys.flags.writeable = False
    with pytest.raises(ValueError, match="keys: must be writable"):
        join_codes([places.view(np.uint32)], [2], keys)
