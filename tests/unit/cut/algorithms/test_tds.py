"""Two-phase top-down specialization against the definitions, worked out in plain Python."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from copy import copy

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coded_hierarchies import HIERARCHIES, TREES
from criteria_by_paper import satisfied
from hypothesis_profiles import examples
from mondrian_ops.cut.algorithms import tds
from mondrian_ops.cut.criteria import (
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    Privacy,
    RecursiveDiversity,
    TCloseness,
)
from mondrian_ops.data.frequency_set import FrequencySet
from mondrian_ops.data.sensitive_domain import SensitiveDomain
from mondrian_ops.errors import PrivacyError
from mondrian_ops.job.sections import Tds

CRITERIA = [
    lambda c: DistinctDiversity(c, 2),
    lambda c: DistinctDiversity(c, 3),
    lambda c: DistinctDiversity(c, 2, missing_counts=True),
    lambda c: EntropyDiversity(c, 1.7),
    lambda c: RecursiveDiversity(c, 2, 1.5),
    lambda c: RecursiveDiversity(c, 2, 1.5, missing_counts=True),
    lambda c: TCloseness(c, 0.3, "equal"),
    lambda c: TCloseness(c, 0.25, "ordered"),
]


class Data:
    """A drawn dataset: rows of codes, quasi-identifiers first."""

    def __init__(self, names, rows, criteria, k, codes=4):
        self.whole = rows
        self.hierarchies = [HIERARCHIES[name] for name in names]
        self.quasi = len(names)
        self.rows = rows
        self.labels = len(rows[0]) - len(names)
        self.codes = codes  # of a sensitive column, missing values among them
        values = pa.array([f"s{value}" for value in range(1, codes)])
        self.domains = [
            SensitiveDomain(f"s{j}", values, np.array(counts))
            for j, counts in enumerate(self.shares())
        ]
        self.privacy = Privacy(KAnonymity(k), tuple(criteria))
        sizes = [*(t.levels.shape[1] for t in self.hierarchies), *[codes] * self.labels]
        self.frequencies = FrequencySet.of(
            [np.array(column) for column in zip(*rows, strict=True)], sizes
        )

    def shares(self):
        columns = list(zip(*self.whole, strict=True))[self.quasi :]
        return [[column.count(s) for s in range(self.codes)] for column in columns]

    @property
    def arguments(self):
        return self.hierarchies, self.privacy, self.domains

    def two_phase(self, partitions, k_intermediate, seed=0, in_parallel=map):
        return self.search(partitions, k_intermediate, seed)(self.frequencies, in_parallel)

    def part(self, number, partitions, seed):
        """A part of the rows; the whole's shares of sensitive values stay what they are."""
        dealt = tds.partition(self.frequencies, number, partitions, seed)
        rows = np.repeat(dealt.codes(), dealt.rows, axis=1)
        part = copy(self)
        part.rows = list(map(tuple, rows.T.tolist()))
        return part

    def search(self, partitions, k_intermediate, seed=0):
        return tds.TwoPhase(*self.arguments, Tds(partitions, k_intermediate), seed)


@st.composite
def datasets(draw, max_rows=30, least_k=1):
    names = draw(st.lists(st.sampled_from(sorted(TREES)), min_size=1, max_size=3))
    labels = draw(st.integers(0, 2))
    count = draw(st.integers(1, max_rows))
    # Few values of each column: else hardly anything can be specialized.
    columns = []
    for name in names:
        codes = HIERARCHIES[name].levels.shape[1]
        values = draw(st.lists(st.integers(0, codes - 1), min_size=1, max_size=4))
        columns.append(draw(st.lists(st.sampled_from(values), min_size=count, max_size=count)))
    codes, values = draw(st.sampled_from([(4, [0, 1, 2, 3]), (60, [0, 1, 30, 59])]))
    for _ in range(labels):
        columns.append(draw(st.lists(st.sampled_from(values), min_size=count, max_size=count)))
    kinds = draw(st.lists(st.sampled_from(CRITERIA), max_size=2)) if labels else []
    criteria = [kind(f"s{draw(st.integers(0, labels - 1))}") for kind in kinds]
    k = draw(st.integers(least_k, 4))
    return Data(names, list(zip(*columns, strict=True)), criteria, k, codes)


