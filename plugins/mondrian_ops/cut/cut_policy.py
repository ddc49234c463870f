"""Selecting the cut policy of a job, by its settings, the data, and the time budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import pyarrow as pa

from mondrian_ops.cut.algorithms.di_mondrian import MultiwayPolicy
from mondrian_ops.cut.algorithms.mondrian import CANDIDATES, CutPolicy, better_gain, loss
from mondrian_ops.cut.anonymizer import Anonymizer
from mondrian_ops.cut.criteria import KAnonymity, Privacy
from mondrian_ops.cut.cut_costs import COSTS
from mondrian_ops.cut.native.mondrian import BLOCK
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.data.profile import Profile
from mondrian_ops.job.job import Job

_LEAST_LEVELS = min(COSTS.smaller.values())
_LARGE_K = 16
_FEW_JOINED = 6  # times k: rows of the nodes whose classes are joined in pairs, where k is large
_GROUPS = 512  # times k: rows of the largest nodes that are cut by groups
_SHARES = 4


def choose_policy(
    job: Job, profile: Profile, hierarchies: Mapping[str, Hierarchy], pilot: pa.Table
) -> dict[str, Any]:
    """The cut policy as a dict, with the reason and the seconds of one core to cut all rows.

    It depends on the job and the dataset, never on fragments. ``auto`` is ``lookahead`` where
    ``cut_budget_s`` seconds of one core afford it, see `_lookahead`. Whether wide attributes come
    first is decided by cutting the ``pilot`` rows.
    """
    if job.recodes_globally:  # cuts only divide the rows among tasks
        why = f"algorithm: {job.algorithm}"
        return _described(job.cut, "none", why, 0.0, **asdict(CutPolicy("balanced")))
    greedy_seconds = profile.rows * len(job.quasi_identifiers) * COSTS.greedy_s
    if job.algorithm == "di_mondrian":
        points = job.di_mondrian.cut_points
        reason = f"at up to {points} point(s) of an attribute at once"
        used = "di_mondrian"
        return _described(used, used, reason, greedy_seconds, cut_points=points)
    if job.relaxed or job.cut == "median":
        used = "relaxed" if job.relaxed else "median"
        return _described(job.cut, used, "asked for", greedy_seconds, **asdict(CutPolicy(used)))
    anonymizer = Anonymizer(job, profile, hierarchies, CutPolicy("gain"))
    coded = anonymizer.encode(pilot, Privacy(KAnonymity(pilot_k(job, profile, pilot)), ()))
    greedy = better_gain(coded)
    why = f"{greedy} lost less on {pilot.num_rows:,} rows"
    level = profile.rows * COSTS.level_seconds(coded.rows.present)
    level *= COSTS.asked if job.criteria else 1
    levels = job.cut_budget_s / level
    if job.cut == "gain" or (job.cut == "auto" and levels < _LEAST_LEVELS):
        if job.cut == "auto":
            seconds = _LEAST_LEVELS * level
            why += f"; looking ahead would take {seconds:.0f} s of one core, over cut_budget_s"
        return _described(job.cut, "gain", why, greedy_seconds, **asdict(CutPolicy(greedy)))
    lost = loss(coded, CutPolicy(greedy)) / coded.rows.codes.size
    many = COSTS.slower(np.diff(coded.rows.first))
    cut, spent = _lookahead(job, profile, greedy, lost, many, max(levels, _LEAST_LEVELS))
    why += f"; it looks ahead in classes of up to {cut.rollout_rows:,} rows"
    if cut.group_rows:
        why += f", tries groups of values in those of up to {cut.group_rows:,}"
    if cut.joined:
        why += f", cuts {cut.joined} neighbouring classes again as one"
    seconds = level * spent
    why += f", estimated at {seconds:.1f} s of one core (cut_budget_s: {job.cut_budget_s:g})"
    return _described(job.cut, "lookahead", why, seconds, **asdict(cut))


def _described(
    requested: str, used: str, reason: str, seconds: float, **cut: object
) -> dict[str, Any]:
    return {"asked": requested, "used": used, "reason": reason, "seconds": seconds, **cut}


def _lookahead(
    job: Job, profile: Profile, greedy: str, lost: float, many: float, levels: float
) -> tuple[CutPolicy, float]:
    """The settings that a budget of ``levels`` affords, and their cost in levels.

    The budget buys, in this order:

    1. looking ahead in small nodes;
    2. groups in these, with 1 to 3 candidates per attribute; where k is large, groups and pairs of
       joined classes, in the smallest nodes only;
    3. pairs of joined classes in all small nodes;
    4. larger nodes;
    5. more joined classes, which cost more the more information the classes lose.

    ``lost`` is the share of information that greedy cutting loses, ``many`` the factor by which
    many distinct values slow down large nodes.
    """
    k, rows, small = job.k, profile.rows, max(COSTS.smaller) * job.k
    some = (1 + many) / 2  # joined classes, and small nodes cut by groups, have fewer values
    settings = [(CutPolicy(greedy, few * k), of_few) for few, of_few in COSTS.smaller.items()]

    def add(spent: float, reach: int, candidates: int = CANDIDATES, joined: int = 0) -> None:
        share = _group_rows(job, profile, reach)
        settings.append((CutPolicy(greedy, reach, share, candidates, joined), spent))

    spent = some * COSTS.groups * k**COSTS.groups_by_k
    of_joined = {
        joined: some * levels * lost * k**COSTS.groups_by_k
        for joined, levels in COSTS.joined.items()
    }
    if k < _LARGE_K or rows <= small:
        for candidates, part in COSTS.candidates.items():
            add(part * spent, small, candidates)
    else:
        add(some * COSTS.few_joined, _FEW_JOINED * k, 1, 2)
    add(spent + of_joined[2], small, joined=2)
    reach = small
    while reach < rows:
        reach = min(2 * reach, rows)
        spent += many * COSTS.doubling * k**COSTS.doubling_by_k
        add(spent + of_joined[2], reach, joined=2)
    for joined in (3, 4):
        add(spent + of_joined[joined], reach, joined=joined)
    return [setting for setting in settings if setting[1] <= levels][-1]


def pilot_k(job: Job, profile: Profile, pilot: pa.Table) -> int:
    """The k with which the ``pilot`` rows are cut as deep as all rows with the job's k."""
    share = int(pilot.num_rows) / profile.rows
    return max(2, round(job.k * share))


def _group_rows(job: Job, profile: Profile, reach: int) -> int:
    """Rows of the largest nodes that are cut by groups.

    Such a node stays in one fragment, so it has at most a quarter of the rows, and ``max_rows``.
    """
    share = profile.rows // _SHARES
    return min(_GROUPS * job.k, share, job.partitioning.max_rows, reach, BLOCK)


def policy_of(resolved: Mapping[str, Any]) -> CutPolicy | MultiwayPolicy:
    """The policy that `choose_policy` described."""
    if resolved["used"] == "di_mondrian":
        return MultiwayPolicy(resolved["cut_points"])
    return CutPolicy(**{field.name: resolved[field.name] for field in fields(CutPolicy)})
