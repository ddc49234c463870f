"""What the operator tests share."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG

from mondrian_ops import storage
from releases import recorded_releases

NAMED = "a_spark, nowhere, spark_connect_default"


class Store(dict):
    """What a task keeps over its tries."""

    def __init__(self):
        super().__init__()
        self.kept_for = {}

    def set(self, key, value, *, retention=None):
        self[key] = json.loads(json.dumps(value))
        self.kept_for[key] = retention


class Instance(SimpleNamespace):
    """A task instance that has, as all of its run in these tests, the XComs of one task."""

    def xcom_push(self, key, value):
        self.xcoms[key] = value

    def get_task_breadcrumbs(self, dag_id, run_id):
        return [
            {"task_id": task_id, "state": state}
            for task_id, states in self.ended.items()
            for state in states.split()
        ]

    def xcom_pull(self, task_ids, key):
        return [self.xcoms.get(key) for _ in task_ids]


@pytest.fixture
def context() -> dict[str, Any]:
    """As much of a task's context as the operators use."""
    run = SimpleNamespace(dag_id="a_dag", run_id="manual__1", start_date=None)
    tags = {"dag_id": run.dag_id, "task_id": "t"}
    return {
        "dag": DAG(run.dag_id, schedule=None),
        "dag_run": run,
        "outlet_events": {},
        "task_state_store": Store(),
        "ti": Instance(id="its id", task_id="t", map_index=-1, stats_tags=tags, xcoms={}, ended={}),
    }


@pytest.fixture(autouse=True)
def allowed(tmp_path_factory, monkeypatch):
    """What the tests of the operators read, write and name."""
    for option in ("INPUTS", "OUTPUTS"):
        location = str(tmp_path_factory.getbasetemp())
        allowed = f"{location}, s3://secret_conn@bucket"
        monkeypatch.setenv(f"AIRFLOW__MONDRIAN_OPS__ALLOWED_{option}", allowed)
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__ALLOWED_CONNECTIONS", NAMED)
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__ALLOWED_SPARK_CONF", "spark.*")
    yield
    storage.use_policy(None)


@pytest.fixture
def job(tmp_path) -> dict[str, Any]:
    """A job that makes sense."""
    return {
        "input": str(tmp_path / "in.csv"),
        "output": str(tmp_path / "out"),
        "k": 2,
        "quasi_identifiers": ["age"],
    }


@pytest.fixture
def tds_job(job):
    """A job with a first phase in two parts, over a hundred rows."""
    Path(job["input"]).write_text("age\n" + "".join(f"{n % 50}\n" for n in range(100)))
    return {**job, "algorithm": "tds", "tds": {"partitions": 2}, "partitioning": {"fragments": 1}}


@pytest.fixture
def kept():
    """The releases that the operators recorded, newest first, each with its documents."""
    return recorded_releases
