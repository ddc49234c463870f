"""The changes of columns that a person accepts in the trigger form of the nightly DAG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mondrian_ops.errors import JobError


def accept_changes(ids: Sequence[str], run: Any, releases: str) -> None:
    """Accept the changes with these ids, of drops whose releases are in the folder ``releases``.

    ``run``: the DAG run, which knows who triggered it. Once is enough, so the task may be cleared.

    Raises JobError where nobody is known to have triggered the run, StorageError where a change is
    not known.
    """
    if not ids:
        return
    from mondrian_ops.pipeline import contract

    if not run.triggering_user_name:
        raise JobError(
            "accept: Airflow does not say who triggered this run, and an acceptance needs a name; "
            "trigger it in the UI or by the REST API, or use the command contract accept"
        )
    for change_id in ids:
        contract.accept(change_id.strip(), run.triggering_user_name, below=releases)
