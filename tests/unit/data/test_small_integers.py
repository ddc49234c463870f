"""Integers within a small range: in chunks, in slices, with missing values, of every width."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.data.small_integers import SmallIntegers, count, look_up

TYPES = (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.int64(), pa.uint64())


@st.composite
def columns(draw):
    """A column in chunks, each a slice of a longer one, and its values."""
    kind = draw(st.sampled_from(TYPES))
    ends = np.iinfo(kind.to_pandas_dtype())
    least = draw(st.sampled_from([int(ends.min), int(ends.max) - 9, 5]))
    value = st.none() | st.integers(least, least + 9)
    chunks, values = [], []
    for _ in range(draw(st.integers(1, 4))):
        drawn = draw(st.lists(value, max_size=20))
        start = draw(st.integers(0, len(drawn)))
        chunks.append(pa.array(drawn, kind).slice(start))
        values += drawn[start:]
    return pa.chunked_array(chunks, kind), values


@examples(300)
@given(columns())
def test_each_row_has_the_entry_of_its_value(case):
    column, values = case
    small = SmallIntegers.of(column)
    present = [value for value in values if value is not None]
    if not present:
        assert small is None
        return
    numbers = list(range(min(present), max(present) + 1))
    assert small.numbers.to_pylist() == numbers
    assert small.numbers.type == column.type
    entries = [len(numbers) if value is None else numbers.index(value) for value in values]
    assert np.flatnonzero(small.occurs()).tolist() == sorted({*entries})
    table = np.arange(len(numbers) + 1, dtype=np.uint16) * 3
    assert small.look_up(table).tolist() == [3 * entry for entry in entries]


@pytest.mark.parametrize(
    "column",
    [pa.array([1, 2 + (1 << 12)]), pa.array([1.5]), pa.array([True]), pa.array(["1"]),
     pa.array([], pa.int8()), pa.array([1, 1]).dictionary_encode()],
    ids=["far apart", "float", "bool", "text", "empty", "dictionary"],
)  # fmt: skip
def test_other_columns_have_no_table(column):
    assert SmallIntegers.of(column) is None


def test_numbers_are_looked_up_and_counted_whatever_their_width():
    for dtype in (np.int8, np.uint16, np.int32, np.int64):
        numbers = np.array([3, 0, 3], dtype)
        assert look_up(np.array([5, 6, 7, 8.5]), numbers).tolist() == [8.5, 5, 8.5]
        assert count(numbers[::2], 4).tolist() == [0, 0, 0, 2]
    with pytest.raises(ValueError, match="outside"):
        count(np.array([4]), 4)
