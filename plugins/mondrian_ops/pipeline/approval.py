"""Whether a release that passed its check may be published: its limits, and who approved it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from mondrian_ops.core.errors import PrivacyError
from mondrian_ops.core.job import Job, rows_of
from mondrian_ops.pipeline.report_builder import Report
from mondrian_ops.report.figures import number, percent

__all__ = ["Approval", "Approve", "approved", "asks", "exceeded", "judge", "now"]

Approve = Callable[[Report], str | None]
"""Asked with the report of a release that needs approval; returns who approves, None if nobody."""

_REMEDIES = {
    "max_gcp": "lower k or l, generalize fewer columns, or raise max_gcp",
    "max_risk": "raise k, or raise max_risk",
    "max_suppressed": "lower samarati.max_suppressed or k, or raise max_suppressed",
}


class Approval(NamedTuple):
    """Somebody's word that the release of this seal may be published; ``at`` is ISO, UTC."""

    seal: str
    by: str
    at: str


def approved(by: str, at: str = "") -> dict[str, str]:
    """How a report tells who approved the release; now, unless it was at another time."""
    return {"decision": "approved", "by": by, "at": at or now()}


def now() -> str:
    """This moment, as reports tell it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def asks(job: Job, report: Mapping[str, Any]) -> bool:
    """Whether the release may be published only when somebody has approved it."""
    return job.require_approval or bool(exceeded(job, report))


def judge(job: Job, report: Report) -> None:
    """Note in the report what it exceeds, and whether it asks for an approval.

    Raises PrivacyError where it exceeds a limit and the job does not want to ask.
    """
    found = exceeded(job, report)
    if found and job.on_exceeded == "refuse":
        what = "; ".join(f"{said}; {_REMEDIES[option]}" for option, said in found.items())
        raise PrivacyError(
            f"the release is refused and not published: {what}, or set on_exceeded: ask", report
        )
    report["notes"] += found.values()
    if asks(job, report):
        report["approval"] = {"decision": "asked"}


def exceeded(job: Job, report: Mapping[str, Any]) -> dict[str, str]:
    """What exceeds the limits of the job: the option, and a sentence with the figure."""
    rows, found = report["rows"], {}
    shares = {
        "max_gcp": ("GCP, the share of information lost,", report["metrics"]["GCP"]),
        "max_risk": ("the highest risk of re-identification", report["risk"]["prosecutor_max"]),
    }
    for option, (what, reached) in shares.items():
        limit = getattr(job, option)
        if limit is not None and reached > limit:
            found[option] = (
                f"{option}: {what} is {_figure(reached)}, and may be {_figure(limit)} at most"
            )
    if job.max_suppressed is not None:
        allowed = rows_of(job.max_suppressed, rows["input"])
        if rows["suppressed"] > allowed:
            found["max_suppressed"] = (
                f"max_suppressed: {number(rows['suppressed'])} of {number(rows['input'])} rows are "
                f"suppressed, and {number(allowed)} may be at most"
            )
    return found


def _figure(share: float) -> str:
    return f"{share:.4g} ({percent(share)})"
