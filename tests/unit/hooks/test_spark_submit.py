"""What a driver answers, and what a spark-submit task leaves that has waited for it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest

from mondrian_ops import pipeline, spark_app, storage
from mondrian_ops.core import limits
from mondrian_ops.core.errors import InputError, PrivacyError
from mondrian_ops.hooks import spark_submit
from mondrian_ops.spark_app import Answer, Order
from mondrian_ops.storage import workdir


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """A job, and working files that another process made, whose driver is found again."""
    (tmp_path / "in.csv").write_text("age\n1\n2\n3\n4\n")
    told = {
        "input": str(tmp_path / "in.csv"),
        "output": str(tmp_path / "release"),
        "k": 2,
        "quasi_identifiers": ["age"],
        "engine": "spark",
    }
    job, work = storage.load_job(told), str(tmp_path / ".work")
    pipeline.begin(job, work)
    monkeypatch.setattr(workdir, "_BEGUN", set())
    return job, work


def submit(monkeypatch, left):
    """The place of a second try, while which the driver of the first does ``left``."""
    monkeypatch.setattr(spark_submit._Submission, "run", lambda _self, _context: left())
    return spark_submit.SparkSubmit(SimpleNamespace(task_id="t"), {})


def drive(monkeypatch, work, done):
    """A driver that is to partition, and does ``done`` in place of Spark's work."""
    order = Order("partition", work, storage.WorkDir(work).token)
    monkeypatch.setenv(spark_app.ORDER_VARIABLE, order.to_json())
    monkeypatch.setattr(spark_app, "_done", done)
    spark_app.main()


def test_what_is_final_is_a_drivers_answer_and_not_its_failure(begun, monkeypatch):
    _, work = begun

    def impossible(_order, _run):
        raise PrivacyError("l: no release can meet it; lower l")

    drive(monkeypatch, work, impossible)
    with pytest.raises(PrivacyError, match="lower l"):
        Answer.left(work, "partition", None).result()


def test_what_a_retry_may_cure_is_a_drivers_failure_and_not_its_answer(begun, monkeypatch):
    _, work = begun

    def lost(_order, _run):
        raise ConnectionError("an executor is lost")

    with pytest.raises(ConnectionError):
        drive(monkeypatch, work, lost)
    assert Answer.left(work, "partition", None) is None


def test_a_final_error_of_a_driver_found_again_leaves_nothing(begun, monkeypatch):
    job, work = begun

    def answered():
        order = Order("partition", work, storage.WorkDir(work).token)
        answer = Answer(error="InputError", text="column 'age': is empty; fill it")
        storage.WorkDir(work).write_json(spark_app._answer_name(order), asdict(answer))

    with pytest.raises(InputError, match="column 'age'"):
        submit(monkeypatch, answered).partition(job, work, print, "a_dag", None)
    assert not Path(work).exists()


def test_a_driver_that_has_not_answered_keeps_its_working_files(begun, monkeypatch):
    job, work = begun

    def refused():
        raise InputError("no more than this try is refused; try another")

    with pytest.raises(InputError, match="this try"):
        submit(monkeypatch, refused).partition(job, work, print, "a_dag", None)
    assert Path(work, "attempt").exists()


def test_an_order_has_the_limits_of_the_task(begun):
    job, work = begun
    with limits.changed(columns=9):
        assert spark_submit._order(job, "partition", work).limits == {"columns": 9}
    assert spark_submit._order(job, "partition", work).limits == {}
