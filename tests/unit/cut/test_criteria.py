"""Privacy criteria against the formulas of their papers."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brute_force
from criteria_by_paper import satisfied
from drawn_jobs import DIAGNOSES, DIAGNOSIS_TREE
from hypothesis_profiles import examples
from mondrian_ops.cut.criteria import (
    DistinctDiversity,
    DistinctPersons,
    EntropyDiversity,
    KAnonymity,
    Privacy,
    RecursiveDiversity,
    SpreadDiversity,
    TCloseness,
)
from mondrian_ops.cut.native.class_criteria import T_TREE
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.data.persons import encode_persons
from mondrian_ops.data.profile import Profiler
from mondrian_ops.data.sensitive_domain import SensitiveDomain
from mondrian_ops.errors import InputError
from mondrian_ops.job.job import Job
from mondrian_ops.job.widths import as_width
from mondrian_ops.verify import requirements

VALUES = st.sampled_from([*DIAGNOSES, None])


def domain_of(values, tree: Hierarchy | None = None) -> SensitiveDomain:
    whole = Counter(values)
    listed = list(DIAGNOSES) if tree else sorted(v for v in whole if v is not None)
    missing = [whole[None]] if None in whole else []
    counts = np.array([*missing, *(whole[value] for value in listed)], np.int64)
    near_end = near_ends(len(listed), bool(missing))
    return SensitiveDomain("s", pa.array(listed, pa.string()), counts, near_end=near_end)


def near_ends(values: int, missing: bool) -> np.ndarray:
    """Texts have no width: here each is near the next one of their order, and no other."""
    ends = np.minimum(np.arange(values) + 1, values - 1) + missing
    return np.concatenate([np.zeros(int(missing), np.int64), ends]).astype(np.int32)


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


LEVELS = st.integers(2, 4)
CRITERIA = st.one_of(
    st.builds(DistinctDiversity, st.just("s"), LEVELS, missing_counts=st.booleans()),
    st.builds(
        EntropyDiversity, st.just("s"), st.sampled_from([2, 2.5, 3]), missing_counts=st.booleans()
    ),
    st.builds(
        RecursiveDiversity,
        st.just("s"),
        LEVELS,
        st.sampled_from([0.5, 1.0, 1.5, 3.0]),
        missing_counts=st.booleans(),
    ),
    st.builds(
        SpreadDiversity,
        st.just("s"),
        st.sampled_from([1.5, 2, 3]),
        st.just(as_width("1")),
        missing_counts=st.booleans(),
    ),
    st.builds(
        TCloseness,
        st.just("s"),
        st.sampled_from([0.1, 0.25, 0.5]),
        st.sampled_from(["equal", "ordered"]),
    ),
    st.sampled_from([0.1, 0.25, 0.5]).map(
        lambda t: TCloseness("s", t, "hierarchical", DIAGNOSIS_TREE)
    ),
)


@examples(800)
@given(groups(), CRITERIA)
def test_a_criterion_is_that_of_its_paper(group, criterion):
    values, some = group
    tree = DIAGNOSIS_TREE if criterion.kind == T_TREE else None
    expected = satisfied(criterion, Counter(some), Counter(values))
    assert holds(criterion, values, some, tree) == expected


ALL_KINDS = [
    lambda counts: DistinctDiversity("s", 2, missing_counts=counts),
    lambda counts: EntropyDiversity("s", 1.7, missing_counts=counts),
    lambda counts: RecursiveDiversity("s", 2, 1.5, missing_counts=counts),
    lambda counts: SpreadDiversity("s", 2, as_width("1"), missing_counts=counts),
    lambda counts: TCloseness("s", 0.3, "equal"),
    lambda counts: TCloseness("s", 0.2, "ordered"),
    lambda counts: TCloseness("s", 0.3, "hierarchical", DIAGNOSIS_TREE),
]


@examples(400)
@given(groups(), st.data(), st.sampled_from(ALL_KINDS), st.booleans())
def test_a_union_of_classes_that_hold_holds(group, data, kind, counts):
    """What cutting, merging of fragments and both lattices rely on."""
    values, some = group
    criterion = kind(counts)
    tree = DIAGNOSIS_TREE if criterion.kind == T_TREE else None
    middle = data.draw(st.integers(0, len(some)))
    sides = [side for side in (some[:middle], some[middle:]) if side]
    if all(holds(criterion, values, side, tree) for side in sides):
        assert holds(criterion, values, some, tree)


@examples(200)
@given(groups(), st.integers(1, 5), st.sampled_from(ALL_KINDS[:4]))
def test_rows_without_a_value_never_help(group, more, kind):
    """Nor do they harm."""
    values, some = group
    values = [*values, *[None] * more]
    criterion = kind(False)
    if len(some) < criterion.min_class_size:
        return
    assert holds(criterion, values, [*some, *[None] * more]) == holds(criterion, values, some)


SPELLINGS = ["flu", " flu", "flu\u00a0", "\tflu\n", "\ufeffflu", "f\u200blu", "\ufb02u", "flu\x00"]


@pytest.mark.parametrize("spelling", [*SPELLINGS[1:], "\uff46\uff4c\uff55"])
def test_spellings_of_one_value_are_one_code(spelling):
    domain = SensitiveDomain("s", pa.array(["flu", "grippe"]), np.array([1, 1, 1]))
    column = pa.array(["flu", spelling, None, "", " \u200b ", "\u3000"])
    for type_ in (pa.string(), pa.large_string(), pa.string_view()):
        assert domain.encode(column.cast(type_)).tolist() == [1, 1, 0, 0, 0, 0]
    assert domain.encode(column.dictionary_encode()).tolist() == [1, 1, 0, 0, 0, 0]


def test_upper_and_lower_case_are_two_values():
    domain = SensitiveDomain("s", pa.array(["Flu", "flu"]), np.array([1, 1]))
    assert domain.encode(pa.array(["flu", "Flu "])).tolist() == [1, 0]


def test_persons_are_as_they_are_written():
    """A person must not be merged with another, and none is told from it by that either."""
    domain = SensitiveDomain("p", pa.array([" 1", "1"]), np.array([1, 1]), as_written=True)
    assert domain.encode(pa.array(["1", " 1"])).tolist() == [1, 0]
    persons, codes = encode_persons("p", pa.array(["1", " 1", None, ""]))
    assert len(set(codes.tolist())) == 4
    privacy = Privacy(KAnonymity(2), (), DistinctPersons("p", 4))
    assert not privacy.kernel([persons]).uncounted.any()


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


# Missing, 1 and 2 as often. With the missing value before 1, classes of 1 are in the middle.
PLACE_OF_MISSING = [([1, 1], 1 / 3), ([2, 2], 1 / 2), ([None, None], 1 / 2), ([None, 1], 1 / 4)]


@pytest.mark.parametrize(("group", "distance"), PLACE_OF_MISSING, ids=str)
def test_the_missing_value_stands_before_the_least_one(group, distance):
    """For the cutting, which has code 0 for it, and for the check."""
    domain = SensitiveDomain("s", pa.array([1, 2]), np.array([4, 4, 4]))
    assert domain.missing
    counts = np.bincount(domain.encode(pa.array(group, pa.int64())), minlength=3)
    for t, expected in ((distance + 0.001, True), (distance - 0.001, False)):
        privacy = Privacy(KAnonymity(2), (TCloseness("s", t, "ordered"),))
        assert privacy.holds(2, [counts], [domain]) is expected
    others = list((Counter([None, 1, 2] * 4) - Counter(group)).elements())
    part = pa.table({"q": ["a"] * len(group) + ["b"] * len(others), "s": group + others})
    keys = {"k": 2, "quasi_identifiers": ["q"], "sensitive": ["s"], "t": 0.9}
    job = Job.from_dict({**keys, "t_distance": "ordered"}, paths_required=False)
    counter = requirements.counter_of(job, part.column_names)
    counter.add(part)
    assert requirements.check(counter.result(), job).achieved["t"] == pytest.approx(distance)


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
    for keys, text in (
        ({}, "distinct l-diversity of s, l = 2"),
        ({"diversity": "entropy"}, "entropy l-diversity of s, l = 2"),
        ({"diversity": "recursive", "c": 3}, "recursive (c, l)-diversity of s, c = 3, l = 2"),
    ):
        required = {"k": 2, "l": 2, "quasi_identifiers": ["q"], "sensitive": ["s"], **keys}
        required["missing_sensitive"] = "value"
        job = Job.from_dict(required, paths_required=False)
        assert Privacy.of(job, {}).describe()[1] == f"{text}, missing values counted as one"


@pytest.mark.parametrize("value", ["new", None])
def test_a_sensitive_value_that_was_not_there_before(value):
    domain = SensitiveDomain("s", pa.array(["x", "y"]), np.array([2, 2]))
    with pytest.raises(InputError, match=r"'s'.*run again") as caught:
        domain.encode(pa.array(["x", value]))
    assert "new" not in str(caught.value)


def test_a_missing_sensitive_value_has_a_code_and_is_no_distinct_value():
    domain = SensitiveDomain("s", pa.array(["x"]), np.array([1, 2]))
    assert domain.missing
    assert domain.distinct == 1
    assert domain.encode(pa.array(["x", None])).tolist() == [1, 0]


def test_numbers_are_one_whatever_their_sign_of_zero_and_none_is_missing():
    domain = SensitiveDomain("s", pa.array([0.0, 1.0]), np.array([1, 1, 1]))
    column = pa.array([0.0, -0.0, math.nan, None, 1.0], from_pandas=False)
    assert domain.encode(column).tolist() == [1, 1, 0, 0, 2]


# the cutting against the check of a release, on texts in any spelling

SEEN_AND_UNSEEN = "ab\u00e9e\u0301 \u00a0\u200b\ufeff\u00ad\t\uff41\ufb01f\x00\u3164"
ASKED = [
    {"l": 2},
    {"l": 3},
    {"l": 2, "diversity": "entropy"},
    {"l": 2, "diversity": "recursive", "c": 2},
    {"t": 0.3},
    {"t": 0.2, "t_distance": "ordered"},
]
TEXTS = st.none() | st.text(SEEN_AND_UNSEEN, max_size=3)


@examples(400)
@given(
    st.lists(TEXTS, min_size=2, max_size=8),
    st.lists(TEXTS, min_size=2, max_size=8),
    st.sampled_from(ASKED),
    st.sampled_from(["no_value", "value"]),
)
def test_the_check_of_a_release_agrees(one, other, required, missing):
    """And both agree with plain Python, which knows no code of theirs."""
    keys = {"k": 2, **required, "missing_sensitive": missing}
    job = Job.from_dict(
        {**keys, "quasi_identifiers": ["q"], "sensitive": ["s"]}, paths_required=False
    )
    q = [1] * len(one) + [2] * len(other)
    table = pa.table({"q": q, "s": pa.array([*one, *other], pa.string())})
    profiler = Profiler(job, table.schema, {})
    profiler.add(table)
    (domain,) = profiler.finish().sensitive(job, {})
    codes = domain.encode(table["s"])
    privacy = Privacy.of(job, {})
    cut = [
        privacy.holds(len(side), [np.bincount(codes[rows], minlength=len(domain.counts))], [domain])
        for side, rows in ((one, slice(len(one))), (other, slice(len(one), None)))
    ]
    counter = requirements.counter_of(job, table.column_names)
    counter.add(table)
    assert requirements.check(counter.result(), job).passed is all(cut)
    plain = brute_force.Privacy(whole=[Counter([*one, *other])], **keys)
    assert cut == [plain.holds([side]) for side in (one, other)]
