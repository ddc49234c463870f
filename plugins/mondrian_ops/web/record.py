"""What Airflow has recorded of a question, for the task that asked it.

Airflow mounts this application without authentication. A task is no user: it gives the password of
its question, which only who has the catalogue's key can compute. Every other request gets one and
the same answer, 404.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from airflow.models.dagrun import DagRun
from airflow.models.hitl import HITLDetail
from airflow.models.log import Log
from airflow.models.taskinstance import TaskInstance
from airflow.utils.session import create_session
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from mondrian_ops.catalogue import approvals
from mondrian_ops.links import RECORD_HEADER
from mondrian_ops.web.bulkhead import Bulkhead
from mondrian_ops.web.reader import OpenCatalogue

_ANSWERING = "update_hitl_detail"
_OF_MANY_RUNS = frozenset(
    {
        "post_clear_task_instances",
        "clear_dag_runs",
        "clear_dag_run_partitions",
        "bulk_dag_runs",
        "create_backfill",
    }
)
"""Events that name no run in Airflow's log, but may clear or change this one."""

_BY_NAME = frozenset({"clear_dag_runs", "bulk_dag_runs"})
"""Those of them that name in their details each run which they concern."""

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}

_log = logging.getLogger(__name__)


def create(open_catalogue: OpenCatalogue, bulkhead: Bulkhead | None = None) -> FastAPI:
    """The application over a catalogue."""
    app = FastAPI(openapi_url=None)

    def record(entry_id: str, request: Request) -> Response:
        password = request.headers.get(RECORD_HEADER, "")
        with open_catalogue().reading() as connection:
            instance = approvals.opened(connection, entry_id, password)
        if instance is None:
            raise HTTPException(404)
        return JSONResponse(recorded(instance), headers=_HEADERS)

    def error(request: Request, problem: Exception) -> Response:
        status = problem.status_code if isinstance(problem, HTTPException) else 503
        if status != 404:
            _log.error("%s: %s", request.url.path, type(problem).__name__, exc_info=problem)
        return JSONResponse({}, status, _HEADERS)

    app.get("/{entry_id}", include_in_schema=False)((bulkhead or Bulkhead()).around(record))
    for kind in (HTTPException, Exception):
        app.exception_handler(kind)(error)
    return app


def recorded(instance: approvals.Instance) -> dict[str, Any]:
    """The answer to the question of a task instance, and who changed its run."""
    dag_id, run_id, task_id, map_index = instance
    of_instance = (
        TaskInstance.dag_id == dag_id,
        TaskInstance.run_id == run_id,
        TaskInstance.task_id == task_id,
        TaskInstance.map_index == map_index,
    )
    with create_session() as session:
        question = session.scalar(
            sa.select(HITLDetail)
            .join(TaskInstance, TaskInstance.id == HITLDetail.ti_id)
            .where(*of_instance)
        )
        return {
            "answer": None if question is None else _answer(question),
            "changes": list(_changes(session, dag_id, run_id)),
        }


def _answer(question: HITLDetail) -> dict[str, Any] | None:
    if question.responded_at is None or not question.responded_by:
        return None
    return {
        "chosen": list(question.chosen_options or []),
        "user": str(question.responded_by["id"]),
        "name": str(question.responded_by["name"]),
        "at": question.responded_at.astimezone(UTC).isoformat(timespec="seconds"),
    }


def _changes(session: Any, dag_id: str, run_id: str) -> Iterator[dict[str, str]]:
    """Who cleared or changed a run, or a task of it, by Airflow's audit log."""
    run = session.execute(
        sa.select(DagRun.created_at, DagRun.run_after).where(
            DagRun.dag_id == dag_id, DagRun.run_id == run_id
        )
    ).one_or_none()
    began = (run and (run.created_at or run.run_after)) or datetime.min.replace(tzinfo=UTC)
    of_run = sa.and_(Log.dag_id == dag_id, Log.run_id == run_id)
    of_many = sa.and_(
        Log.dag_id.in_((dag_id, "~")) | Log.dag_id.is_(None),
        Log.run_id.in_(("", "~")) | Log.run_id.is_(None),
        Log.event.in_(_OF_MANY_RUNS) | Log.event.like("cli\\_%clear%", escape="\\"),
        Log.dttm >= began,
    )
    found = sa.select(Log.dttm, Log.event, Log.owner, Log.run_id, Log.extra)
    for row in session.execute(found.where(of_run | of_many).order_by(Log.id)):
        if row.owner and row.dttm and _is_change(row, run_id):
            at = row.dttm.astimezone(UTC).isoformat()
            yield {"by": row.owner, "at": at, "event": row.event}


def _is_change(row: Any, run_id: str) -> bool:
    """Whether a person changed the run; Airflow's own events and answers are none."""
    if row.event.startswith("cli_"):
        return True
    details = _details(row.extra)
    if row.event == _ANSWERING or details.get("method") in (None, "GET"):
        return False
    if row.run_id != run_id:
        # A body that is a list is not in the log.
        names_runs = row.event in _BY_NAME and not details.keys().isdisjoint(
            {"actions", "dag_runs"}
        )
        return details.get("dry_run") is not True and (not names_runs or run_id in row.extra)
    # A note changes nothing.
    is_patch = row.event.startswith("patch_") and "xcom" not in row.event
    return not is_patch or bool(details.get("state") or details.get("new_state"))


def _details(text: str | None) -> dict[str, Any]:
    try:
        details = json.loads(text or "")
    except ValueError:
        return {}
    return details if isinstance(details, dict) else {}
