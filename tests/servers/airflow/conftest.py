"""Real Airflows for the integration tests, each over a copy of the project's DAGs."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from faults.airflow_harness import watching
from local_airflow import LocalAirflow
from own_wheel import built, environment
from projects import (
    CALM,
    Project,
    airflow_of,
    copied,
    forking_with_imports,
    opened,
    running,
)

CATALOGUE = "a_catalogue"
"""The connection to the catalogue of the Airflow that runs on Celery."""

STORES = ("hdfs://hdfs_not_to_be_told@namenode:8020/tests", "s3://airflow-bucket")
"""What the tests of remote stores read and write; the first through a connection of its own."""


@pytest.fixture(scope="package")  # it is stopped before its process runs other tests
def project(
    tmp_path_factory: pytest.TempPathFactory, airflow_database: Callable[[], str]
) -> Iterator[Project]:
    """The project under the LocalExecutor."""
    root = forking_with_imports(copied(tmp_path_factory.mktemp("project")))
    lineage = root / "airflow" / "lineage"
    lineage.mkdir(parents=True)
    settings = {
        **opened(root, *STORES),
        "MONDRIAN_OPS_HIERARCHIES": str(root / "include" / "hierarchies"),
        "AIRFLOW_VAR_MONDRIAN_OPS_LANDING": str(root / "landing"),
        "AIRFLOW_VAR_MONDRIAN_OPS_RELEASES": str(root / "out" / "nightly"),
        "AIRFLOW_VAR_MONDRIAN_OPS_JOBS": str(root / "include" / "jobs"),
        "AIRFLOW_VAR_MONDRIAN_OPS_SETTLE_MINUTES": "0",
        "AIRFLOW__CORE__MAX_ACTIVE_RUNS_PER_DAG": "32",
        **_catalogued(lineage),
    }
    with running(airflow_of(root, airflow_database(), settings)) as airflow:
        yield Project(root, airflow)


def _catalogued(folder: Path) -> dict[str, str]:
    """Settings by which OpenLineage writes what it hears of releases to a folder, a file each.

    Only of ``wrap_up``: the listener in the scheduler forks in the middle of transactions, which
    SQLite does not bear.
    """
    only_wrap_up = [
        {"scope": {}, "controls": {"emit": False}},
        {
            "scope": {"operator": "mondrian_ops.operators.wrap_up.WrapUpOperator"},
            "controls": {"emit": True},
        },
    ]
    transport = {"type": "file", "log_file_path": str(folder / "event")}
    return {
        "AIRFLOW__OPENLINEAGE__EMISSION_POLICY": json.dumps(only_wrap_up),
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
    }


@pytest.fixture(scope="module")
def celery_project(
    tmp_path_factory: pytest.TempPathFactory, redis_url: str, airflow_database: Callable[[], str]
) -> Iterator[Project]:
    """The project under the CeleryExecutor, with two workers that do one task at a time.

    It is installed as docs/deploy.md says: from the wheel and its extras alone; the catalogue is in
    PostgreSQL. As in docker-compose.yaml, the workers know neither Airflow's database nor the key
    of the API's tokens.
    """
    root = copied(tmp_path_factory.mktemp("celery"))
    wheel = built(tmp_path_factory)
    key = root / "catalogue.key"
    key.write_text(secrets.token_hex(32))
    key.chmod(0o600)
    airflow = LocalAirflow(
        root / "airflow",
        root / "dags",
        parallelism=16,  # no bound but that of the workers
        database=airflow_database(),
        broker=redis_url,
        python=environment(
            wheel, "airflow,celery,postgresql", tmp_path_factory.mktemp("installed")
        ),
        settings={
            **CALM,
            **opened(root),
            **watching(root),
            "HELD": str(root / "held"),
            "AIRFLOW__MONDRIAN_OPS__CATALOGUE_CONN_ID": CATALOGUE,
            "AIRFLOW__MONDRIAN_OPS__CATALOGUE_KEY": str(key),
            "AIRFLOW__CELERY__RESULT_BACKEND": f"{redis_url.rpartition('/')[0]}/1",
            # A worker that is gone is missed after seconds, not minutes.
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "40",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "1",
            "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "2",
        },
    )
    with running(airflow):
        url = airflow_database().replace("postgresql+psycopg2", "postgres")
        airflow.command("connections", "add", CATALOGUE, "--conn-uri", url)
        for name in ("worker-0", "worker-1"):
            config = f"AIRFLOW_CONFIG={root / 'airflow' / name}.cfg"  # others' has keys too
            hidden = ("AIRFLOW__API_AUTH__JWT_SECRET", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN")
            unset = [f"--unset={variable}" for variable in hidden]
            airflow.start_worker(name, within=["env", *unset, config])
        yield Project(root, airflow)
