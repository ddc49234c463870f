"""Criteria on the sides of a cut: the incremental sweeps against counting anew."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import brute_force
from examples import examples
from mondrian_ops.core import kernels
from mondrian_ops.core.kernels.criteria import cut_holds, halves_hold, mark_valid

LEVELS = {
    kernels.DISTINCT: st.integers(1, 4).map(float),
    kernels.ENTROPY: st.sampled_from([1.0, 1.5, 2.0, 2.5]),
    kernels.RECURSIVE: st.integers(1, 4).map(float),
    kernels.T_EQUAL: st.sampled_from([0.1, 0.3, 0.5]),
    kernels.T_ORDERED: st.sampled_from([0.1, 0.2, 0.4]),
    kernels.T_TREE: st.sampled_from([0.1, 0.3, 0.6]),
}
CODES = 4  # sensitive codes; their tree is ((0, 1), (2, 3))
PARENT = np.array([4, 4, 5, 5, 6, 6, -1], np.int32)
HEIGHT = np.array([0, 0, 0, 0, 0.5, 0.5, 1.0])


@st.composite
def nodes(draw):
    """Rows of one attribute with one or two sensitive columns, criteria on these, some rows."""
    rows = draw(st.integers(2, 25))
    codes = draw(st.lists(st.integers(0, 6), min_size=rows, max_size=rows))
    sensitive = draw(
        st.lists(
            st.lists(st.integers(0, CODES - 1), min_size=rows, max_size=rows),
            min_size=1,
            max_size=2,
        )
    )
    kinds = draw(st.lists(st.sampled_from(sorted(LEVELS)), min_size=1, max_size=3))
    column = [draw(st.integers(0, len(sensitive) - 1)) for _ in kinds]
    level = [draw(LEVELS[kind]) for kind in kinds]
    c = draw(st.sampled_from([0.5, 1.0, 2.0]))
    k = draw(st.integers(1, 4))
    shares = [np.bincount(sensitive[at], minlength=CODES) / rows for at in column]
    count = len(kinds)
    criteria = kernels.Criteria(
        k=k,
        kind=np.array(kinds, np.int64),
        column=np.array(column, np.int64),
        level=np.array(level, np.float64),
        c=np.full(count, c),
        codes=np.full(count, CODES, np.int64),
        uncounted=np.array([draw(st.integers(0, 1)) for _ in kinds], np.int64),
        share=np.concatenate(shares),
        share_first=np.arange(count + 1, dtype=np.int64) * CODES,
        parent=np.tile(PARENT, count),
        height=np.tile(HEIGHT, count),
        parent_first=np.arange(count + 1, dtype=np.int64) * len(PARENT),
    )
    taken = draw(st.permutations(range(rows)))
    start = draw(st.integers(0, rows - 2))
    stop = draw(st.integers(start + 2, rows))
    return rows_of(codes, sensitive), criteria, np.array(taken, np.int32), start, stop


def rows_of(codes, sensitive) -> kernels.Rows:
    size = max(codes) + 1
    table = np.zeros(size)
    return kernels.Rows(
        codes=np.array([codes], np.uint16),
        sensitive=np.array(sensitive, np.int32),
        kind=np.array([kernels.SET]),
        first=np.array([0, size]),
        low=table,
        high=table,
        step=table,
        span=np.ones(1),
        domain=np.ones(1),
        present=np.ones(1),
    )


def side_holds(rows, criteria, members) -> bool:
    """Every criterion on some rows, counted anew."""
    for j in range(len(criteria.kind)):
        counts = np.bincount(rows.sensitive[criteria.column[j], members], minlength=CODES)
        if not kernels.group_holds(
            counts,
            len(members),
            np.count_nonzero(counts),
            criteria,
            j,
            np.zeros(len(PARENT)),
            np.zeros(len(PARENT)),
        ):
            return False
    return True


def brute_holds(rows, criteria, members) -> bool:
    """The same of l-diversity by brute force, over the rows whose value counts."""
    for kind, column, level, c, uncounted in zip(
        *(criteria.kind, criteria.column, criteria.level, criteria.c, criteria.uncounted),
        strict=True,
    ):
        counts = Counter(code for code in rows.sensitive[column, members] if code >= uncounted)
        if kind == kernels.DISTINCT and len(counts) < level:
            return False
        if kind == kernels.ENTROPY and brute_force.entropy(counts) < math.log(level) - 1e-9:
            return False
        if kind == kernels.RECURSIVE and level > 1:
            diverse = bool(counts) and brute_force.recursive(counts, c, int(level))
            if not diverse:
                return False
    return side_holds(rows, criteria, members)


@examples(300)
@given(nodes())
def test_sweeps_find_what_counting_anew_finds(node):
    rows, criteria, index, start, stop = node
    policy = kernels.Policy(kernels.MEDIAN, 3, 0)
    work = kernels.new_work(len(index), int(rows.first[1]), 1, criteria, policy)
    members = index[start:stop]
    values, counts = np.unique(rows.codes[0, members], return_counts=True)
    expected = []
    for value in values[:-1]:
        left = members[rows.codes[0, members] <= value]
        right = members[rows.codes[0, members] > value]
        sides = side_holds(rows, criteria, left) and side_holds(rows, criteria, right)
        found = cut_holds(rows, index, start, stop, 0, 0, int(value), criteria, work)
        assert found == sides
        assert found == all(brute_holds(rows, criteria, side) for side in (left, right))
        expected.append(sides and min(len(left), len(right)) >= criteria.k)
    work.value[: len(values)] = values
    work.below[: len(values)] = np.cumsum(counts)
    mark_valid(rows, index, start, stop, 0, len(values), criteria, work)
    assert work.valid[: len(values) - 1].tolist() == expected
    assert not work.histogram.any()
    assert sorted(index.tolist()) == list(range(len(index)))


def test_counts_left_by_others_are_not_taken_for_missing_values():
    """Where values are many, only those of the node's rows are zeroed before they are counted."""
    sensitive, many = [1, 2, 1, 2], 1000
    criteria = kernels.Criteria(
        k=1,
        kind=np.array([kernels.DISTINCT]),
        column=np.zeros(1, np.int64),
        level=np.array([2.0]),
        c=np.zeros(1),
        codes=np.array([many]),
        uncounted=np.ones(1, np.int64),
        share=np.zeros(0),
        share_first=np.zeros(2, np.int64),
        parent=np.zeros(0, np.int32),
        height=np.zeros(0),
        parent_first=np.zeros(2, np.int64),
    )
    rows, index = rows_of([0, 0, 1, 1], [sensitive]), np.arange(4, dtype=np.int32)
    work = kernels.new_work(4, 2, 1, criteria, kernels.Policy(kernels.MEDIAN, 3, 0))
    work.left_counts[:] = 7
    work.right_counts[:] = 7
    work.value[:2], work.below[:2] = [0, 1], [2, 4]
    mark_valid(rows, index, 0, 4, 0, 2, criteria, work)
    assert work.valid[0]
    work.left_counts[:] = 7
    assert halves_hold(rows, index, 0, 2, 4, criteria, work)
