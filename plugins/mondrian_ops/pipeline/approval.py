"""May a release that passed its check be published? Its limits, and its approval."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from mondrian_ops import publish
from mondrian_ops import report as reports
from mondrian_ops.errors import ApprovalError, PrivacyError
from mondrian_ops.job.job import Job
from mondrian_ops.job.options import rows_of
from mondrian_ops.pipeline.report_builder import Report, is_held
from mondrian_ops.report.number_format import number, percent
from mondrian_ops.report.outcome import HELD, REFUSED, REJECTED, WAITING

Approve = Callable[[Report], str | None]
"""Called with the report of a release that needs approval; returns the approver, or None."""

_REMEDIES = {
    "max_gcp": "lower k or l, generalize fewer columns, or raise max_gcp",
    "max_risk": "raise k, or raise max_risk",
    "max_query_error": "lower k or l, generalize fewer columns, or raise max_query_error",
    "max_suppressed": "lower samarati.max_suppressed or k, or raise max_suppressed",
}


class Approval(NamedTuple):
    """``by`` approved the release with this seal; ``at`` is ISO, UTC; ``why``: their reason."""

    seal: str
    by: str
    at: str = ""
    why: str = ""

    @property
    def decision(self) -> dict[str, str]:
        """The approval as a report has it, by default of this moment."""
        return reports.decided("approved", self.by, self.at, self.why)


def asks(job: Job, report: Mapping[str, Any]) -> bool:
    """Whether the release may be published only when somebody has approved it."""
    if is_held(report):
        return False
    return job.require_approval or bool(exceeded(job, report))


def approver(job: Job, report: Report, approve: Approve | None) -> str | None:
    """Who approves a release; None where it needs no approval, or gets none."""
    return approve(report) if approve is not None and asks(job, report) else None


def judge(job: Job, report: Report, policies: Sequence[str] = ()) -> None:
    """Note in the report which limits it exceeds, and whether it waits for an approval.

    ``policies``: the names of those that hold.

    Raises PrivacyError where it exceeds a limit and the job does not ask then.
    """
    excesses = exceeded(job, report)
    if excesses and job.on_exceeded == "refuse":
        what = "; ".join(f"{text}; {_REMEDIES[option]}" for option, text in excesses.items())
        raise PrivacyError(
            f"the release is refused and not published: {what}; or set on_exceeded: ask", report
        )
    report["notes"] += excesses.values()
    if asks(job, report):
        by = f"required by {', '.join(policies)}" if policies else "require_approval is set"
        reports.conclude(report, WAITING, "; ".join(excesses.values()) or by)


def hold(report: Report, reason: str) -> None:
    """Note in the report that the night publishes nothing."""
    every = (
        "every class would lose more than series.hold_above allows, or its persons would have "
        "fewer values than l needs"
    )
    reports.conclude(report, HELD, reason or every)


@contextmanager
def refusal_reported(report: Report) -> Iterator[None]:
    """A PrivacyError in this block carries the report, which says that the release is refused."""
    try:
        yield
    except PrivacyError as error:
        error.report = reports.conclude(report, REFUSED, str(error))
        raise


def refuse_without_users(job: Job, work: str | None = None) -> None:
    """Raise ApprovalError if a policy says who approves: outside Airflow nobody knows its users.

    ``work``: the working files of the run, for the policies of rows that waited.
    """
    required = publish.required(job, work)
    if job.may_ask and (required.four_eyes or required.approvers is not None):
        raise ApprovalError(
            f"approval: the policies {', '.join(map(repr, required.policies))} say who may approve "
            "the release, and a command line cannot tell users apart; run the job in Airflow"
        )


def rejected(report: Report, message: str) -> ApprovalError:
    """The error for a release that needs an approval and got none; it carries the report."""
    error = ApprovalError(message)
    error.report = reports.conclude(report, REJECTED, "nobody approved it")
    return error


def exceeded(job: Job, report: Mapping[str, Any]) -> dict[str, str]:
    """The job's limits that a report exceeds: the option, and a sentence with the figure."""
    rows, excesses = report["rows"], {}
    shares = {
        "max_gcp": _gcp(report["metrics"]),
        "max_risk": ("the highest risk of re-identification", report["risk"]["prosecutor_max"]),
    }
    errors = report.get("use", {}).get("query_error")
    if errors is not None:
        shares["max_query_error"] = ("the median error of random counts", errors["median"])
    elif job.max_query_error is not None:
        excesses["max_query_error"] = (
            "max_query_error: no error was measured, for the release has too few rows to count"
        )
    for option, (what, reached) in shares.items():
        limit = getattr(job, option)
        if limit is not None and reached > limit:
            excesses[option] = (
                f"{option}: {what} is {_figure(reached)}, above the limit of {_figure(limit)}"
            )
    if job.max_suppressed is not None:
        allowed = rows_of(job.max_suppressed, rows["input"])
        if rows["suppressed"] > allowed:
            excesses["max_suppressed"] = (
                f"max_suppressed: {number(rows['suppressed'])} of {number(rows['input'])} rows are "
                f"suppressed, and at most {number(allowed)} may be"
            )
    return excesses


def _gcp(metrics: Mapping[str, Any]) -> tuple[str, float]:
    """The greater GCP: neither extreme values nor the lack of them make a release pass."""
    robust = metrics.get("GCP_robust")
    if robust is not None and robust > metrics["GCP"]:
        what = "GCP_robust, the share of information lost by spans without extreme values,"
        return what, robust
    return "GCP, the share of information lost,", metrics["GCP"]


def _figure(share: float) -> str:
    return f"{share:.4g} ({percent(share)})"
