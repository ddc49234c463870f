"""Taxonomies: levels, losses, and the trees that ordered values get."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops.core.hierarchy import Hierarchy
from mondrian_ops.core.taxonomy import MISSING, Taxonomy


def taxonomy(hierarchy):
    return Taxonomy.of(hierarchy, np.arange(len(hierarchy.leaves)))


def test_levels_and_losses():
    rows = [["a", "x", "*"], ["b", "x", "*"], ["c", "*"]]
    found = taxonomy(Hierarchy.from_rows(rows, "letters"))
    assert found.height == 2
    assert found.levels.tolist() == [[0, 1, 2, 3], [0, 4, 4, 3], [5, 5, 5, 5]]
    assert found.root == 5
    assert found.leaves.tolist() == [0, 1, 1, 1, 2, 3]
    assert found.lm.tolist() == [0, 0, 0, 0, 0.5, 1]
    assert np.allclose(found.ncp, [0, 0, 0, 0, 2 / 3, 1])


def test_parents():
    rows = [["a", "x", "*"], ["b", "x", "*"], ["c", "*"]]
    assert taxonomy(Hierarchy.from_rows(rows, "letters")).parents().tolist() == [5, 4, 4, 5, 5, -1]


def test_the_order_of_the_codes_need_not_be_that_of_the_file():
    hierarchy = Hierarchy.from_rows([["a", "x", "*"], ["b", "*"], ["c", "x", "*"]], "letters")
    found = Taxonomy.of(hierarchy, np.array([0, 2, 1]))
    assert found.levels[0].tolist() == [MISSING, 1, 3, 2]
    assert found.levels[1, 1] == found.levels[1, 2]


def test_a_ladder_loses_the_width_of_its_intervals():
    """The source's ages: 0.0625, 0.125, 0.25 and 1 (samarati_and_mondrian, section 4.1)."""
    hierarchy = Hierarchy.from_ladder(np.arange(17, 91), [5, 10, 20], 16, "age")
    found = taxonomy(hierarchy)
    losses = [set(found.lm[level[1:]].tolist()) for level in found.levels]
    assert losses == [{0.0}, {0.0625}, {0.125}, {0.25}, {1.0}]


@given(st.integers(1, 40))
def test_neighbours_are_joined_level_by_level(count):
    line = np.cumsum(np.arange(count, dtype=float) + 1)
    hierarchy = Hierarchy.from_order([str(n) for n in range(count)], line, "n")
    found = taxonomy(hierarchy)
    assert hierarchy.labels[-1] == "*"
    assert found.lm[found.root] == (count > 1)
    for level, nodes in enumerate(found.levels[:-1, 1:]):
        assert np.array_equal(nodes == nodes[:1], np.arange(count) < 2**level)
        for node in set(nodes.tolist()):
            (members,) = np.nonzero(nodes == node)
            label = str(members[0]) if len(members) == 1 else f"[{members[0]}, {members[-1]}]"
            assert hierarchy.labels[node - 1] == label
            width = line[members[-1]] - line[members[0]]
            assert np.isclose(found.lm[node], width / (line[-1] - line[0] or 1))
