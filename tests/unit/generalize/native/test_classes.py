"""Loops over finished classes, and the routing of rows."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.generalize.native.classes import (
    arrange_classes,
    distinct_per_class,
    extents,
    extents_of_columns,
    number_pairs,
    repeat,
    route_rows,
    shuffle_classes,
    sort_classes,
)

CODES = np.array([3, 1, 2], np.uint8)
INDEX = np.arange(3, dtype=np.int32)
STARTS = np.array([0, 2])
WIDTHS = st.sampled_from([np.uint8, np.uint16, np.uint32, np.int64])


@st.composite
def classed(draw, least=1):
    """Codes of rows, a permuted index, and where in it the classes start."""
    dtype = draw(WIDTHS)
    top = draw(st.sampled_from([9, 255, 256, 65_536, 2**32 - 1]))
    codes = st.integers(0, min(top, np.iinfo(dtype).max))
    rows = draw(st.lists(codes, min_size=least, max_size=40))
    index = draw(st.permutations(range(len(rows))))
    if least:
        starts = [0, *sorted(draw(st.sets(st.integers(1, len(rows) - 1))) if rows[1:] else ())]
    else:
        starts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=9)))
    return np.array(rows, dtype), np.array(index, np.int32), np.array(starts, np.int64)


def classes_of(index, starts):
    return [index[start:stop].tolist() for start, stop in pairwise([*starts.tolist(), len(index)])]


@examples(300)
@given(classed())
def test_extents(case):
    codes, index, starts = case
    groups = [codes[rows].tolist() for rows in classes_of(index, starts)]
    low, high = extents(codes, index, starts)
    assert (low.dtype, high.dtype) == (np.int64, np.int64)
    assert low.tolist() == list(map(min, groups))
    assert high.tolist() == list(map(max, groups))


def test_extents_of_numbers_below_zero():
    low, high = extents(np.array([-5, 2**62, -(2**62)]), INDEX, np.array([0]))
    assert (low.tolist(), high.tolist()) == ([-(2**62)], [2**62])


@examples(300)
@given(classed(), st.integers(0, 40), st.integers(0, 9))
def test_extents_of_columns(case, columns, seed):
    """A class at a time in each column; with more columns than are compared at once, too."""
    codes, index, starts = case
    kind = np.min_scalar_type(int(codes.max())) if codes.dtype == np.int64 else codes.dtype
    random = np.random.default_rng(seed)
    table = random.integers(0, int(codes.max()) + 1, (columns, len(codes)), dtype=kind)
    low, high = extents_of_columns(table, index, starts)
    assert (low.dtype, high.dtype) == (kind, kind)
    assert low.shape == high.shape == (columns, len(starts))
    for at, column in enumerate(table):
        groups = [column[rows].tolist() for rows in classes_of(index, starts)]
        assert low[at].tolist() == list(map(min, groups))
        assert high[at].tolist() == list(map(max, groups))


@examples(200)
@given(st.data(), WIDTHS, st.integers(1, 300))
def test_numbers_of_pairs(data, dtype, size):
    codes = st.integers(0, min(size - 1, np.iinfo(dtype).max))
    ends = data.draw(st.lists(st.tuples(codes, codes), max_size=30))
    low, high = np.ascontiguousarray(np.array(ends, dtype).reshape(-1, 2).T)
    pairs, number = number_pairs(low, high, size)
    assert pairs.tolist() == sorted({one * size + other for one, other in ends})
    assert pairs[number].tolist() == [one * size + other for one, other in ends]


@pytest.mark.parametrize("code", [(4, 0), (0, 4)])
def test_a_pair_of_a_code_that_is_not_below_their_number_is_refused(code):
    low, high = np.array([[0, 1], code], np.uint8).T.copy()
    with pytest.raises(ValueError, match="outside"):
        number_pairs(low, high, 4)


@st.composite
def labelled(draw):
    """Labels of classes in some columns."""
    classes = draw(st.integers(0, 30))
    columns = []
    for _ in range(draw(st.integers(1, 4))):
        dtype = draw(st.sampled_from([np.uint8, np.uint16, np.uint32]))
        most = int(np.iinfo(dtype).max)
        label = st.sampled_from([at for at in (0, 1, 2, 255, 256, 65_536, 2**32 - 1) if at <= most])
        columns.append(np.array(draw(st.lists(label, min_size=classes, max_size=classes)), dtype))
    return columns


@examples(300)
@given(labelled())
def test_classes_are_sorted_by_their_labels(columns):
    order, first = sort_classes(columns)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    assert order.tolist() == sorted(range(len(rows)), key=rows.__getitem__)  # a stable sort
    ordered = [rows[at] for at in order]
    assert first.tolist() == [
        at for at, row in enumerate(ordered) if at == 0 or row != ordered[at - 1]
    ]


@examples(200)
@given(classed(), st.data())
def test_classes_in_another_order_keep_their_rows(case, data):
    _, index, starts = case
    order = np.array(data.draw(st.permutations(range(len(starts)))), np.int32)
    groups = classes_of(index, starts)
    expected = [row for at in order for row in groups[at]]
    assert arrange_classes(index, starts, order).tolist() == expected
    sizes = np.array([len(groups[at]) for at in order], np.int64)
    labels = np.arange(len(starts)).astype(data.draw(st.sampled_from(["i1", "u1", "i2", "i4"])))
    expected = [int(labels[at]) for at in order for _ in groups[at]]
    assert repeat(labels, order, sizes).tolist() == expected


@pytest.mark.parametrize("order", [[0, 0], [0, 2], [-1, 0], [0]])
def test_an_order_that_is_none_is_refused(order):
    with pytest.raises(ValueError, match="order"):
        arrange_classes(INDEX, STARTS, np.array(order, np.int32))


def test_labels_below_zero_are_repeated_as_they_are():
    values, order = np.array([-1, 5], np.int8), np.array([1, 0], np.int32)
    assert repeat(values, order, np.array([2, 9])).tolist() == [5, 5, *[-1] * 9]


@examples(300)
@given(classed(least=0), st.integers(0, 5))
def test_distinct_codes(case, unused):
    codes, index, starts = case
    codes = (codes.astype(np.int64) % 100_000).astype(codes.dtype)  # their table is not larger
    groups = [codes[rows].tolist() for rows in classes_of(index, starts)]
    size = int(codes.max(initial=0)) + 1 + unused
    members, ends = distinct_per_class(codes, index, starts, size)
    assert members.dtype == codes.dtype
    expected = [sorted(set(group)) for group in groups]
    assert members.tolist() == [code for group in expected for code in group]
    assert ends.tolist() == np.cumsum([*map(len, expected)], dtype=np.int64).tolist()


@pytest.mark.parametrize("size", [3_000, 1_000_000])
def test_many_distinct_codes_of_a_class(size):
    """Few of the codes of a column, or most of them: two ways to put them in order."""
    codes = np.random.default_rng(1).integers(0, size, 5_000).astype(np.uint32)
    index = np.arange(5_000, dtype=np.int32)
    starts = np.array([0, 1_000])
    members, ends = distinct_per_class(codes, index, starts, size)
    expected = [np.unique(codes[:1_000]), np.unique(codes[1_000:])]
    assert np.array_equal(members, np.concatenate(expected))
    assert ends.tolist() == [len(expected[0]), len(members)]


@examples(200)
@given(classed(least=0), st.data())
def test_shuffles_by_the_numbers_drawn(case, data):
    _, index, starts = case
    drawn = st.lists(st.integers(0, 2**32 - 1), min_size=len(index), max_size=len(index))
    random = data.draw(drawn)
    expected = index.tolist()
    for start, stop in pairwise([*starts.tolist(), len(index)]):
        for at in range(stop - 1, start, -1):
            other = start + (random[at] * (at - start + 1) >> 32)
            expected[at], expected[other] = expected[other], expected[at]
    shuffle_classes(index, starts, np.array(random, np.uint32))
    assert index.tolist() == expected


@examples(100)
@given(st.lists(st.integers(1, 9), max_size=20))
def test_a_shuffle_stays_in_its_class(sizes):
    starts = np.cumsum([0, *sizes], dtype=np.int64)[:-1]
    index = np.random.default_rng(1).permutation(sum(sizes)).astype(np.int32)
    shuffled = index.copy()
    shuffle_classes(shuffled, starts)
    for before, after in zip(np.split(index, starts), np.split(shuffled, starts), strict=True):
        assert sorted(before.tolist()) == sorted(after.tolist())


def test_every_order_of_a_class_is_equally_likely():
    starts = np.arange(0, 9000, 3)
    index = np.arange(9000, dtype=np.int32)
    shuffle_classes(index, starts)
    orders = Counter(tuple(each) for each in (index.reshape(-1, 3) % 3).tolist())
    assert len(orders) == 6
    assert all(380 < count < 620 for count in orders.values())  # 500, six deviations


@st.composite
def trees(draw):
    """Cuts of two columns, node by node: column, limit, left, right, leaf."""
    shape = draw(st.recursive(st.none(), lambda side: st.tuples(side, side), max_leaves=8))
    nodes: list[list[int]] = []
    leaves = []

    def add(node) -> int:
        at = len(nodes)
        nodes.append([-1, 0, 0, 0, len(leaves)])
        if node is None:
            leaves.append(at)
        else:
            column, limit = draw(st.integers(0, 1)), draw(st.integers(0, 5))
            nodes[at] = [column, limit, add(node[0]), add(node[1]), -1]
        return at

    add(shape)
    return [np.array(table, np.int64) for table in zip(*nodes, strict=True)]


@examples(200)
@given(trees(), st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=20))
def test_rows_find_their_leaf(tree, rows):
    column, limit, left, right, leaf = (table.tolist() for table in tree)
    expected = []
    for row in rows:
        node = 0
        while leaf[node] < 0:
            node = (left if row[column[node]] <= limit[node] else right)[node]
        expected.append(leaf[node])
    for of_place, of_leaf in ((np.uint8, np.uint32), (np.uint16, np.uint8), (np.uint32, np.uint16)):
        places = np.ascontiguousarray(np.array(rows, of_place).reshape(-1, 2).T)
        found = route_rows(places, *tree, dtype=of_leaf)
        assert (found.dtype, found.tolist()) == (of_leaf, expected)


@pytest.mark.parametrize(
    ("codes", "index", "starts", "error", "text"),
    [
        (CODES.astype(np.int32), INDEX, STARTS, TypeError, "codes: uint8, uint16, uint32 or int64"),
        (CODES.astype(float), INDEX, STARTS, TypeError, "codes: "),
        (CODES.astype(">u2"), INDEX, STARTS, TypeError, "codes: "),
        (CODES[::-1], INDEX, STARTS, ValueError, "codes: must be C-contiguous"),
        (CODES[None], INDEX, STARTS, ValueError, "codes: shape"),
        (CODES, INDEX.astype(np.int64), STARTS, TypeError, "index: int32"),
        (CODES, INDEX + 1, STARTS, ValueError, "index: all must be from 0 to less than 3"),
        (CODES, INDEX - 1, STARTS, ValueError, "index: "),
        (CODES[:0], INDEX, STARTS, ValueError, "index: "),
        (CODES, INDEX, STARTS.astype(np.int32), TypeError, "starts: int64"),
        (CODES, INDEX, STARTS + 2, ValueError, "starts: "),
        (CODES, INDEX, STARTS - 1, ValueError, "starts: "),
        (CODES, INDEX, STARTS[::-1].copy(), ValueError, "starts: must ascend"),
    ],
)
def test_what_would_point_outside_is_refused(codes, index, starts, error, text):
    with pytest.raises(error, match=text):
        extents(codes, index, starts)
    with pytest.raises(error, match=text):
        distinct_per_class(codes, index, starts, 4)


def test_a_class_without_rows_has_no_extent():
    with pytest.raises(ValueError, match="starts: "):
        extents(CODES, INDEX, np.array([0, 3]))
    with pytest.raises(ValueError, match="starts: must ascend, by 1"):
        extents(CODES, INDEX, np.array([0, 0]))


def test_codes_outside_of_the_table_are_refused():
    with pytest.raises(ValueError, match="codes: all must be from 0 to less than 3"):
        distinct_per_class(CODES, INDEX, STARTS, 3)
    with pytest.raises(ValueError, match="codes: "):
        distinct_per_class(np.array([-1]), INDEX[:1], STARTS[:1], 3)
    with pytest.raises(ValueError, match="size: "):
        distinct_per_class(CODES, INDEX, STARTS, -1)


def test_a_shuffle_refuses():
    with pytest.raises(ValueError, match="random: shape"):
        shuffle_classes(INDEX.copy(), STARTS, np.zeros(2, np.uint32))
    with pytest.raises(TypeError, match="random: uint32"):
        shuffle_classes(INDEX.copy(), STARTS, np.zeros(3, np.int64))
    with pytest.raises(ValueError, match="starts: "):
        shuffle_classes(INDEX.copy(), STARTS + 2, np.zeros(3, np.uint32))
    fixed = INDEX.copy()
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="index: must be writable"):
        shuffle_classes(fixed, STARTS, np.zeros(3, np.uint32))


TREE = {
    "column": np.array([1, -1, -1]),
    "limit": np.array([4, 0, 0]),
    "left": np.array([1, 0, 0]),
    "right": np.array([2, 0, 0]),
    "leaf": np.array([-1, 0, 1]),
}


@pytest.mark.parametrize(
    ("changed", "error", "text"),
    [
        ({"column": np.array([2, -1, -1])}, ValueError, "column: "),
        ({"column": np.array([-1, -1, -1])}, ValueError, "column: "),
        ({"left": np.array([3, 0, 0])}, ValueError, "left: "),
        ({"right": np.array([-1, 0, 0])}, ValueError, "right: "),
        ({"limit": np.array([4, 0])}, ValueError, "limit: shape"),
        ({"limit": np.array([4.0, 0, 0])}, TypeError, "limit: int64"),
        ({"left": np.array([0, 0, 0])}, ValueError, "outside of its table"),  # in a circle
        ({name: np.zeros(0, np.int64) for name in TREE}, ValueError, "leaf: there must be a node"),
    ],
)
def test_trees_that_lead_nowhere_are_refused(changed, error, text):
    places = np.array([[0, 0], [0, 9]], np.uint8).T.copy()
    assert route_rows(places, **TREE).tolist() == [0, 1]
    with pytest.raises(error, match=text):
        route_rows(places, **{**TREE, **changed})


def test_places_and_leaves_are_unsigned():
    with pytest.raises(TypeError, match="places: uint8"):
        route_rows(np.zeros((2, 2), np.int64), **TREE)
    places = np.zeros((2, 2), np.uint8)
    with pytest.raises(TypeError, match="leaves: uint8"):
        route_rows(places, **TREE, dtype=np.int8)
    with pytest.raises(ValueError, match="leaf: "):
        route_rows(places, **{**TREE, "leaf": np.array([-1, 256, 0])}, dtype=np.uint8)
