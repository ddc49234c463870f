"""Jobs for tests of the frontier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mondrian_ops import stores
from mondrian_ops.job.job import Job


def job_over(path: Path, folder: Path, **keys: Any) -> Job:
    """A job over a file of poker hands; keys change it."""
    described = {
        "input": str(path),
        "output": str(folder / "release"),
        "k": 5,
        "quasi_identifiers": [f"{kind}{card}" for card in range(1, 6) for kind in "sr"],
        "sensitive": ["hand"],
        "cut": "median",
        **keys,
    }
    return stores.load_job(described)


def people(folder: Path, count: int = 300) -> Path:
    """A small table with missing values, a skewed sensitive column, and secrets."""
    chosen = np.random.default_rng(1)
    table = pa.table(
        {
            "name": [f"Secret{i}" for i in range(count)],
            "age": pa.array([None if i % 17 == 0 else 20 + i % 50 for i in range(count)]),
            "town": [f"Secretown{i}" for i in chosen.integers(0, 12, count)],
            "illness": ["Secretitis" if i % 10 else f"Secret{i % 3}" for i in range(count)],
        }
    )
    path = folder / "people.parquet"
    pq.write_table(table, path)
    return path


def small_job(folder: Path, **keys: Any) -> Job:
    own = {"quasi_identifiers": ["age", "town"], "sensitive": ["illness"], "identifiers": ["name"]}
    return job_over(people(folder), folder, **(own | keys))
