"""Privacy criteria against the formulas of their papers."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brute_force
from cases import DIAGNOSES, DIAGNOSIS_TREE
from mondrian_ops.core.criteria import (
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    Privacy,
    RecursiveDiversity,
    SensitiveDomain,
    TCloseness,
)
from mondrian_ops.core.errors import InputError
from mondrian_ops.core.hierarchy import Hierarchy
from mondrian_ops.core.job import Job

VALUES = st.sampled_from([*DIAGNOSES, None])


def domain_of(values, tree: Hierarchy | None = None) -> SensitiveDomain:
    whole = Counter(values)
    listed = list(DIAGNOSES) if tree else sorted(v for v in whole if v is not None)
    missing = [whole[None]] if None in whole else []
    counts = np.array([*missing, *(whole[value] for value in listed)], np.int64)
    return SensitiveDomain("s", pa.array(listed, pa.string()), counts)


def holds(criterion, values, group, tree=None) -> bool:
    domain = domain_of(values, tree)
    codes = domain.encode(pa.array(group, pa.string()))
    counts = np.bincount(codes, minlength=len(domain.counts))
    return Privacy(KAnonymity(1), (criterion,)).holds(len(group), [counts], [domain])


@st.composite
def groups(draw):
    """The sensitive values of a dataset, and those of some of its rows."""
    values = draw(st.lists(VALUES, min_size=1, max_size=25))
    chosen = draw(st.lists(st.integers(0, len(values) - 1), min_size=1, unique=True))
    return values, [values[at] for at in chosen]


@settings(max_examples=150, deadline=None)
@given(groups(), st.integers(2, 4))
def test_distinct_diversity(group, level):
    values, some = group
    assert holds(DistinctDiversity("s", level), values, some) == (len(set(some)) >= level)


@settings(max_examples=150, deadline=None)
@given(groups(), st.sampled_from([2, 2.5, 3]))
def test_entropy_diversity(group, level):
    values, some = group
    enough = brute_force.entropy(Counter(some)) >= math.log(level) - 1e-9
    assert holds(EntropyDiversity("s", level), values, some) == enough


@settings(max_examples=200, deadline=None)
@given(groups(), st.integers(2, 4), st.sampled_from([0.5, 1.0, 1.5, 3.0]))
def test_recursive_diversity(group, level, c):
    values, some = group
    expected = len(some) >= level and brute_force.recursive(Counter(some), c, level)
    assert holds(RecursiveDiversity("s", level, c), values, some) == expected


@settings(max_examples=300, deadline=None)
@given(groups(), st.sampled_from([0.1, 0.25, 0.5]), st.sampled_from(["equal", "ordered", "tree"]))
def test_t_closeness(group, t, distance):
    values, some = group
    part, whole = Counter(some), Counter(values)
    if distance == "equal":
        expected = brute_force.closeness_equal(part, whole)
    elif distance == "ordered":
        expected = brute_force.closeness_ordered(part, whole)
    else:
        expected = brute_force.closeness_tree(part, whole, DIAGNOSES, 3)
    tree = DIAGNOSIS_TREE if distance == "tree" else None
    criterion = TCloseness("s", t, "hierarchical" if tree else distance, tree)
    assert holds(criterion, values, some, tree) == (expected <= t + 1e-9)


def test_exactly_l_equal_shares_have_an_entropy_of_l():
    for level in range(2, 6):
        values = list(DIAGNOSES)[:level] * 3
        assert holds(EntropyDiversity("s", level), values, values)
        assert not holds(EntropyDiversity("s", level + 0.001), values, values)


def test_the_salary_example_of_li_2007():
    """Section 5.2: salaries 3k to 11k; {3k, 4k, 5k} is 0.375, {6k, 8k, 11k} 0.167 away."""
    salaries = [3, 4, 5, 6, 7, 8, 9, 10, 11]
    domain = SensitiveDomain("pay", pa.array(salaries), np.ones(9, np.int64))
    for group, distance in (([3, 4, 5], 0.375), ([6, 8, 11], 1 / 6)):
        counts = np.bincount(domain.encode(pa.array(group)), minlength=9)
        for t, expected in ((distance + 0.001, True), (distance - 0.001, False)):
            privacy = Privacy(KAnonymity(2), (TCloseness("pay", t, "ordered"),))
            assert privacy.holds(3, [counts], [domain]) is expected


def test_every_sensitive_column_must_satisfy():
    one = SensitiveDomain("a", pa.array(["x", "y"]), np.array([2, 2]))
    two = SensitiveDomain("b", pa.array(["x", "y"]), np.array([2, 2]))
    privacy = Privacy(KAnonymity(2), (DistinctDiversity("a", 2), DistinctDiversity("b", 2)))
    both, single = np.array([1, 1]), np.array([2, 0])
    assert privacy.holds(2, [both, both], [one, two])
    assert not privacy.holds(2, [both, single], [one, two])
    assert not privacy.holds(2, [single, both], [one, two])


def test_k_is_asked_even_when_the_values_are_diverse():
    domain = SensitiveDomain("s", pa.array(["x", "y"]), np.array([5, 5]))
    privacy = Privacy(KAnonymity(3), (DistinctDiversity("s", 2),))
    assert not privacy.holds(2, [np.array([1, 1])], [domain])
    assert privacy.min_class_size == 3


@pytest.mark.parametrize(
    ("criterion", "least"),
    [
        (DistinctDiversity("s", 7), 7),
        (EntropyDiversity("s", 6.5), 7),
        (EntropyDiversity("s", 7.0), 7),
        (RecursiveDiversity("s", 7, 2.0), 7),
        (TCloseness("s", 0.1, "equal"), 4),
    ],
)
def test_the_least_rows_that_can_satisfy(criterion, least):
    assert Privacy(KAnonymity(4), (criterion,)).min_class_size == least


def test_a_job_says_what_it_asks():
    job = Job.from_dict(
        {
            "k": 4,
            "l": 2,
            "diversity": "recursive",
            "c": 3,
            "t": 0.2,
            "quasi_identifiers": ["q"],
            "sensitive": ["a", "b"],
        },
        paths_required=False,
    )
    privacy = Privacy.of(job, {})
    assert privacy.describe() == [
        "k-anonymity, k = 4",
        "recursive (c, l)-diversity of a, c = 3, l = 2",
        "t-closeness of a, t = 0.2, equal distance",
        "recursive (c, l)-diversity of b, c = 3, l = 2",
        "t-closeness of b, t = 0.2, equal distance",
    ]


@pytest.mark.parametrize("value", ["new", None])
def test_a_sensitive_value_that_was_not_there_before(value):
    domain = SensitiveDomain("s", pa.array(["x", "y"]), np.array([2, 2]))
    with pytest.raises(InputError, match=r"'s'.*run again") as caught:
        domain.encode(pa.array(["x", value]))
    assert "new" not in str(caught.value)


def test_a_missing_sensitive_value_is_a_value():
    domain = SensitiveDomain("s", pa.array(["x"]), np.array([1, 2]))
    assert domain.missing
    assert domain.distinct == 2
    assert domain.encode(pa.array(["x", None])).tolist() == [1, 0]
