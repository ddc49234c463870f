"""Which tests share a process, and in which order they run."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

__all__ = ["group_of", "in_order"]

AIRFLOW, SERVERS = "tests of a whole Airflow", "tests that start HDFS or Spark"
FRAGILE = "tests that do harm to a Spark of their own"
FAULTS = "tests that fork from one process that has imported everything"
_LONGEST_FIRST = (AIRFLOW, SERVERS, FRAGILE, FAULTS)
_GROUPS = {
    "tests/engines/test_disturbed_steps.py": FRAGILE,
    "tests/engines/test_faults.py": FRAGILE,
    "tests/engines/": SERVERS,
    "tests/faults/": FAULTS,
    "tests/hooks/test_connections.py": SERVERS,
    "tests/hooks/test_filesystems.py": SERVERS,
    "tests/integration/": AIRFLOW,
    "tests/operators/test_spark_places.py": SERVERS,
    "tests/servers/": SERVERS,
    "tests/soak/test_nights.py": AIRFLOW,
    "tests/storage/test_archive.py": SERVERS,
    "tests/storage/test_hdfs.py": SERVERS,
    "tests/storage/test_remote.py": SERVERS,
    "tests/test_landing.py": SERVERS,
    "tests/test_remote_runs.py": SERVERS,
}


def group_of(nodeid: str) -> str:
    """What one process runs, in turn, with the test: its file, or all that need its server."""
    file = nodeid.partition("::")[0]
    return next((group for path, group in _GROUPS.items() if file.startswith(path)), file)


def in_order(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The groups that take longest first, so that none of them is left over in the end.

    Of the tests of a whole Airflow those come last that share one.
    """

    def turn(item: pytest.Item) -> tuple[int, bool]:
        group = group_of(item.nodeid)
        if group not in _LONGEST_FIRST:
            return len(_LONGEST_FIRST), False
        return _LONGEST_FIRST.index(group), group == AIRFLOW and _shares(item)

    return sorted(items, key=turn)


def _shares(item: pytest.Item) -> bool:
    """Whether a test uses the ``project`` of all, and not one of its module's own."""
    module = item.getparent(pytest.Module)
    return "project" in getattr(item, "fixturenames", ()) and not hasattr(module.obj, "project")
