"""What a time budget is spent on, and in which order."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mondrian_ops.cut.algorithms.mondrian import CutPolicy
from mondrian_ops.cut.cut_policy import choose_policy, policy_of
from mondrian_ops.cut.native.mondrian import BLOCK
from mondrian_ops.data.profile import Profiler
from mondrian_ops.job.job import Job
from tiers import one_in

BUDGETS = [0.001, 0.1, 0.3, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 1000]
COLUMNS = ["a", "b", "c", "d"]


def resolved_of(rows: int, budget: float, **keys: Any) -> dict[str, Any]:
    """What becomes of `cut: lookahead`, or of another, for so many random rows."""
    generator = np.random.default_rng(3)
    table = pa.table({name: generator.integers(0, 30, rows) for name in COLUMNS})
    described = {"k": 5, "cut": "lookahead", "quasi_identifiers": COLUMNS, **keys}
    job = Job.from_dict({**described, "cut_budget_s": budget}, paths_required=False)
    profiler = Profiler(job, table.schema, {})
    profiler.add(table)
    return choose_policy(job, profiler.finish(), {}, table.slice(0, 2000))


def resolved_cut(rows: int, budget: float, **keys: Any) -> CutPolicy:
    result = policy_of(resolved_of(rows, budget, **keys))
    assert isinstance(result, CutPolicy)
    return result


@pytest.mark.parametrize("rows", [3_000, 30_000, 60_000])
def test_a_larger_budget_looks_no_less_far(rows):
    cuts = [resolved_cut(rows, budget) for budget in BUDGETS]
    for less, more in pairwise(cuts):
        assert less.rollout_rows <= more.rollout_rows
        assert less.group_rows <= more.group_rows
        assert less.joined <= more.joined
    assert cuts[0].joined == 0
    assert (cuts[-1].rollout_rows, cuts[-1].joined) == (rows, 4)


@pytest.mark.parametrize("rows", [3_000, 30_000, 60_000])
@pytest.mark.parametrize("budget", one_in(2, BUDGETS))
def test_the_estimate_keeps_within_the_budget(rows, budget):
    """Groups come before classes that are cut anew, the largest nodes before many of them."""
    resolved = resolved_of(rows, budget, cut="auto")
    cut = policy_of(resolved)
    if resolved["used"] == "gain":
        assert (cut.rollout_rows, cut.group_rows, cut.joined) == (0, 0, 0)
        return
    seconds = float(re.search(r"estimated at ([\d.]+) s", resolved["reason"]).group(1))
    assert seconds <= budget + 0.05  # printed with one digit
    assert cut.group_rows <= min(cut.rollout_rows, BLOCK, rows // 4)
    assert ("again as one" in resolved["reason"]) == (cut.joined > 0)
    if cut.joined:
        assert cut.group_rows > 0
    if cut.joined > 2:
        assert cut.rollout_rows == rows


def test_the_default_budget_cuts_classes_of_few_rows_anew_and_of_many_none():
    assert resolved_cut(3_000, 5.0).joined == 4
    assert resolved_cut(1_000_000, 5.0).joined < 4


def test_a_budget_too_small_for_nodes_of_8_k_rows_looks_ahead_in_smaller_ones():
    reaches = [resolved_cut(300_000, budget).rollout_rows for budget in BUDGETS[:5]]
    assert reaches[0] == 4 * 5
    assert reaches == sorted(reaches)
    assert set(reaches) > {4 * 5, 8 * 5}


@pytest.mark.parametrize(("k", "few"), one_in(2, [(5, []), (10, []), (20, [2])]))
def test_where_k_is_large_few_classes_are_cut_anew_instead_of_trying_more_candidates(k, few):
    result = [resolved_cut(300_000, budget, k=k) for budget in np.arange(0.05, 1.0, 0.05)]
    assert sorted({cut.joined for cut in result if cut.rollout_rows == 6 * k and cut.joined}) == few
    assert bool({1, 2} & {cut.candidates for cut in result if not cut.joined}) != bool(few)


def test_groups_of_fewer_candidates_come_before_those_of_all():
    result = [resolved_cut(300_000, budget / 20) for budget in range(4, 40)]
    small = [cut.candidates for cut in result if cut.group_rows == 8 * 5]
    assert small == sorted(small)
    assert set(small) == {1, 2, 3}


def test_a_cut_travels_as_json():
    resolved = json.loads(json.dumps(resolved_of(3_000, 5.0)))
    assert policy_of(resolved) == CutPolicy(
        resolved["greedy"],
        resolved["rollout_rows"],
        resolved["group_rows"],
        resolved["candidates"],
        resolved["joined"],
    )
