"""The report of a run, from the results of its phases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from mondrian_ops import report as reports
from mondrian_ops import stores
from mondrian_ops.data.pool import as_shown, shown_by_night
from mondrian_ops.engines.handover import Recounted, RunState, SeriesNight, Summary
from mondrian_ops.job.job import Job
from mondrian_ops.late_methods import dataclass
from mondrian_ops.phases import Costs, added
from mondrian_ops.report import statements
from mondrian_ops.report.outcome import HELD
from mondrian_ops.report.raw_columns import singled_out
from mondrian_ops.verify.loss import nothing_lost

if TYPE_CHECKING:
    from mondrian_ops.cut.boundary_fitting import NightBoundaries
    from mondrian_ops.engines.release_check import Counted
    from mondrian_ops.verify.counts import PartCount

Report = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What the phases of a run measured: a release is judged by it, and its report tells it.

    Attributes:
        state: the results of the partition task.
        summaries: one of each fragment.
        counted: the release as written, with a part for each of the summaries.
        wrap_up_s: the seconds that counting took.
        maker: see :attr:`mondrian_ops.publish.WorkDir.maker`.
        night: of a series, whose ``boundaries`` may be stable; ``waiting``: pairs of a night and
            the number of its rows that wait after this one.
        use: how well the release can be worked with, see :mod:`mondrian_ops.engines.use_samples`.
        phases: what those after the fragments have cost.
    """

    state: RunState
    summaries: Sequence[Summary]
    counted: Counted
    wrap_up_s: float
    maker: Mapping[str, str | None] = field(default_factory=dict)
    night: SeriesNight | None = None
    waiting: Sequence[Sequence[int]] = ()
    boundaries: NightBoundaries | None = None
    use: Mapping[str, Any] = field(default_factory=dict)
    phases: Costs = field(default_factory=dict)

    @property
    def published(self) -> int:
        """The rows of the source in the release; counterfeits are none."""
        return self.counted.count.rows - sum(each.counterfeits for each in self.summaries)

    @property
    def suppressed(self) -> int:
        """The rows of the source that are left out."""
        return sum(each.suppressed for each in self.summaries)

    @property
    def held(self) -> int:
        """The rows that wait for another night."""
        return sum(rows for _, rows in self.waiting)

    def failing(self, failures: Sequence[str]) -> Measured:
        """The same with these ``failures``, beside those that it has."""
        verdict = self.counted.verdict
        failures = (*verdict.failures, *failures)
        verdict = replace(verdict, passed=not failures, failures=failures)
        return replace(self, counted=replace(self.counted, verdict=verdict))

    def recounted(self) -> list[Recounted]:
        """The summaries with what their parts were measured to have."""
        names = list(self.state.generalizations)
        pairs = zip(self.summaries, self.counted.parts, strict=True)
        return [_recounted(summary, part, names) for summary, part in pairs]


def _recounted(summary: Summary, part: PartCount, quasi_identifiers: Sequence[str]) -> Recounted:
    attributes = {name: part.losses.get(name) or nothing_lost() for name in quasi_identifiers}
    figures = {**vars(summary), "equivalence_classes": part.classes, "DP": part.dp}
    lost = sum(each["NCP"] for each in attributes.values())
    return Recounted(**figures, NCP=lost, attributes=attributes)


