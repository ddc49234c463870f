"""What a spark-submit task leaves, once the driver that it waited for has answered."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest

from mondrian_ops import pipeline, spark_app, storage
from mondrian_ops.core import limits
from mondrian_ops.core.errors import InputError
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


def test_a_final_error_of_a_driver_found_again_leaves_nothing(begun, monkeypatch):
    job, work = begun

    def answered():
        order = Order("partition", work, storage.WorkDir(work).token)
        answer = Answer(error="InputError", text="column 'age': is empty; fill it")
        storage.WorkDir(work).write_json(spark_app._answer_name(order), asdict(answer))

    with pytest.raises(InputError, match="column 'age'"):
        submit(monkeypatch, answered).partition(job, work, print)
    assert not Path(work).exists()


def test_a_driver_that_has_not_answered_keeps_its_working_files(begun, monkeypatch):
    job, work = begun

    def refused():
        raise InputError("no more than this try is refused; try another")

    with pytest.raises(InputError, match="this try"):
        submit(monkeypatch, refused).partition(job, work, print)
    assert Path(work, "attempt").exists()


def test_an_order_has_the_limits_of_the_task(begun):
    job, work = begun
    with limits.changed(columns=9):
        assert spark_submit._order(job, "partition", work).limits == {"columns": 9}
    assert spark_submit._order(job, "partition", work).limits == {}
