"""Samarati's search against a walk over the whole lattice in plain Python, and Huang's tables.

The source counts the classes of a table before suppression ("cluster number"); its order of vectors
is that of a Python set, and its program can miss the least height. Where its row is another node
than ours, its figures are still those that we measure at that node.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brute_force
from hypothesis_profiles import examples
from mondrian_ops.cut import lattice as lattice_module
from mondrian_ops.cut.algorithms.samarati import search
from mondrian_ops.cut.criteria import KAnonymity, Privacy
from mondrian_ops.cut.lattice import Lattice
from mondrian_ops.data.frequency_set import FrequencySet
from mondrian_ops.data.hierarchy import CodedHierarchy, Hierarchy
from mondrian_ops.data.sensitive_domain import SensitiveDomain
from mondrian_ops.errors import JobError, PrivacyError
from mondrian_ops.job.job import Job
from shared_data import shared_data

CHOICES = ("first", "minimal", "optimal")

EVEN = {"a1": "AM*", "a2": "AM*", "a3": "BM*", "a4": "BM*", "a5": "CN*", "a6": "CN*"}
UNEVEN = {"b1": "PQ*", "b2": "PQ*", "b3": "Q*", "b4": "*"}
FLAT = {"c1": "*", "c2": "*"}
TREES = [EVEN, UNEVEN, FLAT, {"d1": "*"}]
SENSITIVE = ["x", "y", "z"]
ASKED = [
    {},
    {"l": 2},
    {"l": 3},
    {"l": 2, "diversity": "entropy"},
    {"l": 2, "diversity": "recursive", "c": 2},
    {"l": 2, "missing_sensitive": "value"},
    {"l": 2, "diversity": "entropy", "missing_sensitive": "value"},
    {"t": 0.3},
    {"l": 2, "t": 0.4, "t_distance": "ordered"},
]


def tree(chains) -> Hierarchy:
    return Hierarchy.from_rows([[leaf, *above] for leaf, above in chains.items()], "tree")


def over_codes(hierarchy: Hierarchy) -> CodedHierarchy:
    return CodedHierarchy.of(hierarchy, np.arange(len(hierarchy.leaves)))


def coded(hierarchy: Hierarchy, column) -> np.ndarray:
    code = {None: 0} | {leaf: at + 1 for at, leaf in enumerate(hierarchy.leaves)}
    return np.array([code[value] for value in column])


def privacy_of(k: int, required, columns: int) -> Privacy:
    names = [f"s{i}" for i in range(columns)]
    keys = required if columns else {}
    job = {"k": k, **keys, "quasi_identifiers": ["q"], "sensitive": names}
    return Privacy.of(Job.from_dict(job, paths_required=False), {})


def domain_of(name: str, column) -> SensitiveDomain:
    whole = Counter(column)
    values = sorted(value for value in whole if value is not None)
    missing = [whole[None]] if None in whole else []
    counts = np.array([*missing, *(whole[value] for value in values)], np.int64)
    return SensitiveDomain(name, pa.array(values, pa.string()), counts)


def searched(trees, columns, sensitive, k, required, max_suppressed, choice):
    hierarchies = [tree(chains) for chains in trees]
    domains = [domain_of(f"s{i}", column) for i, column in enumerate(sensitive)]
    codes = [coded(h, column) for h, column in zip(hierarchies, columns, strict=True)]
    codes += [d.encode(pa.array(c, pa.string())) for d, c in zip(domains, sensitive, strict=True)]
    sizes = [len(h.leaves) + 1 for h in hierarchies] + [len(d.counts) for d in domains]
    return search(
        FrequencySet.of(codes, sizes),
        [over_codes(hierarchy) for hierarchy in hierarchies],
        privacy_of(k, required, len(sensitive)),
        domains,
        max_suppressed,
        choice,
    )


# In plain Python


def way_up(chains, value) -> list:
    """What a value is published as on each level."""
    depth = max(map(len, chains.values()))
    if value is None:
        return [None] * depth + ["*"]
    return [value] * (depth - len(chains[value]) + 1) + list(chains[value])


def node_loss(chains, column, label) -> Fraction:
    if label is None:
        return Fraction(0)
    if label == "*" and None in column:
        return Fraction(1)
    return Fraction(brute_force.leaves_below(chains, label) - 1, max(1, len(chains) - 1))


def walk(trees, columns, holds) -> dict:
    """Loss, suppressed rows, published classes and suppressed classes of each node."""
    ways = [
        [way_up(chains, value) for value in column]
        for chains, column in zip(trees, columns, strict=True)
    ]
    rows = range(len(columns[0]))
    result = {}
    for levels in product(*(range(max(map(len, chains.values())) + 1) for chains in trees)):
        classes = defaultdict(list)
        for row in rows:
            classes[tuple(way[row][at] for way, at in zip(ways, levels, strict=True))].append(row)
        failing = {label: len(some) for label, some in classes.items() if not holds(some)}
        suppressed = sum(failing.values())
        generalized = sum(
            len(some) * sum(map(node_loss, trees, columns, label))
            for label, some in classes.items()
        )
        loss = Fraction(generalized + len(trees) * suppressed, len(rows))
        result[levels] = (loss, suppressed, len(classes) - len(failing), set(failing))
    return result


def chosen(result, allowed: int, choice: str):
    good = [levels for levels, (_, suppressed, *_) in result.items() if suppressed <= allowed]
    if not good:
        return None
    least = min(map(sum, good))
    if choice == "first":
        return min(levels for levels in good if sum(levels) == least)
    if choice == "minimal":
        good = [levels for levels in good if sum(levels) == least]
    return min(good, key=lambda levels: (*result[levels][:2], levels))


def suppressed_labels(trees, result) -> set:
    labels = [[None, *tree(chains).labels] for chains in trees]
    return {
        tuple(each[node] for each, node in zip(labels, nodes, strict=True))
        for nodes in result.suppressed.T.tolist()
    }


@st.composite
def tables(draw):
    trees = draw(st.lists(st.sampled_from(TREES), min_size=1, max_size=3))
    count = draw(st.integers(1, 24))

    def column(values):
        values = values if draw(st.booleans()) else [*values, None]
        return draw(st.lists(st.sampled_from(values), min_size=count, max_size=count))

    sensitive = [column(SENSITIVE) for _ in range(draw(st.integers(0, 2)))]
    return trees, [column(list(chains)) for chains in trees], sensitive


@pytest.mark.parametrize("choice", CHOICES)
@examples(200)
@given(tables(), st.integers(2, 4), st.sampled_from(ASKED), st.integers(0, 8), st.booleans())
def test_the_node_is_that_of_a_walk_over_the_lattice(choice, table, k, required, budget, keep):
    trees, columns, sensitive = table
    whole = [Counter(column) for column in sensitive]
    holds = brute_force.Privacy(k, whole, **(required if sensitive else {})).of_rows(sensitive)
    result = walk(trees, columns, holds)
    expected = chosen(result, min(budget, len(columns[0]) - 1), choice)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lattice_module, "_CACHED", 1 << 20 if keep else 0)
        if expected is None:
            with pytest.raises(PrivacyError, match=r"samarati\.max_suppressed"):
                searched(trees, columns, sensitive, k, required, budget, choice)
            return
        got = searched(trees, columns, sensitive, k, required, budget, choice)
    loss, suppressed, classes, failing = result[expected]
    assert got.levels == expected
    assert got.height == sum(expected)
    assert got.loss == pytest.approx(float(loss), abs=1e-9)
    assert (got.suppressed_rows, got.classes) == (suppressed, classes)
    assert suppressed_labels(trees, got) == failing
    assert got.nodes == len(result)
    assert 1 <= got.checked <= len(result)


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
    result = searched(trees, zip(*GRID, strict=True), [], 2, {}, 1, choice)
    assert (result.levels, result.height) == (levels, sum(levels))
    assert result.loss == pytest.approx(loss, abs=1e-12)
    assert (result.suppressed_rows, result.classes) == (1, 4)
    outlier = tuple(
        way_up(chains, value)[level]
        for chains, value, level in zip(trees, GRID[-1], levels, strict=True)
    )
    assert suppressed_labels(trees, result) == {outlier}


@pytest.mark.parametrize("choice", CHOICES)
def test_without_suppression_the_outlier_decides(choice):
    result = searched([SKEWED, PAIRED, FLAT], zip(*GRID, strict=True), [], 2, {}, 0, choice)
    assert (result.levels, result.loss, result.classes) == ((3, 2, 0), 2.0, 2)
    assert result.suppressed.shape == (3, 0)


@pytest.mark.parametrize("choice", CHOICES)
def test_a_class_that_held_may_fail_further_up(choice):
    """Entropy falls where a class is united with a failing one: height 0 is good, height 1 bad."""
    values = ["a1", "a1", *["a2"] * 9, "a3", "a3"]
    sensitive = [*"xy", *"x" * 9, *"xy"]
    required = {"l": 2, "diversity": "entropy"}
    result = searched([EVEN], [values], [sensitive], 2, required, 9, choice)
    assert (result.levels, result.suppressed_rows, result.classes) == ((0,), 9, 2)


@pytest.mark.parametrize("choice", CHOICES)
def test_something_is_published(choice):
    result = searched([EVEN], [["a1", "a2", "a5"]], [], 2, {}, 100, choice)
    assert (result.levels, result.suppressed_rows, result.classes) == ((1,), 1, 1)


@pytest.mark.parametrize("choice", CHOICES)
def test_what_cannot_be_met_is_refused(choice):
    with pytest.raises(PrivacyError) as refusal:
        searched([FLAT], [["c1"] * 5], [["x"] * 5], 2, {"l": 2}, 4, choice)
    for part in ("samarati.max_suppressed", "k = 2", "distinct l-diversity of s0, l = 2", "raise"):
        assert part in str(refusal.value)


def test_a_lattice_too_large_is_refused():
    trees = [EVEN] * 13
    with pytest.raises(JobError, match=r"quasi_identifiers.* fewer levels"):
        searched(trees, [["a1", "a2"]] * 13, [], 2, {}, 0, "first")


@pytest.mark.parametrize("choice", CHOICES)
def test_most_nodes_of_a_lattice_are_not_counted(choice):
    """The reach of each answer: all nodes above a good one are good, all below a bad one bad."""
    random = np.random.default_rng(5)
    trees = [EVEN, UNEVEN, EVEN, UNEVEN, FLAT, FLAT]
    columns = [random.choice(list(chains), 3000).tolist() for chains in trees]
    result = searched(trees, columns, [], 5, {}, 30, choice)
    assert result.nodes == 1024
    assert result.checked < 100


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
    with shared_data("adult/adult.csv").open(encoding="utf-8", newline="") as file:
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
    return FrequencySet.of(codes, sizes), [over_codes(each) for each in hierarchies]


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
    result = search(*adult, Privacy(KAnonymity(k), ()), [], budget, choice)
    assert result.levels == levels
    assert round(result.loss, 5) == loss
    assert (result.suppressed_rows, result.classes) == (suppressed, classes)
    assert printed is None or classes + result.suppressed.shape[1] == printed


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
