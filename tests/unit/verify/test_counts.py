"""What decides that a release may be published, at its edges: found by mutating that code."""

from __future__ import annotations

import dataclasses
import json
import math
import tempfile
from collections import Counter, defaultdict
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import brute_force
from counted_classes import all_classes
from drawn_jobs import DIAGNOSES, DIAGNOSIS_TREE
from mondrian_ops.errors import PrivacyError
from mondrian_ops.job.job import Job
from mondrian_ops.verify import classes as release_classes
from mondrian_ops.verify import counts as release_count
from mondrian_ops.verify import requirements
from mondrian_ops.verify.counts import ClassCounts, Figures
from mondrian_ops.verify.criteria import criteria_of
from mondrian_ops.verify.criteria.base import present
from mondrian_ops.verify.requirements import (
    ReleaseCounter,
    check,
    counter_of,
    published_columns,
)
from mondrian_ops.verify.values import ColumnValues
from tiers import one_in

ROWS = 4


def a_job(**keys: Any) -> Job:
    return Job.from_dict({"k": 2, "quasi_identifiers": ["q"], **keys}, paths_required=False)


@pytest.fixture
def spill():
    with tempfile.TemporaryFile() as file:
        yield file


def a_part(**columns: Any) -> pa.Table:
    return pa.table({"q": ["a"] * ROWS, **columns})


@pytest.mark.parametrize("held", [100, release_count.HELD])
@pytest.mark.parametrize("parts", [1, 64])
def test_the_work_of_distinct_sensitive_values_grows_as_their_number(monkeypatch, parts, held):
    """In values that are put into a table: each look-up makes one of all values so far."""
    batches, rows, made = 64, 200, []
    codes_of = ColumnValues._codes_of

    def counted(column, values):
        made.append(len(column.values) + len(values))
        return codes_of(column, values)

    monkeypatch.setattr(ColumnValues, "_codes_of", counted)
    counter = ReleaseCounter(["q"], ["s"], held=held)
    texts = [
        pa.record_batch({"q": ["a"] * rows, "s": [f"v{at}-{row}" for row in range(rows)]})
        for at in range(batches)
    ]
    each = batches // parts
    for at in range(0, batches, each):
        counter.add(iter(texts[at : at + each]))
    assert len(all_classes(counter.result()).sensitive["s"].totals) == batches * rows + 1
    # A table anew for each batch would take 32 times as many values as there are.
    assert sum(made) <= 6 * batches * rows + batches * 10


def test_the_figures_of_nothing():
    count = ReleaseCounter(["q"], ["s"]).result()
    assert (count.rows, count.classes, count.dp, count.histogram) == (0, 0, 0, [])
    assert (count.prosecutor_max, count.prosecutor_avg, count.c_avg(5)) == (1.0, 1.0, 0.0)
    assert all_classes(count).sensitive["s"].totals.tolist() == [0]  # of the missing value
    verdict = check(count, a_job())
    assert (verdict.passed, verdict.achieved, verdict.checked) == (False, {}, ())
    assert verdict.failures == ("the release has no rows",)


@pytest.mark.parametrize(
    ("parts", "passes"),
    [
        ([["*"] * 4, ["*"] * 4], True),
        ([["*"] * 4, ["*"] * 3 + ["Jane"]], False),
        ([["*"] * 4, ["Jane"] * 4], False),
        ([["*", "*", "Jane", "Joe"], ["*"] * 4], False),
        ([["*", None, "*", "*"], ["*"] * 4], False),
        ([[None] * 4, [None] * 4], True),
        ([["Jane", "Joe", "Jim", "Jill"], ["*"] * 4], False),
        ([["*"] * 4, ["Jane", "Joe", "Jim", "Jill"]], False),
    ],
)
def test_a_redacted_identifier_has_one_value_in_all_parts(parts, passes):
    job = a_job(identifiers=["name"], identifier_policy="redact")
    counter = counter_of(job, ["q", "name"])
    for names in parts:
        counter.add(a_part(name=pa.array(names, pa.string())))
    verdict = check(counter.result(), job)
    assert verdict.passed is passes
    assert bool(verdict.failures) is not passes
    assert "Jane" not in str(verdict)


