"""Loops over finished classes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from mondrian_ops.core import kernels


@st.composite
def classed(draw):
    """Codes of rows, a permuted index, and where in it the classes start."""
    codes = draw(st.lists(st.integers(0, 9), min_size=1, max_size=40))
    index = draw(st.permutations(range(len(codes))))
    starts = draw(st.sets(st.integers(1, len(codes) - 1))) if len(codes) > 1 else set()
    return np.array(codes, np.uint8), np.array(index, np.int32), np.array([0, *sorted(starts)])


@examples(150)
@given(classed())
def test_extents_and_distinct_codes(case):
    codes, index, starts = case
    groups = [codes[part] for part in np.split(index, starts[1:])]
    low, high = kernels.extents(codes, index, starts)
    assert low.tolist() == [group.min() for group in groups]
    assert high.tolist() == [group.max() for group in groups]
    members, ends = kernels.distinct_per_class(codes, index, starts, 10)
    assert [part.tolist() for part in np.split(members, ends[:-1])] == [
        sorted(set(group.tolist())) for group in groups
    ]


@pytest.mark.parametrize("rows", [0, 5])
def test_rows_find_their_leaf(rows):
    places = np.array([[1, 0], [2, 0], [2, 5], [0, 9], [1, 6]], np.int32)[:rows]
    leaf = kernels.route_rows(
        places,
        np.array([0, -1, 1, -1, -1]),
        np.array([1, 0, 4, 0, 0]),
        np.array([1, 0, 3, 0, 0]),
        np.array([2, 0, 4, 0, 0]),
        np.array([-1, 0, -1, 1, 2]),
    )
    assert leaf.tolist() == [0, 1, 2, 0, 0][:rows]
