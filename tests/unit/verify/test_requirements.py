"""Verification against brute force: Counters over tuples, and the formulas of the papers."""

from __future__ import annotations

import datetime as dt
import math
import tracemalloc
from collections import Counter, defaultdict
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brute_force
from counted_classes import all_classes
from hypothesis_profiles import examples
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.errors import PrivacyError
from mondrian_ops.job.job import Job
from mondrian_ops.verify import counts as release_count
from mondrian_ops.verify.requirements import ReleaseCounter, check, counter_of, published_columns

COUNTRIES = Hierarchy.from_rows(
    [
        ["Italy", "South", "Europe", "*"],
        ["Spain", "South", "Europe", "*"],
        ["Norway", "North", "Europe", "*"],
        ["Japan", "Asia", "*"],
        ["Peru", "*"],
    ],
    "countries.csv",
)


def a_job(**options) -> Job:
    given_options = {"k": 2, "quasi_identifiers": ["q"], "sensitive": ["s"], **options}
    return Job.from_dict(given_options, paths_required=False)


def count_of(*parts: pa.Table, job: Job):
    counter = counter_of(job, parts[0].column_names)
    for number, part in enumerate(parts):
        counter.add(part, f"part-{number}.parquet")
    return counter.result()


def verdict_of(*parts: pa.Table, hierarchies=None, **options):
    job = a_job(**options)
    return check(count_of(*parts, job=job), job, hierarchies)


# counting, against a Counter over tuples


VALUES = {
    "text": st.sampled_from(["*", "[1, 2]", "a", " a", "a\u200b", "", "\t", "ä", "a\u0308", None]),
    "int": st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1, None]),
    "float": st.sampled_from([0.0, -1.5, math.inf, -math.inf, 1e-300, None]),
    "bool": st.sampled_from([True, False, None]),
    "date": st.sampled_from([dt.date(1970, 1, 1), dt.date(2024, 2, 29), None]),
    "when": st.sampled_from([dt.datetime(1970, 1, 1), dt.datetime(2024, 1, 1, 1), None]),
    "money": st.sampled_from([Decimal("1.20"), Decimal("-3.00"), None]),
}

TYPES = {
    "text": pa.string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "when": pa.timestamp("us"),
    "money": pa.decimal128(10, 2),
}


@st.composite
def columns_in_parts(draw):
    """Columns as lists of values, cut into parts: [[values of column 0, ...] of part 0, ...]."""
    kinds = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=2, max_size=6))
    sizes = draw(st.lists(st.integers(0, 12), min_size=1, max_size=4))
    parts = [
        [draw(st.lists(VALUES[kind], min_size=size, max_size=size)) for kind in kinds]
        for size in sizes
    ]
    return kinds, parts


def as_array(draw, values: list, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """The values in one of the many forms that mean the same to Arrow."""
    plain = pa.array(values, kind)
    form = draw(st.sampled_from(["plain", "dictionary", "untidy", "chunks"]))
    if form == "dictionary":
        return plain.dictionary_encode()
    if form == "untidy" and values:
        # Every row its own entry: twins, unused ones, and a missing value in the dictionary.
        twice = pa.concat_arrays([plain, plain, pa.nulls(1, kind)])
        picks = draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
        indices = [
            None if value is None and pick else row + pick * len(values)
            for row, (value, pick) in enumerate(zip(values, picks, strict=True))
        ]
        return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), twice)
    if form == "chunks":
        middle = len(values) // 2
        return pa.chunked_array([plain[:middle], plain[middle:]], kind)
    return plain


