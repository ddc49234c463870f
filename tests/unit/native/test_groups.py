"""Which groups of combinations hold, against each group's counts by themselves."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops.core.criteria import (
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    Privacy,
    RecursiveDiversity,
    SensitiveDomain,
    TCloseness,
)
from mondrian_ops.core.hierarchy import Hierarchy
from mondrian_ops.native.groups import groups_hold

LEAVES = ["a", "b", "c", "d"]
TREE = Hierarchy.from_rows([[leaf, "xy"[at // 2], "*"] for at, leaf in enumerate(LEAVES)], "tree")
CRITERIA = st.sampled_from(
    [
        DistinctDiversity("s", 2),
        DistinctDiversity("t", 3),
        DistinctDiversity("t", 3, missing_counts=True),
        EntropyDiversity("s", 1.5),
        RecursiveDiversity("t", 2, ratio=1.5),
        TCloseness("s", 0.4, "equal"),
        TCloseness("t", 0.3, "ordered"),
        TCloseness("t", 0.25, "hierarchical", TREE),
    ]
)
COMBINATION = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(1, 4))


@given(
    st.lists(COMBINATION, min_size=1, max_size=12),
    st.lists(CRITERIA, max_size=3),
    st.integers(1, 5),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_each_group_by_its_own_counts(combinations, criteria, k, missing, random):
    group, *sensitive, rows = map(np.array, zip(*combinations, strict=True))
    size = len(LEAVES) + missing  # code 0 is the missing value, or the first one
    counts = [np.bincount(codes, rows, size).astype(np.int64) for codes in sensitive]
    domains = [
        SensitiveDomain(name, pa.array(LEAVES), each)
        for name, each in zip("st", counts, strict=True)
    ]
    privacy = Privacy(KAnonymity(k), tuple(criteria))
    shuffled = list(range(len(rows)))
    random.shuffle(shuffled)
    index = np.array(sorted(shuffled, key=group.__getitem__), np.int32)
    numbers, starts = np.unique(group[index], return_index=True)
    found = groups_hold(index, starts, np.array(sensitive, np.int32), rows, privacy.kernel(domains))
    for number, holds in zip(numbers, found, strict=True):
        some = group == number
        own = [np.bincount(codes[some], rows[some], size).astype(np.int64) for codes in sensitive]
        assert holds == privacy.holds(int(rows[some].sum()), own, domains)


K_ONLY = Privacy(KAnonymity(2), ()).kernel([])
INDEX, STARTS = np.arange(4, dtype=np.int32), np.array([0, 3])
NONE, ROWS = np.zeros((0, 4), np.int32), np.ones(4, np.int64)


def test_without_criteria_the_rows_count():
    assert groups_hold(INDEX, STARTS, NONE, ROWS, K_ONLY).tolist() == [True, False]
    assert groups_hold(INDEX, STARTS, NONE, ROWS * 2, K_ONLY).tolist() == [True, True]
    assert groups_hold(INDEX[:0], STARTS[:0], NONE, ROWS, K_ONLY).tolist() == []
    assert groups_hold(INDEX[:0], STARTS[:1], NONE, ROWS, K_ONLY).tolist() == [False]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((INDEX + 1, STARTS, NONE, ROWS), ValueError, "index: all must be from 0 to less than 4"),
        ((INDEX - 1, STARTS, NONE, ROWS), ValueError, "index: "),
        ((INDEX.astype(np.int64), STARTS, NONE, ROWS), TypeError, "index: int32"),
        ((INDEX, STARTS + 2, NONE, ROWS), ValueError, "starts: "),
        ((INDEX, STARTS[::-1].copy(), NONE, ROWS), ValueError, "starts: must ascend"),
        ((INDEX, STARTS, NONE[:, :3], ROWS), ValueError, "sensitive: "),
        ((INDEX, STARTS, NONE.astype(np.int64), ROWS), TypeError, "sensitive: int32"),
        ((INDEX, STARTS, NONE, ROWS.astype(np.int32)), TypeError, "rows: int64"),
        ((INDEX, STARTS, NONE, ROWS[:, None]), ValueError, "rows: shape"),
        ((INDEX, STARTS, NONE, -ROWS), ValueError, "rows: each"),
        ((INDEX, STARTS, NONE, np.full_like(ROWS, 1 << 62)), ValueError, "all less than 2"),
    ],
)
def test_what_would_point_outside_is_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        groups_hold(*arguments, K_ONLY)


@pytest.mark.parametrize("code", [-1, 3])
def test_a_sensitive_code_that_is_none_is_refused(code):
    domain = SensitiveDomain("s", pa.array(["a", "b"]), np.array([1, 1, 1]))
    criteria = Privacy(KAnonymity(2), (DistinctDiversity("s", 2),)).kernel([domain])
    sensitive = np.array([[0, 1, 2, code]], np.int32)
    with pytest.raises(ValueError, match="sensitive: all must be from 0 to less than 3"):
        groups_hold(INDEX, STARTS, sensitive, ROWS, criteria)
    with pytest.raises(ValueError, match="criteria: column"):
        groups_hold(INDEX, STARTS, NONE, ROWS, criteria)