def test_an_identifier_that_was_not_counted_does_not_pass():
    counter = ReleaseCounter(["q"], [])
    counter.add(a_part(name=["*"] * ROWS))
    job = a_job(identifiers=["name"], identifier_policy="redact")
    assert check(counter.result(), job).failures == (
        "identifier 'name' is published; it must be the same in all rows",
    )


def test_each_identifier_is_looked_at():
    """Also after one that is gone."""
    part = a_part(name=["*"] * ROWS, ssn=["*", "*", "*", "1"])
    for policy, wrong in (("drop", ["name", "ssn"]), ("redact", ["ssn"])):
        job = a_job(identifiers=["gone", "name", "ssn"], identifier_policy=policy)
        counter = counter_of(job, part.column_names)
        counter.add(part)
        failures = check(counter.result(), job).failures
        assert [failure.split("'")[1] for failure in failures] == wrong


def test_a_failing_class_is_told_by_part_and_row():
    counter = ReleaseCounter(["q"], [])
    counter.add(a_part(), "one")
    counter.add(pa.table({"q": ["a", "a", "b"]}), "two")
    count = counter.result()
    (failure,) = check(count, a_job()).failures
    assert failure == (
        "k-anonymity, k = 2: 1 of 2 classes fail; the worst has 1 rows and k = 1 "
        "(row 2 of two is in it)"
    )
    assert count.locate(ROWS - 1) == ("one", ROWS - 1)
    assert count.locate(ROWS) == ("two", 0)
    assert count.histogram == [(1, 1), (6, 1)]
    assert count.prosecutor_max == 1.0
    assert count.prosecutor_avg == 2 / 7
    assert count.c_avg(2) == 7 / 2 / 2


def test_parts_without_a_name_are_numbered():
    counter = ReleaseCounter(["q"], [])
    for _ in range(2):
        counter.add(a_part())
    assert counter.result().parts == (("part 0", 0), ("part 1", ROWS))


def test_classes_of_k_pass_and_of_one_less_fail():
    for size, passes in ((2, True), (1, False)):
        counter = ReleaseCounter(["q"], [])
        counter.add(pa.table({"q": ["a"] * ROWS + ["b"] * size}))
        assert check(counter.result(), a_job()).passed is passes


def test_a_release_of_another_shape_is_no_release():
    with pytest.raises(PrivacyError, match="'q' is not a column of the release"):
        counter_of(a_job(), ["r"])
    counter = counter_of(a_job(), ["q"])
    counter.add(a_part())
    for name, where in (("", ""), ("two", "two: ")):
        with pytest.raises(PrivacyError, match=f"^{where}its columns differ from those of the"):
            counter.add(a_part(other=range(ROWS)), name)


def test_the_columns_of_a_count_may_stand_in_any_order():
    counter = ReleaseCounter(["q"], [])
    counter.add(pa.table({"q": ["a"], "r": [1]}))
    counter.add(pa.table({"r": [1], "q": ["a"]}))
    assert all_classes(counter.result()).class_sizes.tolist() == [2]


@pytest.mark.parametrize("other", ["age_min", "age_max"])
def test_another_column_does_not_stand_in_for_bounds(other):
    job = a_job(quasi_identifiers=[other, "age"], interval_style="bounds")
    with pytest.raises(PrivacyError, match="'age' is not a column of the release"):
        published_columns(job, [other])
    assert published_columns(job, [other, "age"]) == (other, "age")


