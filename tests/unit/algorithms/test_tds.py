"""Two-phase top-down specialization against the definitions, worked out in plain Python."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from examples import examples
from mondrian_ops.algorithms import tds
from mondrian_ops.core.criteria import DistinctDiversity, KAnonymity, Privacy
from mondrian_ops.core.errors import PrivacyError
from mondrian_ops.core.frequency_set import FrequencySet
from taxonomies import TAXONOMIES, TREES
from tds_cases import (
    Data,
    as_lists,
    by_definition,
    candidates,
    children,
    classes,
    datasets,
    holds,
    specialized,
)

# The definitions


def is_cut(tree, cut):
    """One node of the cut, and no other, on the way from every leaf to the root."""
    inside = set(cut)
    return all(
        inside & set(tree.levels[:, code].tolist()) == {node} for code, node in enumerate(cut)
    )


@examples(150)
@given(datasets(), st.integers(1, 4), st.integers(1, 12), st.integers(0, 5))
def test_two_phases_by_the_definitions(data, partitions, k_intermediate, seed):
    assume(holds(data, data.rows, 1))
    found = data.two_phase(partitions, k_intermediate, seed)
    assert all(is_cut(t, c) for t, c in zip(data.taxonomies, as_lists(found.merged), strict=True))
    expected, steps = by_definition(data, as_lists(found.merged), 1)
    assert as_lists(found.cuts) == expected
    assert list(map(tuple, found.final.steps.tolist())) == steps
    assert all(is_cut(t, c) for t, c in zip(data.taxonomies, expected, strict=True))
    assert all(holds(data, group, 1) for group in classes(data, expected))
    assert not list(candidates(data, expected, 1))
    assert sum(level.rows for level in found.partitions) in (0, len(data.rows))
    for level in found.partitions:
        assert more_general(data, found.merged, level.cuts)


@examples(200)
@given(datasets(max_rows=40), st.integers(2, 4), st.integers(1, 10), st.integers(0, 5))
def test_no_valid_specialization_is_left_in_any_part(data, partitions, k_intermediate, seed):
    """The first phase is the whole way of the definitions for the rows of a part and k^I."""
    search = data.search(partitions, k_intermediate, seed)
    k = max(k_intermediate, data.privacy.min_class_size)
    start = as_lists(tds.top(data.taxonomies))
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
    for tree, cut, other in zip(data.taxonomies, as_lists(cuts), as_lists(others), strict=True):
        for code, (node, below) in enumerate(zip(cut, other, strict=True)):
            way = tree.levels[:, code].tolist()
            if node not in way[way.index(below) :]:
                return False
    return True


@examples(150)
@given(st.data())
def test_the_merged_level_is_the_lowest_that_is_nowhere_more_specific(data):
    names = data.draw(st.lists(st.sampled_from(sorted(TREES)), min_size=1, max_size=3))
    trees = [TAXONOMIES[name] for name in names]
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
    start = tds.top(data.taxonomies)
    centralized = tds.specialize(data.frequencies, *data.asked, 1, start)
    rows = len(data.rows)
    for found in (
        data.two_phase(1, data.privacy.k.k, seed),
        data.two_phase(1, rows, seed),
        data.two_phase(partitions, rows, seed),
        data.two_phase(partitions, rows + 7, seed),
    ):
        assert as_lists(found.cuts) == as_lists(centralized.cuts)
        assert found.final.steps.tolist() == centralized.steps.tolist()


@examples(50)
@given(datasets(max_rows=60), st.integers(2, 5), st.integers(1, 4), st.integers(1, 4), st.data())
def test_any_number_of_threads_and_any_order_of_rows(data, parts, k_intermediate, threads, draw):
    assume(holds(data, data.rows, 1))
    alone = data.two_phase(parts, k_intermediate)
    rows = draw.draw(st.permutations(data.rows))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    again = FrequencySet.of(columns, data.frequencies.sizes)
    with ThreadPoolExecutor(threads) as pool:
        found = data.search(parts, k_intermediate)(again, pool.map)
    assert as_lists(found.cuts) == as_lists(alone.cuts)
    assert as_lists(found.merged) == as_lists(alone.merged)
    for one, other in zip(found.partitions, alone.partitions, strict=True):
        assert one.steps.tolist() == other.steps.tolist()


def test_a_part_with_too_few_rows_stays_at_the_top():
    data = Data(["flat"], [(1,), (1,), (2,), (2,), (3,), (3,)], (), 2)
    level = tds.partition_level(data.frequencies, *data.asked, 7)
    assert as_lists(level.cuts) == as_lists(tds.top(data.taxonomies))
    assert len(level.steps) == 0
    assert tds.partition_level(data.frequencies, *data.asked, 2).classes == 3


def test_a_part_without_rows_stays_at_the_top():
    whole = FrequencySet.of([np.array([1])], [5])
    data = Data(["flat"], [(1,)], (), 1)
    empty = [tds.partition(whole, part, 3, 0) for part in range(3)]
    levels = [tds.partition_level(part, *data.asked, 1) for part in empty]
    assert sorted(level.rows for level in levels) == [0, 0, 1]
    assert as_lists(data.two_phase(3, 1).merged) == as_lists(tds.top(data.taxonomies))


def test_what_even_the_top_breaks_is_refused():
    data = Data(["flat"], [(1, 1), (2, 1), (3, 1)], [DistinctDiversity("s0", 2)], 1)
    with pytest.raises(PrivacyError, match=r"3 rows .* distinct l-diversity"):
        data.two_phase(1, None)
    with pytest.raises(PrivacyError, match="classes of at least 4"):
        Data(["flat"], [(1,), (2,), (3,)], (), 4).two_phase(2, None)


def test_the_gain_of_the_source_per_row_lost():
    """Two attributes: the second parts the sensitive values wholly, the first not at all."""
    rows = [(1 + i % 2, 1 + i // 4, 1 + i // 4) for i in range(8)]
    data = Data(["flat", "flat"], rows, (), 4)
    found = data.two_phase(1, None)
    assert found.final.steps.tolist() == [[1, data.taxonomies[1].root]]
    assert found.final.classes == 2


@pytest.mark.parametrize(
    ("rows", "parts", "asked", "k"),
    [
        (1000, 4, None, 50),
        (1000, 1, None, 200),
        (1000, 100, None, 5),
        (1000, 4, 300, 300),
        (10, 1, 2, 5),
    ],
)
def test_the_k_of_the_first_phase(rows, parts, asked, k):
    privacy = Privacy(KAnonymity(3), (DistinctDiversity("s", 5),))
    assert tds.intermediate_k(rows, parts, privacy, asked) == k


def test_iloss():
    """Xiao and Tao 2006: leaves under the published value, less one, over all leaves."""
    data = Data(["uneven", "flat"], [(1, 1), (3, 1), (4, 2), (0, 0)], (), 1)
    uneven, flat = data.taxonomies
    cuts = (uneven.levels[1], flat.levels[-1])
    # A over a1, a2, a3; c; B over b1, b2; missing; the root of 4 over all four values.
    levels = {int(code): int(uneven.levels[1][code]) for code in (1, 3, 4, 0)}
    leaves = [int(uneven.leaves[node]) for node in levels.values()]
    first = sum(max(0, n - 1) / 7 for n in leaves) / 4
    assert tds.loss(data.frequencies, data.taxonomies, cuts) == pytest.approx((first + 3 / 4) / 2)
    assert tds.loss(data.frequencies, data.taxonomies, tds.top(data.taxonomies)) == pytest.approx(
        (6 / 7 + 3 / 4) / 2
    )
    exact = tuple(t.levels[0] for t in data.taxonomies)
    assert tds.loss(data.frequencies, data.taxonomies, exact) == 0
