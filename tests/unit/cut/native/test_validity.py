"""Criteria on the sides of a cut: the incremental sweeps against counting anew."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import brute_force
from hypothesis_profiles import examples
from mondrian_ops.cut.native import class_criteria
from mondrian_ops.cut.native.class_criteria import satisfies
from mondrian_ops.cut.native.mondrian import (
    GAIN,
    SET,
    KernelPolicy,
    Multiway,
    MultiwayTree,
    Rows,
    Tree,
)
from native_probes import Opened, no_criteria

LEVELS = {
    class_criteria.DISTINCT: st.integers(1, 4).map(float),
    class_criteria.ENTROPY: st.sampled_from([1.0, 1.5, 2.0, 2.5]),
    class_criteria.RECURSIVE: st.integers(1, 4).map(float),
    class_criteria.T_EQUAL: st.sampled_from([0.1, 0.3, 0.5]),
    class_criteria.T_ORDERED: st.sampled_from([0.1, 0.2, 0.4]),
    class_criteria.T_TREE: st.sampled_from([0.1, 0.3, 0.6]),
    class_criteria.NEAR: st.sampled_from([1.0, 1.5, 2.0, 3.0]),
    class_criteria.ASKED: st.sampled_from([0.4, 0.6, 0.8]),
}
CODES = 4  # sensitive codes; their tree is ((0, 1), (2, 3))
PARENT = np.array([4, 4, 5, 5, 6, 6, -1], np.int32)
HEIGHT = np.array([0, 0, 0, 0, 0.5, 0.5, 1.0])


def share_at_most(most):
    """A criterion that Python is asked: no value has more than this share of a class."""
    return lambda counts: counts.max(axis=1) <= most * counts.sum(axis=1)


@st.composite
def near_codes(draw, codes):
    """(codes,) the greatest code near each."""
    ends = draw(st.lists(st.integers(0, codes - 1), min_size=codes, max_size=codes))
    return np.maximum(np.sort(ends), np.arange(codes)).astype(np.int32)


@st.composite
def nodes(draw):
    """Rows of one attribute with one or two sensitive columns, criteria on these, a node."""
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
    near_ends = [draw(near_codes(CODES)) for _ in kinds]
    count = len(kinds)
    criteria = class_criteria.Criteria(
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
        near_end=np.concatenate(near_ends),
        near_first=np.arange(count + 1, dtype=np.int64) * CODES,
        asked=[share_at_most(each) for each in level],
    )
    start = draw(st.integers(0, rows - 2))
    stop = draw(st.integers(start + 2, rows))
    return rows_of(codes, sensitive), criteria, start, stop


def rows_of(codes, sensitive) -> Rows:
    size = max(codes) + 1
    table = np.zeros(size)
    return Rows(
        codes=np.array([codes], np.uint16),
        sensitive=np.array(sensitive, np.int32),
        kind=np.array([SET]),
        first=np.array([0, size]),
        low=table,
        high=table,
        step=table,
        span=np.ones(1),
        most=np.ones(1),
        present=np.ones(1),
    )


def test_an_error_of_what_is_asked_ends_the_cut_of_a_node():
    def asked(counts):
        raise ZeroDivisionError

    criteria = no_criteria(1)._replace(
        kind=np.array([class_criteria.ASKED]),
        column=np.zeros(1, np.int64),
        level=np.ones(1),
        c=np.ones(1),
        codes=np.full(1, 2),
        uncounted=np.zeros(1, np.int64),
        share_first=np.zeros(2, np.int64),
        parent_first=np.zeros(2, np.int64),
        near_first=np.zeros(2, np.int64),
        asked=[asked],
    )
    rows = rows_of([0, 0, 1, 1], [[0, 1, 0, 1]])
    for tree in (
        Tree(rows, criteria, KernelPolicy(GAIN, 1, 0)),
        MultiwayTree(rows, criteria, Multiway(1, 2)),
    ):
        with pytest.raises(ZeroDivisionError):
            tree.cut(0, 4)


def side_holds(rows, criteria, members) -> bool:
    """Every criterion on some rows, counted anew."""
    for j in range(len(criteria.kind)):
        codes = rows.sensitive[criteria.column[j], members]
        counts = np.bincount(codes, minlength=int(criteria.codes[j]))
        if not satisfies(counts, criteria, j):
            return False
    return True


def brute_holds(rows, criteria, members) -> bool:
    """The same of l-diversity by brute force, over the rows whose value counts."""
    for j, (kind, column, level, c, uncounted) in enumerate(
        zip(
            *(criteria.kind, criteria.column, criteria.level, criteria.c, criteria.uncounted),
            strict=True,
        )
    ):
        counts = Counter(code for code in rows.sensitive[column, members] if code >= uncounted)
        if kind == class_criteria.DISTINCT and len(counts) < level:
            return False
        if kind == class_criteria.ENTROPY and brute_force.entropy(counts) < math.log(level) - 1e-9:
            return False
        if kind == class_criteria.RECURSIVE and level > 1:
            diverse = bool(counts) and brute_force.recursive(counts, c, int(level))
            if not diverse:
                return False
        if kind == class_criteria.ASKED:
            every = Counter(rows.sensitive[column, members].tolist())
            if max(every.values()) > level * every.total():
                return False
        if kind == class_criteria.NEAR:
            end = criteria.near_end[criteria.near_first[j] :]
            if not brute_force.is_spread(
                counts, level, lambda one, other, end=end: other <= end[one]
            ):
                return False
    return side_holds(rows, criteria, members)


@examples(300)
@given(nodes(), st.booleans())
def test_sweeps_find_what_counting_anew_finds(node, few):
    """In rows that a cut moves, and in a few of them by the bits of a word."""
    rows, criteria, start, stop = node
    opened = Opened(rows, criteria)
    opened.node(start, stop, in_word=few)
    members = np.arange(start, stop)
    values = np.unique(rows.codes[0, members])
    expected = []
    for value in values[:-1]:
        left = members[rows.codes[0, members] <= value]
        right = members[rows.codes[0, members] > value]
        sides = side_holds(rows, criteria, left) and side_holds(rows, criteria, right)
        result = opened.cut_satisfies(0, int(value))
        assert result == sides
        assert result == all(brute_holds(rows, criteria, side) for side in (left, right))
        expected.append(sides and min(len(left), len(right)) >= criteria.k)
    assert opened.mark_valid() == expected
    assert opened.is_clean()
    assert opened.numbers() == list(range(rows.codes.shape[1]))


@examples(100)
@given(nodes(), st.booleans(), st.data())
def test_a_group_amid_the_others_holds_if_both_sides_do(node, few, data):
    rows, criteria, start, stop = node
    opened = Opened(rows, criteria)
    opened.node(start, stop, in_word=few)
    low = data.draw(st.integers(0, 6))
    high = data.draw(st.integers(low, 6))
    members = np.arange(start, stop)
    inside = (rows.codes[0, members] >= low) & (rows.codes[0, members] <= high)
    assume(inside.any() and not inside.all())
    sides = members[inside], members[~inside]
    assert opened.cut_satisfies(low, high) == all(
        side_holds(rows, criteria, side) for side in sides
    )


@examples(100)
@given(nodes(), st.data())
def test_halves_hold_if_both_do(node, data):
    rows, criteria, start, stop = node
    opened = Opened(rows, criteria)
    opened.node(start, stop)
    middle = data.draw(st.integers(1, stop - start - 1))
    halves = np.split(np.arange(start, stop), [middle])
    assert opened.halves_satisfy(middle) == all(side_holds(rows, criteria, half) for half in halves)
    assert opened.is_clean()
    assert opened.numbers() == list(range(rows.codes.shape[1]))


@st.composite
def numbers(draw):
    """Rows of one attribute with a column of many codes, whose stretches a criterion bounds."""
    rows, codes = draw(st.integers(2, 90)), draw(st.integers(2, 60))
    of_rows = st.lists(st.integers(0, codes - 1), min_size=rows, max_size=rows)
    values = draw(st.lists(st.integers(0, 6), min_size=rows, max_size=rows))
    criteria = no_criteria(draw(st.integers(1, 4)))._replace(
        kind=np.array([class_criteria.NEAR]),
        column=np.zeros(1, np.int64),
        level=np.array([draw(LEVELS[class_criteria.NEAR])]),
        c=np.zeros(1),
        codes=np.array([codes]),
        uncounted=np.array([draw(st.integers(0, 1))]),
        share_first=np.zeros(2, np.int64),
        parent_first=np.zeros(2, np.int64),
        near_end=draw(near_codes(codes)),
        near_first=np.array([0, codes]),
    )
    return rows_of(values, [draw(of_rows)]), criteria


@examples(200)
@given(numbers(), st.booleans())
def test_the_fullest_stretch_of_both_sides(node, few):
    rows, criteria = node
    count = rows.codes.shape[1]
    opened = Opened(rows, criteria)
    opened.node(0, count, in_word=few and count <= 64)
    members, values = np.arange(count), np.unique(rows.codes[0])
    expected = []
    for value in values[:-1]:
        left = rows.codes[0] <= value
        holds = all(brute_holds(rows, criteria, members[side]) for side in (left, ~left))
        assert opened.cut_satisfies(0, int(value)) == holds
        expected.append(holds and min(left.sum(), (~left).sum()) >= criteria.k)
    assert opened.mark_valid() == expected
    if not few:
        middle = count // 2
        assert opened.halves_satisfy(middle) == all(
            brute_holds(rows, criteria, half) for half in np.split(members, [middle])
        )
    assert opened.is_clean()
