"""Remove the working files that no run needs any more."""

from __future__ import annotations

import logging
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from itertools import chain
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowRuntimeError

from mondrian_ops.errors import MondrianOpsError

if TYPE_CHECKING:
    from datetime import timedelta

    from airflow.sdk import Context

    from mondrian_ops.publish import Owner


class SweepOperator(BaseOperator):
    """Remove the working files below ``[mondrian_ops] allowed_outputs`` that no run needs.

    A run that is queued, runs or waits for an approval needs its own. A failed run needs them for
    ``[mondrian_ops] keep_hours``, so that its tasks can be cleared. A run that succeeded or was
    deleted needs none. Files of a command line, of Python, or of a DAG that this Airflow does not
    have, are removed if nothing has changed in them for ``keep_hours`` and no process holds them.

    Rows that wait for a night of a series are never removed, but what killed nights have left of
    them is, after ``keep_hours``. If no night came for a month, a warning tells that they wait.
    """

    ui_color = "#e2ecf7"

    def execute(self, context: Context) -> dict[str, int]:
        """Sweep every allowed output; return how many directories were removed, and how many kept.

        Raises AirflowFailException, after the rest is swept, if some cannot be read or removed.
        """
        from mondrian_ops import publish, series, stores
        from mondrian_ops.hooks.settings import allowed, keep_time, use_settings

        use_settings()
        keep = keep_time()
        states: Counter[str] = Counter()
        failed = []
        for folder in allowed().outputs:
            try:
                works = publish.sweep(folder, keep, partial(_needed, context["ti"], keep))
                for swept in chain(works, series.sweep(folder, keep)):
                    level = logging.WARNING if swept.state == "forgotten" else logging.INFO
                    self.log.log(level, "%s", swept)
                    states[swept.state] += 1
                    if swept.state == "failed":
                        failed.append(str(swept))
            except (MondrianOpsError, OSError) as error:
                failed.append(f"{stores.shown(folder)}: {error}")
        if failed:
            raise AirflowFailException(f"working files may remain: {'; '.join(failed)}")
        return dict(states)


def _needed(instance: Any, keep: timedelta, owner: Owner) -> bool | None:
    """Whether a run needs its working files; None if this Airflow does not know its DAG."""
    from airflow.sdk.execution_time import task_runner
    from airflow.sdk.execution_time.comms import GetDagRun

    dag_id, _, run_id = owner.run.partition("/")
    if not instance.get_dr_count(dag_id=dag_id, run_ids=[run_id]):
        return False if _is_known(instance, dag_id) else None
    run: Any = task_runner.SUPERVISOR_COMMS.send(GetDagRun(dag_id=dag_id, run_id=run_id))
    if run.state == "success":
        return False
    if run.state != "failed" or run.end_date is None:
        return True
    return bool(datetime.now(UTC) - run.end_date < keep)


def _is_known(instance: Any, dag_id: str) -> bool:
    """Whether this Airflow has a DAG; one of another Airflow may write to the same place."""
    try:
        instance.get_dag(dag_id)
    except AirflowRuntimeError as error:
        if (error.error.detail or {}).get("status_code") == HTTPStatus.NOT_FOUND:
            return False
        raise
    return True
