"""Samarati's search against a walk over the whole lattice in plain Python, and the source's tables.

The source counts the classes of a table before suppression ("cluster number"); its order of vectors
is that of a Python set, and its program can miss the least height. Where its row is another node
than ours, its figures are still those that we measure at that node.
"""

from __future__ import annotations

import csv
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from mondrian_ops.algorithms.lattice import Lattice
from mondrian_ops.algorithms.samarati import search
from mondrian_ops.core.criteria import KAnonymity, Privacy
from mondrian_ops.core.errors import PrivacyError
from mondrian_ops.core.frequency_set import FrequencySet
from mondrian_ops.core.hierarchy import Hierarchy
from samarati_cases import (
    CHOICES,
    EVEN,
    FLAT,
    coded,
    searched,
    suppressed_labels,
    taxonomy,
    tree,
    way_up,
)

ADULT = Path(__file__).resolve().parents[4] / "shared/data/adult/adult.csv"


# Worked out by hand

SKEWED = {"a1": "12*", "a2": "12*", "a3": "32*", "a4": "32*"}

SKEWED |= {"a5": "56*", "a6": "56*", "a7": "76*", "a8": "76*"}

PAIRED = {"b1": "b*", "b2": "b*", "b3": "*"}

GRID = [*product(["a1", "a3"], ["b1", "b2"], ["c1", "c2"]), ("a5", "b3", "c1")]


@pytest.mark.parametrize(
    ("choice", "levels", "loss"),
    [
        ("first", (0, 0, 1), 1 + 3 / 9),
        ("minimal", (0, 1, 0), 8 / 9 / 2 + 3 / 9),  # b3 is not generalized yet, and loses nothing
        ("optimal", (2, 0, 0), 3 / 7 + 3 / 9),  # higher, and yet it loses less
    ],
)
def test_the_choices_differ(choice, levels, loss):
    """Any two of eight rows that differ in one column may be one class, but not by pairs of a's."""
    trees = [SKEWED, PAIRED, FLAT]
    found = searched(trees, zip(*GRID, strict=True), [], 2, {}, 1, choice)
    assert (found.levels, found.height) == (levels, sum(levels))
    assert found.loss == pytest.approx(loss, abs=1e-12)
    assert (found.suppressed_rows, found.classes) == (1, 4)
    outlier = tuple(
        way_up(chains, value)[level]
        for chains, value, level in zip(trees, GRID[-1], levels, strict=True)
    )
    assert suppressed_labels(trees, found) == {outlier}


@pytest.mark.parametrize("choice", CHOICES)
def test_without_suppression_the_outlier_decides(choice):
    found = searched([SKEWED, PAIRED, FLAT], zip(*GRID, strict=True), [], 2, {}, 0, choice)
    assert (found.levels, found.loss, found.classes) == ((3, 2, 0), 2.0, 2)
    assert found.suppressed.shape == (3, 0)


@pytest.mark.parametrize("choice", CHOICES)
def test_a_class_that_held_may_fail_further_up(choice):
    """Entropy falls where a class is united with a failing one: height 0 is good, height 1 bad."""
    values = ["a1", "a1", *["a2"] * 9, "a3", "a3"]
    sensitive = [*"xy", *"x" * 9, *"xy"]
    asked = {"l": 2, "diversity": "entropy"}
    found = searched([EVEN], [values], [sensitive], 2, asked, 9, choice)
    assert (found.levels, found.suppressed_rows, found.classes) == ((0,), 9, 2)


@pytest.mark.parametrize("choice", CHOICES)
def test_something_is_published(choice):
    found = searched([EVEN], [["a1", "a2", "a5"]], [], 2, {}, 100, choice)
    assert (found.levels, found.suppressed_rows, found.classes) == ((1,), 1, 1)


@pytest.mark.parametrize("choice", CHOICES)
def test_what_cannot_be_met_is_refused(choice):
    with pytest.raises(PrivacyError) as refusal:
        searched([FLAT], [["c1"] * 5], [["x"] * 5], 2, {"l": 2}, 4, choice)
    for part in ("samarati.max_suppressed", "k = 2", "distinct l-diversity of s0, l = 2", "raise"):
        assert part in str(refusal.value)


# The source's data: sex, race, marital-status, age of Adult