def test_bounds_may_be_all_there_is():
    job = a_job(quasi_identifiers=["age"], interval_style="bounds")
    assert published_columns(job, ["age_max", "age_min"]) == ("age_min", "age_max")
    assert published_columns(job, ["age_max", "age_min", "age"]) == ("age_min", "age_max", "age")
    bounds = ["age_min", "age_max", "age_hidden"]
    assert published_columns(job, bounds) == tuple(bounds)
    with pytest.raises(PrivacyError, match="'age' is not a column"):  # they were not asked for
        published_columns(a_job(quasi_identifiers=["age"]), ["age_max", "age_min"])


def test_nothing_that_was_decided_can_be_changed():
    counter = ReleaseCounter(["q"], ["s"])
    part = counter.add(a_part(s=[1] * ROWS))
    count = counter.result()
    verdict = check(count, a_job(sensitive=["s"]))
    classes = all_classes(count)
    for found in (part, count, classes, classes.sensitive["s"], verdict):
        for field in dataclasses.fields(found):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(found, field.name, None)


@pytest.mark.parametrize("at_most", [False, True])
def test_what_is_within_the_tolerance_is_met_and_what_is_beyond_is_not(at_most):
    """Its very end included: one float further is too far."""
    level = 0.25
    end = level + 1e-9 if at_most else level * (1 - 1e-9)
    classes = all_classes(a_count({"q": list("aab")}))
    for worst, met in ((end, True), (np.nextafter(end, 1 if at_most else 0), False)):
        measured = np.array([level, worst])
        requirement = requirements.Requirement.of(classes, "t", "t", level, measured, at_most)
        assert requirement.failing == (not met)
        assert requirement.achieved == worst


def test_what_could_not_be_measured_is_not_met():
    count = a_count({"q": list("aab")})
    classes = all_classes(count)
    for at_most, measured in product((False, True), ([0.25, math.nan], [math.nan, 0.25])):
        found = requirements.Requirement.of(classes, "t", "t", 0.25, np.array(measured), at_most)
        met = found.of(classes, "t", "t", 0.25, np.array([0.25, 0.25]), at_most)
        for both in (found, found.joined(met), met.joined(found)):
            assert "1 of 2 classes fail" in both.failure(count)
            assert math.isnan(both.achieved)
            assert both.worst_row == found.worst_row


# what is counted, against Counters


def a_count(*parts: dict[str, Any], sensitive: tuple[str, ...] = ()) -> release_count.ReleaseCount:
    counter = ReleaseCounter(["q"], sensitive)
    for part in parts:
        counter.add(pa.table(part))
    return counter.result()


def untidy(values: list) -> pa.DictionaryArray:
    """A dictionary with twins, entries of no row, and a missing value that has one of its own."""
    plain = pa.array(values, pa.string())
    dictionary = pa.concat_arrays([plain, pa.array(["unused", None]), plain])
    rows = len(values)
    places = [
        None if value is None and row % 2 else row + (row % 2) * (rows + 2)
        for row, value in enumerate(values)
    ]
    return pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), dictionary)


