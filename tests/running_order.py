"""In which order tests run, and which of them share a process."""

from __future__ import annotations

import pytest

__all__ = ["AIRFLOWS", "in_order", "scope_of"]

SERVERS, AIRFLOWS = "tests that start HDFS or Spark", "tests of a whole Airflow"
FRAGILE = "tests that do harm to a Spark of their own"
_SCOPES = {
    "tests/engines/test_disturbed_steps.py": FRAGILE,
    "tests/engines/test_faults.py": FRAGILE,
    "tests/engines/": SERVERS,
    "tests/hooks/test_connections.py": SERVERS,
    "tests/hooks/test_filesystems.py": SERVERS,
    "tests/integration/": AIRFLOWS,
    "tests/operators/test_spark_places.py": SERVERS,
    "tests/servers/": SERVERS,
    "tests/soak/test_nights.py": AIRFLOWS,
    "tests/storage/test_archive.py": SERVERS,
    "tests/storage/test_hdfs.py": SERVERS,
    "tests/storage/test_remote.py": SERVERS,
    "tests/test_landing.py": SERVERS,
    "tests/test_remote_runs.py": SERVERS,
}


def scope_of(nodeid: str) -> str:
    """What runs in one process, in turn, with the test."""
    file = nodeid.partition("::")[0]
    return next((scope for path, scope in _SCOPES.items() if file.startswith(path)), file)


def in_order(items: list[pytest.Item], dealt: bool) -> list[pytest.Item]:
    """Whole Airflows last; where tests are dealt out, servers first, who are long parts in one.

    Last of all come those who share an Airflow, which runs until the end from the first of them on.
    """

    def turn(item: pytest.Item) -> int:
        scope = scope_of(item.nodeid)
        if scope == AIRFLOWS:
            return 2 if _shares(item) else 1
        return -1 if dealt and scope in (SERVERS, FRAGILE) else 0

    return sorted(items, key=turn)


def _shares(item: pytest.Item) -> bool:
    """Whether a test uses the ``project`` of the session, and not one of its module's own."""
    module = item.getparent(pytest.Module)
    return "project" in getattr(item, "fixturenames", ()) and not hasattr(module.obj, "project")