# The definitions


def children(tree, node):
    """The nodes right under a node."""
    result = set()
    for below, above in zip(tree.levels[:-1], tree.levels[1:], strict=True):
        result |= {c for c, p in zip(below.tolist(), above.tolist(), strict=True) if p == node != c}
    return result


def specialized(tree, cut, node):
    """The cut after a specialization: every code of ``node`` goes to its child."""
    below = children(tree, node)
    return [
        next(n for n in tree.levels[:, code].tolist() if n in below) if at == node else at
        for code, at in enumerate(cut)
    ]


def classes(data, cuts):
    result = defaultdict(list)
    for row in data.rows:
        result[tuple(cut[row[a]] for a, cut in enumerate(cuts))].append(row)
    return list(result.values())


def holds(data, group, k):
    if len(group) < max(k, data.privacy.k.k):
        return False
    for criterion in data.privacy.criteria:
        column = data.quasi + int(criterion.column[1:])
        part = Counter(row[column] or None for row in group)  # code 0 is the missing value
        shares = enumerate(data.shares()[column - data.quasi])
        if not satisfied(criterion, part, Counter({code or None: n for code, n in shares})):
            return False
    return True


def gain(data, a, tree, node):
    """Equations 2 and 3, summed over the sensitive columns; without one the rows' own numbers."""
    columns = range(data.quasi, data.quasi + data.labels)
    labelled = [(row, [row[c] for c in columns] or [at]) for at, row in enumerate(data.rows)]

    def members(n):
        return [labels for row, labels in labelled if n in tree.levels[:, row[a]]]

    def bits(group, j):
        counts = Counter(labels[j] for labels in group)
        return sum(-n / len(group) * math.log2(n / len(group)) for n in counts.values())

    parent = members(node)
    parts = [members(child) for child in children(tree, node)]
    total = 0.0
    for j in range(max(1, data.labels)) if parent else ():
        total += bits(parent, j)
        total -= sum(len(part) / len(parent) * bits(part, j) for part in parts if part)
    return round(max(total, 0.0), 9)


def candidates(data, cuts, k):
    """Every valid specialization of a level: IGPL, attribute, node, the level after it."""
    anonymity = min(map(len, classes(data, cuts)))
    for a, tree in enumerate(data.hierarchies):
        for node in set(cuts[a]):
            if not children(tree, node):
                continue
            after = [*cuts[:a], specialized(tree, cuts[a], node), *cuts[a + 1 :]]
            groups = classes(data, after)
            if all(holds(data, group, k) for group in groups):
                loss = anonymity - min(map(len, groups))
                yield gain(data, a, tree, node) / (loss + 1), a, node, after


def by_definition(data, cuts, k):
    """Algorithm 4: the level, and the specializations in order."""
    steps = []
    while offers := list(candidates(data, cuts, k)):
        _, a, node, cuts = max(offers, key=lambda offer: (offer[0], -offer[1], -offer[2]))
        steps.append((a, node))
    return cuts, steps


def as_lists(cuts):
    return [cut.tolist() for cut in cuts]


def is_cut(tree, cut):
    """One node of the cut, and no other, on the way from every leaf to the root."""
    inside = set(cut)
    return all(
        inside & set(tree.levels[:, code].tolist()) == {node} for code, node in enumerate(cut)
    )


@examples(300)
@given(datasets())
def test_specializes_as_the_definitions_say(data):
    start = tds.top(data.hierarchies)
    assume(holds(data, data.rows, 1))
    expected, steps = by_definition(data, as_lists(start), 1)
    result = tds.specialize(data.frequencies, *data.arguments, 1, start)
    assert list(map(tuple, result.steps.tolist())) == steps
    assert as_lists(result.cuts) == expected
    assert result.classes == len(classes(data, expected))


