"""The report of a run, from what its phases found out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mondrian_ops import report as reports
from mondrian_ops import storage
from mondrian_ops.core.job import Job
from mondrian_ops.engines.fragment import Summary

if TYPE_CHECKING:
    from mondrian_ops.core import verification

__all__ = ["Report", "assembled", "partitioning_note"]

Report = dict[str, Any]


def assembled(
    job: Job,
    state: Mapping[str, Any],
    summaries: Sequence[Summary],
    count: verification.ReleaseCount,
    verdict: verification.Verdict,
    wrap_up_started: float,
) -> Report:
    timings = dict(state["timings_s"])
    finished = [summary["finished"] for summary in summaries if "finished" in summary]
    if finished:
        began = min(s["finished"] - s["seconds"] for s in summaries)
        timings["anonymize"] = max(finished) - began
    timings["wrap_up"] = time.perf_counter() - wrap_up_started
    notes = [note for note in (state["constant"], state["partitioning"]["note"]) if note]
    told = job.to_dict()
    for key in ("input", "output", "ledger"):
        if told.get(key):
            told[key] = storage.shown(told[key])
    return reports.build(
        job=told,
        rows={
            "input": state["rows"],
            "published": count.rows,
            "suppressed": sum(summary["suppressed"] for summary in summaries),
        },
        class_sizes=count.histogram,
        class_persons=count.persons_histogram,
        achieved=verdict.achieved,
        verification={
            "passed": verdict.passed,
            "checked": list(verdict.checked),
            "failures": list(verdict.failures),
            "files": len(summaries),
        },
        summaries=summaries,
        columns=state["columns"],
        generalizations=state["generalizations"],
        partitioning=state["partitioning"],
        cut={} if job.recodes_columns else state["cut"],
        recoding=state["recoding"],
        retrieval=state["retrieval"],
        timings_s=timings,
        notes=notes,
        made_by=state["made_by"],
    )


def partitioning_note(
    job: Job, *, fragments: int, sample_rows: int, merged: int, reason: str, note: str
) -> dict[str, Any]:
    return {
        "strategy": job.partitioning.strategy,
        "asked": job.partitioning.fragments,
        "reason": reason,
        "fragments": fragments,
        "sample_rows": sample_rows,
        "merged": merged,
        "note": note,
    }