@pytest.mark.parametrize("held", [release_count.HELD, 8, 0])
@pytest.mark.parametrize("is_spilled", [False, True])
@pytest.mark.parametrize("seed", one_in(3, range(3)))
def test_every_count_is_that_of_counters(seed, is_spilled, held, spill):
    random = np.random.default_rng(seed)

    def drawn(values: list, rows: int) -> list:
        return [values[at] for at in random.integers(0, len(values), rows)]

    file = spill if is_spilled else None
    counter = ReleaseCounter(["a", "b"], ["s", "t"], ["name"], True, file, held)
    everything: list[tuple] = []
    for size in (7, 0, 12, 9):
        columns = {
            "a": drawn(["x", "y", None], size),
            "b": drawn([0.0, 1e-300, 1.0, -1.0, None], size),
            "s": drawn(["u", "v", "w", None], size),
            "t": drawn([1, 2**62, None], size),
            "name": drawn(["*", "*"], size),
        }
        persons = drawn(["p", "q", "r", None], size)
        rows = list(zip(*list(columns.values())[:4], persons, strict=True))
        part = counter.add(
            pa.table(
                {
                    "t": pa.array(columns["t"], pa.int64()),
                    "a": untidy(columns["a"]),
                    "b": pa.chunked_array([columns["b"][:3], columns["b"][3:]], pa.float64()),
                    "s": untidy(columns["s"]),
                    "name": pa.array(columns["name"], pa.string()),
                }
            ),
            persons=pa.chunked_array([persons[:2], persons[2:]], pa.string()),
        )
        local = Counter(row[:2] for row in rows)
        dp = sum(n * n for n in local.values())
        assert (part.rows, part.classes, part.dp) == (size, len(local), dp)
        everything += rows
    count = counter.result()
    assert (spill.seek(0, 2) > 0) == (is_spilled and held < release_count.HELD)
    counted = all_classes(count)

    classes: dict[tuple, list[tuple]] = defaultdict(list)
    for row in everything:
        classes[row[:2]].append(row)
    keys = [everything[row][:2] for row in counted.first_rows]
    assert sorted(map(str, keys)) == sorted(map(str, classes))
    assert counted.first_rows.tolist() == [everything.index(classes[key][0]) for key in keys]
    assert counted.class_sizes.tolist() == [len(classes[key]) for key in keys]
    assert counted.persons is not None
    assert counted.persons.tolist() == [len({row[4] for row in classes[key]}) for key in keys]
    for at, name in ((2, "s"), (3, "t")):
        found = counted.sensitive[name]
        values = [None, *found.values.to_pylist()]
        assert len(values) == len(found.totals)
        whole = Counter(row[at] for row in everything)
        assert found.totals.tolist() == [whole[value] for value in values]
        pairs = list(zip(found.classes.tolist(), found.codes.tolist(), strict=True))
        assert [number for number, _ in pairs] == sorted(number for number, _ in pairs)
        by_key = {
            (keys[number], values[code]): times
            for (number, code), times in zip(pairs, found.counts.tolist(), strict=True)
        }
        assert by_key == Counter((row[:2], row[at]) for row in everything)
    assert (count.rows, count.classes) == (len(everything), len(classes))
    assert count.identifiers == {"name": True}
    assert count.columns == ("a", "b", "name", "s", "t")
    assert count.parts == (("part 0", 0), ("part 1", 7), ("part 2", 7), ("part 3", 19))
    places = [count.locate(row) for row in counted.first_rows]
    starts = dict(count.parts)
    assert [starts[part] + row for part, row in places] == counted.first_rows.tolist()


def test_rows_that_differ_where_keys_overflow_are_two_classes():
    """Seven columns of 2**8 codes and one of 2**10: of the first one's codes, two bits are lost."""
    many, last = np.arange(1023), [*range(1023), 7, 7]
    columns = {"q0": [*(many % 255), 0, 64]}
    columns |= {f"q{at}": [*(many % 255), 7, 7] for at in range(1, 7)}
    counter = ReleaseCounter([*columns, "q7"], [])
    counter.add(pa.table({**columns, "q7": last}))
    assert all_classes(counter.result()).class_sizes.tolist() == [1] * 1025


def test_what_is_no_number_is_not_missing_in_a_quasi_identifier():
    counter = ReleaseCounter(["q"], [])
    counter.add(pa.table({"q": pa.array([math.nan, None, math.nan, None, None], pa.float64())}))
    assert sorted(all_classes(counter.result()).class_sizes.tolist()) == [2, 3]


def test_an_identifier_that_is_gone_is_not_told_of():
    counter = ReleaseCounter(["q"], [], ["name", "ssn"])
    counter.add(a_part(ssn=["*"] * ROWS))
    assert counter.result().identifiers == {"ssn": True}


def test_a_column_of_nothing_has_no_values():
    """With a type of its own, or in a dictionary."""
    counter = ReleaseCounter(["q"], ["s"])
    nothing = pa.nulls(ROWS)
    counter.add(a_part(s=nothing))
    counter.add(a_part(s=nothing.dictionary_encode()))
    counter.add(a_part(s=["x"] * ROWS))
    found = all_classes(counter.result()).sensitive["s"]
    assert found.totals.tolist() == [2 * ROWS, ROWS]


