"""The figures of a report that a list of releases shows: one flat dict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mondrian_ops.report.figures import weakest

__all__ = ["overview"]


def overview(report: Mapping[str, Any]) -> dict[str, float | None]:
    """What was achieved, rows, classes, losses, risk and seconds of a release."""
    achieved, metrics, risk = report["achieved"], report["metrics"], report["risk"]
    return {
        "achieved_k": weakest(achieved.get("k"), min),
        "achieved_l": weakest(achieved.get("l"), min),
        "achieved_t": weakest(achieved.get("t"), max),
        **{f"rows_{name}": rows for name, rows in report["rows"].items()},
        "equivalence_classes": report["equivalence_classes"],
        **{name: metrics[name] for name in ("NCP", "GCP", "LM", "DP")},
        "risk": risk["prosecutor_max"],
        "risk_avg": risk["prosecutor_avg"],
        "duration_s": round(sum(report["timings_s"].values()), 3),
    }
