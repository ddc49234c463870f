"""Where the pages are, and where they lead; whoever links to them imports nothing heavy."""

from __future__ import annotations

import re
from urllib.parse import quote

__all__ = [
    "PREFIX",
    "VIEW",
    "action_path",
    "dag_path",
    "files_url",
    "release_path",
    "run_path",
    "task_path",
]

PREFIX = "/mondrian_ops"
"""Under which Airflow mounts the pages."""

VIEW = "anonymization"
"""What Airflow calls its frame around them."""

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
    """Airflow's own page of a task instance; without an index, of all that a task is mapped to."""
    mapped = "/mapped" if map_index is None else f"/mapped/{map_index}" if map_index >= 0 else ""
    return f"{run_path(dag_id, run_id, root)}/tasks/{quote(task_id, safe='')}{mapped}"


def action_path(dag_id: str, run_id: str, task_id: str, map_index: int, root: str = "") -> str:
    """Airflow's own page of what a task instance waits for somebody to answer."""
    return f"{task_path(dag_id, run_id, task_id, map_index, root)}/required_actions"


def files_url(location: str) -> str:
    """Where a browser finds a release's files; empty where their store has no web address.

    WebHDFS is the HTTP address of a NameNode, which has a file browser. A local folder has none,
    nor has S3: which console a bucket has, if any, its URL does not tell.
    """
    found = _WEBHDFS.fullmatch(location)
    if found is None:
        return ""
    secure, server, path = found.groups()
    return f"http{secure}://{server}/explorer.html#{quote(path)}"
