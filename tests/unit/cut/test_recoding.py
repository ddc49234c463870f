"""Recoding whole columns: rows become classes by looking them up."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops.cut.recoding import Recoding
from mondrian_ops.data.frequency_set import FrequencySet
from mondrian_ops.data.hierarchy import STAR, CodedHierarchy, Hierarchy

FILES = [
    Hierarchy.from_rows([["a", "x", "*"], ["b", "x", "*"], ["c", "*"]], "letters"),
    Hierarchy.from_order(["1", "2", "3", "4", "5"], np.array([1.0, 2, 3, 4, 5]), "numbers"),
]
HIERARCHIES = [CodedHierarchy.of(each, np.arange(len(each.leaves))) for each in FILES]
SIZES = [hierarchy.levels.shape[1] for hierarchy in HIERARCHIES]

ROWS = st.lists(st.tuples(*(st.integers(0, size - 1) for size in SIZES)), min_size=1, max_size=40)
LEVELS = st.tuples(*(st.integers(0, hierarchy.height) for hierarchy in HIERARCHIES))


def recoding(rows, levels, gone=()):
    frequencies = FrequencySet.of([np.array(column) for column in zip(*rows, strict=True)], SIZES)
    nodes = [each.levels[level] for each, level in zip(HIERARCHIES, levels, strict=True)]
    suppressed = np.array(list(gone), np.int32).reshape(-1, len(SIZES)).T
    return Recoding.of(frequencies, HIERARCHIES, nodes, suppressed, {"height": sum(levels)})


def nodes_of(rows, levels):
    result = [
        tuple(
            int(each.levels[level][code])
            for each, level, code in zip(HIERARCHIES, levels, row, strict=True)
        )
        for row in rows
    ]
    stars = [any(row[a] == 0 for row in rows) for a in range(len(SIZES))]
    return result, [
        tuple(
            STAR if star and node == each.root else node
            for node, star, each in zip(nodes, stars, HIERARCHIES, strict=True)
        )
        for nodes in result
    ]


def codes_of(rows):
    return [np.array(column, np.uint8) for column in zip(*rows, strict=True)]


@given(ROWS, LEVELS, st.data())
def test_rows_of_equal_nodes_are_a_class_and_suppressed_ones_in_none(rows, levels, data):
    before, published = nodes_of(rows, levels)
    gone = data.draw(st.sets(st.sampled_from(before)))
    result = recoding(rows, levels, gone)
    classes, nodes = result.classes(codes_of(rows))
    expected = defaultdict(list)
    for number, (was, node) in enumerate(zip(before, published, strict=True)):
        if was not in gone:
            expected[node].append(number)
    members = np.split(classes.index, classes.starts[1:]) if len(classes.starts) else []
    by_nodes = {
        tuple(of_class): sorted(rows_of.tolist())
        for of_class, rows_of in zip(nodes.T.tolist(), members, strict=True)
    }
    assert by_nodes == expected


@given(ROWS, LEVELS, st.integers(0, 40))
def test_any_part_of_the_rows_is_recoded_as_the_whole_is(rows, levels, cut):
    result = recoding(rows, levels, [nodes_of(rows, levels)[0][0]])
    counted = Counter()
    for part in (rows[:cut], rows[cut:]):
        if part:
            classes, nodes = result.classes(codes_of(part))
            counted.update(
                dict(zip(map(tuple, nodes.T.tolist()), classes.sizes.tolist(), strict=True))
            )
    whole, nodes = result.classes(codes_of(rows))
    assert counted == dict(zip(map(tuple, nodes.T.tolist()), whole.sizes.tolist(), strict=True))


def test_it_travels_as_a_table():
    sent = recoding([(0, 1), (1, 2), (3, 5)], (1, 2), [(0, 6), (3, 8)])
    result = Recoding.from_table(sent.to_table())
    assert result.figures == sent.figures == {"height": 3}
    assert np.array_equal(result.suppressed, sent.suppressed)
    for one, other in zip(result.nodes, sent.nodes, strict=True):
        assert np.array_equal(one, other)


def test_nothing_suppressed_travels_too():
    result = Recoding.from_table(recoding([(1, 1)], (0, 0)).to_table())
    assert result.suppressed.shape == (2, 0)
    classes, _ = result.classes(codes_of([(1, 1)] * 3))
    assert classes.sizes.tolist() == [3]
