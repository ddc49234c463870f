"""Which cut policy a job gets: what it asks for, what suits the data, what the budget carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.algorithms.anonymizer import Anonymizer
from mondrian_ops.algorithms.di_mondrian import MultiwayCut
from mondrian_ops.algorithms.mondrian import Cut, better_gain, loss
from mondrian_ops.core.criteria import KAnonymity, Privacy
from mondrian_ops.core.hierarchy import Hierarchy
from mondrian_ops.core.job import Job
from mondrian_ops.core.survey import Survey
from mondrian_ops.native.mondrian import BLOCK

__all__ = ["choose_cut", "cut_of", "pilot_k"]


def choose_cut(
    job: Job, survey: Survey, hierarchies: Mapping[str, Hierarchy], pilot: pa.Table
) -> dict[str, Any]:
    """The cut policy and why; it depends on the job and the dataset, never on its fragments.

    ``auto`` is ``lookahead`` as far as ``cut_budget_s`` seconds of one core carry it; what they
    carry beyond the least is spent on groups first, then on looking ahead in larger nodes, then on
    looking ahead twice. Whether wide attributes come first is tried out on the ``pilot`` rows.
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
    coded = anonymizer.encode(pilot, Privacy(KAnonymity(pilot_k(job, survey, pilot)), ()))
    greedy = better_gain(coded)
    why = f"{greedy} lost less on {pilot.num_rows:,} rows"
    level = survey.rows * _level_seconds(coded.rows.present)
    levels = job.cut_budget_s / level - _LEAST_LEVELS
    if job.cut == "gain" or (job.cut == "auto" and levels < 0):
        if job.cut == "auto":
            seconds = _LEAST_LEVELS * level
            why += f"; looking ahead would take {seconds:.0f} s of one core, over cut_budget_s"
        return {"asked": job.cut, "used": "gain", "reason": why, **asdict(Cut(greedy))}
    lost = loss(coded, Cut(greedy)) / coded.rows.codes.size
    cut, spent = _lookahead(job, survey, greedy, lost, levels)
    why += f"; looks ahead in nodes of up to {cut.rollout_rows:,} rows"
    if cut.group_rows:
        why += f", in those of up to {cut.group_rows:,} at groups too"
    if cut.nested_rows:
        why += f", in those of up to {cut.nested_rows:,} twice"
    seconds = level * (_LEAST_LEVELS + spent)
    why += f", estimated at {seconds:.1f} s of one core (cut_budget_s: {job.cut_budget_s:g})"
    return {"asked": job.cut, "used": "lookahead", "reason": why, **asdict(cut)}


def _lookahead(
    job: Job, survey: Survey, greedy: str, lost: float, levels: float
) -> tuple[Cut, float]:
    """What ``levels`` carry, and how many are spent: groups, larger nodes, looking twice.

    ``lost`` is the share of the information that goes by cutting greedily.
    """
    of_groups = _GROUP_LEVELS if levels >= _GROUP_LEVELS else 0.0
    reach, of_reach = _reach(_LEAST * job.k, survey.rows, levels - of_groups)
    group_rows = _group_rows(job, survey, reach) if of_groups else 0
    nested, of_nested = 0, 0.0
    if reach >= survey.rows:  # larger nodes come first
        left = levels - of_groups - of_reach
        most = min(reach, BLOCK, _NESTED_MOST * job.k)
        nested, of_nested = _nested(job.k, most, lost, left)
    return Cut(greedy, reach, group_rows, nested), of_groups + of_reach + of_nested


def pilot_k(job: Job, survey: Survey, pilot: pa.Table) -> int:
    """The k by which the ``pilot`` rows are cut as deep as all rows are by the job's."""
    share = int(pilot.num_rows) / survey.rows
    return max(2, round(job.k * share))


def _level_seconds(distinct: NDArray[np.float64]) -> float:
    """Seconds of one core per row for a level's worth of looking ahead, as measured.

    For each attribute's cuts the rows are cut by every attribute, which takes longer the more
    distinct values (attributes,) it has, until they are far more than a small node has rows.
    """
    return _LEVEL_S * len(distinct) * float(np.sum(1 + 6 * distinct / (distinct + 100)))


def _reach(least: int, rows: int, levels: float) -> tuple[int, float]:
    """Rows of the largest nodes that ``levels`` carry looking ahead in, and what they spend on it.

    Each doubling takes longer than the one before: larger nodes do not stay in the caches.
    """
    reach, spent, doubling = least, 0.0, _DOUBLING_LEVELS
    while reach < rows and spent + doubling <= levels:
        reach, spent, doubling = 2 * reach, spent + doubling, doubling + _MORE_LEVELS
    return min(reach, max(least, rows)), spent


def _nested(k: int, most: int, lost: float, levels: float) -> tuple[int, float]:
    """Rows of the largest nodes, no more than ``most``, that ``levels`` carry looking ahead twice
    in, and what they spend on it.

    It takes longer the more classes there are, and the more cuts a node has: where little is lost,
    few values differ within it.
    """
    doubling = _NESTED_LEVELS * lost * k**-0.75
    more = _MORE_NESTED * doubling
    rows, spent = 0, 0.0
    while rows < most and spent + doubling <= levels:
        rows = min(most, 2 * rows if rows else _LEAST * k)
        spent, doubling = spent + doubling, doubling + more
    return rows, spent


def _group_rows(job: Job, survey: Survey, reach: int) -> int:
    """Rows of the largest nodes that are cut by groups.

    Such a node stays in one fragment: it is a quarter of the rows at most, and no more than
    ``max_rows``.
    """
    share = survey.rows // _SHARES
    return min(_GROUPS * job.k, share, job.partitioning.max_rows, reach, BLOCK)


# Looking ahead in the least nodes takes some levels' worth of time; so do groups, doublings, and
# looking twice.
_LEVEL_S = 1.7e-8
_LEAST = 8  # rows of the nodes that are looked ahead in first, once and twice, over k
_LEAST_LEVELS = 1.5
_GROUP_LEVELS = 12.0
_DOUBLING_LEVELS, _MORE_LEVELS = 1.6, 0.4
_NESTED_LEVELS, _MORE_NESTED = 900.0, 0.2
# Rows, over k, of the largest nodes that are looked at twice (larger ones gain little) ...
_NESTED_MOST = 64
_GROUPS = 128  # ... and of those that groups are tried in
_SHARES = 4


def cut_of(resolved: Mapping[str, Any]) -> Cut | MultiwayCut:
    """The cut that `choose_cut` described."""
    if resolved["used"] == "di_mondrian":
        return MultiwayCut(resolved["cut_points"])
    return Cut(**{each.name: resolved[each.name] for each in fields(Cut)})
