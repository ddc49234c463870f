"""The lattice of levels: every node against a walk over all of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brute_force
from examples import examples
from mondrian_ops.algorithms import lattice as lattice_module
from mondrian_ops.core.errors import JobError, PrivacyError
from samarati_cases import (
    CHOICES,
    EVEN,
    FLAT,
    SENSITIVE,
    TREES,
    UNEVEN,
    searched,
    suppressed_labels,
    way_up,
)

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
    found = {}
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
        found[levels] = (loss, suppressed, len(classes) - len(failing), set(failing))
    return found


def chosen(found, allowed: int, choice: str):
    good = [levels for levels, (_, suppressed, *_) in found.items() if suppressed <= allowed]
    if not good:
        return None
    least = min(map(sum, good))
    if choice == "first":
        return min(levels for levels in good if sum(levels) == least)
    if choice == "minimal":
        good = [levels for levels in good if sum(levels) == least]
    return min(good, key=lambda levels: (*found[levels][:2], levels))


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
def test_the_node_is_that_of_a_walk_over_the_lattice(choice, table, k, asked, budget, keep):
    trees, columns, sensitive = table
    whole = [Counter(column) for column in sensitive]
    holds = brute_force.Privacy(k, whole, **(asked if sensitive else {})).of_rows(sensitive)
    found = walk(trees, columns, holds)
    expected = chosen(found, min(budget, len(columns[0]) - 1), choice)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lattice_module, "_KEPT", 1 << 20 if keep else 0)
        if expected is None:
            with pytest.raises(PrivacyError, match=r"samarati\.max_suppressed"):
                searched(trees, columns, sensitive, k, asked, budget, choice)
            return
        got = searched(trees, columns, sensitive, k, asked, budget, choice)
    loss, suppressed, classes, failing = found[expected]
    assert got.levels == expected
    assert got.height == sum(expected)
    assert got.loss == pytest.approx(float(loss), abs=1e-9)
    assert (got.suppressed_rows, got.classes) == (suppressed, classes)
    assert suppressed_labels(trees, got) == failing
    assert got.nodes == len(found)
    assert 1 <= got.checked <= len(found)


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
    found = searched(trees, columns, [], 5, {}, 30, choice)
    assert found.nodes == 1024
    assert found.checked < 100
