"""The addresses of the pages, and of the pages of Airflow that they link to."""

from __future__ import annotations

import re
from urllib.parse import quote

PREFIX = "/mondrian_ops"
"""The path under which Airflow mounts the pages."""

RECORD = "/mondrian_ops_record"
"""The path under which tasks ask for Airflow's record of a question."""

RECORD_HEADER = "X-Mondrian-Ops-Question"
"""The header with the password of the question."""

VIEW = "anonymization"
"""The name of Airflow's frame around them."""

_WEBHDFS = re.compile(r"(s?)webhdfs://([A-Za-z0-9.-]+(?::\d+)?)(/.*)")


def release_path(entry_id: str, root: str = "") -> str:
    """A release's page in Airflow's frame; ``root`` is the path of ``[api] base_url``."""
    return f"{root}/plugin/{VIEW}{root}{PREFIX}/releases/{quote(entry_id, safe='')}"


def dag_path(dag_id: str, root: str = "") -> str:
    """Airflow's own page of a DAG."""
    return f"{root}/dags/{quote(dag_id, safe='')}"


def run_path(dag_id: str, run_id: str, root: str = "") -> str:
    """Airflow's own page of a DAG run."""
    return f"{dag_path(dag_id, root)}/runs/{quote(run_id, safe='')}"


def task_path(dag_id: str, run_id: str, task_id: str, map_index: int | None, root: str = "") -> str:
    """Airflow's own page of a task instance, or, without an index, of all mapped instances."""
    mapped = "/mapped" if map_index is None else f"/mapped/{map_index}" if map_index >= 0 else ""
    return f"{run_path(dag_id, run_id, root)}/tasks/{quote(task_id, safe='')}{mapped}"


def action_path(dag_id: str, run_id: str, task_id: str, map_index: int, root: str = "") -> str:
    """Airflow's own page of the question that a task instance asks."""
    return f"{task_path(dag_id, run_id, task_id, map_index, root)}/required_actions"


def files_url(location: str) -> str:
    """The web address of a release's files; empty if their store has none.

    A WebHDFS URL names a NameNode, which has a file browser. A local folder has no web address, and
    an S3 URL does not tell which console its bucket has.
    """
    match = _WEBHDFS.fullmatch(location)
    if match is None:
        return ""
    secure, server, path = match.groups()
    return f"http{secure}://{server}/explorer.html#{quote(path)}"