@examples(150)
@given(st.data())
def test_counts_are_those_of_a_counter_over_tuples(data):
    kinds, parts = data.draw(columns_in_parts())
    names = [f"c{i}" for i in range(len(kinds))]
    counter = ReleaseCounter(names[:-1], names[-1:])
    everything: list[tuple] = []
    for part in parts:
        arrays = [as_array(data.draw, v, TYPES[kind]) for v, kind in zip(part, kinds, strict=True)]
        rows = list(zip(*part, strict=True))
        everything += rows
        counted = counter.add(pa.table(dict(zip(names, arrays, strict=True))))
        local = Counter(row[:-1] for row in rows)
        assert (counted.rows, counted.classes) == (len(rows), len(local))
        assert counted.dp == sum(size**2 for size in local.values())
    result = counter.result()

    expected = Counter(row[:-1] for row in everything)
    assert result.rows == len(everything)
    assert sorted(all_classes(result).class_sizes.tolist()) == sorted(expected.values())
    assert result.dp == sum(size**2 for size in expected.values())
    assert dict(result.histogram) == Counter(expected.values())

    # Each class is found by its first row; its sensitive values are those of its tuples.
    classes = all_classes(result)
    sensitive = classes.sensitive[names[-1]]
    values = [None, *sensitive.values.to_pylist()]
    found: dict[tuple, Counter] = defaultdict(Counter)
    for number, code, times in zip(
        sensitive.classes.tolist(),
        sensitive.codes.tolist(),
        sensitive.counts.tolist(),
        strict=True,
    ):
        found[everything[classes.first_rows[number]][:-1]][values[code]] += times
    assert found == {
        key: Counter(brute_force.alike(row[-1]) for row in everything if row[:-1] == key)
        for key in expected
    }
    assert sum(sensitive.totals.tolist()) == len(everything)


