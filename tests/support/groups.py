"""Which tier a test belongs to, which tests share a process, and in which order they run.

Of several processes one alone imports Airflow, which takes as long as collecting all other tests.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from servers.needs import NEEDS

AIRFLOW = "tests that share an Airflow"
NIGHTS = "tests that share another one, half of which wait for nights"
WHEEL = "tests of an Airflow on the wheel"
CELERY = "tests of an Airflow with Celery"
ON_SPARK = "tests of an Airflow with Spark"
SPARK = "tests that start Spark"
STORES = "tests that start HDFS or S3"
FRAGILE = "tests that do harm to a Spark of their own"
LOGINS = "tests of an Airflow whose users log in"
SANITIZED = "tests of the kernels once more"
FAULTS = "tests that fork from one process that has imported everything"
PROBES = "tests that share a compiled library"
_LONGEST_FIRST = (
    *(AIRFLOW, NIGHTS, SPARK, ON_SPARK, LOGINS, CELERY, STORES, FRAGILE, WHEEL, SANITIZED),
    FAULTS,
)
GROUPS = {
    "tests/integration/faults/": FAULTS,
    "tests/integration/test_airflow_run.py": WHEEL,
    "tests/integration/test_sanitized_kernels.py": SANITIZED,
    "tests/servers/airflow/logins/": LOGINS,
    "tests/servers/airflow/test_celery.py": CELERY,
    "tests/servers/airflow/test_spark.py": ON_SPARK,
    "tests/servers/airflow/test_attack_runs.py": NIGHTS,
    "tests/servers/airflow/test_frontier_runs.py": NIGHTS,
    "tests/servers/airflow/test_lineage_runs.py": NIGHTS,
    "tests/servers/airflow/test_nights.py": NIGHTS,
    "tests/servers/airflow/test_series_nights.py": NIGHTS,
    "tests/servers/airflow/": AIRFLOW,
    "tests/servers/catalogue/": CELERY,  # whose PostgreSQL it uses
    "tests/servers/engines/test_disturbed_steps.py": FRAGILE,
    "tests/servers/engines/test_faults.py": FRAGILE,
    "tests/servers/engines/": SPARK,
    "tests/servers/test_golden.py": SPARK,
    "tests/servers/test_spark.py": SPARK,
    "tests/servers/": STORES,
    "tests/unit/cut/native/test_local_search.py": PROBES,
    "tests/unit/cut/native/test_mondrian.py": PROBES,
    "tests/unit/cut/native/test_splitting.py": PROBES,
    "tests/unit/cut/native/test_validity.py": PROBES,
    "tests/unit/operators/test_engines.py": SPARK,
    "tests/unit/nightly/test_landing.py": STORES,
}

IMPORTING_AIRFLOW = (
    "tests/integration/attacks/test_changed_job.py",
    "tests/integration/attacks/test_conditions.py",
    "tests/integration/attacks/test_forged_approvals.py",
    "tests/integration/attacks/test_release_ids.py",
    "tests/integration/attacks/test_shared_folders.py",
    "tests/integration/attacks/test_waiting_rows.py",
    "tests/unit/dags/",
    "tests/unit/docker/test_compose_file.py",
    "tests/unit/docker/test_kubernetes.py",
    "tests/unit/hooks/",
    "tests/unit/nightly/test_acceptance.py",
    "tests/unit/nightly/test_claims.py",
    "tests/unit/operators/",
    "tests/unit/test_airflow_plugin.py",
    "tests/unit/test_forms.py",
    "tests/unit/test_nightly_dags.py",
    "tests/unit/test_notifications.py",
    "tests/unit/test_task_groups.py",
    "tests/unit/web/",
)
"""The modules and folders of tests that import Airflow when they are collected."""


def tier_of(item: pytest.Item) -> str:
    """``soak``, ``servers`` or, for what a bare machine can do, nothing.

    Long tests are among those of servers by their own marker.
    """
    markers = {mark.name for mark in item.iter_markers()}
    if item.nodeid.startswith("tests/soak/") or "soak" in markers:
        return "soak"
    needs_server = not markers.isdisjoint(NEEDS)
    return "servers" if needs_server or item.nodeid.startswith("tests/servers/") else ""


def imports_airflow(nodeid: str) -> bool:
    """Whether the module of a test, or a module or folder, is in ``IMPORTING_AIRFLOW``."""
    return nodeid.startswith(IMPORTING_AIRFLOW)


def leaves_airflow_out(config: pytest.Config) -> bool:
    """Whether this is one of several processes, but not the first, which alone imports Airflow."""
    return getattr(config, "workerinput", {}).get("workerid", "gw0") != "gw0"


def group_of(nodeid: str) -> str:
    """What one process runs, in turn, with the test: its file, or all that need its server."""
    file = nodeid.partition("::")[0]
    return next((group for path, group in GROUPS.items() if file.startswith(path)), file)


def in_order(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The groups that take longest first, so that none of them is left over in the end."""

    def turn(item: pytest.Item) -> int:
        group = group_of(item.nodeid)
        return _LONGEST_FIRST.index(group) if group in _LONGEST_FIRST else len(_LONGEST_FIRST)

    return sorted(items, key=turn)
