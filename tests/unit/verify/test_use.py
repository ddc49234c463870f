"""Figures of use against counts made row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mondrian_ops.job.job import Job
from mondrian_ops.verify import use
from mondrian_ops.verify.labels import labels_of_job
from mondrian_ops.verify.use import (
    Column,
    NumberColumn,
    ValueColumn,
    columns_of_table,
    correlation_changes,
    query_errors,
)

AGES = [20, 21, 25, 30, 40, 40]
TOWNS = ["Bern", "Bonn", "Genf", "Köln", "Köln", None]


def columns(raw: dict[str, Any], released: dict[str, Any], **how: str) -> dict[str, Column]:
    """The columns of a table, of which the domain is what is in it."""
    table = pa.table(raw)
    quasi = [{"name": name, **({"generalization": how[name]} if name in how else {})}
             for name in raw]  # fmt: skip
    job = Job.from_dict({"k": 2, "quasi_identifiers": quasi}, paths_required=False)
    domains = {name: table[name].drop_null().unique().sort() for name in raw}
    types = {name: table[name].type for name in raw}
    labels = labels_of_job(job, types, domains, {}, {})
    return columns_of_table(labels, table, pa.table(released))


def only(raw: list[Any], released: list[Any], **how: str) -> Column:
    (column,) = columns({"x": raw}, {"x": released}, **how).values()
    return column


def test_interval_of_whole_numbers_counts_by_its_numbers() -> None:
    column = only(AGES, ["[20, 25]", "[20, 25]", "[20, 25]", "30", "40", "40"])
    shares = column.shares(np.array([[20, 21], [25, 30], [-5, 19], [30, 30]], float))
    np.testing.assert_allclose(shares[0], [2 / 6, 1 / 6, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(shares[3], [0, 1, 0, 1])


def test_interval_of_other_numbers_counts_by_its_length() -> None:
    column = only([0.5, 1.5, 2.5], ["[0.5, 2.5]", "[0.5, 2.5]", "2.5"])
    shares = column.shares(np.array([[0.5, 1.0], [2.5, 9.0]]))
    np.testing.assert_allclose(shares, [[0.25, 0], [0.25, 0], [0, 1]])


def test_hidden_number_counts_as_the_others_do() -> None:
    column = only(AGES, ["[20, 21]", "[20, 21]", "*", "30", "*", "40"])
    shares = column.shares(np.array([[30, 40]], float))
    np.testing.assert_allclose(shares[:, 0], [0, 0, 0.5, 1, 0.5, 1])


def test_missing_number_counts_in_no_range() -> None:
    column = only([1, 2, None], ["[1, 2]", "[1, 2]", None])
    assert not column.inside(np.array([[-9, 9]], float))[2].any()
    assert not column.shares(np.array([[-9, 9]], float))[2].any()


def test_bounds_count_as_the_interval_does() -> None:
    bounds = {"x_min": [20, 20, 20, 30, 40, 40], "x_max": [25, 25, 25, 30, 40, 40]}
    (column,) = columns({"x": AGES}, {**bounds, "x_hidden": [False] * 6}).values()
    texts = only(AGES, ["[20, 25]"] * 3 + ["30", "40", "40"])
    ranges = np.array([[20, 21], [22, 35]], float)
    np.testing.assert_array_equal(column.shares(ranges), texts.shares(ranges))


def test_set_counts_by_its_values() -> None:
    column = only(TOWNS, ["{Bern, Bonn}", "{Bern, Bonn}", "{Genf, Köln}", "Köln", "Köln", None])
    assert isinstance(column, ValueColumn)
    shares = column.shares(column.each)
    np.testing.assert_allclose(shares[0], [0.5, 0.5, 0, 0])
    np.testing.assert_allclose(shares[3], [0, 0, 0, 1])
    np.testing.assert_allclose(shares[5], [0, 0, 0, 0])
    np.testing.assert_array_equal(column.inside(column.each)[5], [0, 0, 0, 0])


def test_prefix_counts_by_the_values_below_it() -> None:
    column = only(["100", "101", "110", "220"], ["10*", "10*", "***", "***"], x="prefix")
    assert isinstance(column, ValueColumn)
    shares = column.shares(column.each)
    np.testing.assert_allclose(shares[0], [0.5, 0.5, 0, 0])


def test_distance_of_distributions() -> None:
    assert only(AGES, list(map(str, AGES))).distance() == 0
    assert only(TOWNS, TOWNS).distance() == 0
    moved = only(["a", "a", "a", "b"], ["{a, b}"] * 4)
    assert moved.distance() == pytest.approx(0.25)
    wide = only([0, 0, 0, 9], ["[0, 9]"] * 4)
    assert wide.distance() == pytest.approx(0.65)  # 3/4 are at most 0, and a tenth is said to be


def test_errors_of_counts_are_those_of_counts_row_by_row() -> None:
    draw = np.random.default_rng(7)
    ages, towns = draw.integers(0, 20, 60), draw.choice(list("abcdef"), 60)
    released = {
        "age": [f"[{age // 5 * 5}, {age // 5 * 5 + 4}]" for age in ages],
        "town": ["{a, b, c}" if town in "abc" else "{d, e, f}" for town in towns],
    }
    found = columns({"age": ages, "town": towns}, released)
    measured = query_errors(list(found.values()), k=12, queries=300, seed=3)
    draw = np.random.default_rng(3)
    draw.permutation(1)  # the order of the pairs of columns
    of_age, of_town = (column.ranges(25, draw) for column in found.values())
    errors = []
    for first, last in of_age.astype(int):
        part = [len({*range(a, a + 5)} & {*range(first, last + 1)}) / 5 for a in ages // 5 * 5]
        for start, end in of_town:
            asked = {*"abcdef"[start : end + 1]}
            counted = sum(
                first <= a <= last and t in asked for a, t in zip(ages, towns, strict=True)
            )
            if counted >= 12:
                share = [len(asked & {*("abc" if t in "abc" else "def")}) / 3 for t in towns]
                errors.append(abs(np.dot(part, share) - counted) / counted)
    assert measured is not None
    assert measured.queries == len(errors)
    assert measured.median == pytest.approx(np.median(errors), rel=1e-4)
    assert measured.mean == pytest.approx(np.mean(errors), rel=1e-4)
    exact = columns({"age": ages, "town": towns}, {"age": list(map(str, ages)), "town": towns})
    without_error = query_errors(list(exact.values()), k=5)
    assert without_error is not None
    assert without_error.p90 < 1e-5


def test_suppressed_rows_are_missed_by_counts() -> None:
    found = columns({"age": AGES * 10}, {"age": list(map(str, AGES * 5))})
    measured = query_errors(list(found.values()), k=2)
    assert measured is not None
    assert measured.median == pytest.approx(0.5)


def test_no_counts_are_asked_of_fewer_than_k_rows() -> None:
    found = columns({"age": AGES}, {"age": list(map(str, AGES))})
    assert query_errors(list(found.values()), k=7) is None


def test_correlation_before_and_after() -> None:
    x = list(range(8))
    found = columns(
        {"x": x, "y": x, "town": list("aabbccdd")},
        {"x": list(map(str, x)), "y": ["[0, 7]"] * 4 + ["[4, 7]"] * 4, "town": list("aabbccdd")},
    )
    assert all(isinstance(found[name], NumberColumn) for name in "xy")
    ((one, other, before, after),) = correlation_changes(found)
    assert (one, other) == ("x", "y")
    assert before == pytest.approx(1)
    assert after == pytest.approx(np.corrcoef(x, [3.5] * 4 + [5.5] * 4)[0, 1])


@pytest.mark.parametrize("without", [[], [3]], ids=["all rows", "a row lacks a value"])
def test_correlations_of_several_columns_are_those_of_each_two(without: list[int]) -> None:
    draw = np.random.default_rng(3)
    kept = np.setdiff1d(np.arange(50), without)
    raw: dict[str, Any] = {name: draw.integers(0, 9, 50).tolist() for name in "abc"}
    raw["same"] = [7] * 50
    of = {name: np.array(values, float)[kept if name == "b" else np.arange(50)]
          for name, values in raw.items()}  # fmt: skip
    for at in without:
        raw["b"][at] = None
    written = {name: [None if value is None else str(value) for value in values]
               for name, values in raw.items()}  # fmt: skip
    found = correlation_changes(columns(raw, written))
    assert [(each.one, each.other) for each in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    for each in found:
        one, other = (
            of[name][kept] if len(of[name]) == 50 and "b" in (each.one, each.other) else of[name]
            for name in (each.one, each.other)
        )
        assert each.before == each.after == pytest.approx(np.corrcoef(one, other)[0, 1])


def test_numbers_too_large_to_be_squared_have_no_correlation_and_warn_nobody(recwarn) -> None:
    raw: dict[str, Any] = {"a": [-1e300, 0.0, 1e300], "b": [1.0, 2.0, 3.0]}
    written = {name: [str(value) for value in values] for name, values in raw.items()}
    assert correlation_changes(columns(raw, written)) == []
    assert not recwarn.list


def test_one_row_has_no_correlations() -> None:
    assert correlation_changes(columns({"x": [1], "y": [2]}, {"x": ["1"], "y": ["2"]})) == []


@pytest.mark.parametrize("most", [0, 4], ids=["sorted", "looked up"])
def test_labels_are_numbered_in_their_order(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(use, "_KEYS_PER_ROW", most)
    for keys in ([5, 2, 5, 0, 2, 7], [], [3]):
        first, number = use._numbered(np.array(keys, np.int64))
        distinct = sorted(set(keys))
        assert first.tolist() == [keys.index(key) for key in distinct]
        assert number.tolist() == [distinct.index(key) for key in keys]
