"""What became of a release: its state, why, when, and what a person decided.

A report has one outcome, under the key ``outcome``. :func:`conclude` writes it where it is decided;
pages, texts, notifications and the catalogue read it, and hold no state of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from mondrian_ops.late_methods import dataclass

PUBLISHED, HELD, WAITING = "published", "held", "waiting"
REFUSED, REJECTED, EXPIRED, FAILED = "refused", "rejected", "expired", "failed"
"""``held``: a night of a series of which all rows wait. ``refused``: a requirement, a limit or a
policy is not met. ``rejected``: a person said no; ``expired``: nobody answered in time.
``failed``: the run ended otherwise."""

MAX_WHY = 1000
"""The length at which a person's reason is cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a release, since ``at``; ``reason``: why it is not published.

    ``decision``: a person's answer, approved or rejected; empty where nobody has answered. An
    approved release may be rejected, because the approval does not count, refused or failed.
    """

    state: str
    reason: str = ""
    at: str = ""
    decision: str = ""
    decided_by: str = ""
    decided_at: str = ""
    decision_reason: str = ""


def now() -> str:
    """This moment, as reports have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def decided(decision: str, by: str, at: str = "", why: str = "") -> dict[str, str]:
    """The part of an outcome that is a person's decision, by default of this moment."""
    return {
        "decision": decision,
        "decided_by": by,
        "decided_at": at or now(),
        "decision_reason": why[:MAX_WHY],
    }


def conclude(
    report: dict[str, Any], state: str, reason: str = "", decision: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Write into the report what became of its release; returns the report.

    Only the report of a published release counts rows as published; others have the number that
    was checked. A decision that the report has stays unless there is another.
    """
    before = report.get("outcome") or {}
    kept = {key: before[key] for key in _OF_DECISION if key in before}
    report["outcome"] = {
        "state": state,
        "reason": reason,
        "at": now(),
        **(kept if decision is None else decision),
    }
    if "rows" in report:
        report["rows"] = _counted(report["rows"], published=state == PUBLISHED)
    return report


_OF_DECISION = ("decision", "decided_by", "decided_at", "decision_reason")


def _counted(rows: Mapping[str, int], published: bool) -> dict[str, int]:
    number = rows.get("checked", rows["published"])
    others = {key: count for key, count in rows.items() if key != "checked"}
    if published:
        return {**others, "published": number}
    return {**others, "published": 0, "checked": number}


def undecided(report: Mapping[str, Any]) -> dict[str, Any]:
    """The report without its outcome: what stays the same whatever becomes of the release."""
    others = {key: value for key, value in report.items() if key != "outcome"}
    return {**others, "rows": _counted(report["rows"], published=True)}


def state_of(report: Mapping[str, Any]) -> str:
    """The state in the dict of a report; empty where it has none."""
    return str((report.get("outcome") or {}).get("state", ""))
