"""Made-up reports, and texts that would do harm on a page that did not escape them."""

from __future__ import annotations

from typing import Any

from mondrian_ops import report as reports

AT = "2025-06-01T10:00:00+00:00"
"""When the releases of :func:`make_in` came to their state."""

STATES = {
    "published": {"decision": ("approved", "grace", "2025-06-01T09:00:00+00:00", "as agreed")},
    "held": {"reason": "k: 3 rows are fewer than k = 5"},
    "waiting": {"reason": "required by people"},
    "refused": {"reason": "max_gcp: GCP is 0.5, above the limit of 0.1"},
    "rejected": {
        "reason": "rejected by grace",
        "decision": ("rejected", "grace", "2025-06-01T09:00:00+00:00", "the postcode is too fine"),
    },
    "expired": {"reason": "nobody approved it in time"},
    "failed": {"reason": "its run ended before it was published"},
}
"""What may become of a release: by state the reason, and a decision."""


def make_in(state: str, report: dict[str, Any] | None = None) -> dict[str, Any]:
    """A report whose release is in one of :data:`STATES`; ada asked for it."""
    told = STATES[state]
    report = make(requested_by="ada", run_type="manual") if report is None else report
    decision = reports.decided(*told["decision"]) if "decision" in told else None
    report = reports.conclude(report, state, told.get("reason", ""), decision)
    report["outcome"]["at"] = AT
    return report


HOSTILE = (
    "<script>alert(1)</script>",
    "\"onload=alert(1) x='",
    "</title></style></svg>&amp;",
    "\x1b[31mred\n\u202eright to left",
    "$style {asked} %s \\",
)


def summary(fragment: int, rows: int, names: list[str], ncp: float = 0.2) -> dict[str, Any]:
    attribute = {"NCP": rows * ncp, "LM": rows * ncp / 2, "NCP_robust": rows * ncp,
                 "information": rows * ncp / 4, "rows_exact": rows // 2, "rows_star": 1,
                 "rows_by_loss": [[0.1, fragment], [1.0, 3]]}  # fmt: skip
    return {
        "id": fragment,
        "where": f"{names[0]} <= {fragment}",
        "rows": rows,
        "equivalence_classes": rows // 5,
        "DP": rows * 5,
        "NCP": rows * ncp * len(names),
        "attributes": {name: dict(attribute) for name in names},
        "seconds": 0.25,
    }


def make(
    names: list[str] | None = None,
    *,
    fragments: int = 2,
    suppressed: int = 0,
    passed: bool = True,
    state: str | None = None,
    job: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    names = names or ["age", "zip"]
    summaries = [summary(i, 50 + 10 * i, names) for i in range(fragments)]
    rows = sum(s["rows"] for s in summaries)
    given: dict[str, Any] = {
        "job": {"input": "in.parquet", "output": "out/x", "k": 5, "l": 2, "algorithm": "mondrian"}
        | (job or {}),
        "rows": {"input": rows + suppressed, "published": rows, "suppressed": suppressed},
        "class_sizes": [(5, rows // 5)],
        "achieved": {"k": 5, "l": 2},
        "verification": {
            "passed": passed,
            "checked": ["k-anonymity k=5"],
            "failures": [] if passed else ["3 of 22 classes have fewer than 5 rows"],
            "files": fragments,
        },
        "summaries": summaries,
        "columns": {
            "identifiers": ["ssn"],
            "identifier_policy": "drop",
            "quasi_identifiers": names,
            "sensitive": ["income"],
            "unlisted": ["comment"],
            "unlisted_policy": "publish",
        },
        "generalizations": dict.fromkeys(names, "interval"),
        "partitioning": {"strategy": "multidimensional", "asked": 4, "fragments": fragments,
                         "sample_rows": 100, "merged": 1, "note": "2 merged"},
        "cut": {"asked": "auto", "used": "gain", "reason": "the budget"},
        "retrieval": {"asked": "auto", "used": "scatter"},
        "timings_s": {"partition": 0.123456, "anonymize": 1.0, "wrap_up": 130.0},
    }  # fmt: skip
    report = reports.build(reports.RunFigures(**(given | more))).to_dict()
    failures = "; ".join(report["verification"]["failures"])
    report = reports.conclude(report, state or ("published" if passed else "refused"), failures)
    report["outcome"]["at"] = AT
    return report