@pytest.mark.parametrize(
    ("keys", "checked"),
    [
        ({"diversity": "recursive", "c": 1.5, "l": 2},
         "recursive (c, l)-diversity of s, c = 1.5, l = 2"),
        ({"l": 2}, "distinct l-diversity of s, l = 2"),
        ({"t": 0.5}, "t-closeness of s, t = 0.5, equal distance"),
    ],
)  # fmt: skip
def test_what_was_checked_is_told_with_its_figures(keys, checked):
    counter = ReleaseCounter(["q"], ["s"])
    counter.add(a_part(s=["x", "y", "x", "z"]))
    texts = check(counter.result(), a_job(sensitive=["s"], **keys)).checked
    assert checked in texts, texts


def test_keys_that_fit_are_the_codes_in_mixed_radix():
    """Then nothing is grouped for them; one more value, and groups stand in for them."""
    codes = [
        np.array(column, np.uint32)
        for column in ([2**32 - 1, 0, 5, 5], [2**31 - 1, 1, 0, 7], [1, 1, 0, 1])
    ]
    radices = [2**32, 2**31, 2]
    expected = [
        (a * 2**31 + b) * 2 + c for a, b, c in zip(*(each.tolist() for each in codes), strict=True)
    ]
    assert release_classes._keys(codes, radices, 4).tolist() == expected
    beyond = release_classes._keys([*codes, codes[2]], [*radices, 2], 4)
    assert beyond.tolist() == [0 * 2 + 1, 1 * 2 + 1, 2 * 2 + 0, 3 * 2 + 1]
    equal = release_classes._keys([codes[2], *codes[:2], codes[0]], [2, *radices[:2], 2**32], 4)
    assert equal.tolist() == [2**32 - 1, 2**32, 2 * 2**32 + 5, 3 * 2**32 + 5]


@pytest.mark.parametrize("values", [2, 300, 70_000])
def test_pairs_weigh_as_much_as_they_take(values):
    """Of few values an eighth of a class; of many, each may bring a value of its own."""
    rows = 80_000
    counter = ReleaseCounter(["q"], ["s"])
    counter.add(pa.table({"q": np.arange(rows), "s": np.arange(rows) % values}))
    weight = 1 if values > 65_535 else 1 / 8
    assert release_classes.entries(counter._pending[0].classes) == rows * (1 + weight)


def test_the_classes_are_measured_some_at_a_time(monkeypatch):
    """With all their pairs, whatever number of classes is measured at once."""
    monkeypatch.setattr(release_count, "_MEASURED", 5)
    random = np.random.default_rng(4)
    columns = {"q": random.integers(0, 40, 200), "s": random.integers(0, 9, 200)}
    counter = ReleaseCounter(["q"], ["s"])
    counter.add(pa.table(columns))
    count = counter.result()
    sizes = [len(classes.class_sizes) for classes in count.partitions()]
    assert max(sizes) <= 2 < len(sizes)
    assert (sum(sizes), count.rows) == (len(set(columns["q"].tolist())), 200)
    found = all_classes(count)
    of_row = {q: number for number, q in enumerate(columns["q"][found.first_rows].tolist())}
    of = found.sensitive["s"]
    values = of.values.to_pylist()
    pairs = zip(of.classes.tolist(), of.codes.tolist(), of.counts.tolist(), strict=True)
    rows = zip(columns["q"].tolist(), columns["s"].tolist(), strict=True)
    assert {(number, values[code - 1]): times for number, code, times in pairs} == Counter(
        (of_row[q], s) for q, s in rows
    )


