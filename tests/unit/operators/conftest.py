"""What the operator tests share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mondrian_ops import stores
from releases import recorded_releases
from task_contexts import task_context

NAMED = "a_spark, nowhere, spark_connect_default"


@pytest.fixture
def context() -> dict[str, Any]:
    """As much of a task's context as the operators use."""
    return task_context()


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
    stores.use_policy(None)


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
