"""What Airflow's configuration says of this package: the section ``[mondrian_ops]``.

Airflow asks for the description of the section before it has a configuration, so nothing of
Airflow is imported at module level.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

__all__ = ["CONFIG", "drift", "reports"]

SECTION = "mondrian_ops"

CONFIG: dict[str, Any] = {
    SECTION: {
        "description": "k-anonymous, l-diverse releases of personal data.",
        "options": {
            "reports": {
                "description": "Where what became of each release is kept, for the pages: a path "
                "or URL that workers write and API servers read. If not set, "
                "`$AIRFLOW_HOME/mondrian_ops/reports`.",
                "version_added": None,
                "type": "string",
                "example": "s3://bucket/reports",
                "default": None,
            },
            "drift": {
                "description": "The relative change of loss or rows, from the median of a "
                "dataset's seven releases before, that the pages mark.",
                "version_added": None,
                "type": "float",
                "example": None,
                "default": "0.2",
            },
        },
    }
}
"""The section as a provider describes its own to Airflow."""


def reports() -> str:
    """Where the archive of reports is: a path or a URL of any store."""
    from airflow.sdk import conf

    given: str | None = conf.get(SECTION, "reports", fallback=None)
    if given:
        return given
    home = os.path.expandvars(os.environ.get("AIRFLOW_HOME", "~/airflow"))
    return str(Path(home).expanduser() / "mondrian_ops" / "reports")


def drift() -> float:
    """The relative change of loss or rows, from a dataset's releases before, that is marked."""
    from airflow.sdk import conf

    return conf.getfloat(SECTION, "drift", fallback=0.2)
