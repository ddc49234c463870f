"""The version of what one task writes for the next: the plan, fragments, summaries.

Airflow renders the name of each mapped task before the task runs, so reading a fragment imports
neither numpy nor pyarrow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mondrian_ops.errors import StorageError

SCHEMA = 3


def check_schema(value: Mapping[str, Any]) -> None:
    """Raise StorageError where a plan or fragment was written by another version."""
    version = value.get("schema") if isinstance(value, Mapping) else None
    if version != SCHEMA:
        raise StorageError(
            f"plan: has schema version {version!r}, this version reads {SCHEMA}; run "
            "again from the partition task with one version on all machines"
        )
