"""Which groups of combinations hold, against each group's counts by themselves."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops.core import kernels
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
    index = np.array(sorted(shuffled, key=group.__getitem__))
    numbers, starts = np.unique(group[index], return_index=True)
    found = kernels.groups_hold(
        index, starts, np.array(sensitive, np.int32), rows, privacy.kernel(domains)
    )
    for number, holds in zip(numbers, found, strict=True):
        some = group == number
        own = [np.bincount(codes[some], rows[some], size).astype(np.int64) for codes in sensitive]
        assert holds == privacy.holds(int(rows[some].sum()), own, domains)
