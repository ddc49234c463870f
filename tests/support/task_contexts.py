"""As much of a task's context as the operators use, without an Airflow."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from airflow.sdk import DAG

from mondrian_ops import publish
from mondrian_ops.job.job import Job
from mondrian_ops.operators.base import MondrianOperator, work_of

ID = UUID("01932d8e-0000-7000-8000-000000000001")


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
            {"task_id": task_id, "state": state, "map_index": index if more else -1}
            for task_id, states in self.ended.items()
            for index, (state, more) in enumerate(
                (state, " " in states) for state in states.split()
            )
        ]

    def xcom_pull(self, task_ids, key, map_indexes=None):
        """Those of one task; a list has one for each of its instances."""
        pulled = []
        for _ in task_ids:
            values = self.xcoms.get(key)
            values = values if isinstance(values, list) else [values]
            if map_indexes is None:
                pulled += values
            else:
                pulled += [values[at] if -1 <= at < len(values) else None for at in map_indexes]
        return pulled


def task_context() -> dict[str, Any]:
    """The context of a task of a run."""
    run = SimpleNamespace(
        dag_id="a_dag",
        run_id="manual__1",
        start_date=None,
        run_type="manual",
        triggering_user_name="ada",
    )
    tags = {"dag_id": run.dag_id, "task_id": "t"}
    return {
        "dag": DAG(run.dag_id, schedule=None),
        "dag_run": run,
        "outlet_events": {},
        "task_state_store": Store(),
        "ti": Instance(id=ID, task_id="t", map_index=-1, stats_tags=tags, xcoms={}, ended={}),
    }


def read_job(job: Any) -> Job:
    """The job as a task reads it."""
    return MondrianOperator(task_id="t", job=job).read_job()


def begun_work(context: dict[str, Any], job: Any, task: str | None = None) -> publish.WorkDir:
    """The working files of a run that has begun with this job, as its partition task makes them."""
    read = read_job(job)
    work = publish.WorkDir(work_of(read, context))
    run = context["dag_run"]
    work.create(task and publish.Owner(f"{run.dag_id}/{run.run_id}", task))
    work.note_job(read)
    return work
