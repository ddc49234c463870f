"""What may be read and written where a Spark cluster does the work."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from mondrian_ops import pipeline, spark_app, storage
from mondrian_ops.core import limits
from mondrian_ops.core.errors import JobError
from mondrian_ops.engines import executor
from mondrian_ops.engines.spark import SparkEngine


@pytest.fixture
def run(tmp_path):
    """A run that has begun, in a folder that is all that is allowed."""
    (tmp_path / "in.csv").write_text("age\n1\n2\n3\n4\n")
    storage.restrict_to(storage.Allowed((str(tmp_path / "in.csv"),), (str(tmp_path / "out"),)))
    (tmp_path / "out").mkdir()
    job = {
        "input": str(tmp_path / "in.csv"),
        "output": str(tmp_path / "out" / "release"),
        "k": 2,
        "quasi_identifiers": ["age"],
    }
    yield pipeline.begin(storage.load_job(job), str(tmp_path / "out" / ".work"))
    storage.restrict_to(None)
    limits.use(None)


def test_executors_are_held_to_the_limits_of_the_task(run):
    limits = storage.limits()
    described = SparkEngine._described(SimpleNamespace(), run)
    storage.restrict_to(None)
    source = executor._run(described).dataset.source
    assert storage.limits() == limits
    assert next(source.batches()).num_rows == 4
    source.files[0] = "/etc/passwd"
    with pytest.raises(JobError, match=r"^input: /etc/passwd is, or leads"):
        next(source.batches())


def test_a_task_without_limits_leaves_none_to_its_executors(run):
    limits = storage.limits()
    storage.restrict_to(None)
    described = SparkEngine._described(SimpleNamespace(), run)
    storage.restrict_to(limits)
    executor._run(described)
    assert storage.limits() is None


def test_a_driver_is_held_to_the_limits_of_its_order(run, monkeypatch):
    order = {"step": "partition", "work": run.work.root, "attempt": run.work.token}
    order["allowed"] = storage.Allowed().to_json()
    monkeypatch.setenv(spark_app.ORDER_VARIABLE, json.dumps(order))
    storage.restrict_to(None)
    with pytest.raises(JobError, match=r"^output: "):
        spark_app.main()


def test_executors_have_the_sizes_that_the_task_allows(run):
    with limits.changed(csv_line=100, inflation=7):
        described = SparkEngine._described(SimpleNamespace(), run)
    source = executor._run(described).dataset.source
    assert limits.in_use() == {"csv_line": 100, "inflation": 7}
    assert next(source.batches()).num_rows > 0
    limits.use(None)
    executor._run.cache_clear()
    executor._run(SparkEngine._described(SimpleNamespace(), run))
    assert limits.in_use() == {}


def test_a_driver_has_the_sizes_of_its_order(run, monkeypatch):
    order = {"step": "partition", "work": run.work.root, "attempt": run.work.token}
    order["limits"] = {"columns": 9}
    monkeypatch.setenv(spark_app.ORDER_VARIABLE, json.dumps(order))
    found = []
    monkeypatch.setattr(spark_app, "_done", lambda *_: found.append(limits.limit("columns")))
    spark_app.main()
    assert found == [9]


def test_of_an_unforeseen_error_an_executor_tells_kind_and_place_only(run):
    def break_down(_run, _messages):
        raise ValueError("Mary, 34, HIV")
        yield

    step = executor.Step(break_down, SparkEngine._described(SimpleNamespace(), run))
    with pytest.raises(RuntimeError, match=r"^ValueError at .*its message is withheld"):
        list(step([]))
