"""What a driver does with the order that it is sent."""

from __future__ import annotations

import json

import pytest

from limited_runs import limited_run
from mondrian_ops import spark_app, storage
from mondrian_ops.core import limits
from mondrian_ops.core.errors import JobError


@pytest.fixture
def run(tmp_path):
    """A run that has begun, in a folder that is all that is allowed."""
    with limited_run(tmp_path) as run:
        yield run


def test_each_fragment_has_an_answer_of_its_own(run, monkeypatch):
    monkeypatch.setattr(spark_app, "_done", lambda order, _run: order.fragment)
    for number in (None, 0, 1):
        order = spark_app.Order("anonymize", run.work.root, run.work.token, number)
        monkeypatch.setenv(spark_app.ORDER_VARIABLE, order.to_json())
        spark_app.main()
    for number in (None, 0, 1):
        assert spark_app.Answer.left(run.work.root, "anonymize", number).result() == number


def test_a_driver_is_held_to_the_limits_of_its_order(run, monkeypatch):
    order = {"step": "partition", "work": run.work.root, "attempt": run.work.token}
    order["allowed"] = storage.Allowed().to_json()
    monkeypatch.setenv(spark_app.ORDER_VARIABLE, json.dumps(order))
    storage.restrict_to(None)
    with pytest.raises(JobError, match=r"^output: "):
        spark_app.main()


def test_a_driver_has_the_sizes_of_its_order(run, monkeypatch):
    order = {"step": "partition", "work": run.work.root, "attempt": run.work.token}
    order["limits"] = {"columns": 9}
    monkeypatch.setenv(spark_app.ORDER_VARIABLE, json.dumps(order))
    found = []
    monkeypatch.setattr(spark_app, "_done", lambda *_: found.append(limits.limit("columns")))
    spark_app.main()
    assert found == [9]
