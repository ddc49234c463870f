"""The question about a release that waits, as the catalogue keeps it: signed, and decided once.

Nothing of it is in Airflow's XComs or task state, which everybody can write who may edit tasks.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mondrian_ops.errors import MondrianOpsError
from mondrian_ops.operators import release_records
from mondrian_ops.operators.airflow_record import AirflowRecord, airflow_record

if TYPE_CHECKING:
    from airflow.sdk import Context

    from mondrian_ops.catalogue.approvals import Asked

_log = logging.getLogger(__name__)


def digest_of(*question: str) -> str:
    """The digest of a question's text."""
    return hashlib.sha256(json.dumps(question).encode()).hexdigest()


def open_question(context: Context, release: Mapping[str, Any], question: str) -> Asked:
    """Keep that this task asks about a release; a question before it is over.

    Raises OSError or StorageError where the catalogue cannot be used: nobody is asked then.
    """
    from mondrian_ops.catalogue.approvals import Asked, Instance

    run, instance = context["dag_run"], context["ti"]
    index = release_records.map_index_of(context)
    names = Instance(run.dag_id, run.run_id, instance.task_id, index)
    asked = Asked(names, json.loads(json.dumps(release)), question)
    _keep(context, asked)
    return asked


def note(
    context: Context, asked: Asked, state: str, decision: Sequence[str] | None = None
) -> Asked:
    """Keep what became of a question, and its decision, if there is a new one."""
    noted = asked._replace(state=state)
    if decision is not None:
        noted = noted._replace(decision=tuple(decision))
    _keep(context, noted)
    return noted


def _keep(context: Context, asked: Asked) -> None:
    from mondrian_ops.catalogue import approvals

    catalogue, entry_id = release_records.open_entry(context, asked.instance.map_index)
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    with catalogue.writing() as connection:
        approvals.keep(connection, catalogue.key, entry_id, asked, now)


def last(context: Context, map_index: int | None = None) -> Asked | None:
    """The last question about this task's release, or that of another map index.

    Raises ApprovalError where somebody has changed it; OSError or StorageError where the catalogue
    cannot be used.
    """
    from mondrian_ops.catalogue import approvals

    catalogue, entry_id = release_records.open_entry(context, map_index)
    with catalogue.reading() as connection:
        return approvals.find(connection, catalogue.key, entry_id)


def close(context: Context, map_index: int) -> None:
    """Close a question that is not decided: an answer that comes later is refused.

    Only warns where the catalogue cannot be used.
    """
    from mondrian_ops.catalogue.approvals import ASKED, CLOSED

    try:
        asked = last(context, map_index)
        if asked is not None and asked.state == ASKED:
            note(context, asked, CLOSED)
    except (MondrianOpsError, OSError) as error:
        _log.warning("the question stays open: %s: %s", type(error).__name__, error)


def record_of(context: Context, asked: Asked) -> AirflowRecord:
    """What Airflow has recorded of the answer to a question, and of its run."""
    catalogue, entry_id = release_records.open_entry(context, asked.instance.map_index)
    return airflow_record(entry_id, asked.password(catalogue.key))
