"""Input of a run of a DAG in a real Airflow, and what became of the run and its release."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow.dataset as ds

import sql_oracle


def form(job, **partitioning):
    """The job as the trigger form gives it."""
    return {**job, "fragments": 3, "sample": 1.0, **partitioning}


def nested(job, **partitioning):
    """The job as a DAG's author writes it."""
    return {"job": {**job, "partitioning": {"fragments": 3, "sample": 1.0, **partitioning}}}


def asked_for(request, name):
    """The values of a parameter with which tests of this module are going to run."""
    here = [item for item in request.session.items if item.path == request.path]
    parameters = [item.callspec.params for item in here if hasattr(item, "callspec")]
    return {each[name] for each in parameters if name in each}


def states(tasks):
    """How many instances of each task ended how."""
    return Counter((task["task_id"].rpartition(".")[2], task["state"]) for task in tasks)


def tries(tasks):
    """The most tries that an instance of each task took."""
    most = Counter()
    for task in tasks:
        most[task["task_id"]] = max(most[task["task_id"]], task["try_number"])
    return most


def parked(airflow, dag_id, run_id, task_id="wrap_up", map_index=-1):
    """Wait until a task waits for an answer, and the scheduler has heard that it does."""
    heard = f"task_id='{task_id}', run_id='{run_id}', try_number=1, map_index={map_index})"
    said = "Received executor event with state success for task instance TaskInstanceKey("
    log = airflow.home / "scheduler.log"
    assert airflow.comes_true(
        lambda: any(
            said in line and heard in line for line in log.read_text(errors="replace").splitlines()
        )
    )


def published(release: Path) -> int:
    """Rows of a release; all of it must be there, with the k and l of its report."""
    assert (release / "_SUCCESS").exists()
    report = json.loads((release / "_report.json").read_text())
    told = report["rows"]
    rows = ds.dataset(release).count_rows()
    assert rows == told["published"] == told["input"] - told["suppressed"]
    sql_oracle.agree(report, release)
    return rows


def classes(release: Path) -> Counter:
    """The equivalence classes of a release, with their sizes."""
    rows = ds.dataset(release).to_table(columns=["age", "sex", "zip", "country"]).to_pylist()
    return Counter(tuple(row.values()) for row in rows)
