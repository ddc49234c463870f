"""Merging the fragments that cannot stand alone; those of split classes: tests/integration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.cut.plan import Branch, Leaf, Plan
from mondrian_ops.cut.small_fragments import merge_neighbours

TREE = Plan(
    (
        Branch("a", 8, 1, 2),
        Branch("a", 4, 3, 4),
        Branch("a", 12, 5, 6),
        *(Leaf(at) for at in range(4)),
    ),
    ((0,), (1,), (2,), (3,)),
)


@pytest.mark.parametrize(
    ("rows", "fragments"),
    [
        ([9, 9, 9, 9], ((0,), (1,), (2,), (3,))),
        ([2, 9, 9, 9], ((0, 1), (2,), (3,))),
        ([9, 9, 9, 0], ((0,), (1,), (2, 3))),
        ([2, 1, 9, 5], ((0, 1, 3), (2,))),
        ([1, 1, 1, 1], ((0, 1, 2, 3),)),
    ],
)
def test_a_fragment_that_is_too_small_joins_its_nearest_neighbour(rows, fragments):
    counts = np.array(rows)
    merged = merge_neighbours(TREE, counts, lambda leaves: counts[list(leaves)].sum() >= 5)
    assert merged == Plan(TREE.nodes, fragments)


@examples(150)
@given(st.integers(1, 40), st.integers(1, 12), st.data())
def test_every_merged_fragment_is_large_enough_and_holds_its_rows(fragments, least, data):
    nodes: list[Branch | Leaf] = [Leaf(-1)]
    while sum(isinstance(node, Leaf) for node in nodes) < fragments:
        at = data.draw(st.sampled_from([i for i, n in enumerate(nodes) if isinstance(n, Leaf)]))
        nodes[at] = Branch("a", 0, len(nodes), len(nodes) + 1)
        nodes += [Leaf(-1), Leaf(-1)]
    numbers = iter(range(fragments))
    nodes = [Leaf(next(numbers)) if isinstance(node, Leaf) else node for node in nodes]
    plan = Plan(tuple(nodes), tuple((at,) for at in range(fragments)))
    rows = np.array(data.draw(st.lists(st.integers(0, 9), min_size=fragments, max_size=fragments)))
    merged = merge_neighbours(plan, rows, lambda leaves: rows[list(leaves)].sum() >= least)
    assert sorted(leaf for leaves in merged.fragments for leaf in leaves) == list(range(fragments))
    sums = [rows[list(leaves)].sum() for leaves in merged.fragments]
    assert len(sums) == 1 or min(sums) >= least
