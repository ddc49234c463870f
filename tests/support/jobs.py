"""Jobs of few keys, to be changed."""

from __future__ import annotations

from typing import Any

from mondrian_ops.job.job import Job
from mondrian_ops.job.quasi_identifier import QuasiIdentifier


def minimal(**changes: Any) -> dict[str, Any]:
    """As few keys as a job can have."""
    return {"input": "in.csv", "output": "out", "k": 5, "quasi_identifiers": ["age"]} | changes


def with_sensitive(**changes: Any) -> dict[str, Any]:
    """The same with a sensitive column."""
    return minimal(sensitive=["income"]) | changes


def one(item: object) -> QuasiIdentifier:
    """A quasi-identifier as a job reads it."""
    return Job.from_dict(minimal(quasi_identifiers=[item])).quasi_identifiers[0]
