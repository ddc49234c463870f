"""The result of a driver, and the working files of a task that waited for it."""

from __future__ import annotations

import errno
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from engines.in_process import InProcessEngine
from mondrian_ops import catalogue, pipeline, spark_app, stores
from mondrian_ops.engines.handover import Fragment
from mondrian_ops.engines.local import LocalEngine
from mondrian_ops.engines.release_check import ReleaseCheck
from mondrian_ops.engines.run import Run
from mondrian_ops.engines.spark_submit import Request, Result, SparkSubmitEngine
from mondrian_ops.errors import InputError, PrivacyError, StorageError
from mondrian_ops.job import limits
from mondrian_ops.publish import WorkDir, workdir


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """A job, and the working files of an earlier process that submitted a driver."""
    (tmp_path / "in.csv").write_text("age\n1\n2\n3\n4\n")
    described = {
        "input": str(tmp_path / "in.csv"),
        "output": str(tmp_path / "release"),
        "k": 2,
        "quasi_identifiers": ["age"],
        "engine": "spark",
    }
    job, work = stores.load_job(described), str(tmp_path / ".work")
    pipeline.begin(job, work)
    monkeypatch.setattr(workdir, "_STARTED", set())
    return job, work


class Submission:
    """A cluster on which a driver does ``driven``: one found again, or the one requested."""

    def __init__(self, driven, found_again=False):
        self.driven, self.found_again = driven, found_again
        self.steps, self.killed = [], False

    def run(self, step, request, is_done):
        self.steps.append(step)
        if not self.found_again:
            request = request()
        assert not is_done()
        self.driven(request)

    def kill(self):
        self.killed = True


def drive(monkeypatch, done, request):
    """A driver that does ``done`` in place of Spark's work."""
    monkeypatch.setenv(spark_app.REQUEST_VARIABLE, request.to_json())
    monkeypatch.setattr(spark_app, "_done", done)
    spark_app.main()


def partition(job, work, submission):
    return pipeline.partition(job, work=work, engine=SparkSubmitEngine(submission))


def test_a_driver_divides_and_anonymizes(begun, monkeypatch):
    """One that is requested: nothing has to be there before."""
    job, work = begun

    def done(request, run):
        engine = LocalEngine()
        if request.step == "partition":
            return pipeline.divide(run, engine)
        return [each.to_dict() for each in engine.anonymize(run, run.state.fragments)]

    submission = Submission(partial(drive, monkeypatch, done))
    (fragment,) = partition(job, work, submission)
    assert (fragment.rows, fragment.work) == (4, work)
    summary = pipeline.anonymize_fragment(fragment, SparkSubmitEngine(submission))
    assert (summary.id, summary.rows) == (0, 4)
    assert submission.steps == ["partition", "anonymize"]


def test_a_driver_hashes_people_with_the_key_of_the_task_and_needs_no_catalogue(begun, monkeypatch):
    job, work = begun
    published = replace(job, overlap="warn", engine="local", output=f"{job.output}-before")
    pipeline.run(published)

    def done(request, run):
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(catalogue, "current", lambda: pytest.fail("there is none"))
            return pipeline.divide(run, LocalEngine(), people_key=bytes.fromhex(request.people_key))

    submission = Submission(partial(drive, monkeypatch, done))
    with pytest.raises(PrivacyError, match="the same drop was released"):
        partition(replace(job, overlap="refuse"), work, submission)
    assert not Path(work).exists()


def test_a_request_has_no_key_without_need(begun):
    job, work = begun
    run = Run(WorkDir(work))
    assert Request.of(run, "partition").people_key == ""
    run.dataset = replace(run.dataset, job=replace(job, overlap="warn"))
    request = Request.of(run, "partition")
    assert bytes.fromhex(request.people_key) == catalogue.current().key
    assert request.people_key not in repr(request)
    assert Request.of(run, "anonymize").people_key == ""


def test_what_is_final_is_a_drivers_result_and_not_its_failure(begun, monkeypatch):
    _, work = begun

    def impossible(_request, _run):
        raise PrivacyError("l: no release can meet it; lower l")

    drive(monkeypatch, impossible, Request.of(Run(WorkDir(work)), "partition"))
    with pytest.raises(PrivacyError, match="lower l"):
        Result.left(WorkDir(work), "partition", None).get()


