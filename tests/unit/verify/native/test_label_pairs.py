"""Marking which pairs of a label and a value occur."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.verify.native.label_pairs import mark_pairs

LABELS, SOURCE = np.array([0, 1], np.int32), np.array([2, 0], np.int32)
CODES = np.array([3, 1, 2], np.uint8)


@examples(200)
@given(st.sampled_from([np.uint8, np.uint16, np.int32]), st.data())
def test_marks_are_those_of_the_rows(dtype, data):
    label_count, value_count = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 256))
    codes = data.draw(st.lists(st.integers(0, value_count - 1), min_size=1, max_size=30))
    pairs = st.tuples(st.integers(0, label_count - 1), st.integers(0, len(codes) - 1))
    rows = np.array(data.draw(st.lists(pairs, max_size=60)), np.int32).reshape(-1, 2)
    marks = np.zeros((label_count, value_count), bool)
    mark_pairs(*map(np.ascontiguousarray, rows.T), np.array(codes, dtype), marks)
    marked = {(int(label), int(value)) for label, value in np.argwhere(marks)}
    assert marked == {(label, codes[source]) for label, source in rows.tolist()}


@pytest.mark.parametrize(
    ("labels", "source", "values"),
    [([0, 2], [2, 0], 4), ([0, -1], [2, 0], 4), ([0, 1], [2, 3], 4), ([0, 1], [2, -1], 4),
     ([0, 1], [2, 0], 3)],
)  # fmt: skip
def test_numbers_outside_of_their_tables_are_an_error(labels, source, values):
    marks = np.zeros((2, values), bool)
    with pytest.raises(ValueError, match="outside of its table"):
        mark_pairs(np.array(labels, np.int32), np.array(source, np.int32), CODES, marks)


def test_arrays_are_checked():
    marks = np.zeros((2, 4), bool)
    with pytest.raises(TypeError, match="codes: uint8, uint16 or int32 expected, got int64"):
        mark_pairs(LABELS, SOURCE, CODES.astype(np.int64), marks)
    with pytest.raises(TypeError, match="labels: int32 expected"):
        mark_pairs(LABELS.astype(np.int64), SOURCE, CODES, marks)
    with pytest.raises(ValueError, match="source: shape"):
        mark_pairs(LABELS, SOURCE[:1], CODES, marks)
    with pytest.raises(ValueError, match="marks: must be C-contiguous"):
        mark_pairs(LABELS, SOURCE, CODES, np.zeros((4, 2), bool).T)
    marks.flags.writeable = False
    with pytest.raises(ValueError, match="marks: must be writable"):
        mark_pairs(LABELS, SOURCE, CODES, marks)