def test_parts_are_merged_before_they_outgrow_what_they_are_merged_into():
    counter = ReleaseCounter(["q"], [], held=3)
    waiting = []
    for part in range(8):
        counter.add(pa.table({"q": [2 * part, 2 * part + 1]}))
        waiting.append((sum(len(each.classes.sizes) for each in counter._pending), counter._merged))
    assert [classes for classes, _ in waiting] == [2, 0, 2, 4, 0, 2, 4, 6]
    assert all_classes(counter.result()).class_sizes.tolist() == [1] * 16
    assert counter._pending == []


@pytest.mark.parametrize("other", [1e-300, -1e-300, 1.0, -1.0, math.inf, math.nan, None])
def test_numbers_that_differ_are_not_taken_for_one(other):
    column = pa.array([0.0, other], pa.float64(), from_pandas=False)
    assert all_classes(a_count({"q": column})).class_sizes.tolist() == [1, 1]


def test_a_part_may_have_no_value_of_a_column_and_the_next_one_some():
    for first in (pa.nulls(1), pa.nulls(1, pa.string()), pa.nulls(1).dictionary_encode()):
        count = a_count({"q": first}, {"q": pa.array(["x", None])}, {"q": pa.array(["y", "x"])})
        assert sorted(all_classes(count).class_sizes.tolist()) == [1, 2, 2]


# what is measured, against the formulas of the papers


def brute_recursive(counts: Counter, c: float) -> int:
    holds = [n for n in range(1, len(counts) + 1) if brute_force.recursive(counts, c, n)]
    return max(holds, default=0)


@pytest.mark.parametrize("seed", range(6))
def test_what_each_class_has_is_what_the_papers_define(seed):
    """Of every class, not of the worst one only; the last seed has one value in all rows.

    One of the classes has no value at all, but in the first and the last seed.
    """
    random = np.random.default_rng(seed)
    ills = ["flu"] if seed == 5 else [*DIAGNOSES, None]
    sizes = random.integers(3, 12, 5)
    classes = [
        [ills[at] for at in random.integers(0, random.integers(1, len(ills) + 1), size)]
        for size in sizes
    ]
    if seed not in (0, 5):
        classes[seed] = [None] * len(classes[seed])
    rows = [(number, ill) for number, found in enumerate(classes) for ill in found]
    random.shuffle(rows)
    half = len(rows) // 2
    count = a_count(
        *({"q": [q for q, _ in part], "s": untidy([s for _, s in part])}
          for part in (rows[:half], rows[half:])),
        sensitive=("s",),
    )  # fmt: skip
    whole = Counter(ill for _, ill in rows)
    counted = all_classes(count)
    of_class = [
        Counter(ill for q, ill in rows if q == rows[first][0]) for first in counted.first_rows
    ]

    def measured(**keys: Any) -> list[float]:
        job = a_job(sensitive=["s"], **keys)
        *_, criterion = criteria_of(job, {"s": DIAGNOSIS_TREE})
        return criterion.measure(counted).tolist()

    for missing in ("no_value", "value"):
        keys = {"l": 2, "missing_sensitive": missing}
        having = of_class if missing == "value" else [*map(brute_force.present, of_class)]
        assert measured(**keys) == [len(each) for each in having]
        assert measured(**keys, diversity="entropy") == pytest.approx(
            [math.exp(brute_force.entropy(each)) if each else 0 for each in having]
        )
        for c in (0.3, 1, 2.5):
            assert measured(**keys, diversity="recursive", c=c) == [
                brute_recursive(each, c) for each in having
            ]
    assert measured() == [len(brute_force.present(each)) for each in of_class]
    assert measured(t=0.1) == pytest.approx(
        [brute_force.closeness_equal(each, whole) for each in of_class]
    )
    assert measured(t=0.1, t_distance="ordered") == pytest.approx(
        [brute_force.closeness_ordered(each, whole) for each in of_class]
    )
    files = {"sensitive_hierarchy": {"s": "ills.csv"}}
    assert measured(t=0.1, t_distance="hierarchical", **files) == pytest.approx(
        [brute_force.closeness_tree(each, whole, DIAGNOSES, 3) for each in of_class]
    )


