"""An archive of made-up releases for the tests of the pages."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from mondrian_ops import report as reports
from mondrian_ops.storage import Archive
from test_report import make

__all__ = ["entry", "entry_id", "keep", "report_of"]

FIRST = datetime(2025, 1, 1, 2, 30, tzinfo=UTC)


def entry_id(number: int) -> str:
    """The id of the release with a number."""
    return f"{number:032x}"


def report_of(**changed: Any) -> dict[str, Any]:
    """A report as wrap-up leaves it."""
    names = changed.pop("names", ["age", "zip"])
    return make(names, class_sizes=[(5, 12), (6, 5), (10, 2)], **changed)


def entry(number: int, report: dict[str, Any] | None = None, **changed: Any) -> dict[str, Any]:
    """The entry of a release of the night with a number."""
    day = FIRST + timedelta(days=number)
    figures = reports.overview(report) if report else {}
    return {
        "id": entry_id(number),
        "time": day.isoformat(timespec="microseconds"),
        "dataset": f"out/people/{day:%Y-%m-%d}",
        "input": f"landing/people/{day:%Y-%m-%d}.csv",
        "dag_id": "mondrian_nightly",
        "run_id": f"scheduled__{day.isoformat()}",
        "task_id": "wrap_up",
        "map_index": -1,
        "state": "published",
        "reason": None,
        "k": 5,
        "l": 2,
        "t": None,
        "algorithm": "mondrian",
        "engine": "local",
        **figures,
        **changed,
    }


def keep(archive: Archive, number: int, **changed: Any) -> str:
    """Keep a published release with its report; returns its id."""
    report = changed.pop("report", None) or report_of()
    files = {"_report.json": json.dumps(report).encode()}
    archive.keep(entry(number, report, **changed), files)
    return entry_id(number)