def assembled(job: Job, measured: Measured) -> Report:
    """The report of a release, from what was measured of its run."""
    state, night, boundaries = measured.state, measured.night, measured.boundaries
    count, verdict = measured.counted.count, measured.counted.verdict
    rows = {
        "input": state.rows,
        "published": measured.published,
        "suppressed": measured.suppressed,
    }
    shown = job.to_dict()
    for key in ("input", "output"):
        if shown.get(key):
            shown[key] = stores.shown(shown[key])
    return reports.build(
        reports.RunFigures(
            job=shown,
            rows=rows if night is None else _of_night(rows, night, measured.waiting, job.k),
            class_sizes=count.histogram,
            class_persons=count.persons_histogram,
            achieved=verdict.achieved,
            criteria=_added(job),
            verification={
                "passed": verdict.passed,
                "checked": list(verdict.checked),
                "failures": list(verdict.failures),
                "files": len(measured.summaries),
            },
            summaries=[each.to_dict() for each in measured.recounted()],
            columns=state.columns,
            source=state.source,
            generalizations=state.generalizations,
            grids=state.grids,
            partitioning=state.partitioning,
            cut={} if job.recodes_globally else state.cut,
            recoding=state.recoding,
            retrieval={"asked": job.retrieval, "used": state.retrieval},
            timings_s={
                **state.timings_s,
                **_anonymize_s(measured.summaries),
                "wrap_up": measured.wrap_up_s,
            },
            phases=added([state.phases, *(s.phases for s in measured.summaries), measured.phases]),
            dependencies=state.dependencies,
            singled_out=state.singled_out,
            use=measured.use,
            notes=[
                note
                for note in (
                    state.constant,
                    *state.column_notes,
                    statements.numberlike(state.source.get("numberlike", ())),
                    singled_out(state.singled_out),
                    state.partitioning["note"],
                    _refit_note(boundaries),
                )
                if note
            ],
            sensitive={name: each.to_report() for name, each in count.figures.sensitive.items()},
            series=None if night is None else _night(night, measured.waiting, boundaries, job.k),
            **measured.maker,
        )
    ).to_dict()


def _added(job: Job) -> list[dict[str, Any]]:
    """What the criteria of installed packages say of themselves."""
    columns = " and of ".join(job.sensitive)
    return [
        {
            "key": key,
            "title": each.title,
            "required": each.level,
            "at_most": each.at_most,
            "means": each.means(columns),
        }
        for key, each in job.criteria.items()
    ]


def _of_night(
    rows: Mapping[str, int], night: SeriesNight, waiting: Sequence[Sequence[int]], k: int
) -> dict[str, int]:
    """The ``rows`` of a night's pool, and those that wait, as shown.

    The rows read are those that are left, or nobody would have to be shown the exact number.
    """
    waited, waits = (
        as_shown(sum(count for _, count in pairs), k) for pairs in (night.waited, waiting)
    )
    came = rows["published"] + rows["suppressed"] + waits - waited
    return {**rows, "input": max(0, came), "waited": waited, "waiting": waits}


def _night(
    night: SeriesNight,
    waiting: Sequence[Sequence[int]],
    boundaries: NightBoundaries | None,
    k: int,
) -> dict[str, Any]:
    """The entry of a report for its night in a series."""
    shared = {} if boundaries is None else {"boundaries": _shared(boundaries)}
    return {
        "name": stores.shown(night.series),
        "night": night.number,
        **shared,
        "waited": shown_by_night(night.waited, k),
        "waiting": shown_by_night(waiting, k),
    }


def is_held(report: Mapping[str, Any]) -> bool:
    """Whether it is of a night of a series that published nothing, so that there is no release."""
    return reports.state_of(report) == HELD


def _refit_note(of_night: NightBoundaries | None) -> str:
    """Why a later night than the first has new boundaries; empty where it has none."""
    why = {"asked": "a person asked for it", "drift": "the drift exceeds series.refit_above"}
    if of_night is None or of_night.fitted not in why:
        return ""
    return (
        "the boundaries of the series were fitted anew in this night, because "
        f"{why[of_night.fitted]}; counts by cell cannot be compared with those of earlier nights"
    )


def _shared(of_night: NightBoundaries) -> dict[str, Any]:
    boundaries = of_night.boundaries
    return {
        "since": boundaries.night,
        "fitted": of_night.fitted,
        "cells": {name: len(each.values) + 1 for name, each in boundaries.columns.items()},
        "drift": dict(of_night.drift),
        "loss": of_night.loss,
        "loss_nightly": of_night.loss_nightly,
    }


def _anonymize_s(summaries: Sequence[Summary]) -> dict[str, float]:
    """Seconds from the beginning of the first fragment to the end of the last one."""
    if not summaries:
        return {}
    began = min(summary.finished - summary.seconds for summary in summaries)
    return {"anonymize": max(summary.finished for summary in summaries) - began}


def partitioning_note(
    job: Job, *, fragments: int, sample_rows: int, merged: int, reason: str, note: str
) -> dict[str, Any]:
    """The entry of a report for the division into fragments."""
    return {
        "strategy": job.partitioning.strategy,
        "asked": job.partitioning.fragments,
        "reason": reason,
        "fragments": fragments,
        "sample_rows": sample_rows,
        "merged": merged,
        "note": note,
    }
