"""Real Airflows for the integration tests, each over a copy of the project's DAGs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local_airflow import CHECKOUT, LocalAirflow

HERE = Path(__file__).parent
QUASI_IDENTIFIERS = ["age", "sex", "zip=prefix", "country=hierarchy:countries.csv"]


@dataclass(frozen=True)
class Project:
    """A copy of the project in a folder of the tests, and the Airflow that runs it."""

    root: Path
    airflow: LocalAirflow

    def job(self, name: str, **changed: Any) -> dict[str, Any]:
        """A job over the example, to a release of its own."""
        return {
            "input": str(self.root / "include" / "examples" / "people.csv"),
            "output": str(self.output(name)),
            "k": 5,
            "l": 2,
            "identifiers": ["name"],
            "quasi_identifiers": QUASI_IDENTIFIERS,
            "sensitive": ["diagnosis"],
            "unlisted": "drop",
            "cut": "median",
            **changed,
        }

    def output(self, name: str) -> Path:
        """Where the release of a job goes: alone in its folder, so that leftovers show."""
        return self.root / "out" / name / "release"

    def leftovers(self, name: str) -> list[str]:
        """What lies beside a release, working files among it."""
        return sorted(
            each.name for each in self.output(name).parent.glob("*") if each.name != "release"
        )


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """The project under the LocalExecutor."""
    root = copied(tmp_path_factory.mktemp("project"))
    settings = {
        "AIRFLOW_VAR_MONDRIAN_OPS_LANDING": str(root / "landing"),
        "AIRFLOW_VAR_MONDRIAN_OPS_RELEASES": str(root / "out" / "nightly"),
        "AIRFLOW_VAR_MONDRIAN_OPS_JOBS": str(root / "include" / "jobs"),
    }
    airflow = LocalAirflow(root / "airflow", root / "dags", parallelism=4, settings=settings)
    with airflow:
        yield Project(root, airflow)


@pytest.fixture(scope="module")
def celery_project(
    tmp_path_factory: pytest.TempPathFactory, redis_url: str, postgres_url: str
) -> Iterator[Project]:
    """The project under the CeleryExecutor, with two workers that do one task at a time."""
    root = copied(tmp_path_factory.mktemp("celery"))
    airflow = LocalAirflow(
        root / "airflow",
        root / "dags",
        database=postgres_url,
        broker=redis_url,
        settings={
            "HELD": str(root / "held"),
            # A worker that is gone is missed after seconds, not minutes.
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "40",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "1",
            "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "2",
        },
    )
    with airflow:
        for name in ("worker-0", "worker-1"):
            airflow.start_worker(name)
        yield Project(root, airflow)


def copied(root: Path) -> Path:
    """A copy of the project, with the DAGs of the tests."""
    shutil.copytree(CHECKOUT / "include", root / "include")
    shutil.copytree(CHECKOUT / "dags", root / "dags", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HERE / "dags" / "rehearsals.py", root / "dags")
    return root
