"""What Airflow's configuration says of this package: the section ``[mondrian_ops]``.

| option | environment variable | default |
|---|---|---|
| `reports` | `AIRFLOW__MONDRIAN_OPS__REPORTS` | `$AIRFLOW_HOME/mondrian_ops/reports` |
| `drift` | `AIRFLOW__MONDRIAN_OPS__DRIFT` | 0.2 |
"""

from __future__ import annotations

import os
from pathlib import Path

from airflow.sdk import conf

__all__ = ["drift", "reports"]

SECTION = "mondrian_ops"


def reports() -> str:
    """Where the archive of reports is: a path or a URL of any store."""
    given: str | None = conf.get(SECTION, "reports", fallback=None)
    if given:
        return given
    home = os.path.expandvars(os.environ.get("AIRFLOW_HOME", "~/airflow"))
    return str(Path(home).expanduser() / "mondrian_ops" / "reports")


def drift() -> float:
    """The relative change of loss or rows, from a dataset's nights before, that is marked."""
    return conf.getfloat(SECTION, "drift", fallback=0.2)
