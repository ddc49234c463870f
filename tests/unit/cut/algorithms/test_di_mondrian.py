"""DI-Mondrian against its definition, node by node, and what holds of its classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import brute_force
from hypothesis_profiles import examples
from mondrian_cases import (
    WALK,
    anonymizer_of,
    case_of,
    classes_of_coded,
    is_final,
    privacy_of,
    reference_attributes,
    requirements,
    spelled,
    tables,
)
from mondrian_ops.cut import planning
from mondrian_ops.cut.algorithms.di_mondrian import MultiwayPolicy
from mondrian_ops.cut.algorithms.mondrian import CutPolicy
from mondrian_ops.cut.anonymizer import Anonymizer
from mondrian_ops.cut.routing import Router


def places_of(kind, column):
    """Where each value of a column lies, from 0 to 1; a missing one at 0."""
    present = sorted({value for value in column if value is not None})
    if kind == "interval":
        span = (present[-1] - present[0] if present else 0) or 1
        return {None: 0.0, **{value: (value - present[0]) / span for value in present}}
    order = WALK if kind == "tree" else present
    return {None: 0.0, **{value: at / max(1, len(order) - 1) for at, value in enumerate(order)}}


@st.composite
def multiway_cuts(draw):
    """With little room, so that few rows are cut into many parts."""
    return MultiwayPolicy(draw(st.sampled_from([1, 2, 3, 4, 100])), draw(st.integers(1, 3)))


def definition_of(kinds, columns, sensitive, keys, cut) -> brute_force.DiMondrian:
    return brute_force.DiMondrian(
        rows=list(zip(*columns, strict=True)),
        attributes=reference_attributes(kinds, columns, "gain"),
        places=[places_of(*each) for each in zip(kinds, columns, strict=True)],
        sensitive=[[brute_force.alike(value) for value in column] for column in sensitive],
        holds=privacy_of(sensitive, keys).of_rows(sensitive),
        k=keys["k"],
        cut_points=cut.cut_points,
        room=cut.room,
    )


def nodes_of(coded, cut):
    """The tree that a cut grows: (node, attribute or -1, its parts), as lists of rows."""
    waiting = [list(range(coded.count))]
    while waiting:
        node = waiting.pop()
        a, codes = (-1, [])
        if len(node) >= 2 * coded.criteria.k:
            a, codes = cut.tree(coded.taken(np.array(node))).cut(0, len(node))
        if a < 0:
            yield node, a, []
            continue
        assert codes == sorted(set(codes))
        part_of = np.searchsorted(codes, coded.rows.codes[a][node])
        parts = [
            [row for row, part in zip(node, part_of, strict=True) if part == at]
            for at in range(len(codes) + 1)
        ]
        yield node, a, parts
        waiting += parts


def as_sets(divisions):
    return [(a, [frozenset(part) for part in parts]) for a, parts in divisions]


@examples(250)
@given(
    tables(max_rows=40) | spelled(tables(max_rows=40)),
    st.sampled_from([2, 2, 3, 4]),
    st.none() | requirements(),
    multiway_cuts(),
)
def test_every_node_is_cut_as_defined(table, k, required, cut):
    case = case_of(table, k, required)
    definition = definition_of(*case[:4], cut)
    coded = case.anonymizer.encode(case.data)
    coded = replace(coded, criteria=coded.criteria._replace(k=k))  # as the definition has it
    leaves = set()
    for node, a, parts in nodes_of(coded, cut):
        possible = definition.divisions(node)
        if a < 0:
            assert not possible
            leaves.add(frozenset(node))
        else:
            assert as_sets([(a, parts)])[0] in as_sets(possible)
    assert classes_of_coded(coded, cut) == leaves


@examples(150)
@given(tables(max_rows=40), st.integers(2, 4), st.none() | requirements(), multiway_cuts())
def test_classes_hold_and_none_can_be_cut(table, k, required, cut):
    kinds, columns, _, _, holds, anonymizer, data = case_of(table, k, required)
    coded = anonymizer.encode(data)
    classes = classes_of_coded(coded, cut)
    assert all(holds(sorted(rows)) for rows in classes)
    assert all(is_final(rows, kinds, columns, holds) for rows in classes)
    assert classes == classes_of_coded(coded, cut)


@examples(100)
@given(tables(max_rows=30), st.integers(2, 4), multiway_cuts(), st.randoms())
def test_the_order_of_the_rows_does_not_matter(table, k, cut, random):
    kinds, columns, sensitive = table
    assume(len(columns[0]) >= k)
    shuffled = list(range(len(columns[0])))
    random.shuffle(shuffled)
    result = []
    for order in (sorted(shuffled), shuffled):
        taken = [[column[i] for i in order] for column in columns]
        others = [[column[i] for i in order] for column in sensitive]
        anonymizer, data = anonymizer_of(kinds, taken, others, {"k": k}, "gain")
        classes = classes_of_coded(anonymizer.encode(data), cut)
        result.append({frozenset(order[i] for i in rows) for rows in classes})
    assert result[0] == result[1]


@examples(100)
@given(
    tables(max_rows=60),
    st.integers(2, 3),
    st.none() | requirements(),
    multiway_cuts(),
    st.integers(2, 9),
)
def test_fragments_of_a_whole_sample_are_nodes_of_the_tree(table, k, required, cut, fragments):
    *_, anonymizer, data = case_of(table, k, required)
    coded = anonymizer.encode(data)
    plan = planning.partitioning.multidimensional(coded, anonymizer.attributes, fragments, cut)
    leaf = Router(plan, anonymizer.orders).route(data)
    whole = [frozenset(node) for node, _, _ in nodes_of(coded, cut)]
    together = set()
    for number in range(plan.leaves):
        rows = np.flatnonzero(leaf == number)
        assert frozenset(rows.tolist()) in whole
        part = anonymizer.encode(data.take(rows))
        together |= {frozenset(rows[list(each)].tolist()) for each in classes_of_coded(part, cut)}
    assert together == classes_of_coded(coded, cut)
    assert plan.leaves <= fragments + cut.cut_points - 1
    if plan.leaves < fragments:
        assert plan.leaves == len(together)


# Points and scores, worked out by hand


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
    assert root(coded, MultiwayPolicy(cut_points, room=4)) == (0, sizes)


def test_a_point_moves_to_the_gap_nearby():
    values = [*range(20), *range(100, 144)]
    assert root(coded_of(["interval"], [values], []), MultiwayPolicy(1)) == (0, [20, 44])


def test_no_point_moves_past_the_middle_between_two_quantiles():
    """The gap after 8 of 64 rows is nearer to the end than to the median."""
    values = [*range(8), *range(100, 156)]
    a, sizes = root(coded_of(["interval"], [values], []), MultiwayPolicy(1))
    assert a == 0
    assert 16 <= sizes[0] <= 48


def test_where_ties_leave_no_cut_near_a_quantile_the_most_balanced_is_taken():
    values = [0] * 58 + [1, 1, 2, 2, 3, 3]
    assert root(coded_of(["interval"], [values], []), MultiwayPolicy(1)) == (0, [58, 6])


def test_values_that_vary_more_are_cut_first():
    """Two attributes whose cuts gain alike: one has its values at the ends of the range."""
    ends = [0, 8] * 32
    inner = [value // 16 * 2 + 1 for value in range(64)]  # 1, 3, 5, 7: and 0, 8 elsewhere
    inner[:2] = [0, 8]
    for columns in ([ends, inner], [inner, ends]):
        a, _ = root(coded_of(["interval"] * 2, columns, []), MultiwayPolicy(1))
        assert columns[a] is ends


def test_what_tells_of_the_sensitive_values_is_cut_first():
    """Two attributes alike, but one of them tells the sensitive value."""
    generator = np.random.default_rng(3)
    telling, other = (generator.permutation(64).tolist() for _ in range(2))
    sensitive = ["x" if value < 32 else "y" for value in telling]
    for columns in ([telling, other], [other, telling]):
        a, _ = root(coded_of(["interval"] * 2, columns, [sensitive]), MultiwayPolicy(1))
        assert columns[a] is telling


def test_sensitive_values_that_cannot_be_told_apart_by_chance_decide_nothing():
    """Of columns of chance, the information gain is zero but for a few in a hundred."""
    result = []
    for seed in range(60):
        generator = np.random.default_rng(seed)
        column = generator.integers(0, 4, 200).tolist()
        node, parts = list(range(200)), [list(range(100)), list(range(100, 200))]
        result.append(brute_force.DiMondrian.gain(node, parts, column))
    assert sum(gain > 0 for gain in result) <= 3


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
    cut = MultiwayPolicy(cut_points, room=2)
    leaves = {frozenset(node) for node, a, _ in nodes_of(coded, cut) if a < 0}
    assert len(leaves) > 10
    assert classes_of_coded(coded, cut) == leaves


def test_the_job_decides():
    from mondrian_ops.cut.cut_policy import choose_policy, policy_of
    from mondrian_ops.job.job import Job

    anonymizer, data = anonymizer_of(["interval"], [list(range(64))], [], {"k": 2})
    job = Job.from_dict(
        {**anonymizer.job.to_dict(), "algorithm": "di_mondrian", "di_mondrian": {"cut_points": 7}},
        paths_required=False,
    )
    resolved = choose_policy(job, anonymizer.profile, {}, data)
    assert policy_of(resolved) == MultiwayPolicy(7)
    released, summary, *_ = Anonymizer(job, anonymizer.profile, {}, policy_of(resolved)).release(
        data
    )
    assert released.num_rows == 64
    assert summary["equivalence_classes"] == 32
    assert isinstance(
        policy_of(choose_policy(anonymizer.job, anonymizer.profile, {}, data)), CutPolicy
    )
