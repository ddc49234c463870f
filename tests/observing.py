"""What the integration tests give to DAGs, and what they look at when a run is over."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow.dataset as ds


def form(job, **partitioning):
    """The job as the trigger form gives it."""
    return {**job, "fragments": 3, "sample": 1.0, **partitioning}


def nested(job):
    """The job as a DAG's author writes it."""
    return {"job": {**job, "partitioning": {"fragments": 3, "sample": 1.0}}}


def states(tasks):
    """How many instances of each task ended how."""
    return Counter((task["task_id"].rpartition(".")[2], task["state"]) for task in tasks)


def tries(tasks):
    """The most tries that an instance of each task took."""
    most = Counter()
    for task in tasks:
        most[task["task_id"]] = max(most[task["task_id"]], task["try_number"])
    return most


def published(release: Path) -> int:
    """Rows of a release; all of it must be there."""
    assert (release / "_SUCCESS").exists()
    told = json.loads((release / "_report.json").read_text())["rows"]
    rows = ds.dataset(release).count_rows()
    assert rows == told["published"] == told["input"] - told["suppressed"]
    return rows


def classes(release: Path) -> Counter:
    """The equivalence classes of a release, with their sizes."""
    rows = ds.dataset(release).to_table(columns=["age", "sex", "zip", "country"]).to_pylist()
    return Counter(tuple(row.values()) for row in rows)
