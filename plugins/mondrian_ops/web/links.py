"""Where the pages are: paths only, so that whoever links to them imports nothing."""

from __future__ import annotations

from urllib.parse import quote

__all__ = ["PREFIX", "VIEW", "dag_path", "release_path", "run_path", "task_path"]

PREFIX = "/mondrian_ops"
"""Under which Airflow mounts the pages."""

VIEW = "anonymization"
"""What Airflow calls its frame around them."""


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
