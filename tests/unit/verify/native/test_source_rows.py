"""Which rows of the source a part has, and whether it has their values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.verify.native.source_rows import distinct_rows, rows_differ

KINDS = [np.uint8, np.uint16, np.uint32, np.uint64]
VALUES, SOURCE = np.array([5, 6, 7], np.uint16), np.array([2, 0], np.int32)


@examples(100)
@given(st.lists(st.integers(0, 9), max_size=80))
def test_each_row_counts_once(source):
    assert distinct_rows(np.array(source, np.int32), 10) == len(set(source))


@examples(100)
@given(st.sampled_from(KINDS), st.data())
def test_one_changed_bit_is_a_difference(dtype, data):
    bits = np.iinfo(dtype).bits
    numbers = st.integers(0, (1 << bits) - 1)
    values = np.array(data.draw(st.lists(numbers, min_size=1, max_size=50)), dtype)
    places = st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=80)
    source = np.array(data.draw(places), np.int32)
    published = values[source]
    assert not rows_differ(published, values, source)
    published[data.draw(st.integers(0, len(source) - 1))] ^= dtype(
        1 << data.draw(st.integers(0, bits - 1))
    )
    assert rows_differ(published, values, source)


@pytest.mark.parametrize("row", [-1, 3])
def test_rows_that_the_source_has_not_are_an_error(row):
    source = np.array([0, row], np.int32)
    with pytest.raises(ValueError, match="source: has a row that is none of 3"):
        distinct_rows(source, 3)
    for kind in KINDS:
        with pytest.raises(ValueError, match="outside of its table"):
            rows_differ(VALUES[:2].astype(kind), VALUES.astype(kind), source)


def test_arrays_are_checked():
    with pytest.raises(TypeError, match="source: int32 expected"):
        distinct_rows(SOURCE.astype(np.int64), 3)
    with pytest.raises(TypeError, match="published: unsigned numbers expected, got int16"):
        rows_differ(VALUES[:2].astype(np.int16), VALUES.astype(np.int16), SOURCE)
    with pytest.raises(TypeError, match="values: uint16 expected, got uint8"):
        rows_differ(VALUES[:2], VALUES.astype(np.uint8), SOURCE)
    with pytest.raises(ValueError, match="source: shape"):
        rows_differ(VALUES, VALUES, SOURCE)
