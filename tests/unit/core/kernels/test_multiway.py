"""Cuts into several parts: their points and scores, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import brute_force
from mondrian_cases import WALK, anonymizer_of
from mondrian_ops.algorithms.di_mondrian import MultiwayCut
from multiway_cuts import classes_of, nodes_of


def coded_of(kinds, columns, sensitive, k=2):
    anonymizer, data = anonymizer_of(kinds, columns, sensitive, {"k": k}, "gain")
    return anonymizer.encode(data)


def root(coded, cut):
    """Attribute and sizes of the parts of the first cut."""
    _, a, parts = next(nodes_of(coded, cut))
    return a, [len(part) for part in parts]


@pytest.mark.parametrize(
    ("cut_points", "sizes"),
    [(1, [32, 32]), (2, [21, 22, 21]), (3, [16, 16, 16, 16]), (7, [8] * 8), (100, [8] * 8)],
)
def test_even_values_are_cut_at_their_quantiles(cut_points, sizes):
    """64 values of equal distance, k = 2: parts have 4 k rows at least, whatever is asked for."""
    coded = coded_of(["interval"], [list(range(64))], [])
    assert root(coded, MultiwayCut(cut_points, room=4)) == (0, sizes)


def test_a_point_moves_to_the_gap_nearby():
    values = [*range(20), *range(100, 144)]
    assert root(coded_of(["interval"], [values], []), MultiwayCut(1)) == (0, [20, 44])


def test_no_point_moves_past_the_middle_between_two_quantiles():
    """The gap after 8 of 64 rows is nearer to the end than to the median."""
    values = [*range(8), *range(100, 156)]
    a, sizes = root(coded_of(["interval"], [values], []), MultiwayCut(1))
    assert a == 0
    assert 16 <= sizes[0] <= 48


def test_where_ties_leave_no_cut_near_a_quantile_the_most_balanced_is_taken():
    values = [0] * 58 + [1, 1, 2, 2, 3, 3]
    assert root(coded_of(["interval"], [values], []), MultiwayCut(1)) == (0, [58, 6])


def test_values_that_vary_more_are_cut_first():
    """Two attributes whose cuts gain alike: one has its values at the ends of the range."""
    ends = [0, 8] * 32
    inner = [value // 16 * 2 + 1 for value in range(64)]  # 1, 3, 5, 7: and 0, 8 elsewhere
    inner[:2] = [0, 8]
    for columns in ([ends, inner], [inner, ends]):
        a, _ = root(coded_of(["interval"] * 2, columns, []), MultiwayCut(1))
        assert columns[a] is ends


def test_what_tells_of_the_sensitive_values_is_cut_first():
    """Two attributes alike, but one of them tells the sensitive value."""
    generator = np.random.default_rng(3)
    telling, other = (generator.permutation(64).tolist() for _ in range(2))
    sensitive = ["x" if value < 32 else "y" for value in telling]
    for columns in ([telling, other], [other, telling]):
        a, _ = root(coded_of(["interval"] * 2, columns, [sensitive]), MultiwayCut(1))
        assert columns[a] is telling


def test_sensitive_values_that_cannot_be_told_apart_by_chance_decide_nothing():
    """Of columns of chance, the information gain is zero but for a few in a hundred."""
    found = []
    for seed in range(60):
        generator = np.random.default_rng(seed)
        column = generator.integers(0, 4, 200).tolist()
        node, parts = list(range(200)), [list(range(100)), list(range(100, 200))]
        found.append(brute_force.DiMondrian.gain(node, parts, column))
    assert sum(gain > 0 for gain in found) <= 3


@pytest.mark.parametrize("cut_points", [1, 3])
def test_blocks_of_small_nodes_change_nothing(cut_points):
    """40,000 rows are cut outside blocks first; the classes are those of a cut without blocks."""
    generator = np.random.default_rng(5)
    rows = 40_000
    columns = [
        generator.integers(0, 5000, rows).tolist(),
        generator.choice(["p", "q", "r", "s"], rows).tolist(),
        generator.choice(WALK, rows).tolist(),
    ]
    sensitive = [generator.choice(["x", "y", "z"], rows, p=[0.8, 0.15, 0.05]).tolist()]
    coded = coded_of(["interval", "set", "tree"], columns, sensitive, k=800)
    cut = MultiwayCut(cut_points, room=2)
    leaves = {frozenset(node) for node, a, _ in nodes_of(coded, cut) if a < 0}
    assert len(leaves) > 10
    assert classes_of(coded, cut) == leaves