def test_what_a_retry_may_cure_is_a_drivers_failure_and_not_its_result(begun, monkeypatch):
    _, work = begun

    def lost(_request, _run):
        raise ConnectionResetError(errno.ECONNRESET, "an executor is lost")

    with pytest.raises(ConnectionError):
        drive(monkeypatch, lost, Request.of(Run(WorkDir(work)), "partition"))
    assert Result.left(WorkDir(work), "partition", None) is None


def test_a_final_error_of_a_driver_found_again_leaves_nothing(begun):
    job, work = begun

    def refused(_request):
        result = Result(error="InputError", text="column 'age': is empty; fill it")
        result.leave(WorkDir(work), "partition", None)

    with pytest.raises(InputError, match="column 'age'"):
        partition(job, work, Submission(refused, found_again=True))
    assert not Path(work).exists()


def test_a_driver_that_has_no_result_keeps_its_working_files(begun):
    job, work = begun

    def refused(_request):
        raise InputError("no more than this try is refused; try another")

    with pytest.raises(InputError, match="this try"):
        partition(job, work, Submission(refused, found_again=True))
    assert Path(work, "attempt").exists()


def test_a_driver_that_ends_without_a_result_may_be_tried_again(begun):
    job, work = begun
    with pytest.raises(ConnectionError, match="left no result"):
        partition(job, work, Submission(lambda _: None, found_again=True))


def test_a_request_has_the_limits_of_the_task(begun):
    _, work = begun
    run = Run(WorkDir(work))
    with limits.changed(columns=9):
        assert Request.of(run, "partition").location.limits == {"columns": 9}
    assert Request.of(run, "partition").location.limits == {}


def test_a_task_that_is_stopped_kills_the_driver():
    submission = Submission(None)
    SparkSubmitEngine(submission).stop()
    assert submission.killed


def test_without_working_files_nothing_is_submitted(tmp_path):
    gone = Fragment(id=0, where="", rows=4, work=str(tmp_path / "gone"))
    submission = Submission(None)
    with pytest.raises(StorageError, match="working files"):
        pipeline.anonymize_fragment(gone, SparkSubmitEngine(submission))
    assert submission.steps == []


@pytest.fixture
def anonymized(begun):
    """A job, its working files and the summaries of its fragments, before the check."""
    job, work = begun
    run = Run(WorkDir(work))
    pipeline.divide(run, LocalEngine())
    return job, work, list(LocalEngine().anonymize(run, run.state.fragments))


def check_by(monkeypatch, anonymized):
    """The report of a check by a driver, and the steps that were submitted for it."""
    job, work, summaries = anonymized

    def done(request, run):
        return InProcessEngine().check(run, ReleaseCheck.load(run.work, request.step))

    submission = Found(partial(drive, monkeypatch, done))
    keys = {"work": work, "summaries": summaries, "engine": SparkSubmitEngine(submission)}
    return pipeline.check(job, **keys).report, submission.steps


class Found(Submission):
    """As the hook does: where a result is there, nothing is submitted."""

    def run(self, step, request, is_done):
        if not is_done():
            super().run(step, request, is_done)


def test_a_driver_checks_what_a_task_would(anonymized, monkeypatch):
    job, work, summaries = anonymized
    report, steps = check_by(monkeypatch, anonymized)
    expected = pipeline.check(job, work=work, summaries=summaries).report
    for each in (report, expected):
        del each["timings_s"], each["phases"], each["created"]
    assert report == expected
    assert [step.partition("-")[0] for step in steps] == ["check"]
    assert check_by(monkeypatch, anonymized)[1] == []  # a retry takes the result that is there


def test_a_result_is_not_taken_for_that_of_other_parts_or_another_job(anonymized, monkeypatch):
    job, work, summaries = anonymized
    check_by(monkeypatch, anonymized)
    other = replace(job, k=3), work, summaries
    with pytest.raises(PrivacyError, match="k = 3: 2 of 2"):
        check_by(monkeypatch, other)
    path = WorkDir(work).part_path(0)
    pq.write_table(pq.read_table(path)[1:], path)
    with pytest.raises(PrivacyError, match="k = 2: 1 of 2"):
        check_by(monkeypatch, anonymized)
