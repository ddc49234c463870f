"""Tables over integers within a small range, as a loop in Python would use them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.data.native.lookup import SmallRange, count_pairs

WIDTHS = st.sampled_from(["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])


@st.composite
def ranges(draw):
    """Values that are there or not, the least of them, and the entry of each."""
    dtype = np.dtype(draw(WIDTHS))
    ends = np.iinfo(dtype)
    size = draw(st.integers(1, 300))
    least = draw(st.sampled_from([int(ends.min), int(ends.max) - size + 1, -1, 0, 7]))
    least = min(max(least, int(ends.min)), int(ends.max))
    size = min(size, int(ends.max) - least + 1)
    values = draw(st.lists(st.integers(least, least + size - 1), max_size=40))
    entries = [value - least for value in values]
    numbers = np.array(values, dtype)
    if draw(st.booleans()):
        return SmallRange(numbers, least, size), entries
    first = draw(st.integers(0, 20))
    is_valid = draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    bits = np.packbits([*[True] * first, *is_valid, False], bitorder="little")
    entries = [entry if valid else size for entry, valid in zip(entries, is_valid, strict=True)]
    outside = numbers.copy()  # what is under a missing value is nothing
    outside[~np.array(is_valid, bool)] = ends.max
    return SmallRange(outside, least, size, bits, first), entries


@examples(400)
@given(ranges(), st.sampled_from(["u1", "u2", "i4", "u4", "f8"]))
def test_marks_counts_and_finds_entries(case, dtype):
    of, entries = case
    occurs, rows = np.zeros(of.size + 1, bool), np.zeros(of.size + 1, np.int64)
    of.mark(occurs)
    of.tally(rows)
    assert np.flatnonzero(occurs).tolist() == sorted({*entries})
    assert rows.tolist() == [entries.count(at) for at in range(of.size + 1)]
    table = np.random.default_rng(1).integers(0, 250, of.size + 1).astype(dtype)
    found = np.zeros(len(entries), dtype)
    of.look_up(table, found)
    assert found.tolist() == table[entries].tolist()


@pytest.mark.parametrize("size", [1, 15, 16, 17, 100, 127, 128, 129, 256])
def test_bytes_are_looked_up_many_at_once(size):
    random, rows = np.random.default_rng(size), (1 << 12) + 21
    entries, least = random.integers(0, size, rows), -(size // 2)
    table, found = random.integers(1, 256, size, np.uint8), np.zeros(rows, np.uint8)
    of = SmallRange((entries + least).astype(np.int8), least, size)
    of.look_up(table, found)
    assert np.array_equal(found, table[entries])
    for at in () if size == 256 else (0, 15, 1 << 12, rows - 1):
        for beyond in (least - 1, least + size):
            values = of.values.copy()
            values[at] = np.int64(beyond).astype(np.int8)
            with pytest.raises(ValueError, match="outside"):
                of._replace(values=values).look_up(table, found)


@pytest.mark.parametrize("value", [-1, 4, 100, -128])
def test_a_value_outside_of_the_range_is_refused(value):
    of = SmallRange(np.array([0, 3, value], np.int8), 0, 4)
    for work in (
        lambda: of.mark(np.zeros(5, bool)),
        lambda: of.tally(np.zeros(5, np.int64)),
        lambda: of.look_up(np.zeros(5, np.uint8), np.zeros(3, np.uint8)),
    ):
        with pytest.raises(ValueError, match="outside"):
            work()


def test_tables_that_do_not_fit_are_refused():
    of = SmallRange(np.zeros(3, np.int8), 0, 4)
    with pytest.raises(ValueError, match="table: 4 entries"):
        of.mark(np.zeros(3, bool))
    with pytest.raises(ValueError, match="table: 4 entries"):
        of._replace(valid=np.zeros(1, np.uint8)).mark(np.zeros(4, bool))
    with pytest.raises(ValueError, match="found: shape"):
        of.look_up(np.zeros(5, np.uint8), np.zeros(2, np.uint8))
    with pytest.raises(TypeError, match="found: uint8"):
        of.look_up(np.zeros(5, np.uint8), np.zeros(3, np.int8))
    with pytest.raises(ValueError, match="valid: has fewer bits"):
        of._replace(valid=np.zeros(1, np.uint8), first=6).mark(np.zeros(5, bool))
    with pytest.raises(TypeError, match="values: integers"):
        of._replace(values=np.zeros(3)).mark(np.zeros(5, bool))


@examples(100)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), max_size=40))
def test_counts_pairs(pairs):
    leaf, codes = np.array(pairs, np.int32).reshape(-1, 2).T
    expected = [[pairs.count((at, code)) for code in range(5)] for at in range(7)]
    for dtype in (np.uint8, np.uint16, np.uint32):
        found = count_pairs(leaf.astype(dtype), np.ascontiguousarray(codes), 7, 5)
        assert found.tolist() == expected


@pytest.mark.parametrize("pair", [(7, 0), (0, 5), (0, -1)])
def test_a_pair_outside_of_the_table_is_refused(pair):
    leaf, codes = np.array([pair[0]], np.uint8), np.array([pair[1]], np.int32)
    with pytest.raises(ValueError, match="outside"):
        count_pairs(leaf, codes, 7, 5)
