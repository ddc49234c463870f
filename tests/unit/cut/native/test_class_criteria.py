"""Privacy criteria on classes: each class by itself, and arguments that C must not see.

Their formulas are tested in unit/cut/test_criteria.py.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops.cut.criteria import (
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    Privacy,
    RecursiveDiversity,
    TCloseness,
)
from mondrian_ops.cut.native.class_criteria import (
    ASKED,
    DISTINCT,
    T_EQUAL,
    T_TREE,
    Criteria,
    CriteriaStruct,
    groups_satisfy,
    satisfies,
)
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.data.sensitive_domain import SensitiveDomain
from mondrian_ops.errors import JobError

TWO = Criteria(  # diversity of 3 codes, and closeness over the tree ((0, 1), (2, 3))
    k=2,
    kind=np.array([DISTINCT, T_TREE]),
    column=np.array([0, 1]),
    level=np.array([2.0, 0.5]),
    c=np.zeros(2),
    codes=np.array([3, 4]),
    uncounted=np.array([1, 0]),
    share=np.full(4, 0.25),
    share_first=np.array([0, 0, 4]),
    parent=np.array([4, 4, 5, 5, 6, 6, -1], np.int32),
    height=np.array([0, 0, 0, 0, 0.5, 0.5, 1.0]),
    parent_first=np.array([0, 0, 7]),
    near_end=np.zeros(0, np.int32),
    near_first=np.zeros(3, np.int64),
)


def test_arguments_of_another_shape_are_refused():
    with pytest.raises(ValueError, match="j: must be from 0 to less than 2, got 2"):
        satisfies(np.ones(3, np.int64), TWO, 2)
    with pytest.raises(ValueError, match="counts: shape"):
        satisfies(np.ones(2, np.int64), TWO, 0)
    with pytest.raises(TypeError, match="counts: int64 expected"):
        satisfies(np.ones(3, np.int32), TWO, 0)


@pytest.mark.parametrize("counts", [[-1, 1, 1], [1 << 61, 1 << 61, 1]])
def test_counts_that_cannot_be_are_refused(counts):
    with pytest.raises(ValueError, match="rows: each"):
        satisfies(np.array(counts), TWO, 0)


LEAVES = ["a", "b", "c", "d"]
HIERARCHY = Hierarchy.from_rows(
    [[leaf, "xy"[at // 2], "*"] for at, leaf in enumerate(LEAVES)], "tree"
)
CRITERIA = st.sampled_from(
    [
        DistinctDiversity("s", 2),
        DistinctDiversity("t", 3),
        DistinctDiversity("t", 3, missing_counts=True),
        EntropyDiversity("s", 1.5),
        RecursiveDiversity("t", 2, ratio=1.5),
        TCloseness("s", 0.4, "equal"),
        TCloseness("t", 0.3, "ordered"),
        TCloseness("t", 0.25, "hierarchical", HIERARCHY),
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
    result = groups_satisfy(
        index, starts, np.array(sensitive, np.int32), rows, privacy.kernel(domains)
    )
    for number, holds in zip(numbers, result, strict=True):
        some = group == number
        own = [np.bincount(codes[some], rows[some], size).astype(np.int64) for codes in sensitive]
        assert holds == privacy.holds(int(rows[some].sum()), own, domains)


K_ONLY = Privacy(KAnonymity(2), ()).kernel([])
INDEX, STARTS = np.arange(4, dtype=np.int32), np.array([0, 3])
NO_COLUMN, ROWS = np.zeros((0, 4), np.int32), np.ones(4, np.int64)


def test_without_criteria_the_rows_count():
    assert groups_satisfy(INDEX, STARTS, NO_COLUMN, ROWS, K_ONLY).tolist() == [True, False]
    assert groups_satisfy(INDEX, STARTS, NO_COLUMN, ROWS * 2, K_ONLY).tolist() == [True, True]
    assert groups_satisfy(INDEX[:0], STARTS[:0], NO_COLUMN, ROWS, K_ONLY).tolist() == []
    assert groups_satisfy(INDEX[:0], STARTS[:1], NO_COLUMN, ROWS, K_ONLY).tolist() == [False]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (
            (INDEX + 1, STARTS, NO_COLUMN, ROWS),
            ValueError,
            "index: all must be from 0 to less than 4",
        ),
        ((INDEX - 1, STARTS, NO_COLUMN, ROWS), ValueError, "index: "),
        ((INDEX.astype(np.int64), STARTS, NO_COLUMN, ROWS), TypeError, "index: int32"),
        ((INDEX, STARTS + 2, NO_COLUMN, ROWS), ValueError, "starts: "),
        ((INDEX, STARTS[::-1].copy(), NO_COLUMN, ROWS), ValueError, "starts: must ascend"),
        ((INDEX, STARTS, NO_COLUMN[:, :3], ROWS), ValueError, "sensitive: "),
        ((INDEX, STARTS, NO_COLUMN.astype(np.int64), ROWS), TypeError, "sensitive: int32"),
        ((INDEX, STARTS, NO_COLUMN, ROWS.astype(np.int32)), TypeError, "rows: int64"),
        ((INDEX, STARTS, NO_COLUMN, ROWS[:, None]), ValueError, "rows: shape"),
        ((INDEX, STARTS, NO_COLUMN, -ROWS), ValueError, "rows: each"),
        ((INDEX, STARTS, NO_COLUMN, np.full_like(ROWS, 1 << 62)), ValueError, "all less than 2"),
    ],
)
def test_groups_that_would_point_outside_are_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        groups_satisfy(*arguments, K_ONLY)


@pytest.mark.parametrize("code", [-1, 3])
def test_a_sensitive_code_that_is_none_is_refused(code):
    domain = SensitiveDomain("s", pa.array(["a", "b"]), np.array([1, 1, 1]))
    criteria = Privacy(KAnonymity(2), (DistinctDiversity("s", 2),)).kernel([domain])
    sensitive = np.array([[0, 1, 2, code]], np.int32)
    with pytest.raises(ValueError, match="sensitive: all must be from 0 to less than 3"):
        groups_satisfy(INDEX, STARTS, sensitive, ROWS, criteria)
    with pytest.raises(ValueError, match="criteria: column"):
        groups_satisfy(INDEX, STARTS, NO_COLUMN, ROWS, criteria)


def test_the_struct_holds_the_arrays():
    made = CriteriaStruct.made(TWO, 2)
    assert (made.k, made.count) == (2, 2)
    assert made.parent == TWO.parent.ctypes.data
    assert made.of is TWO


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"k": 2**63}, "k must fit into 64 bits"),
        ({"kind": np.array([0, 8])}, "criteria: kind"),
        ({"kind": np.array([0, ASKED])}, "criteria: what is asked is missing"),
        ({"kind": np.array([0, ASKED]), "asked": [None, None]}, "what is asked is missing"),
        ({"kind": np.array([T_EQUAL, T_TREE])}, "share must have an entry for every code"),
        ({"column": np.array([0, 2])}, "criteria: column"),
        ({"column": np.array([-1, 1])}, "criteria: column"),
        ({"codes": np.array([3, 5])}, "share must have an entry for every code"),
        ({"codes": np.array([0, 4])}, "criteria: codes"),
        ({"uncounted": np.array([2, 0])}, "criteria: uncounted"),
        ({"share_first": np.array([0, 0, 5])}, "criteria: share_first"),
        ({"share_first": np.array([0, 4])}, "criteria: share_first"),
        ({"parent_first": np.array([0, 7, 0])}, "criteria: parent_first"),
        ({"parent": np.array([4, 4, 5, 5, 6, 7, -1], np.int32)}, "node of the same hierarchy"),
        ({"height": np.zeros(6)}, "criteria: height"),
        ({"level": np.zeros(3)}, "criteria: level"),
    ],
)
def test_criteria_that_would_point_outside_are_refused(changed, text):
    with pytest.raises(ValueError, match=text):
        CriteriaStruct.made(TWO._replace(**changed), 2)


@pytest.mark.parametrize("name", Criteria._fields[1:-1])
def test_criteria_of_other_types_are_refused(name):
    other = getattr(TWO, name).astype(np.float32)
    with pytest.raises(TypeError, match=f"criteria: {name}"):
        CriteriaStruct.made(TWO._replace(**{name: other}), 2)


def test_an_error_of_what_is_asked_is_raised_once_the_kernel_has_returned():
    calls = []

    def asked(counts):
        calls.append(counts.shape)
        raise JobError("no answer")

    criteria = TWO._replace(kind=np.array([DISTINCT, ASKED]), asked=[None, asked])
    sensitive = np.array([[1, 2] * 50, [0, 1] * 50], np.int32)
    index, starts = np.arange(100, dtype=np.int32), np.arange(0, 100, 4)
    with pytest.raises(JobError, match="no answer"):
        groups_satisfy(index, starts, sensitive, np.ones(100, np.int64), criteria)
    assert len(calls) == 1  # after an error nothing more is asked


def test_what_is_asked_may_keep_the_counts():
    """The kernel counts other classes in the same memory."""
    kept = []
    criteria = TWO._replace(
        kind=np.array([DISTINCT, ASKED]),
        asked=[None, lambda counts: kept.append(counts) or np.ones(len(counts), bool)],
    )
    sensitive = np.array([[1, 2] * 50, np.arange(100) % 4], np.int32)
    index, starts = np.arange(100, dtype=np.int32), np.arange(0, 100, 4)
    assert groups_satisfy(index, starts, sensitive, np.ones(100, np.int64), criteria).all()
    assert np.concatenate(kept).tolist() == [[1, 1, 1, 1]] * 25
