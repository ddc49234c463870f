"""Codes that are present, looked up for 16 attributes at once, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.cut.native.class_criteria import DISTINCT
from mondrian_ops.cut.native.mondrian import (
    BALANCED,
    BLOCK,
    INTERVAL,
    MEDIAN,
    RELAXED,
    SET,
    TREE,
    KernelPolicy,
    Rows,
    classes,
)
from native_probes import Opened, classes_by, no_criteria

FEW, NARROW = 16, 64  # codes that are looked up; codes of which a word has a bit each


def rows_of(codes: np.ndarray, sizes: list[int], sensitive: int = 0) -> Rows:
    """Rows with as many codes of each attribute as ``sizes`` says, of all kinds by turns."""
    first = np.cumsum([0, *sizes])
    places = np.concatenate([np.linspace(0, 1, size) for size in sizes])
    generator = np.random.default_rng(0)
    return Rows(
        codes=codes,
        sensitive=generator.integers(0, 5, (sensitive, codes.shape[1]), np.int32),
        kind=np.resize([INTERVAL, TREE, SET], len(sizes)),
        first=first,
        low=places,
        high=places,
        step=_steps(sizes, generator),
        span=np.ones(len(sizes)),
        most=np.ones(len(sizes)),
        present=np.maximum(1.0, np.array(sizes) - 1.0),
    )


def _steps(sizes, generator):
    """Steps of trees; what one value, two, ... lose of the sets, which are each third attribute."""
    steps = [generator.choice([0.25, 0.5, 1.0], size) for size in sizes]
    steps[2::3] = [np.arange(size) / max(1, size - 2) for size in sizes[2::3]]
    return np.concatenate(steps)


@st.composite
def tables(draw) -> Rows:
    """Rows of up to 40 attributes, each of up to 64 codes."""
    sizes = draw(
        st.lists(st.sampled_from([1, 2, 8, 9, 15, FEW, 17, 40, NARROW]), min_size=1, max_size=40)
    )
    count = draw(st.integers(1, 300))
    generator = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    most = [generator.integers(1, size + 1) for size in sizes]  # some codes are absent
    codes = np.array([generator.integers(0, each, count) for each in most], np.uint8)
    return rows_of(codes, sizes, draw(st.integers(0, 2)))


@examples(200)
@given(tables(), st.data())
def test_codes_present_in_a_node(rows, data):
    count = rows.codes.shape[1]
    start = data.draw(st.integers(0, count - 1))
    stop = data.draw(st.integers(start + 1, count))
    opened = Opened(rows)
    opened.node(start, stop)
    node = rows.codes[:, start:stop]
    assert opened.present() == [set(column.tolist()) for column in node]
    for a, column in enumerate(node):
        few = rows.first[a + 1] - rows.first[a] <= FEW and stop - start <= 255
        below = [int((column <= v).sum()) for v in range(FEW)]
        assert opened.count_few(a) == (below if few else None)


@pytest.mark.parametrize("rows", [1, 255, 256])
def test_rows_that_all_have_the_last_code(rows):
    opened = Opened(rows_of(np.full((1, rows), FEW - 1, np.uint8), [FEW]))
    assert opened.present() == [{FEW - 1}]
    assert opened.count_few(0) == ([0] * 15 + [rows] if rows <= 255 else None)


@pytest.mark.servers  # which it needs not, but a compilation of its own
@pytest.mark.parametrize("greedy", [MEDIAN, BALANCED, RELAXED])
@pytest.mark.parametrize("count", [400, BLOCK + 3000])
def test_processors_without_look_ups_find_the_same_classes(greedy, count):
    """Of attributes of every width, with missing values and a criterion that cuts may break."""
    sizes = [5, 14, FEW, 17, NARROW, 65, 300, 14, 3, 14] * 2
    generator = np.random.default_rng(count)
    codes = np.array([generator.integers(0, size, count) for size in sizes], np.uint16)
    rows = rows_of(codes, sizes, sensitive=1)
    criteria = no_criteria(3)._replace(
        kind=np.array([DISTINCT]),
        column=np.zeros(1, np.int64),
        level=np.array([3.0]),
        c=np.zeros(1),
        codes=np.array([5]),
        uncounted=np.ones(1, np.int64),
        share_first=np.zeros(2, np.int64),
        parent_first=np.zeros(2, np.int64),
        near_first=np.zeros(2, np.int64),
    )
    policy = KernelPolicy(greedy, 3, 0)
    index, starts = classes(rows, criteria, policy)
    other_index, other_starts = classes_by("-DWITHOUT_LOOK_UPS", rows, criteria, policy)
    assert len(starts) > count // 20
    np.testing.assert_array_equal(other_index, index)
    np.testing.assert_array_equal(other_starts, starts)