@pytest.mark.parametrize("seed", range(12))
def test_long_ways_as_the_definitions_say(seed):
    """Few drawn datasets are large enough for their order to depend on every term of the IGPL."""
    rng = np.random.default_rng(seed)
    names = ["uneven", "line", "flat", "chain"]
    sizes = [HIERARCHIES[name].levels.shape[1] for name in names]
    codes = [np.minimum(rng.geometric(0.35, 150), size - 1) for size in sizes]
    label = (codes[0] + codes[1] * rng.integers(0, 2, 150)) % 3 + 1
    data = Data(names, list(zip(*(c.tolist() for c in [*codes, label]), strict=True)), (), 2)
    start = tds.top(data.hierarchies)
    _, steps = by_definition(data, as_lists(start), 1)
    result = tds.specialize(data.frequencies, *data.arguments, 1, start)
    assert list(map(tuple, result.steps.tolist())) == steps
    assert len(steps) > 3


@examples(150)
@given(datasets(), st.integers(1, 4), st.integers(1, 12), st.integers(0, 5))
def test_two_phases_by_the_definitions(data, partitions, k_intermediate, seed):
    assume(holds(data, data.rows, 1))
    result = data.two_phase(partitions, k_intermediate, seed)
    assert all(is_cut(t, c) for t, c in zip(data.hierarchies, as_lists(result.merged), strict=True))
    expected, steps = by_definition(data, as_lists(result.merged), 1)
    assert as_lists(result.final.cuts) == expected
    assert list(map(tuple, result.final.steps.tolist())) == steps
    assert all(is_cut(t, c) for t, c in zip(data.hierarchies, expected, strict=True))
    assert all(holds(data, group, 1) for group in classes(data, expected))
    assert not list(candidates(data, expected, 1))
    assert sum(level.rows for level in result.partitions) in (0, len(data.rows))
    for level in result.partitions:
        assert more_general(data, result.merged, level.cuts)


@examples(200)
@given(datasets(max_rows=40), st.integers(2, 4), st.integers(1, 10), st.integers(0, 5))
def test_no_valid_specialization_is_left_in_any_part(data, partitions, k_intermediate, seed):
    """The first phase is the whole way of the definitions for the rows of a part and k^I."""
    search = data.search(partitions, k_intermediate, seed)
    k = max(k_intermediate, data.privacy.min_class_size)
    start = as_lists(tds.top(data.hierarchies))
    dealt = []
    for number in range(partitions):
        part = data.part(number, partitions, seed)
        dealt += part.rows
        level = search.first(data.frequencies, number)
        assert level.rows == len(part.rows)
        if not holds(part, part.rows, k):
            assert as_lists(level.cuts) == start
            assert not len(level.steps)
            continue
        expected, steps = by_definition(part, start, k)
        assert as_lists(level.cuts) == expected
        assert list(map(tuple, level.steps.tolist())) == steps
        groups = classes(part, as_lists(level.cuts))
        assert level.classes == len(groups)
        assert all(holds(part, group, k) for group in groups)
        assert not list(candidates(part, as_lists(level.cuts), k))
    assert Counter(dealt) == Counter(data.rows)


def more_general(data, cuts, others):
    """Whether every node of a level is the other's own or above it."""
    for tree, cut, other in zip(data.hierarchies, as_lists(cuts), as_lists(others), strict=True):
        for code, (node, below) in enumerate(zip(cut, other, strict=True)):
            way = tree.levels[:, code].tolist()
            if node not in way[way.index(below) :]:
                return False
    return True


