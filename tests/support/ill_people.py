"""A table whose classes are known."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

ROWS = 24
JOB = {"k": 3, "quasi_identifiers": ["age"], "cut": "median", "unlisted": "publish"}


def people(**columns: Any) -> pa.Table:
    """Classes of three, each with a diagnosis twice and another one once."""
    ages = pa.array([at // 3 for at in range(ROWS)], pa.int16())
    ill = [("flu", "flu", "cold")[at % 3] for at in range(ROWS)]
    return pa.table({"age": ages, "ill": ill, "row": range(ROWS), **columns})
