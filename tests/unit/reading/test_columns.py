"""Labels as intervals and categories."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.errors import InputError
from mondrian_ops.reading.columns import Categories, Intervals


def intervals(*labels: str | None, whole: bool = False) -> Intervals:
    return Intervals.of_labels("age", pa.chunked_array([pa.array(labels, pa.string())]), whole)


def test_intervals_are_read_with_their_ends() -> None:
    read = intervals("[25, 30]", "27", "*", None, "(-inf, 24]", "[31, inf)", "[-5, -2]")
    assert read.low.to_pylist() == [25, 27, None, None, None, 31, -5]
    assert read.high.to_pylist() == [30, 27, None, None, 24, None, -2]
    assert read.hidden.tolist() == [False, False, True, False, False, False, False]
    assert read.middle.to_pylist() == [27.5, 27, None, None, None, None, -3.5]


def test_an_end_that_does_not_belong_to_whole_numbers_is_the_one_before() -> None:
    assert intervals("[20, 30)", whole=True).high.to_pylist() == [29]
    assert intervals("[20, 30)").high.to_pylist() == [30]
    grid = intervals("[17.5, 20)", "[20, 22.5)", whole=True)
    assert (grid.low.to_pylist(), grid.high.to_pylist()) == ([18, 20], [19, 22])
    days = intervals("[2024-01-01, 2024-01-08)", "2024-03-01", whole=True)
    assert days.high.to_pylist() == [dt.date(2024, 1, 7), dt.date(2024, 3, 1)]
    assert days.middle.to_pylist() == [dt.date(2024, 1, 4), dt.date(2024, 3, 1)]


def test_whole_numbers_that_a_float_cannot_hold_are_exact() -> None:
    least, most = 2**53 + 1, 2**63 - 1
    read = intervals(f"[{least}, {least + 2}]", str(least), f"[{most - 1}, {most})", whole=True)
    assert read.low.to_pylist() == [least, least, most - 1]
    assert read.high.to_pylist() == [least + 2, least, most - 1]
    assert read.drawn(np.random.default_rng(1)).to_pylist()[1:] == [least, most - 1]


def test_fractions_and_moments_are_read_as_such() -> None:
    assert intervals("[0.5, 1]", "2").middle.to_pylist() == [0.75, 2.0]
    moments = intervals("[2024-01-01 00:00:00, 2024-01-01 00:00:10]")
    assert moments.middle.to_pylist() == [dt.datetime(2024, 1, 1, 0, 0, 5)]
    zoned = intervals("2024-01-01 00:00:00Z")
    assert zoned.low.to_pylist() == [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]
    assert intervals(None, "*").middle.null_count == 2


def test_what_is_no_interval_is_named_without_its_text() -> None:
    with pytest.raises(InputError, match="column 'age': its labels are no intervals") as error:
        intervals("[25, 30]", "young")
    assert "young" not in str(error.value)


@pytest.mark.parametrize("labels", [("[3, 5]",), ("[0.25, 0.5]",), ("[2024-01-01, 2024-01-03]",)])
def test_drawn_values_lie_in_their_intervals(labels: tuple[str, ...]) -> None:
    one = labels[0][1:-1].split(", ")[0]
    read = intervals(*labels * 200, None, "*", f"[{one}, inf)", f"(-inf, {one}]")
    drawn = read.drawn(np.random.default_rng(1))
    assert drawn.null_count == 4
    values = drawn.to_pylist()[:200]
    low, high = read.low[0].as_py(), read.high[0].as_py()
    assert all(low <= value <= high for value in values)
    assert len(set(values)) >= 3


def categories(*labels: str | None, kind: str = "set", tree: Hierarchy | None = None) -> Categories:
    return Categories.of_labels(pa.chunked_array([pa.array(labels, pa.string())]), kind, tree)


def test_sets_have_their_members_and_what_is_hidden_may_be_each() -> None:
    read = categories('{"Farming, fishing", Sales}', "Sales", None, "*", '"*"')
    assert read.domain.to_pylist() == ["*", "Farming, fishing", "Sales"]
    assert read.lists.to_pylist() == [
        ["Farming, fishing", "Sales"], ["Sales"], None, ["*", "Farming, fishing", "Sales"], ["*"],
    ]  # fmt: skip
    third = np.float32(1 / 3)
    assert read.shares().tolist() == [
        [0, 0.5, 0.5], [0, 0, 1], [0, 0, 0], [third] * 3, [1, 0, 0],
    ]  # fmt: skip


def test_a_node_stands_for_its_leaves_where_its_hierarchy_is_known() -> None:
    rows = [["Paris", "France", "*"], ["Lyon", "France", "*"], ["Rome", "Italy", "*"]]
    tree = Hierarchy.from_rows(rows, "towns")
    known = categories("France", "Rome", "Italy", "*", None, kind="hierarchy", tree=tree)
    assert known.lists.to_pylist() == [
        ["Paris", "Lyon"], ["Rome"], ["Rome"], ["Lyon", "Paris", "Rome"], None
    ]  # fmt: skip
    assert categories("France", kind="hierarchy").lists.to_pylist() == [["France"]]
    assert categories("10*", kind="prefix").lists.to_pylist() == [["10*"]]
    assert categories("{a, b}", kind="hierarchy").lists.to_pylist() == [["{a, b}"]]


def test_drawn_values_are_members_each_as_likely() -> None:
    read = categories(*["{a, b}"] * 1000, "c", None)
    drawn = read.drawn(np.random.default_rng(1)).to_pylist()
    assert drawn[1000:] == ["c", None]
    assert set(drawn[:1000]) == {"a", "b"}
    assert 400 < drawn[:1000].count("a") < 600
    assert categories(None, "*").drawn(np.random.default_rng(1)).to_pylist() == [None, None]
