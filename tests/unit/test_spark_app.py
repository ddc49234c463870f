"""What a driver does with the request that it is sent."""

from __future__ import annotations

import json

import pytest

from limited_runs import limited_run
from mondrian_ops import spark_app, stores
from mondrian_ops.engines.spark_submit import Request, Result
from mondrian_ops.errors import JobError
from mondrian_ops.job import limits


@pytest.fixture
def run(tmp_path):
    """A run that has begun, in a folder that is all that is allowed."""
    with limited_run(tmp_path) as run:
        yield run


def requested(run, step, fragment=None, **location):
    """The text of a request; ``location`` is what it says of the run's, in place of what is so."""
    value = json.loads(Request.of(run, step, fragment).to_json())
    value["location"] |= location
    return json.dumps(value)


def test_each_fragment_has_a_result_of_its_own(run, monkeypatch):
    monkeypatch.setattr(spark_app, "_done", lambda request, _run: request.fragment)
    for number in (None, 0, 1):
        monkeypatch.setenv(spark_app.REQUEST_VARIABLE, requested(run, "anonymize", number))
        spark_app.main()
    for number in (None, 0, 1):
        assert Result.left(run.work, "anonymize", number).get() == number


def test_a_driver_is_held_to_the_limits_of_its_request(run, monkeypatch):
    text = requested(run, "partition", allowed=stores.AccessPolicy().to_json())
    monkeypatch.setenv(spark_app.REQUEST_VARIABLE, text)
    stores.use_policy(None)
    with pytest.raises(JobError, match=r"^output: "):
        spark_app.main()


def test_a_driver_has_the_sizes_of_its_request(run, monkeypatch):
    text = requested(run, "partition", limits={"columns": 9})
    monkeypatch.setenv(spark_app.REQUEST_VARIABLE, text)
    seen = []
    monkeypatch.setattr(spark_app, "_done", lambda *_: seen.append(limits.limit("columns")))
    spark_app.main()
    assert seen == [9]
