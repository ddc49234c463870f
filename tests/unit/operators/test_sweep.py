"""Which runs need their working files, as Airflow tells."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import ErrorResponse

from mondrian_ops import publish
from mondrian_ops.operators import SweepOperator
from mondrian_ops.operators.base import work_of
from task_contexts import read_job

HOUR = timedelta(hours=1)


@pytest.fixture
def swept(context, job, tmp_path, monkeypatch):
    """Sweep while Airflow has these runs of the DAG; what is left of the files of ``manual__1``."""
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__ALLOWED_OUTPUTS", str(tmp_path))
    work = publish.WorkDir(work_of(read_job(job), context))
    work.create(publish.Owner("a_dag/manual__1", "partition"))

    def get_dag(dag_id):
        if has_dag is not True:
            detail = {"status_code": has_dag}
            raise AirflowRuntimeError(
                ErrorResponse(error=ErrorType.API_SERVER_ERROR, detail=detail)
            )

    has_dag = True

    def swept(runs, keep_hours="24", dag=True):
        nonlocal has_dag
        has_dag = dag
        monkeypatch.setattr(context["ti"], "get_dag", get_dag, raising=False)
        monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__KEEP_HOURS", keep_hours)
        monkeypatch.setattr(
            context["ti"],
            "get_dr_count",
            lambda dag_id, run_ids: len(set(run_ids) & set(runs)),
            raising=False,
        )
        comms = SimpleNamespace(send=lambda message: SimpleNamespace(**runs[message.run_id]))
        monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", comms, raising=False)
        counts = SweepOperator(task_id="sweep").execute(context)
        assert counts == {"kept" if Path(work.root).exists() else "removed": 1}
        return Path(work.root).exists()

    return swept


def run(state: str, ended_hours_ago: float | None = None):
    ended = None if ended_hours_ago is None else datetime.now(UTC) - ended_hours_ago * HOUR
    return {"manual__1": {"state": state, "end_date": ended}}


@pytest.mark.parametrize(
    ("runs", "keep_hours", "is_kept"),
    [
        (run("queued"), "24", True),
        (run("running"), "0", True),
        (run("failed", 23), "24", True),
        (run("failed", 25), "24", False),
        (run("failed", 23), "2", False),
        (run("success", 0), "24", False),
        ({}, "24", False),
    ],
    ids=[
        *("queued", "running or waiting", "failed lately", "failed long ago", "kept for less"),
        *("succeeded", "deleted"),
    ],
)
def test_working_files_are_kept_while_their_run_may_need_them(swept, runs, keep_hours, is_kept):
    assert swept(runs, keep_hours) == is_kept


def test_files_of_another_airflow_are_not_taken_for_those_of_a_deleted_run(swept):
    assert swept({}, dag=404)
    with pytest.raises(AirflowRuntimeError):  # an answer that tells nothing
        swept({}, dag=500)


def test_a_store_that_cannot_be_read_fails_the_task_after_the_others_are_swept(
    swept, tmp_path, monkeypatch, context
):
    sweep = publish.sweep

    def broken(folder, *how):
        if folder == str(tmp_path / "b"):
            raise OSError(5, "the store does not answer")
        return sweep(folder, *how)

    monkeypatch.setattr(publish, "sweep", broken, raising=False)
    swept(run("queued"))
    outputs = f"{tmp_path / 'b'}, {tmp_path}"
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__ALLOWED_OUTPUTS", outputs)
    with pytest.raises(AirflowFailException, match="does not answer"):
        SweepOperator(task_id="sweep").execute(context)
