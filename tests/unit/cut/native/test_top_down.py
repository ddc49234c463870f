"""Top-down specialization of packed combinations, against the definitions on lists."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.cut.native.class_criteria import (
    DISTINCT,
    ENTROPY,
    RECURSIVE,
    T_EQUAL,
    T_ORDERED,
    Criteria,
    satisfies,
)
from mondrian_ops.cut.native.top_down import (
    Forest,
    PackedCombinations,
    Specialized,
    rows_of_part,
    specialize,
)


class Node(NamedTuple):
    attribute: int
    children: list[int]
    codes: list[int]  # numbered through all attributes


class Case(NamedTuple):
    rows: list[tuple[int, ...]]  # codes of attributes, then of sensitive columns
    counts: list[int]
    nodes: list[Node]
    sizes: list[int]  # codes of each attribute
    gains: list[float]
    cut: list[int]
    criteria: Criteria
    wide: bool  # whether a column fills a word by itself

    @property
    def first(self) -> list[int]:
        return np.cumsum([0, *self.sizes]).tolist()


def criteria_of(
    k: int, required: list[tuple[int, int, float]], shares: list[list[float]]
) -> Criteria:
    """``required``: kind, sensitive column, level; ``shares``: of the codes of each column."""
    kind, column, level = ([each[at] for each in required] for at in range(3))
    share = [shares[at] for at in column]
    return Criteria(
        k=k,
        kind=np.array(kind, np.int64),
        column=np.array(column, np.int64),
        level=np.array(level, np.float64),
        c=np.full(len(required), 1.5),
        codes=np.array([*map(len, share)], np.int64),
        uncounted=np.zeros(len(required), np.int64),
        share=np.array([each for one in share for each in one], np.float64),
        share_first=np.cumsum([0, *map(len, share)], dtype=np.int64),
        parent=np.zeros(0, np.int32),
        height=np.zeros(0),
        parent_first=np.zeros(len(required) + 1, np.int64),
        near_end=np.zeros(0, np.int32),
        near_first=np.zeros(len(required) + 1, np.int64),
    )


SHAPES = st.recursive(
    st.just(()), lambda side: st.lists(side, min_size=1, max_size=3).map(tuple), max_leaves=7
)
ASKED = st.sampled_from(
    [
        (DISTINCT, 2.0),
        (DISTINCT, 1.0),
        (ENTROPY, 1.3),
        (RECURSIVE, 2.0),
        (T_EQUAL, 0.4),
        (T_EQUAL, 0.6),
        (T_ORDERED, 0.2),
    ]
)


@st.composite
def cases(draw):
    nodes: list[Node] = []
    sizes, cut = [], []
    for attribute in range(draw(st.integers(1, 3))):
        size = 0

        def add(shape, attribute=attribute) -> int:
            nonlocal size
            at = len(nodes)
            nodes.append(Node(attribute, [], []))
            if not shape:
                nodes[at].codes.append(sum(sizes) + size)
                size += 1
            for each in shape:
                child = add(each)
                nodes[at].children.append(child)
                nodes[at].codes.extend(nodes[child].codes)
            return at

        root = add(draw(SHAPES))
        opened = draw(st.booleans()) and nodes[root].children
        level = nodes[root].children if opened else [root]
        cut += [next(node for node in level if code in nodes[node].codes)
                for code in nodes[root].codes]  # fmt: skip
        sizes.append(size)
    labels = draw(st.lists(st.sampled_from([2, 3, 60]), max_size=2))
    one = st.tuples(*(st.integers(0, size - 1) for size in [*sizes, *labels]))
    rows = draw(st.lists(one, min_size=1, max_size=40))
    counts = draw(st.lists(st.integers(1, 3), min_size=len(rows), max_size=len(rows)))
    shares = [
        [sum(row[len(sizes) + at] == code for row in rows) / len(rows) for code in range(codes)]
        for at, codes in enumerate(labels)
    ]
    required = [
        (kind, draw(st.integers(0, len(labels) - 1)), level)
        for kind, level in draw(st.lists(ASKED, max_size=2) if labels else st.just([]))
    ]
    quarters = st.integers(0, 4).map(lambda n: n / 4)
    gains = draw(st.lists(quarters, min_size=len(nodes), max_size=len(nodes)))
    criteria = criteria_of(draw(st.integers(1, 4)), required, shares)
    return Case(rows, counts, nodes, sizes, gains, cut, criteria, draw(st.booleans()))


# What is handed to C


def arguments_of(case: Case) -> tuple[PackedCombinations, Forest, np.ndarray, Criteria]:
    columns = np.array(case.rows, np.uint64).T
    bits = 30 if case.wide else 8
    word, shift = np.divmod(np.arange(len(columns)), 64 // bits)
    words = np.zeros((int(word[-1]) + 1, len(case.rows)), np.uint64)
    for column, at, place in zip(columns, word, shift, strict=True):
        words[at] |= column << np.uint64(place * bits)
    combinations = PackedCombinations(
        words=words,
        rows=np.array(case.counts, np.int64),
        word=word.astype(np.int64),
        shift=(shift * bits).astype(np.uint64),
        mask=np.full(len(columns), (1 << bits) - 1, np.uint64),
    )
    forest = Forest(
        first=np.array(case.first, np.int64),
        attribute=np.array([node.attribute for node in case.nodes], np.int32),
        child_first=np.cumsum([0, *(len(node.children) for node in case.nodes)], dtype=np.int64),
        children=np.array([child for node in case.nodes for child in node.children], np.int32),
        member_first=np.array([min(node.codes) for node in case.nodes], np.int64),
        member_stop=np.array([max(node.codes) + 1 for node in case.nodes], np.int64),
        members=np.arange(case.first[-1], dtype=np.int32),
        gain=np.array(case.gains),
    )
    return combinations, forest, np.array(case.cut, np.int32), case.criteria


def rows_of(combinations: PackedCombinations) -> Counter[tuple[int, ...]]:
    columns = [
        ((combinations.words[word] >> shift) & mask).tolist()
        for word, shift, mask in zip(*combinations[2:], strict=True)
    ]
    counted: Counter[tuple[int, ...]] = Counter()
    for row, count in zip(zip(*columns, strict=True), combinations.rows.tolist(), strict=True):
        counted[row] += count
    return counted


# The definitions


def classes_of(case: Case, cut: list[int]) -> list[Counter[tuple[int, ...]]]:
    """By the nodes of its attributes: the rows of each class, and how many there are."""
    result: dict[Any, Counter[tuple[int, ...]]] = defaultdict(Counter)
    for row, count in zip(case.rows, case.counts, strict=True):
        nodes = [cut[start + code] for start, code in zip(case.first[:-1], row, strict=False)]
        result[tuple(nodes)][row] += count
    return list(result.values())


def holds(case: Case, rows: Counter[tuple[int, ...]]) -> bool:
    if rows.total() < case.criteria.k:
        return False
    for j, (column, codes) in enumerate(
        zip(case.criteria.column.tolist(), case.criteria.codes.tolist(), strict=True)
    ):
        counts = [0] * codes
        for row, count in rows.items():
            counts[row[len(case.sizes) + column]] += count
        some = np.array(counts, np.int64)
        if not satisfies(some, case.criteria, j):
            return False
    return True


def specialized(case: Case, cut: list[int], node: int) -> list[int]:
    after = list(cut)
    for child in case.nodes[node].children:
        for code in case.nodes[child].codes:
            after[code] = child
    return after


def offers(case: Case, cut: list[int]):
    """IGPL, node, and the cut after it, of every valid specialization."""
    anonymity = min(each.total() for each in classes_of(case, cut))
    for node in sorted(set(cut)):
        if not case.nodes[node].children:
            continue
        after = specialized(case, cut, node)
        groups = classes_of(case, after)
        if all(holds(case, each) for each in groups):
            loss = anonymity - min(each.total() for each in groups)
            yield case.gains[node] / (loss + 1), -node, after


def by_definition(case: Case) -> tuple[list[int], list[int], int]:
    cut, steps = list(case.cut), []
    if not all(holds(case, each) for each in classes_of(case, cut)):
        return [], cut, 0
    while result := list(offers(case, cut)):
        _, node, cut = max(result)
        steps.append(-node)
    return steps, cut, len(classes_of(case, cut))


@examples(500)
@given(cases())
def test_specializes_as_the_definitions_say(case):
    combinations, *others = arguments_of(case)
    before, cut = rows_of(combinations), others[1].copy()
    result = specialize(combinations, *others)
    expected = by_definition(case)
    assert (result.steps.tolist(), result.cut.tolist(), result.classes) == expected
    assert rows_of(combinations) == before
    assert np.array_equal(others[1], cut)


# The border


def plain(**changed: Any) -> Case:
    """Two attributes, a root with a leaf for each of two codes, and four rows."""
    nodes = [Node(0, [1, 2], [0, 1]), Node(0, [], [0]), Node(0, [], [1])]
    nodes += [Node(1, [4, 5], [2, 3]), Node(1, [], [2]), Node(1, [], [3])]
    rows = [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0)]
    criteria = criteria_of(1, [(DISTINCT, 0, 1.0)], [[0.5, 0.5]])
    case = Case(rows, [2] * 4, nodes, [2, 2], [1.0] * 6, [0, 0, 3, 3], criteria, False)
    return case._replace(**changed)


def test_specializes_to_the_leaves():
    result = specialize(*arguments_of(plain()))
    assert isinstance(result, Specialized)
    assert (result.steps.tolist(), result.cut.tolist(), result.classes) == ([0, 3], [1, 2, 4, 5], 4)


@pytest.mark.parametrize("k", [0, -5])
def test_without_k(k):
    case = plain()
    case = case._replace(criteria=case.criteria._replace(k=k))
    assert specialize(*arguments_of(case)).classes == 4


def test_nothing_is_refused_as_one_class():
    combinations, *others = arguments_of(plain())
    empty = combinations._replace(words=np.zeros((1, 0), np.uint64), rows=np.zeros(0, np.int64))
    result = specialize(empty, *others)
    assert (result.steps.tolist(), result.classes) == ([], 0)


CHANGED_FORESTS = [
    ({"first": np.array([0, 2, 5])}, ValueError, "first: "),
    ({"first": np.array([0, 3, 4])}, ValueError, "members and children must be of their node's"),
    ({"first": np.array([0, 2, 3])}, ValueError, "first: must begin with 0 and end"),
    ({"first": np.array([1, 2, 4])}, ValueError, "first: must begin with 0"),
    ({"first": np.zeros(0, np.int64)}, ValueError, "first: "),
    ({"attribute": np.array([0, 0, 0, 1, 1, 2], np.int32)}, ValueError, "attribute: "),
    ({"attribute": np.array([0, 0, 1, 1, 1, 1], np.int32)}, ValueError, "forest: members"),
    ({"child_first": np.array([0, 2, 2, 2, 4, 4, 5])}, ValueError, "child_first: "),
    ({"child_first": np.array([0, 2, 1, 2, 4, 4, 4])}, ValueError, "child_first: must ascend"),
    ({"children": np.array([1, 6, 4, 5], np.int32)}, ValueError, "children: "),
    ({"children": np.array([1, 4, 2, 5], np.int32)}, ValueError, "forest: members"),
    ({"member_first": np.array([-1, 0, 1, 2, 2, 3])}, ValueError, "member_first: "),
    ({"member_stop": np.array([3, 1, 2, 4, 3, 4])}, ValueError, "forest: members"),
    ({"member_stop": np.array([2, 1, 2, 5, 3, 4])}, ValueError, "member_stop: "),
    ({"members": np.array([0, 1, 2, 4], np.int32)}, ValueError, "members: "),
    ({"members": np.array([0, 2, 1, 3], np.int32)}, ValueError, "forest: members"),
    ({"gain": np.ones(5)}, ValueError, "gain: shape"),
    ({"gain": np.ones(6, np.float32)}, TypeError, "gain: float64"),
]


@pytest.mark.parametrize(("changed", "error", "text"), CHANGED_FORESTS)
def test_forests_that_would_lead_outside_are_refused(changed, error, text):
    combinations, forest, *others = arguments_of(plain())
    with pytest.raises(error, match=text):
        specialize(combinations, forest._replace(**changed), *others)


@pytest.mark.parametrize(
    "changed",
    [
        {"children": np.array([0, 0, 3, 3], np.int32)},  # nodes under themselves
        {"children": np.array([2, 2, 4, 4], np.int32)},
        {"child_first": np.array([0, 1, 2, 2, 4, 4, 4]), "children": np.array([1, 0, 4, 5], "i4")},
        {"member_stop": np.array([1, 1, 2, 4, 3, 4])},  # children that hold more than their parent
        {"member_first": np.array([0, 0, 0, 2, 2, 2]), "member_stop": np.array([2, 2, 2, 4, 4, 4])},
    ],
)  # fmt: skip
def test_what_is_no_forest_comes_to_an_end(changed):
    combinations, forest, *others = arguments_of(plain())
    assert specialize(combinations, forest._replace(**changed), *others).classes <= 4


@pytest.mark.parametrize(
    ("changed", "error", "text"),
    [
        ({"words": np.full((1, 4), 2, np.uint64)}, ValueError, "outside of its table"),
        ({"words": np.full((1, 4), 2 << 8, np.uint64)}, ValueError, "outside of its table"),
        ({"words": np.full((1, 4), 2 << 16, np.uint64)}, ValueError, "outside of its table"),
        ({"words": np.full((1, 4), 2**64 - 1, np.uint64), "mask": np.full(3, 2**64 - 1, np.uint64)},
         ValueError, "outside of its table"),
        ({"words": np.zeros((1, 3), np.uint64)}, ValueError, "words: shape"),
        ({"words": np.zeros((1, 4), np.int64)}, TypeError, "words: uint64"),
        ({"rows": np.array([1, 1, 0, 1])}, ValueError, "rows: each combination must have 1"),
        ({"rows": np.full(4, 2**61)}, ValueError, "rows: "),
        ({"rows": np.ones(4, np.int32)}, TypeError, "rows: int64"),
        ({"word": np.array([0, 0, 1])}, ValueError, "word: "),
        ({"shift": np.array([0, 8, 64], np.uint64)}, ValueError, "shift: "),
        ({"mask": np.zeros(2, np.uint64)}, ValueError, "mask: shape"),
        ({name: np.zeros(1, dtype) for name, dtype in
          [("word", np.int64), ("shift", np.uint64), ("mask", np.uint64)]},
         ValueError, "columns: there are 2 attributes, got 1"),
        ({name: np.zeros(2, dtype) for name, dtype in
          [("word", np.int64), ("shift", np.uint64), ("mask", np.uint64)]},
         ValueError, "criteria: column"),
    ],
)  # fmt: skip
def test_combinations_that_would_point_outside_are_refused(changed, error, text):
    combinations, *others = arguments_of(plain())
    with pytest.raises(error, match=text):
        specialize(combinations._replace(**changed), *others)


@pytest.mark.parametrize("name", ["words", "rows"])
def test_combinations_are_permuted_where_they_are(name):
    combinations, *others = arguments_of(plain())
    getattr(combinations, name).flags.writeable = False
    with pytest.raises(ValueError, match=f"{name}: must be writable"):
        specialize(combinations, *others)


@pytest.mark.parametrize(
    ("cut", "error", "text"),
    [
        (np.array([0, 0, 3, 6], np.int32), ValueError, "cut: all must be"),
        (np.array([0, 0, 3, -1], np.int32), ValueError, "cut: all must be"),
        (np.array([0, 3, 3, 3], np.int32), ValueError, "must be of its attribute"),
        (np.array([0, 0, 3], np.int32), ValueError, "cut: shape"),
        (np.array([0, 0, 3, 3]), TypeError, "cut: int32"),
    ],
)  # fmt: skip
def test_cuts_that_are_of_other_trees_are_refused(cut, error, text):
    combinations, forest, _, criteria = arguments_of(plain())
    with pytest.raises(error, match=text):
        specialize(combinations, forest, cut, criteria)


# Dealing rows to parts


def numbers(seed: int):
    """What splitmix64 draws, hashed from another start."""

    def mixed(z: int) -> int:
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return z ^ z >> 31

    state = mixed((seed + 0x9E3779B97F4A7C15) % 2**64)
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        yield mixed(state)


@examples(200)
@given(st.lists(st.integers(0, 9), max_size=20), st.integers(0, 2**64 - 1), st.data())
def test_deals_by_the_hash_of_a_rows_number(rows, seed, data):
    parts = data.draw(st.integers(1, 7))
    part = data.draw(st.integers(0, parts - 1))
    drawn = numbers(seed)
    expected = [
        sum((next(drawn) >> 32) * parts >> 32 == part for _ in range(count)) for count in rows
    ]
    assert rows_of_part(np.array(rows, np.int64), part, parts, seed).tolist() == expected


@pytest.mark.parametrize(
    ("rows", "part", "parts", "seed", "error", "text"),
    [
        (np.ones(3, np.int32), 0, 2, 0, TypeError, "rows: int64"),
        (np.ones((3, 1), np.int64), 0, 2, 0, ValueError, "rows: shape"),
        (np.ones(3, np.int64), 2, 2, 0, ValueError, "part: "),
        (np.ones(3, np.int64), -1, 2, 0, ValueError, "part: "),
        (np.ones(3, np.int64), 0, 2**33, 0, ValueError, "part: "),
        (np.ones(3, np.int64), 0, 2, -1, ValueError, "seed: "),
        (np.ones(3, np.int64), 0, 2, 2**64, ValueError, "seed: "),
    ],
)
def test_dealing_refuses(rows, part, parts, seed, error, text):
    with pytest.raises(error, match=text):
        rows_of_part(rows, part, parts, seed)
