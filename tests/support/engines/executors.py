"""What the executors of a cluster have logged of their tasks."""

from __future__ import annotations

import re

from servers.spark import SparkCluster

Task = tuple[int, int]
"""A task's id, and the number of the worker that has it."""


def tasks(cluster: SparkCluster, words: str) -> set[Task]:
    """The tasks of which the executors' logs say ``words``."""
    found: set[Task] = set()
    for worker in (0, 1):
        for log in cluster.logs.parent.glob(f"worker-{worker}/app-*/*/stderr"):
            ids = re.findall(rf"(?:{words}) task .*\(TID (\d+)\)", log.read_text(errors="replace"))
            found |= {(int(task), worker) for task in ids}
    return found


def unfinished(cluster: SparkCluster) -> set[Task]:
    """The tasks that run, and those that were killed with their executor."""
    return tasks(cluster, "Running") - tasks(cluster, "Finished|killed|Exception in")
