"""A job file beside its data, for the tests of the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def write_people(folder: Path) -> None:
    """Write ``people.parquet``: 400 people, whose names no message may show."""
    count = 400
    table = pa.table(
        {
            "name": [f"Person Secret{at}" for at in range(count)],
            "age": [20 + at % 50 for at in range(count)],
            "zip": [f"100{at % 30:02d}" for at in range(count)],
            "income": [("low", "middle", "high")[at % 3] for at in range(count)],
        }
    )
    pq.write_table(table, folder / "people.parquet")


def write_job(folder: Path, **changes: Any) -> Path:
    """Write ``job.yaml``, which anonymizes ``people.parquet``; returns its path."""
    described = {
        "input": str(folder / "people.parquet"),
        "output": str(folder / "out"),
        "k": 5,
        "l": 2,
        "identifiers": ["name"],
        "quasi_identifiers": ["age", "zip=prefix"],
        "sensitive": ["income"],
        "partitioning": {"fragments": 3},
    }
    path = folder / "job.yaml"
    path.write_text(json.dumps(described | changes), "utf-8")  # JSON is YAML
    return path