@examples(150)
@given(st.data())
def test_the_merged_level_is_the_lowest_that_is_nowhere_more_specific(data):
    names = data.draw(st.lists(st.sampled_from(sorted(TREES)), min_size=1, max_size=3))
    trees = [HIERARCHIES[name] for name in names]
    levels = []
    for _ in range(data.draw(st.integers(1, 4))):
        level = []
        for tree in trees:
            cut = tree.levels[-1].tolist()
            for _ in range(data.draw(st.integers(0, 5))):
                inner = sorted(node for node in set(cut) if children(tree, node))
                if inner:
                    cut = specialized(tree, cut, data.draw(st.sampled_from(inner)))
            level.append(np.array(cut, np.int32))
        levels.append(tuple(level))
    for at, (tree, cut) in enumerate(zip(trees, tds.merged(levels, trees), strict=True)):
        assert is_cut(tree, cut.tolist())
        for code, node in enumerate(cut.tolist()):
            way = tree.levels[:, code].tolist()
            given_nodes = [int(level[at][code]) for level in levels]
            assert way.index(node) == max(way.index(n) for n in given_nodes)


@examples(100)
@given(datasets(), st.integers(2, 4), st.integers(0, 5))
def test_one_part_or_a_k_of_all_rows_is_the_centralized_result(data, partitions, seed):
    assume(holds(data, data.rows, 1))
    start = tds.top(data.hierarchies)
    centralized = tds.specialize(data.frequencies, *data.arguments, 1, start)
    rows = len(data.rows)
    for result in (
        data.two_phase(1, data.privacy.k.k, seed),
        data.two_phase(1, rows, seed),
        data.two_phase(partitions, rows, seed),
        data.two_phase(partitions, rows + 7, seed),
    ):
        assert as_lists(result.final.cuts) == as_lists(centralized.cuts)
        assert result.final.steps.tolist() == centralized.steps.tolist()


@examples(50)
@given(datasets(max_rows=60), st.integers(2, 5), st.integers(1, 4), st.integers(1, 4), st.data())
def test_any_number_of_threads_and_any_order_of_rows(data, parts, k_intermediate, threads, draw):
    assume(holds(data, data.rows, 1))
    alone = data.two_phase(parts, k_intermediate)
    rows = draw.draw(st.permutations(data.rows))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    again = FrequencySet.of(columns, data.frequencies.sizes)
    with ThreadPoolExecutor(threads) as pool:
        result = data.search(parts, k_intermediate)(again, pool.map)
    assert as_lists(result.final.cuts) == as_lists(alone.final.cuts)
    assert as_lists(result.merged) == as_lists(alone.merged)
    for one, other in zip(result.partitions, alone.partitions, strict=True):
        assert one.steps.tolist() == other.steps.tolist()


@settings(deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.integers(1, 7), st.integers(0, 9))
def test_every_row_falls_to_one_part(rows, parts, seed):
    values = np.arange(len(rows))
    whole = FrequencySet.of([np.repeat(values, rows)], [len(rows)])
    dealt = [tds.partition(whole, part, parts, seed) for part in range(parts)]
    assert sum(part.total for part in dealt) == whole.total
    together = np.zeros(len(rows), int)
    for part in dealt:
        together[part.column(0)] += part.rows
    assert together.tolist() == rows
    assert all((part.rows > 0).all() for part in dealt)


def test_parts_are_alike_and_differ_from_seed_to_seed():
    whole = FrequencySet.of([np.repeat(np.arange(4), 5000)], [4])
    dealt = [tds.partition(whole, part, 5, 3).rows.tolist() for part in range(5)]
    assert all(abs(rows - 1000) < 200 for part in dealt for rows in part)
    assert dealt[0] != dealt[1]
    assert tds.partition(whole, 0, 5, 4).rows.tolist() != dealt[0]


def test_a_part_with_too_few_rows_stays_at_the_top():
    data = Data(["flat"], [(1,), (1,), (2,), (2,), (3,), (3,)], (), 2)
    level = data.search(1, 7).first(data.frequencies, 0)
    assert as_lists(level.cuts) == as_lists(tds.top(data.hierarchies))
    assert len(level.steps) == 0
    assert data.search(1, 2).first(data.frequencies, 0).classes == 3


