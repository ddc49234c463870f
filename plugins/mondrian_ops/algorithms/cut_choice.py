"""Which cut policy a job gets: what it asks for, what suits the data, what the budget carries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from mondrian_ops.algorithms.anonymizer import Anonymizer
from mondrian_ops.algorithms.di_mondrian import MultiwayCut
from mondrian_ops.algorithms.mondrian import Cut, better_gain
from mondrian_ops.core.criteria import KAnonymity, Privacy
from mondrian_ops.core.hierarchy import Hierarchy
from mondrian_ops.core.job import Job
from mondrian_ops.core.kernels import BLOCK
from mondrian_ops.core.survey import Survey

__all__ = ["choose_cut", "cut_of"]


def choose_cut(
    job: Job, survey: Survey, hierarchies: Mapping[str, Hierarchy], pilot: pa.Table
) -> dict[str, Any]:
    """The cut policy and why; it depends on the job and the dataset, never on its fragments.

    ``auto`` is ``lookahead`` as far as ``cut_budget_s`` seconds of one core carry it; what they
    carry beyond the least is spent on groups first, then on looking ahead in larger nodes. Whether
    wide attributes come first is tried out on the ``pilot`` rows.
    """
    if job.recodes_columns:  # cuts divide the rows among tasks, and nothing else
        why = f"algorithm: {job.algorithm}"
        return {"asked": job.cut, "used": "none", "reason": why, **asdict(Cut("balanced"))}
    if job.algorithm == "di_mondrian":
        points = job.di_mondrian.cut_points
        reason = f"at up to {points} point(s) of an attribute at once"
        said = {"asked": "di_mondrian", "used": "di_mondrian", "reason": reason}
        return {**said, "cut_points": points}
    if job.relaxed or job.cut == "median":
        used = "relaxed" if job.relaxed else "median"
        return {"asked": job.cut, "used": used, "reason": "asked for", **asdict(Cut(used))}
    anonymizer = Anonymizer(job, survey, hierarchies, Cut("gain"))
    k = max(2, round(job.k * pilot.num_rows / survey.rows))  # as deep a tree as rows allow
    greedy = better_gain(anonymizer.encode(pilot, Privacy(KAnonymity(k), ())))
    why = f"{greedy} lost less on {pilot.num_rows:,} rows"
    level = survey.rows * len(job.quasi_identifiers) ** 2 * _LEVEL_S
    least = 8 * job.k  # rows of the nodes that a first 1.5 levels' worth of time looks ahead in
    levels = job.cut_budget_s / level - 1.5
    if job.cut == "gain" or (job.cut == "auto" and levels < 0):
        if job.cut == "auto":
            why += f"; looking ahead would take {1.5 * level:.0f} s of one core, over cut_budget_s"
        return {"asked": job.cut, "used": "gain", "reason": why, **asdict(Cut(greedy))}
    groups = levels >= _GROUP_LEVELS
    levels -= _GROUP_LEVELS if groups else 0
    reach = min(least << min(max(0, int(levels)), 40), max(least, survey.rows))
    seconds = level * (1.5 + math.log2(reach / least) + (_GROUP_LEVELS if groups else 0))
    cut = Cut(greedy, reach, _group_rows(job, survey, reach) if groups else 0)
    why += f"; looks ahead in nodes of up to {reach:,} rows"
    if groups:
        why += f", in those of up to {cut.group_rows:,} at groups too"
    why += f", estimated at {seconds:.1f} s of one core (cut_budget_s: {job.cut_budget_s:g})"
    return {"asked": job.cut, "used": "lookahead", "reason": why, **asdict(cut)}


def _group_rows(job: Job, survey: Survey, reach: int) -> int:
    """Rows of the largest nodes that are cut by groups.

    Such a node stays in one fragment: it is an eighth of the rows at most, and no more than
    ``max_rows``.
    """
    share = survey.rows // _SHARES
    return min(_GROUPS * job.k, share, job.partitioning.max_rows, reach, BLOCK)


# Seconds of one core per row, squared number of attributes, and doubling of the nodes' rows.
_LEVEL_S = 2.5e-8
_GROUPS = 64  # rows of the largest nodes that groups are tried in, over k
_SHARES = 8
_GROUP_LEVELS = 7  # what groups cost, in such doublings: there, each costs 2.5 times as much


def cut_of(resolved: Mapping[str, Any]) -> Cut | MultiwayCut:
    """The cut that `choose_cut` described."""
    if resolved["used"] == "di_mondrian":
        return MultiwayCut(resolved["cut_points"])
    return Cut(resolved["greedy"], resolved["rollout_rows"], resolved["group_rows"])
