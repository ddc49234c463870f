"""The functions that cut: what they refuse, the smallest and the largest rows, threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from mondrian_ops.cut.native import mondrian
from mondrian_ops.cut.native.class_criteria import (
    DISTINCT,
    ENTROPY,
    RECURSIVE,
    T_EQUAL,
    T_TREE,
    Criteria,
)
from mondrian_ops.cut.native.mondrian import (
    BLOCK,
    GAIN,
    INTERVAL,
    MEDIAN,
    RELAXED,
    SET,
    TREE,
    KernelPolicy,
    Multiway,
    MultiwayTree,
    Rows,
    Tree,
)
from native_probes import no_criteria

POLICIES = {
    "median": KernelPolicy(MEDIAN, 3, 0),
    "gain": KernelPolicy(GAIN, 3, 0),
    "relaxed": KernelPolicy(RELAXED, 3, 0),
    "ahead": KernelPolicy(GAIN, 3, 100),
    "groups": KernelPolicy(GAIN, 3, 100, 100),
    "joined": KernelPolicy(GAIN, 3, 100, 100, 3),
}
MULTIWAY = Multiway(3, 2)
HUGE = 1 << 64  # 0 of what 64 bits hold


def rows_of(count: int = 60, *, seed: int = 0, missing: bool = True, dtype=np.uint16) -> Rows:
    """Rows of an interval, a tree and a set of 20, 7 and 5 codes, with one of 4 sensitive codes."""
    generator = np.random.default_rng(seed)
    sizes, least = [20, 7, 5], 0 if missing else 1
    first = np.cumsum([0, *sizes])
    values = np.concatenate([np.linspace(0, 1, size) for size in sizes])
    return Rows(
        codes=np.array([generator.integers(least, size, count) for size in sizes], dtype),
        sensitive=generator.integers(0, 4, (1, count), np.int32),
        kind=np.array([INTERVAL, TREE, SET]),
        first=first,
        low=values,
        high=values,
        step=np.concatenate([generator.choice([0.25, 0.5, 1.0], 27), np.arange(5) / 3]),
        span=np.ones(3),
        most=np.ones(3),
        present=np.array(sizes) - 1.0,
    )


def criteria_of(k: int = 3, kind: int = DISTINCT, level: float = 2.0, codes: int = 4) -> Criteria:
    """k rows, and one criterion on the only sensitive column."""
    return no_criteria(k)._replace(
        kind=np.array([kind]),
        column=np.array([0]),
        level=np.array([level]),
        c=np.ones(1),
        codes=np.array([codes]),
        uncounted=np.array([0]),
        share=np.full(codes, 1 / codes),
        share_first=np.array([0, codes]),
        parent_first=np.zeros(2, np.int64),
        near_first=np.zeros(2, np.int64),
    )


TREE_OF_CODES = {
    "kind": np.array([T_TREE]),
    "parent": np.array([4, 4, 4, 4, -1], np.int32),
    "height": np.array([0, 0, 0, 0, 1.0]),
    "parent_first": np.array([0, 5]),
}


@dataclass(frozen=True)
class Arguments:
    """The arguments of the functions that call the kernels."""

    rows: Rows
    criteria: Criteria
    policy: KernelPolicy = POLICIES["joined"]
    multiway: Multiway = MULTIWAY

    def call(self, function: str) -> None:
        """Call one of the functions."""
        given = self.rows, self.criteria
        if function == "classes":
            mondrian.classes(*given, self.policy)
        elif function == "loss":
            mondrian.loss(*given, self.policy, np.arange(60, dtype=np.int32), np.zeros(1, np.int64))
        elif function == "tree":
            Tree(*given, self.policy)
        elif function == "multiway":
            mondrian.multiway_classes(*given, self.multiway)
        else:
            MultiwayTree(*given, self.multiway)


def with_rows(**changed: Any) -> Arguments:
    return Arguments(rows_of()._replace(**changed), criteria_of())


def with_criteria(**changed: Any) -> Arguments:
    return Arguments(rows_of(), criteria_of()._replace(**changed))


GOOD = rows_of()
WRONG_TYPES = [
    ("codes", with_rows(codes=GOOD.codes.astype(np.int16))),
    ("codes", with_rows(codes=GOOD.codes.astype(np.uint64))),
    ("codes", with_rows(codes=GOOD.codes.astype(">u2"))),
    ("sensitive", with_rows(sensitive=GOOD.sensitive.astype(np.int64))),
    ("kind", with_rows(kind=GOOD.kind.astype(np.int32))),
    ("high", with_rows(high=GOOD.high.astype(np.float32))),
    ("column", with_criteria(column=np.zeros(1, np.int32))),
]
BEYOND = np.array([4, 4, 4, 5, -1], np.int32)
WRONG_VALUES = [
    ("codes", with_rows(codes=GOOD.codes[0])),
    ("attributes", with_rows(codes=GOOD.codes[:0])),
    ("codes", with_rows(codes=np.asfortranarray(GOOD.codes))),
    ("codes", with_rows(codes=GOOD.codes[:, ::2])),
    ("beyond", with_rows(codes=GOOD.codes + np.uint16(1))),
    ("sensitive", with_rows(sensitive=GOOD.sensitive[:, :-1].copy())),
    ("sensitive", with_rows(sensitive=GOOD.sensitive[0])),
    ("sensitive", with_rows(sensitive=GOOD.sensitive - 1)),
    ("sensitive", with_rows(sensitive=GOOD.sensitive + 1)),
    ("kind", with_rows(kind=np.array([INTERVAL, TREE, 3]))),
    ("kind", with_rows(kind=GOOD.kind[:2])),
    ("first", with_rows(first=GOOD.first[:-1])),
    ("first", with_rows(first=GOOD.first[:0])),
    ("first", with_rows(first=np.array([1, 20, 27, 32]))),
    ("first", with_rows(first=np.array([0, 27, 20, 32]))),
    ("first", with_rows(first=np.array([0, (1 << 63) - 1, -(1 << 63) + 31, 32]))),  # wraps around
    ("low", with_rows(low=GOOD.low[:-1])),
    ("step", with_rows(step=np.repeat(GOOD.step, 2)[::2])),
    ("low", with_rows(low=GOOD.low * np.nan)),
    ("span", with_rows(span=GOOD.span * np.inf)),
    ("most", with_rows(most=GOOD.most[:2])),
    ("persons", Arguments(GOOD._replace(persons=1), no_criteria(3))),
    ("persons", Arguments(GOOD._replace(persons=1), criteria_of(3, ENTROPY))),
    ("k:", with_criteria(k=0)),
    ("k:", with_criteria(k=-1)),
    ("k ", with_criteria(k=HUGE)),
    ("kind", with_criteria(kind=np.array([8]))),
    ("asked", with_criteria(kind=np.array([7]))),
    ("column", with_criteria(column=np.array([1]))),
    ("column", with_criteria(column=np.array([-1]))),
    ("column", with_criteria(column=np.zeros(2, np.int64))),
    ("codes", with_criteria(codes=np.array([-1]))),
    ("level", with_criteria(level=np.array([np.nan]))),
    ("level", with_criteria(kind=np.array([RECURSIVE]), level=np.array([1e30]))),
    ("uncounted", with_criteria(uncounted=np.array([2]))),
    ("share", with_criteria(kind=np.array([T_EQUAL]), share_first=np.array([0, 3]))),
    ("share_first", with_criteria(share_first=np.array([0, 5]))),
    ("parent", with_criteria(**TREE_OF_CODES | {"parent": BEYOND})),
    ("height", with_criteria(**TREE_OF_CODES | {"height": np.zeros(4)})),
]


@pytest.mark.parametrize("function", ["classes", "loss", "tree", "multiway", "multiway tree"])
@pytest.mark.parametrize(
    ("error", "name", "arguments"),
    [
        *((TypeError, *case) for case in WRONG_TYPES),
        *((ValueError, *case) for case in WRONG_VALUES),
    ],
)
def test_arrays_that_do_not_fit_are_refused_by_name(error, name, arguments, function):
    with pytest.raises(error, match=name):
        arguments.call(function)


@pytest.mark.parametrize("function", ["classes", "loss", "tree"])
@pytest.mark.parametrize(
    "policy",
    [
        KernelPolicy(-1, 3, 0),
        KernelPolicy(RELAXED + 1, 3, 0),
        KernelPolicy(GAIN, 0, 100),
        KernelPolicy(GAIN, HUGE, 100),
        KernelPolicy(GAIN, 1 << 62, 100),
        KernelPolicy(GAIN, 3, -1),
        KernelPolicy(GAIN, 3, HUGE),
        KernelPolicy(GAIN, 3, 100, 101),
        KernelPolicy(GAIN, 3, 100, -1),
        KernelPolicy(GAIN, 3, 100, 100, -1),
        KernelPolicy(GAIN, 3, 100, 100, 1),
        KernelPolicy(GAIN, 3, 1 << 20, BLOCK + 1),
        KernelPolicy(GAIN, 3, 100, 100, 17),
        KernelPolicy(GAIN, 3, 100, 100, HUGE),
    ],
)
def test_policies_out_of_range_are_refused(policy, function):
    with pytest.raises(ValueError, match="KernelPolicy"):
        Arguments(rows_of(), criteria_of(), policy).call(function)
    with pytest.raises(ValueError, match="KernelPolicy"):
        mondrian.classes(rows_of(0), criteria_of(), policy)


@pytest.mark.parametrize("multiway", [Multiway(0, 2), Multiway(3, 0), Multiway(-1, -1)])
@pytest.mark.parametrize("function", ["multiway", "multiway tree"])
def test_cut_points_out_of_range_are_refused(multiway, function):
    with pytest.raises(ValueError, match="Multiway"):
        Arguments(rows_of(), criteria_of(), multiway=multiway).call(function)


@pytest.mark.parametrize("k", [61, 1 << 31, 1 << 62, (1 << 63) - 1])
def test_a_k_beyond_the_rows_leaves_them_together(k):
    rows = rows_of()
    for policy in POLICIES.values():
        _, starts = mondrian.classes(rows, no_criteria(k), policy)
        assert starts.tolist() == [0]
        tree = Tree(rows, no_criteria(k), policy)
        assert tree.cut(0, 60)[0] == -1
    _, starts = mondrian.multiway_classes(rows, no_criteria(k), MULTIWAY)
    assert starts.tolist() == [0]


@pytest.mark.parametrize("size", [1 << 31, 1 << 62, HUGE])
def test_more_room_and_points_than_rows_are_as_many_as_there_are(size):
    rows, criteria = rows_of(), criteria_of()
    _, starts = mondrian.multiway_classes(rows, criteria, Multiway(3, size))
    _, halved = mondrian.multiway_classes(rows, criteria, Multiway(1, 2))
    assert np.array_equal(starts, halved)
    _, starts = mondrian.multiway_classes(rows, criteria, Multiway(size, 2))
    _, all_points = mondrian.multiway_classes(rows, criteria, Multiway(60, 2))
    assert np.array_equal(starts, all_points)
    MultiwayTree(rows, criteria, Multiway(size, 2)).cut(0, 60)


INDEX, STARTS = np.arange(60, dtype=np.int32), np.array([0, 30])


@pytest.mark.parametrize(
    ("index", "starts", "error", "name"),
    [
        (INDEX + 1, STARTS, ValueError, "index"),
        (INDEX - 1, STARTS, ValueError, "index"),
        (INDEX[:-1], STARTS, ValueError, "index"),
        (INDEX.astype(np.int64), STARTS, TypeError, "index"),
        (np.repeat(INDEX, 2)[::2], STARTS, ValueError, "index"),
        (INDEX, np.array([0, 60]), ValueError, "starts"),
        (INDEX, np.array([-1, 30]), ValueError, "starts"),
        (INDEX, np.array([30, 0]), ValueError, "starts"),
        (INDEX, np.array([0, 0]), ValueError, "starts"),
        (INDEX, STARTS.astype(np.int32), TypeError, "starts"),
    ],
)
def test_classes_that_are_none_have_no_loss(index, starts, error, name):
    with pytest.raises(error, match=name):
        mondrian.loss(rows_of(), criteria_of(), POLICIES["gain"], index, starts)


@pytest.mark.parametrize("made", [Tree, MultiwayTree])
def test_only_nodes_of_the_rows_are_cut(made):
    tree = made(rows_of(), criteria_of(), POLICIES["groups"] if made is Tree else MULTIWAY)
    for start, stop in [(-1, 10), (0, 61), (10, 10), (20, 10), (0, HUGE), (HUGE, HUGE + 1)]:
        with pytest.raises(ValueError, match="not a node"):
            tree.cut(start, stop)
        with pytest.raises(ValueError, match="not a node"):
            tree.split(start, stop, 0, 5)
    for attribute, code in [(-1, 0), (3, 0), (HUGE, 0), (0, -1), (0, HUGE)]:
        with pytest.raises(ValueError, match="out of range"):
            tree.split(0, 60, attribute, code)
    assert tree.split(0, 60, 0, (1 << 63) - 1) == 60


@pytest.mark.parametrize("policy", POLICIES)
def test_nodes_of_fewer_than_2k_rows_are_final(policy):
    """Of fewer than k rows none could be taken to top up a group."""
    tree = Tree(rows_of(), no_criteria(4), POLICIES[policy])
    for stop in range(1, 8):
        assert tree.cut(0, stop)[0] == -1
    tree = MultiwayTree(rows_of(), no_criteria(4), MULTIWAY)
    for stop in range(1, 8):
        assert tree.cut(0, stop)[0] == -1


def classes_of(rows: Rows, criteria: Criteria, policy: str) -> list[set[int]]:
    """The classes by any policy, or by DI-Mondrian; each row is in one of them."""
    if policy == "multiway":
        index, starts = mondrian.multiway_classes(rows, criteria, MULTIWAY)
    else:
        index, starts = mondrian.classes(rows, criteria, POLICIES[policy])
    assert sorted(index.tolist()) == list(range(rows.codes.shape[1]))
    return [set(part.tolist()) for part in np.split(index, starts[1:])]


@pytest.mark.parametrize("policy", [*POLICIES, "multiway"])
def test_the_smallest_rows(policy):
    criteria = no_criteria(1)
    index, starts = mondrian.classes(rows_of(0), criteria, POLICIES.get(policy, POLICIES["gain"]))
    assert (len(index), len(starts)) == (0, 0)
    index, starts = mondrian.multiway_classes(rows_of(0), criteria, MULTIWAY)
    assert (len(index), len(starts)) == (0, 0)
    assert mondrian.loss(rows_of(0), criteria, POLICIES["gain"], index, starts) == 0
    Tree(rows_of(0), criteria, POLICIES["joined"])
    MultiwayTree(rows_of(0), criteria, MULTIWAY)
    assert classes_of(rows_of(1), criteria, policy) == [{0}]
    assert len(classes_of(rows_of(2), no_criteria(2), policy)) == 1


@pytest.mark.parametrize("policy", [*POLICIES, "multiway"])
@pytest.mark.parametrize("attribute", [0, 1, 2])
def test_one_attribute_by_itself(policy, attribute):
    rows = rows_of(missing=False)
    begin, end = rows.first[attribute : attribute + 2]
    one = slice(attribute, attribute + 1)
    rows = rows._replace(
        codes=rows.codes[one].copy(),
        first=np.array([0, end - begin]),
        **{name: getattr(rows, name)[one] for name in ("kind", "span", "most", "present")},
        **{name: getattr(rows, name)[begin:end].copy() for name in ("low", "high", "step")},
    )
    classes = classes_of(rows, criteria_of(), policy)
    assert len(classes) > 1
    assert min(map(len, classes)) >= 3
    assert all(len({*rows.sensitive[0, list(part)]}) > 1 for part in classes)


@pytest.mark.parametrize("policy", [*POLICIES, "multiway"])
@pytest.mark.parametrize("value", [0, 1])
def test_one_value_of_every_attribute_makes_one_class(policy, value):
    """0: everything is missing."""
    rows = rows_of()
    rows = rows._replace(codes=np.full_like(rows.codes, value))
    assert len(classes_of(rows, no_criteria(3), policy)) == 1


@pytest.mark.parametrize("policy", sorted({*POLICIES} - {"relaxed"}))
def test_of_k_1_only_rows_of_the_same_codes_stay_together(policy):
    """Rows of a grid lose by themselves too, and nothing is gained by exchanging them."""
    rows = rows_of(40, missing=False)
    rows = rows._replace(
        codes=np.ascontiguousarray(rows.codes[:, np.arange(40) % 30]), high=rows.high + 0.01
    )
    classes = classes_of(rows, no_criteria(1), policy)
    assert len(classes) == np.unique(rows.codes, axis=1).shape[1] < 40
    assert all(len(np.unique(rows.codes[:, list(part)], axis=1).T) == 1 for part in classes)


@pytest.mark.parametrize("policy", [*POLICIES, "multiway"])
def test_missing_values_in_every_attribute(policy):
    rows = rows_of(200)
    assert (rows.codes == 0).any(axis=1).all()
    classes = classes_of(rows, criteria_of(), policy)
    assert len(classes) > 10
    assert min(map(len, classes)) >= 3
    assert all(len({*rows.sensitive[0, list(part)]}) > 1 for part in classes)


@pytest.mark.parametrize("policy", [*POLICIES, "multiway"])
def test_codes_of_any_width_give_the_same_classes(policy):
    result = [
        classes_of(rows_of(200, dtype=dtype), criteria_of(), policy)
        for dtype in (np.uint8, np.uint16, np.uint32)
    ]
    assert result[0] == result[1] == result[2]


@pytest.mark.parametrize("policy", ["median", "gain", "joined", "multiway"])
def test_losses_beyond_all_numbers_are_no_reason_to_hang(policy):
    """Their differences are no numbers, and order nothing; classes have k rows all the same."""
    rows = rows_of(200)
    rows = rows._replace(low=rows.low - 1.7e308, high=rows.high + 1.7e308)
    assert min(map(len, classes_of(rows, criteria_of(), policy))) >= 3


@pytest.mark.parametrize("policy", ["median", "groups", "multiway"])
def test_a_million_persons(policy):
    """Few of them are in a node, and most codes are not there at all."""
    rows, many = rows_of(3000), 1 << 20
    persons = np.random.default_rng(1).integers(0, many, (1, 3000), np.int32)
    persons[0, ::7] = many - 1
    rows = rows._replace(sensitive=persons, persons=1)
    classes = classes_of(rows, criteria_of(4, level=4.0, codes=many), policy)
    assert len(classes) > 100
    assert all(len({*persons[0, list(part)]}) >= 4 for part in classes)


def test_more_rows_than_a_block_has():
    rows = rows_of(BLOCK + 5000, dtype=np.uint32)
    for policy in ("median", "gain"):
        classes = classes_of(rows, criteria_of(50), policy)
        assert min(map(len, classes)) >= 50


@pytest.mark.parametrize(
    ("policy", "rows"), [*((each, 70_000) for each in POLICIES), ("gain", 300_000)]
)
@pytest.mark.parametrize("cores", [3, 1 << 40])
def test_classes_are_the_same_on_any_number_of_cores(policy, rows, cores):
    """Their rows come in the same order, too. Of 300,000 rows, several nodes are larger than a
    block at once."""
    given = rows_of(rows), criteria_of(), POLICIES[policy]
    index, starts = mondrian.classes(*given)
    other_index, other_starts = mondrian.classes(*given, cores)
    np.testing.assert_array_equal(other_index, index)
    np.testing.assert_array_equal(other_starts, starts)


def wide_rows(count: int, columns: int, dtype: Any) -> Rows:
    """Rows of so many intervals; records of few columns and of many differ in how they are read."""
    generator = np.random.default_rng(columns)
    sizes = generator.integers(2, 60, columns)
    first = np.cumsum([0, *sizes])
    return rows_of(count)._replace(
        codes=np.array([generator.integers(0, size, count) for size in sizes], dtype),
        kind=np.full(columns, INTERVAL),
        first=first,
        low=np.concatenate([np.linspace(0, 1, size) for size in sizes]),
        high=np.concatenate([np.linspace(0, 1, size) for size in sizes]),
        step=np.zeros(first[-1]),
        span=np.ones(columns),
        most=np.ones(columns),
        present=sizes - 1.0,
    )


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(
    ("columns", "count"), [(1, 3), (1, 70), (3, 70_000), (15, 500), (16, 500), (17, 500), (40, 900)]
)
@pytest.mark.parametrize("policy", ["median", "gain", "relaxed", "ahead"])
def test_extents_that_come_with_the_classes_are_those_of_their_rows(policy, columns, count, cores):
    for dtype in (np.uint8, np.uint16):
        rows = wide_rows(count, columns, dtype)
        settings = rows, criteria_of(), POLICIES[policy], cores
        index, starts, extents = mondrian.classes_with_extents(*settings)
        assert extents is not None
        for known, found in zip(extents, (np.minimum, np.maximum), strict=True):
            np.testing.assert_array_equal(
                known, found.reduceat(rows.codes[:, index], starts, axis=1)
            )
        other_index, other_starts = mondrian.classes(*settings)
        np.testing.assert_array_equal(other_index, index)
        np.testing.assert_array_equal(other_starts, starts)


@pytest.mark.parametrize("policy", POLICIES)
def test_extents_of_rows_that_are_coded_anew_are_not_known(policy):
    rows = far_apart(rows_of(3000))
    *_, extents = mondrian.classes_with_extents(rows, criteria_of(), POLICIES[policy])
    assert extents is None
    *_, extents = mondrian.classes_with_extents(rows_of(0), criteria_of(), POLICIES[policy])
    assert extents is None


def test_extents_of_nodes_cut_by_groups_are_not_known():
    *_, extents = mondrian.classes_with_extents(rows_of(), criteria_of(), POLICIES["groups"])
    assert extents is None


def far_apart(rows: Rows, apart: int = 50) -> Rows:
    """The same rows in codes of which so many less one are left out after each."""
    tables = {}
    for name in ("low", "high", "step"):
        tables[name] = np.zeros(rows.first[-1] * apart)
        tables[name][::apart] = getattr(rows, name)
    of_sets = rows.first[2]  # one value, two, ..., however far apart they are
    tables["step"][of_sets * apart :][: len(rows.step) - of_sets] = rows.step[of_sets:]
    codes = rows.codes.astype(np.uint16) * np.uint16(apart)
    return rows._replace(codes=codes, first=rows.first * apart, **tables)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("cores", [1, 2])
def test_codes_far_apart_give_the_same_classes(policy, cores):
    """Few codes are counted together, and may be cut where they lie; others are coded anew."""
    rows, settings = rows_of(BLOCK + 5000), (criteria_of(), POLICIES[policy])
    index, starts = mondrian.classes(rows, *settings)
    other_index, other_starts = mondrian.classes(far_apart(rows), *settings, cores)
    np.testing.assert_array_equal(other_index, index)
    np.testing.assert_array_equal(other_starts, starts)


@pytest.mark.parametrize("policy", POLICIES)
def test_values_of_a_tree_that_no_row_has_are_not_looked_at(policy):
    """A block has fewer codes then than its columns have room for."""
    rows, settings = rows_of(200), (criteria_of(), POLICIES[policy])
    for most in (1, 2, 4):
        rows.codes[1] = np.minimum(rows.codes[1], most)
        narrowed = [rows.codes[0] // 7, *rows.codes[1:]]
        for codes in (rows.codes, np.stack(narrowed)):
            index, starts = mondrian.classes(rows._replace(codes=codes), *settings)
            assert sorted(index.tolist()) == list(range(200))
            assert np.diff(starts, append=200).min() >= 3


@pytest.mark.parametrize("cores", [0, -1])
def test_no_cores_are_refused(cores):
    with pytest.raises(ValueError, match="cores: 1 or more expected"):
        mondrian.classes(rows_of(), criteria_of(), POLICIES["gain"], cores)


def test_threads_do_not_meet():
    """The kernels run without the interpreter's lock, each with memory of its own."""
    calls = [
        Arguments(rows_of(1500, seed=seed), criteria_of(3 + seed % 2), POLICIES[policy])
        for seed, policy in enumerate(["median", "groups", "joined", "relaxed"] * 2)
    ]

    def result(each: Arguments) -> list[list[int]]:
        index, starts = mondrian.classes(each.rows, each.criteria, each.policy)
        return [part.tolist() for part in np.split(index, starts[1:])]

    with ThreadPoolExecutor(len(calls)) as threads:
        at_once = list(threads.map(result, calls))
    assert at_once == [result(replace(each)) for each in calls]


def test_the_arrays_that_were_given_are_not_changed():
    rows, criteria = rows_of(200), criteria_of()
    before = [array.copy() for array in rows[:-1]]
    for policy in (*POLICIES, "multiway"):
        classes_of(rows, criteria, policy)
    for array, was in zip(rows[:-1], before, strict=True):
        assert np.array_equal(array, was)