def test_what_is_counted_is_copied_only_where_something_is_missing():
    """A release of a hundred million rows has some gigabytes of it."""
    count = all_classes(a_count({"q": list("aab"), "s": ["x", "y", "x"]}, sensitive=("s",)))
    counted, sizes = present(count.sensitive["s"], count.class_sizes)
    assert counted is count.sensitive["s"]
    assert sizes is count.class_sizes
    count = all_classes(a_count({"q": list("aab"), "s": ["x", None, None]}, sensitive=("s",)))
    counted, sizes = present(count.sensitive["s"], count.class_sizes)
    assert (counted.codes.tolist(), sizes.tolist()) == ([1], [1, 0])


def test_the_risk_is_that_of_the_smallest_class():
    count = a_count({"q": list("aaabbbb")})
    assert (count.prosecutor_max, count.prosecutor_avg, count.c_avg(2)) == (1 / 3, 2 / 7, 7 / 4)


def test_persons_are_those_of_as_many_rows_and_nobody_is_one_of_them():
    for rows in (ROWS - 1, ROWS + 1):
        with pytest.raises(PrivacyError, match="person of some rows is unknown"):
            ReleaseCounter(["q"], [], with_persons=True).add(
                a_part(), persons=pa.chunked_array([range(rows)])
            )
    counter = ReleaseCounter(["q"], [], with_persons=True)
    nobody = pa.array([math.nan, None, math.nan, 1.0], from_pandas=False)
    counter.add(a_part(), persons=pa.chunked_array([nobody]))
    assert all_classes(counter.result()).persons.tolist() == [2]


@pytest.mark.parametrize("has_persons", [False, True])
def test_figures_are_added_up_in_json_as_they_are_here(has_persons):
    """Of three times some classes; in some of them a person has several rows."""
    here, there = Figures(), Figures()
    for sizes, persons in (([3, 3, 5], [2, 3, 5]), ([], []), ([1, 3, 9], [1, 3, 5])):
        none = np.zeros(len(sizes), np.int64)
        counts = ClassCounts(np.array(sizes, np.int64), none, {}, none + persons)
        if not has_persons:
            counts = dataclasses.replace(counts, persons=None)
        here.add(counts)
        figures = Figures()
        figures.add(counts)
        there.add_json(json.loads(json.dumps(figures.to_json())))
    assert there.to_json() == here.to_json()
    assert here.to_json() == {
        "sizes": [(1, 1), (3, 3), (5, 1), (9, 1)],
        "persons": [(1, 1, 1), (2, 1, 3), (3, 2, 6), (5, 2, 14)] if has_persons else None,
        "sensitive": {},
    }


def values_hashed(monkeypatch, rows: int, parts: int) -> int:
    """How many values a count of different texts puts into tables of values."""
    texts = pa.table({"q": ["*"] * rows, "s": [f"text {at}" for at in range(rows)]})
    hashed = 0
    codes_of = ColumnValues._codes_of

    def noted(self, values):
        nonlocal hashed
        hashed += len(self.values) + len(values)
        return codes_of(self, values)

    with monkeypatch.context() as patched:
        patched.setattr(ColumnValues, "_codes_of", noted)
        patched.setattr(release_count, "_SLICE", 100)
        counter = ReleaseCounter(["q"], ["s"])
        for part in range(parts):
            counter.add(texts[part * rows // parts : (part + 1) * rows // parts])
        (classes,) = counter.result().read()
    assert len(classes.sensitive["s"].values) == rows
    return hashed


def test_the_work_on_different_values_follows_the_rows(monkeypatch):
    """Each look-up begins with a table of all values so far, so there must be few look-ups."""
    few, many = (values_hashed(monkeypatch, rows, rows // 1000) for rows in (2_000, 16_000))
    assert many <= 8 * few + 1000
    assert many <= 4 * 2 * 16_000  # at most four times: in slice, part and release, of two columns