MARITAL = {
    "Married-spouse-absent": ["Alone", "*"],
    "Widowed": ["Alone", "*"],
    "Separated": ["Leave", "*"],
    "Divorced": ["Leave", "*"],
    "Married-civ-spouse": ["Married", "*"],
    "Married-AF-spouse": ["Married", "*"],
    "Never-married": ["NM", "*"],
}


@pytest.fixture(scope="module")
def adult():
    if not ADULT.exists():
        pytest.skip("needs ../shared/data/adult/adult.csv")
    with ADULT.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    column = {name: [row[name] for row in rows] for name in ("sex", "race", "marital-status")}
    ages = [int(row["age"]) for row in rows]
    hierarchies = [
        Hierarchy.from_rows([[value, "*"] for value in sorted(set(column["sex"]))], "sex"),
        Hierarchy.from_rows([[value, "*"] for value in sorted(set(column["race"]))], "race"),
        tree(MARITAL),
        Hierarchy.from_ladder(np.unique(ages), [5, 10, 20], 16, "age"),
    ]
    texts = [*column.values(), [str(age) for age in ages]]
    codes = [coded(h, values) for h, values in zip(hierarchies, texts, strict=True)]
    sizes = [len(hierarchy.leaves) + 1 for hierarchy in hierarchies]
    return FrequencySet.of(codes, sizes), [taxonomy(each) for each in hierarchies]


# k, MaxSup, choice; levels, loss, suppressed rows, published classes; "cluster number" if printed
ROWS = [
    (10, 20, "first", (0, 1, 2, 1), 2.0625, 0, 30, 30),  # Table 1
    (10, 10, "first", (0, 1, 2, 1), 2.0625, 0, 30, 30),
    (10, 30, "first", (0, 1, 2, 1), 2.0625, 0, 30, 30),
    (5, 20, "first", (0, 1, 0, 3), 1.25172, 13, 44, None),  # printed: (1, 1, 1, 1), below
    (20, 20, "first", (0, 1, 2, 2), 2.12659, 12, 15, None),  # printed: height 6, below
    (10, 20, "minimal", (0, 1, 2, 1), 2.0625, 0, 30, 30),  # Table 3
    (5, 20, "minimal", (0, 1, 1, 2), 1.23991, 15, 55, 63),
    (10, 10, "minimal", (0, 1, 2, 1), 2.0625, 0, 30, 30),
    (20, 20, "minimal", (0, 1, 2, 2), 2.12659, 12, 15, None),
    (10, 20, "optimal", (0, 0, 1, 4), 1.11465, 13, 38, None),  # below Table 4's 1.36544
    (5, 20, "optimal", (0, 0, 1, 4), 1.11345, 4, 39, None),
    (20, 20, "optimal", (0, 0, 2, 4), 2.0, 0, 10, None),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1]}-{row[2]}")
def test_adult_as_in_the_source(adult, row):
    k, budget, choice, levels, loss, suppressed, classes, printed = row
    found = search(*adult, Privacy(KAnonymity(k), ()), [], budget, choice)
    assert found.levels == levels
    assert round(found.loss, 5) == loss
    assert (found.suppressed_rows, found.classes) == (suppressed, classes)
    assert printed is None or classes + found.suppressed.shape[1] == printed


@pytest.mark.parametrize(
    ("k", "levels", "loss", "suppressed", "printed"),
    [
        (5, (1, 1, 1, 1), 2.17675, 10, 60),  # Tables 1 and 3
        (20, (1, 1, 0, 4), 3.0, 0, 7),  # Table 1
        (10, (0, 1, 1, 3), 1.36544, 19, 32),  # Table 4
    ],
)
def test_adult_at_the_nodes_that_the_source_prints(adult, k, levels, loss, suppressed, printed):
    lattice = Lattice(*adult, Privacy(KAnonymity(k), ()), [])
    classes = lattice.classes(levels)
    failing = lattice.failing_rows(levels)
    assert failing == suppressed
    assert len(classes.rows) == printed
    whole = adult[0].total
    assert round(float(lattice.losses[levels]) + 4 * failing / whole, 5) == loss


def test_adult_has_no_good_node_of_height_4_where_the_source_found_one_of_height_6(adult):
    lattice = Lattice(*adult, Privacy(KAnonymity(20), ()), [])
    failing = {levels: lattice.failing_rows(levels) for levels in np.ndindex(lattice.shape)}
    good = [levels for levels, rows in failing.items() if rows <= 20]
    assert sorted(levels for levels in good if sum(levels) <= 5) == [(0, 1, 2, 2), (1, 1, 2, 1)]
