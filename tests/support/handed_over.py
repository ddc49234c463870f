"""What tasks hand over to each other, as Airflow keeps it."""

from __future__ import annotations

from typing import Any

from mondrian_ops.engines.handover import Fragment, Summary


def fragment(number: int = 0, work: str = "w", **changes: Any) -> dict[str, Any]:
    """A fragment of five rows."""
    return Fragment(**{"id": number, "where": "", "rows": 5, "work": work, **changes}).to_dict()


def summary(number: int = 0, work: str = "w", **changes: Any) -> dict[str, Any]:
    """Its summary."""
    values = {
        "id": number,
        "where": "",
        "work": work,
        "rows": 5,
        "suppressed": 0,
        "DP": 25,
        "equivalence_classes": 1,
        "seconds": 0.1,
        "finished": 1.0,
    }
    return Summary(**values | changes).to_dict()