def test_a_part_without_rows_stays_at_the_top():
    data = Data(["flat"], [(1,)], (), 1)
    levels = [data.search(3, 1).first(data.frequencies, part) for part in range(3)]
    assert sorted(level.rows for level in levels) == [0, 0, 1]
    assert as_lists(data.two_phase(3, 1).merged) == as_lists(tds.top(data.hierarchies))


def test_what_even_the_top_breaks_is_refused():
    data = Data(["flat"], [(1, 1), (2, 1), (3, 1)], [DistinctDiversity("s0", 2)], 1)
    with pytest.raises(PrivacyError, match=r"3 rows .* distinct l-diversity"):
        data.two_phase(1, None)
    with pytest.raises(PrivacyError, match=r"3 rows .* k = 4"):
        Data(["flat"], [(1,), (2,), (3,)], (), 4).two_phase(2, None)


def test_no_level_is_reached_from_a_start_that_is_too_specific():
    data = Data(["flat", "flat"], [(1, 1), (1, 2), (2, 1), (2, 2)], (), 2)
    leaves = tuple(t.levels[0] for t in data.hierarchies)
    assert tds.specialize(data.frequencies, *data.arguments, 2, leaves) is None


def test_the_gain_of_the_source_per_row_lost():
    """Two attributes: the second parts the sensitive values wholly, the first not at all."""
    rows = [(1 + i % 2, 1 + i // 4, 1 + i // 4) for i in range(8)]
    data = Data(["flat", "flat"], rows, (), 4)
    result = data.two_phase(1, None)
    assert result.final.steps.tolist() == [[1, data.hierarchies[1].root]]
    assert result.final.classes == 2


@pytest.mark.parametrize(
    ("rows", "parts", "requested", "k"),
    [
        (1000, 4, None, 50),
        (1000, 1, None, 200),
        (1000, 100, None, 5),
        (1000, 4, 300, 300),
        (10, 1, 2, 5),
    ],
)
def test_the_k_of_the_first_phase(rows, parts, requested, k):
    privacy = Privacy(KAnonymity(3), (DistinctDiversity("s", 5),))
    assert tds.intermediate_k(rows, parts, privacy, requested) == k


def test_many_sensitive_values_count_the_same_as_few():
    """Pairs of codes and sensitive values are counted in a table or, where it is sparse, sorted."""
    rng = np.random.default_rng(0)
    code, label = rng.integers(0, 8, 200), rng.integers(0, 5, 200)
    tree = HIERARCHIES["uneven"]
    gains = [
        tds.information_gains(
            FrequencySet.of([code, label * step], [8, size]), 0, tree, range(1, 2)
        )
        for step, size in ((1, 5), (10**6, 5 * 10**6))
    ]
    assert gains[0].any()
    assert np.array_equal(*gains)


def test_iloss():
    """Xiao and Tao 2006: leaves under the published value, less one, over all leaves."""
    data = Data(["uneven", "flat"], [(1, 1), (3, 1), (4, 2), (0, 0)], (), 1)
    uneven, flat = data.hierarchies
    cuts = (uneven.levels[1], flat.levels[-1])
    # A over a1, a2, a3; c; B over b1, b2; missing; the root of 4 over all four values.
    levels = {int(code): int(uneven.levels[1][code]) for code in (1, 3, 4, 0)}
    leaves = [int(uneven.leaves[node]) for node in levels.values()]
    first = sum(max(0, n - 1) / 7 for n in leaves) / 4
    assert tds.loss(data.frequencies, data.hierarchies, cuts) == pytest.approx((first + 3 / 4) / 2)
    assert tds.loss(data.frequencies, data.hierarchies, tds.top(data.hierarchies)) == pytest.approx(
        (6 / 7 + 3 / 4) / 2
    )
    exact = tuple(t.levels[0] for t in data.hierarchies)
    assert tds.loss(data.frequencies, data.hierarchies, exact) == 0
