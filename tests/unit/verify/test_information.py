"""The share of a column's bits that a label loses, against the definition."""

from __future__ import annotations

from collections import Counter
from datetime import date
from math import log2

import numpy as np
import pyarrow as pa
import pytest

from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.data.spans import quantiles_of, robust_ends
from mondrian_ops.job.job import Job
from mondrian_ops.verify.labels import labels_of_job
from mondrian_ops.verify.published_labels import PublishedLabels

TREE = [
    ["flu", "viral", "*"],
    ["cold", "viral", "*"],
    ["burn", "injury", "*"],
    ["cut", "injury", "*"],
]
ROWS = ["burn"] * 9 + ["cold"] * 3 + ["cut"] * 2 + ["flu"] * 6


def entropy(values: list) -> float:
    counts = Counter(values).values()
    return -sum(each / len(values) * log2(each / len(values)) for each in counts)


def labels_of(way: str, rows: list, *, counted: bool = True) -> PublishedLabels:
    job = Job.from_dict({"k": 2, "quasi_identifiers": [way]}, paths_required=False)
    (name,) = job.quasi_identifier_names
    column = pa.array(rows)
    present = sorted({*rows} - {None})
    missing = [rows.count(None)] if None in rows else []
    counts = pa.array([*missing, *(rows.count(each) for each in present)])
    trees = {name: Hierarchy.from_rows(TREE, "tree")} if "hierarchy" in way else {}
    return labels_of_job(
        job,
        {name: column.type},
        {name: pa.array(present, column.type)},
        {},
        trees,
        counts={name: counts} if counted else {},
        quantiles={} if counted else {name: quantiles_of(column)},
        robust_ends={} if counted else {name: robust_ends(quantiles_of(column), name)},
    )[name]


def lost(labels: PublishedLabels, *texts: str | None) -> list[float]:
    return labels.losses([pa.array(texts, pa.string())]).information.tolist()


@pytest.mark.parametrize(
    ("way", "label", "covered"),
    [
        ("ill=set", "{burn, cut}", ["burn", "cut"]),
        ("ill=set", "{burn, cold, cut, flu}", ["burn", "cold", "cut", "flu"]),
        ("ill=prefix", "c***", ["cold", "cut"]),
        ("ill=hierarchy:tree.csv", "viral", ["cold", "flu"]),
        ("ill=hierarchy:tree.csv", "injury", ["burn", "cut"]),
    ],
)
@pytest.mark.parametrize("missing", [0, 5])
def test_a_label_loses_the_bits_that_it_leaves_open(way, label, covered, missing) -> None:
    rows = ROWS + [None] * missing
    open_ = entropy([row for row in rows if row in covered]) / entropy(rows)
    assert lost(labels_of(way, rows), label) == pytest.approx([open_])


@pytest.mark.parametrize("way", ["ill=set", "ill=prefix", "ill=hierarchy:tree.csv"])
def test_values_lose_nothing_and_stars_all(way: str) -> None:
    assert lost(labels_of(way, [*ROWS, None]), "burn", None, "*") == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("counted", [True, False])
def test_intervals_lose_by_the_rows_within_and_not_by_their_width(counted: bool) -> None:
    ages = np.random.default_rng(0).integers(20, 60, 900).tolist()
    for rows in (ages, [*ages, 9999]):
        labels = labels_of("age=interval", rows, counted=counted)
        within = [row for row in rows if 30 <= row <= 39]
        assert lost(labels, "[30, 39]", "33", "*", None) == pytest.approx(
            [entropy(within) / entropy(rows), 0, 1, 0]
        )


def test_ends_that_belong_to_no_interval() -> None:
    rows = [1, 2, 4, 5, 5, 7, 8] * 20
    grid = labels_of("age=grid:4", rows, counted=False)
    assert lost(grid, "[4.0, 8.0)") == pytest.approx([entropy([4, 5, 5, 7]) / entropy(rows)])
    ladder = labels_of("age=ladder:4@0", rows)
    assert lost(ladder, "[4, 7]") == pytest.approx([entropy([4, 5, 5, 7]) / entropy(rows)])


def test_units_of_the_calendar_lose_what_is_open_within_them() -> None:
    days = [date(2024, 1 + at % 7, 1 + at % 5) for at in range(90)]
    labels = labels_of("day=ladder:month/quarter", days)
    for label, months in (("2024-02", {2}), ("2024-Q2", {4, 5, 6})):
        within = [day for day in days if day.month in months]
        assert lost(labels, label) == pytest.approx([entropy(within) / entropy(days)])


def test_categories_in_an_order_lose_what_is_open_between_the_ends() -> None:
    rows = ["low"] * 5 + ["high"] * 3 + ["medium"] * 2
    labels = labels_of("pay=order:low/medium/rarely/high", rows)
    upper = entropy(["high"] * 3 + ["medium"] * 2) / entropy(rows)
    assert lost(labels, "[medium, high]", "[rarely, high]", "low", "*") == pytest.approx(
        [upper, 0, 0, 1]
    )


def test_columns_compare() -> None:
    """A set of 14 of a thousand codes is no small loss beside a prefix of 45 of them."""
    codes = [f"{at:04d}" for at in range(1000)]
    as_set = "{" + ", ".join(codes[::72]) + "}"
    assert len(codes[::72]) == 14
    of_set = labels_of("code=set", codes).losses([pa.array([as_set])])
    of_prefix = labels_of("code=prefix", codes).losses([pa.array(["00**"])])
    assert of_set.ncp.tolist() == [0.014]
    assert of_set.information == pytest.approx([log2(14) / log2(1000)])
    assert of_prefix.information == pytest.approx([log2(100) / log2(1000)])


def test_one_value_has_no_bits_to_lose() -> None:
    assert lost(labels_of("ill=set", ["flu"] * 4), "flu") == [0.0]


def test_robust_losses_are_capped() -> None:
    ages = np.random.default_rng(0).integers(20, 60, 900).tolist()
    labels = labels_of("age=interval", [*ages, 9999], counted=False)
    losses = labels.losses([pa.array(["[30, 39]", "[50, 9999]", "33", "*"])])
    assert losses.ncp == pytest.approx([9 / 9979, 9949 / 9979, 0, 1])
    assert losses.robust == pytest.approx([9 / 39, 1, 0, 1])
