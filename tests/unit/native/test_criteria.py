"""The criteria on the counts of a group, against their formulas."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brute_force
from examples import examples
from mondrian_ops.native.criteria import group_holds
from mondrian_ops.native.model import (
    DISTINCT,
    ENTROPY,
    RECURSIVE,
    T_EQUAL,
    T_ORDERED,
    T_TREE,
    Criteria,
)

TREE = {"a": ["x", "*"], "b": ["x", "*"], "c": ["y", "*"], "d": ["y", "*"]}
PARENT = np.array([4, 4, 5, 5, 6, 6, -1], np.int32)
HEIGHT = np.array([0, 0, 0, 0, 0.5, 0.5, 1.0])
COUNTS = st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any)
LEVELS = st.sampled_from([1.0, 2.0, 3.0, 4.0])
NEARNESS = st.sampled_from([0.1, 0.25, 0.4, 0.6])


def criteria_of(kind, level, whole, *, c=1.0, uncounted=0) -> Criteria:
    whole = np.array(whole)
    return Criteria(
        k=1,
        kind=np.array([kind]),
        column=np.array([0]),
        level=np.array([level]),
        c=np.array([c]),
        codes=np.array([4]),
        uncounted=np.array([uncounted]),
        share=whole / whole.sum(),
        share_first=np.array([0, 4]),
        parent=PARENT,
        height=HEIGHT,
        parent_first=np.array([0, 7]),
    )


def holds(counts, criteria) -> bool:
    return group_holds(np.array(counts), sum(counts), sum(map(bool, counts)), criteria, 0)


@examples(300)
@given(COUNTS, LEVELS, st.sampled_from([0.5, 1.0, 2.5]), st.integers(0, 1))
def test_diversity(counts, level, c, uncounted):
    values = Counter({code: n for code, n in enumerate(counts) if n and code >= uncounted})
    few = criteria_of(DISTINCT, level, counts, uncounted=uncounted)
    assert holds(counts, few) == (len(values) >= level)
    even = criteria_of(ENTROPY, level, counts, uncounted=uncounted)
    assert holds(counts, even) == (brute_force.entropy(values) >= math.log(level) - 1e-9)
    if level > 1:
        frequent = criteria_of(RECURSIVE, level, counts, c=c, uncounted=uncounted)
        expected = bool(values) and brute_force.recursive(values, c, int(level))
        assert holds(counts, frequent) == expected


@examples(300)
@given(COUNTS, COUNTS, NEARNESS)
def test_closeness(counts, others, t):
    part, whole = Counter(), Counter()
    for name, n, other in zip(TREE, counts, others, strict=True):
        part[name], whole[name] = n, n + other
    listed = list(whole.values())
    equal = brute_force.closeness_equal(part, whole)
    assert holds(counts, criteria_of(T_EQUAL, t, listed)) == (equal <= t + 1e-9)
    carried = np.cumsum(np.array(counts) / sum(counts) - np.array(listed) / sum(listed))
    ordered = np.abs(carried[:-1]).sum() / 3
    if abs(ordered - t) > 1e-6:
        assert holds(counts, criteria_of(T_ORDERED, t, listed)) == (ordered < t)
    difference = np.array(counts) / sum(counts) - np.array(listed) / sum(listed)
    left, right = difference[:2], difference[2:]
    # What moves inside a half goes up to the half, half as high as the tree; the rest to the root.
    near = sum(min(side[side > 0].sum(), -side[side < 0].sum()) for side in (left, right)) / 2
    distance = near + abs(left.sum())
    if abs(distance - t) > 1e-6:
        assert holds(counts, criteria_of(T_TREE, t, listed)) == (distance < t)


def test_what_is_not_there_is_refused():
    criteria = criteria_of(DISTINCT, 2.0, [1, 1, 1, 1])
    with pytest.raises(ValueError, match="none of number 1"):
        group_holds(np.ones(4, np.int64), 4, 4, criteria, 1)
    with pytest.raises(ValueError, match="counts: shape"):
        group_holds(np.ones(3, np.int64), 3, 3, criteria, 0)
    with pytest.raises(TypeError, match="counts: int64 expected"):
        group_holds(np.ones(4, np.int32), 4, 4, criteria, 0)


@pytest.mark.parametrize(
    ("counts", "total", "distinct", "text"),
    [
        ([1, 1, 1, 1], -1, 4, "total, distinct: got -1 rows"),
        ([1, 1, 1, 1], 1 << 62, 4, "total, distinct: "),
        ([1, 1, 1, 1], 4, 5, "total, distinct: got 4 rows of 5 of 4 codes"),
        ([5, 1, 1, 1], 4, 4, "counts: all must be from 0 to less than 5"),
        ([-1, 1, 1, 1], 4, 4, "counts: "),
    ],
)
def test_counts_that_cannot_be_are_refused(counts, total, distinct, text):
    criteria = criteria_of(DISTINCT, 2.0, [1, 1, 1, 1])
    with pytest.raises(ValueError, match=text):
        group_holds(np.array(counts), total, distinct, criteria, 0)