@examples(30)
@given(st.integers(0, 2**32), st.integers(2, 40), st.booleans())
def test_radices_beyond_64_bits_are_still_exact(seed, columns, merge_often):
    """Up to 40 columns of 300 values: products up to 10**99."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 300, (40, columns))
    rows = classes[rng.integers(0, 40, 600)]
    # Combinations that differ in one column only are what a wrong key would confuse.
    rows[::7, rng.integers(columns)] += 1
    names = [f"c{i}" for i in range(columns)]
    counter = ReleaseCounter(names, [], held=1 if merge_often else release_count.HELD)
    for part in np.array_split(rows, 5):
        counter.add(pa.table(dict(zip(names, part.T, strict=True))))
    sizes = sorted(all_classes(counter.result()).class_sizes.tolist())
    assert sizes == sorted(Counter(map(tuple, rows.tolist())).values())


def test_merging_parts_does_not_hold_their_classes_several_times():
    """At a hundred million rows they are gigabytes."""
    job = a_job()
    count_of(pa.table({"q": [1, 1], "s": [1, 2]}), job=job)  # loads what is loaded once
    of_class = np.arange(200_000).repeat(4)
    parts = [
        pa.table({"q": of_class + at, "s": np.arange(len(of_class)) % 5})
        for at in (0, 150_000, 300_000)
    ]
    tracemalloc.start()
    try:
        counter = counter_of(job, ["q", "s"], held=10_000_000)
        for part in parts:
            counter.add(part)
        tracemalloc.reset_peak()
        count = counter.result()
        classes = [*count.partitions()]
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (count.rows, sum(len(some.class_sizes) for some in classes)) == (2_400_000, 500_000)
    assert peak < 3 * held


def test_missing_is_a_value_and_not_the_text_of_it():
    part = pa.table({"q": [None, None, "None", "", "null"], "s": ["x"] * 5})
    count = count_of(part, job=a_job())
    assert sorted(all_classes(count).class_sizes.tolist()) == [1, 1, 1, 2]


def test_zeros_of_both_signs_are_one_value_and_so_are_all_nan():
    odd = np.array([0x7FF8000000000001, 0x7FF8000000000002], np.uint64).view(np.float64)
    numbers = pa.array([0.0, -0.0, *odd], from_pandas=False)
    count = count_of(pa.table({"q": numbers, "s": [1] * 4}), job=a_job())
    assert sorted(all_classes(count).class_sizes.tolist()) == [2, 2]


def test_nan_does_not_pass_for_a_second_sensitive_value():
    part = pa.table({"q": [1, 1], "s": pa.array([math.nan, None], from_pandas=False)})
    assert verdict_of(part, l=2).achieved["l"] == 0
    assert verdict_of(part, l=2, missing_sensitive="value").achieved["l"] == 1


def test_kinds_of_text_are_one_type_but_numbers_and_text_are_not():
    parts = [
        pa.table({"q": pa.array(["a"], kind), "s": [1]})
        for kind in (pa.string(), pa.large_string(), pa.string_view())
    ]
    assert all_classes(count_of(*parts, job=a_job())).class_sizes.tolist() == [3]
    with pytest.raises(PrivacyError, match="column 'q' is int64 in one part"):
        count_of(parts[0], pa.table({"q": [1], "s": [1]}), job=a_job())


def test_columns_that_cannot_be_counted_are_refused():
    with pytest.raises(PrivacyError, match=r"^x: column 'q' is missing"):
        ReleaseCounter(["q"], []).add(pa.table({"x": [1]}), "x")
    twice = pa.table([pa.array([1]), pa.array([2])], names=["q", "q"])
    with pytest.raises(PrivacyError, match=r"p\.parquet: column 'q' is duplicate"):
        ReleaseCounter(["q"], []).add(twice, "p.parquet")
    with pytest.raises(PrivacyError, match="cannot be compared"):
        ReleaseCounter(["q"], []).add(pa.table({"q": [[1], [2]]}))


def test_dp_does_not_overflow():
    assert release_count._dp(np.array([10**10, 1])) == 10**20 + 1


# criteria, against their definitions


def brute_hierarchical(counts: Counter, whole: Counter) -> Fraction:
    """Li et al. 2007, section 5.3: the sum of height(N) / H * min(pos_extra, neg_extra).

    Unlike `brute_force.closeness_tree` for leaves of any depth.
    """
    p, q = shares(counts), shares(whole)
    tree = COUNTRIES
    height = {int(node): level for level, nodes in enumerate(tree.ancestors) for node in set(nodes)}
    top = max(height.values())
    children: dict[int, list] = defaultdict(list)
    for node, parent in enumerate(tree.parent.tolist()):
        children[parent].append(node)
    children[tree.root].append(None)  # the missing value
    leaf = {name: number for number, name in enumerate(tree.leaves)}
    extras = {
        None if v is None else leaf[v]: p.get(v, Fraction(0)) - q.get(v, Fraction(0)) for v in q
    }

    def extra(node) -> Fraction:
        if node is None or node < len(tree.leaves):
            return extras.get(node, Fraction(0))
        return sum((extra(child) for child in children[node]), Fraction(0))

    cost = Fraction(0)
    for node in range(len(tree.leaves), len(tree.labels)):
        below = [extra(child) for child in children[node]]
        positive = sum(x for x in below if x > 0)
        negative = -sum(x for x in below if x < 0)
        cost += Fraction(height[node], top) * min(positive, negative)
    return cost


def shares(counts: Counter) -> dict:
    return {v: Fraction(n, counts.total()) for v, n in counts.items()}


@examples(150)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from([*COUNTRIES.leaves, None])),
        min_size=1,
        max_size=30,
    ),
    st.integers(1, 3),
    st.floats(0.1, 4),
)
def test_what_each_criterion_measures_is_what_its_paper_defines(rows, cuts, c):
    table = pa.table(
        {
            "q": pa.array([q for q, _ in rows]),
            "s": pa.array([s for _, s in rows], pa.string()).dictionary_encode(),
        }
    )
    step = len(rows) // cuts + 1
    parts = [table.slice(start, step) for start in range(0, len(rows), step)]
    classes = defaultdict(list)
    for q, s in rows:
        classes[q].append(s)
    whole = Counter(s for _, s in rows)

    def achieved(**options):
        return verdict_of(*parts, hierarchies={"s": COUNTRIES}, **options).achieved

    def entropy(v):
        return math.exp(brute_force.entropy(Counter(v))) if v else 0.0

    def greatest_l(v, c):
        counts = Counter(v)
        holds = [n for n in range(1, len(counts) + 1) if brute_force.recursive(counts, c, n)]
        return max(holds, default=0)

    for missing in ("no_value", "value"):
        counted = [[s for s in v if missing == "value" or s is not None] for v in classes.values()]
        assert achieved(missing_sensitive=missing) == {
            "k": min(map(len, classes.values())),
            "l": min(len(set(values)) for values in counted),
        }
        found = achieved(l=2, diversity="entropy", missing_sensitive=missing)["l"]
        assert found == pytest.approx(min(map(entropy, counted)))
        found = achieved(l=2, diversity="recursive", c=c, missing_sensitive=missing)["l"]
        assert found == min(greatest_l(v, c) for v in counted)
    for distance, brute, files in (
        ("equal", brute_force.closeness_equal, {}),
        ("ordered", brute_force.closeness_ordered, {}),
        ("hierarchical", brute_hierarchical, {"sensitive_hierarchy": {"s": "countries.csv"}}),
    ):
        expected = max(float(brute(Counter(v), whole)) for v in classes.values())
        measured = achieved(t=0.5, t_distance=distance, **files)["t"]
        assert measured == pytest.approx(expected, abs=1e-12)


def test_the_hierarchical_distance_is_measured_without_the_levels_that_criteria_use():
    part = pa.table({"q": list("aabb"), "s": ["Italy", "Spain", "Peru", "Italy"]})
    files = {"sensitive_hierarchy": {"s": "countries.csv"}, "t_distance": "hierarchical"}
    wrong = replace(COUNTRIES, ancestors=np.zeros_like(COUNTRIES.ancestors))
    found = [
        verdict_of(part, hierarchies={"s": each}, t=0.1, **files).achieved
        for each in (COUNTRIES, wrong)
    ]
    assert found[0] == found[1] and found[0]["t"] > 0


def test_the_examples_of_the_t_closeness_paper():
    """Li et al. 2007, section 5.1: salaries 3k..11k; {3,4,5}k is 0.375, {6,8,11}k 0.167 away."""
    salaries = [3, 4, 5, 6, 7, 8, 9, 10, 11]
    group = {3: "a", 4: "a", 5: "a", 6: "b", 8: "b", 11: "b"}
    part = pa.table({"q": [group.get(s, "c") for s in salaries], "s": salaries})
    job = a_job(t=0.2, t_distance="ordered")
    count = count_of(part, job=job)
    assert check(count, job).achieved["t"] == pytest.approx(0.375)
    only_b = brute_force.closeness_ordered(Counter([6, 8, 11]), Counter(salaries))
    assert only_b == pytest.approx(1 / 6)


@pytest.mark.parametrize(
    ("values", "options", "passes"),
    [
        (["x", "y"], {"l": 2}, True),
        (["x", "x"], {"l": 2}, False),
        (["x", None], {"l": 2}, False),
        (["x", None], {"l": 2, "missing_sensitive": "value"}, True),
        (["x", "y", None], {"l": 2}, True),
        (["x", "y", None], {"l": 3}, False),
        (["x", ""], {"l": 2}, False),
        (["x", " \t"], {"l": 2, "missing_sensitive": "value"}, True),
        (["", None, " "], {"l": 2, "missing_sensitive": "value"}, False),
        (["x", "x ", "\u00a0x", "x\u200b", "\uff58"], {"l": 2}, False),
        (["\u00e9", "e\u0301"], {"l": 2}, False),
        (["x", "X"], {"l": 2}, True),
        (["x y", "x  y"], {"l": 2}, False),
        (["x y", "xy"], {"l": 2}, True),
        ([None, None], {"l": 2}, False),
        ([None, None], {"l": 2, "diversity": "entropy"}, False),
        ([None, None], {"l": 2, "diversity": "recursive", "c": 9}, False),
        (["x", "y", None, None], {"l": 2, "diversity": "entropy"}, True),
        (["x", "x", "y", None], {"l": 2, "diversity": "recursive", "c": 2.1}, True),
        (["x", "x", "y", None], {"l": 2, "diversity": "recursive", "c": 2}, False),
        (["x", "y", "z"], {"l": 3, "diversity": "entropy"}, True),
        (["x", "y", "z", "z"], {"l": 3, "diversity": "entropy"}, False),
        ([str(i) for i in range(7)], {"l": 7, "diversity": "entropy"}, True),
        (["x", "x", "y"], {"l": 2, "diversity": "recursive", "c": 2}, False),
        (["x", "x", "y"], {"l": 2, "diversity": "recursive", "c": 2.1}, True),
        (["x", "y", "z"], {"l": 3, "diversity": "recursive", "c": 1}, False),
        (["x", "y", "z"], {"l": 2, "diversity": "recursive", "c": 1}, True),
    ],
)
def test_a_requirement_just_met_passes_and_just_missed_fails(values, options, passes):
    part = pa.table({"q": [1] * len(values), "s": pa.array(values, pa.string())})
    verdict = verdict_of(part, **options)
    assert verdict.passed is passes
    assert bool(verdict.failures) is not passes


@pytest.mark.parametrize(("t", "passes"), [(0.25, True), (0.2499, False)])
def test_t_just_met_passes(t, passes):
    part = pa.table({"q": [1, 1, 2, 2], "s": ["x", "x", "x", "y"]})
    assert verdict_of(part, t=t).passed is passes


def test_one_bad_class_among_many_parts_is_found_and_said_without_its_values():
    good = pa.table({"q": ["[1, 2]"] * 5, "s": list("abcde")})
    bad = pa.table({"q": ["[1, 2]", "Canary"], "s": ["Canary too", "Canary too"]})
    verdict = verdict_of(good, good, bad, good, l=2)
    assert not verdict.passed
    assert verdict.achieved == {"k": 1, "l": 1}
    assert verdict.checked == ("k-anonymity, k = 2", "distinct l-diversity of s, l = 2")
    assert len(verdict.failures) == 2
    assert all("1 of 2 classes fail" in text for text in verdict.failures)
    assert (
        "the worst has 1 rows and k = 1 (row 1 of part-2.parquet is in it)" in verdict.failures[0]
    )
    assert "Canary" not in repr(verdict)


def test_a_class_spread_over_parts_counts_as_one():
    part = pa.table({"q": ["a"], "s": ["x"]})
    other = pa.table({"q": ["a"], "s": ["y"]})
    verdict = verdict_of(part, other, l=2)
    assert verdict.passed
    assert verdict.achieved == {"k": 2, "l": 2}


def test_every_sensitive_column_must_hold():
    part = pa.table({"q": [1, 1], "s": ["x", "y"], "s2": ["z", "z"]})
    verdict = verdict_of(part, l=2, sensitive=["s", "s2"])
    assert verdict.achieved["l"] == 1
    assert [text.split(",")[0] for text in verdict.failures] == ["distinct l-diversity of s2"]
    apart = pa.table({"q": [1, 1, 2, 2], "s": ["x", "y", "x", "y"], "s2": list("aabb")})
    verdict = verdict_of(apart, t=0.1, sensitive=["s", "s2"])
    assert verdict.achieved["t"] == pytest.approx(0.5)


def test_an_empty_release_fails():
    none = pa.table({"q": pa.array([], pa.string()), "s": pa.array([], pa.string())})
    assert not verdict_of(none).passed
    assert not verdict_of(none, none, l=2, t=0.5).passed
    job = a_job()
    assert not check(counter_of(job, ["q", "s"]).result(), job).passed


def test_without_sensitive_columns_only_k_is_measured():
    verdict = verdict_of(pa.table({"q": [1, 1, 2]}), sensitive=[])
    assert verdict.achieved == {"k": 1}
    assert not verdict.passed


def test_values_outside_the_hierarchy_are_counted_not_named():
    part = pa.table({"q": [1, 1], "s": ["Canary", "Italy"]})
    options = {
        "t": 0.5,
        "t_distance": "hierarchical",
        "sensitive_hierarchy": {"s": "countries.csv"},
    }
    with pytest.raises(
        PrivacyError, match=r"1 of its values are not leaves of countries\.csv"
    ) as e:
        verdict_of(part, hierarchies={"s": COUNTRIES}, **options)
    assert "Canary" not in str(e.value)
    with pytest.raises(PrivacyError, match="its hierarchy is needed"):
        verdict_of(part, **options)


def test_unused_entries_of_a_dictionary_do_not_stretch_the_order_of_values():
    values = pa.DictionaryArray.from_arrays(
        pa.array([0, 2, 2, 0]), pa.array(["a", "b", "c", "unused", "d"])
    )
    part = pa.table({"q": [1, 1, 2, 2], "s": values})
    job = a_job(t=0.5, t_distance="ordered")
    plain = part.set_column(1, "s", pa.array(["a", "c", "c", "a"]))
    skewed = pa.table({"q": [3], "s": pa.DictionaryArray.from_arrays([0], values.dictionary)})
    for other in (part, plain):
        achieved = check(count_of(other, skewed, job=job), job).achieved["t"]
        assert achieved == pytest.approx(0.4)  # of two values, not of five


# columns of the release


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (pa.array([1, 1, 2]), pa.array([5, 5, 5])),
        (pa.array([1.5, 1.5, 1.0]), pa.array([2.0, 2.0, 2.0])),
        (
            pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 1), None]),
            pa.array([dt.date(2024, 2, 1), dt.date(2024, 2, 1), None]),
        ),
    ],
)
def test_bounds_define_the_classes_together(low, high):
    part = pa.table({"q_min": low, "q_max": high, "s": [1, 2, 3]})
    job = a_job(interval_style="bounds")
    assert published_columns(job, part.column_names) == ("q_min", "q_max")
    assert sorted(all_classes(count_of(part, job=job)).class_sizes.tolist()) == [1, 2]


def test_a_quasi_identifier_that_is_not_there_is_an_error_not_a_pass():
    with pytest.raises(PrivacyError, match=r"quasi-identifier 'q' is not a column"):
        published_columns(a_job(), ["Q", "s"])
    with pytest.raises(PrivacyError, match="'q' is not a column"):
        published_columns(a_job(interval_style="bounds"), ["q_min", "s"])
    with pytest.raises(PrivacyError, match="'q' is not a column"):
        published_columns(a_job(), ["q_min", "q_max"])  # bounds were not asked for


def test_a_count_of_other_columns_than_the_job_s_does_not_pass():
    part = pa.table({"q": [1, 2], "x": [1, 1], "s": [1, 2]})
    counter = ReleaseCounter(["x"], ["s"])
    counter.add(part)
    verdict = check(counter.result(), a_job())
    assert not verdict.passed
    assert "quasi-identifier column 'q' was not counted" in verdict.failures
    counter = ReleaseCounter(["q"], [])
    counter.add(part)
    with pytest.raises(PrivacyError, match="sensitive column 's' was not counted"):
        check(counter.result(), a_job())


def test_unlisted_columns_must_be_gone_where_they_are_to_be_dropped():
    part = pa.table({"q": [1, 1], "s": [1, 2], "extra": [3, 4]})
    assert verdict_of(part, unlisted="publish").passed
    assert verdict_of(part, unlisted="drop").failures == (
        "column 'extra' is published, but unlisted columns must be dropped",
    )


# persons


PERSON_ROWS = st.lists(
    st.tuples(st.sampled_from("ab"), st.none() | st.integers(0, 4)), min_size=1, max_size=12
)


@examples(300)
@given(st.lists(PERSON_ROWS, min_size=1, max_size=3), st.integers(2, 4))
def test_persons_of_a_class_that_lies_in_several_parts(parts, k):
    job = a_job(k=k, sensitive=[], entity_id="id")
    counter = counter_of(job, ["q"])
    for rows in parts:
        texts = [None if person is None else f"p{person}" for _, person in rows]
        counter.add(pa.table({"q": [q for q, _ in rows]}), persons=pa.chunked_array([texts]))
    count = counter.result()
    classes: dict[str, list] = defaultdict(list)
    for q, person in (row for rows in parts for row in rows):
        classes[q].append(person)
    persons = {q: len(set(found)) for q, found in classes.items()}
    verdict = check(count, job)
    assert verdict.passed == (min(persons.values()) >= k)
    assert verdict.achieved["k"] == min(persons.values())
    assert verdict.checked == (f"k-anonymity, k = {k} persons by id",)
    assert bool(verdict.failures) != verdict.passed
    expected = Counter(persons.values())
    assert count.persons_histogram == [
        (n, expected[n], sum(len(classes[q]) for q in classes if persons[q] == n))
        for n in sorted(expected)
    ]
    assert count.rows == sum(map(len, parts))


def test_persons_that_were_not_counted_are_not_taken_for_rows():
    table = pa.table({"q": ["a"] * 4})
    job = a_job(k=2, sensitive=[], entity_id="id")
    counter = counter_of(job, ["q"])
    for persons in (None, pa.chunked_array([[1, 2, 3]])):
        with pytest.raises(PrivacyError, match=r"^here: the person of some rows is unknown"):
            counter.add(table, "here", persons)
    with pytest.raises(PrivacyError, match="the persons by 'id' were not counted"):
        check(count_of(table, job=a_job(k=2, sensitive=[])), job)
    rows = counter_of(job, ["q"], rows_only=True)
    rows.add(table)
    assert rows.result().persons_histogram is None
    verdict = check(rows.result(), job, rows_only=True)
    assert verdict.passed
    assert verdict.checked == ("k-anonymity, k = 2 in rows, not persons",)
    assert not check(rows.result(), a_job(k=5, sensitive=[], entity_id="id"), rows_only=True).passed
    published = pa.table({"q": ["a"] * 4, "id": [1, 2, 3, 4]})
    released = counter_of(job, published.column_names)
    released.add(published, persons=published["id"])
    failures = check(released.result(), job).failures
    assert failures == ("identifier 'id' is published; it must be dropped",)


def test_spellings_are_one_value_of_a_leaf():
    rows = {"q": [1, 1, 2, 2], "s": [" Italy", "Spain", "Italy\u00a0", "Spain"]}
    files = {"sensitive_hierarchy": {"s": "countries.csv"}, "t_distance": "hierarchical"}
    trees = {"s": COUNTRIES}
    assert verdict_of(pa.table(rows), hierarchies=trees, t=0.01, **files).passed
    leaves = {" Italy": "x", "Spain": "x"}
    spelled = Hierarchy.from_rows(
        [[leaf, *above] for leaf, above in leaves.items()], "countries.csv"
    )
    assert verdict_of(pa.table(rows), hierarchies={"s": spelled}, t=0.01, **files).passed


def test_identifiers_quasi_identifiers_and_persons_are_as_they_are_written():
    job = a_job(sensitive=[], identifiers=["n"], identifier_policy="redact", entity_id="p")
    table = pa.table({"q": ["a", "a ", "", None], "n": ["*", "*", "*", "* "], "p": ["*"] * 4})
    counter = counter_of(job, table.column_names)
    counter.add(table, persons=pa.chunked_array([["1", " 1", "1", "1"]]))
    assert all_classes(counter.result()).class_sizes.tolist() == [1] * 4
    assert counter.result().identifiers == {"n": False, "p": True}
    one = counter_of(job, table.column_names)
    one.add(
        pa.table({"q": ["a"] * 4, "n": ["*"] * 4, "p": ["*"] * 4}),
        persons=pa.chunked_array([["1", " 1", "", None]]),
    )
    assert all_classes(one.result()).persons.tolist() == [4]


def test_what_counts_as_a_value_is_said_where_it_is_not_the_usual():
    part = pa.table({"q": [1, 1], "s": ["x", "y"]})
    text = verdict_of(part, l=2, missing_sensitive="value").checked[1]
    assert text == "distinct l-diversity of s, l = 2, missing values counted as one"


@pytest.mark.parametrize(
    ("keys", "rows_only", "of_rows"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"l_width": {"s": "1"}}, True, True),
        ({"algorithm": "tds", "quasi_identifiers": ["q=ladder:10"]}, False, False),
        ({"entity_id": None}, True, False),
    ],
)
def test_l_says_where_it_is_that_of_rows_and_not_of_persons(keys, rows_only, of_rows):
    job = a_job(**{"k": 2, "l": 2, "sensitive": ["s"], "entity_id": "id", **keys})
    table = pa.table({"q": ["a"] * 4, "s": [1, 2, 5, 9]})
    counter = counter_of(job, ["q", "s"], rows_only=rows_only)
    persons = pa.chunked_array([[1, 2, 3, 4]]) if job.entity_id and not rows_only else None
    counter.add(table, persons=persons)
    _, *diversity = check(counter.result(), job, rows_only=rows_only).checked
    assert diversity and all(each.endswith("l = 2 in rows, not persons") is of_rows
                             for each in diversity)  # fmt: skip
