"""A copy of the project for an Airflow of the tests to run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_airflow import CHECKOUT, LocalAirflow

FAILING_DAGS = Path(__file__).parents[1] / "servers" / "airflow" / "dags" / "failing_dags.py"
APART = Path(__file__).parents[1] / "servers" / "airflow" / "dags" / "apart.py"
KILLED_ONCE = Path(__file__).parents[1] / "servers" / "airflow" / "dags" / "killed_once.py"
CALM = {"AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "1"}
"""A scheduler that has nothing to do looks once a second: five times take a quarter of a core."""
QUASI_IDENTIFIERS = ["age", "sex", "zip=prefix", "country=hierarchy:countries.csv"]
_IMPORTS = """
import sys

if "scheduler" in sys.argv:
    import airflow.dag_processing.dagbag
    import airflow.sdk.execution_time.task_runner
    from mondrian_ops.lean_imports import import_lean

    import_lean()
    from mondrian_ops import pipeline, task_groups
    from mondrian_ops.catalogue import database, releases
    from mondrian_ops.engines import local, release_check
    from mondrian_ops.hooks import store_credentials
    from mondrian_ops.report import page
    from mondrian_ops.series import nights
    from mondrian_ops.tables import csv_files
    from mondrian_ops.publish import release
    import killed_once
"""


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


def opened(root: Path, *more: str) -> dict[str, str]:
    """Settings by which jobs may read all of a project, write to its ``out``, and do both at
    ``more`` locations."""
    return {
        "AIRFLOW__MONDRIAN_OPS__ALLOWED_INPUTS": str(root),
        "AIRFLOW__MONDRIAN_OPS__ALLOWED_OUTPUTS": ", ".join([str(root / "out"), *more]),
    }


def copied(root: Path) -> Path:
    """A copy of the project, with the DAGs of the tests."""
    shutil.copytree(CHECKOUT / "include", root / "include")
    shutil.copytree(CHECKOUT / "dags", root / "dags", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(FAILING_DAGS, root / "dags")
    shutil.copy(APART, root / "dags")
    (root / "include" / "apart").mkdir()
    (root / "include" / "apart" / "visits.yaml").write_text("{k: 2, quasi_identifiers: [age]}")
    return root


def forking_with_imports(root: Path) -> Path:
    """Have the scheduler of a project import what its tasks need, which are forked from it.

    Two thirds of a task of the tests are imports. Tasks that import for themselves run in
    `test_airflow_run.py` and on Celery.
    """
    config = root / "airflow" / "config"
    config.mkdir(parents=True)
    (config / "airflow_local_settings.py").write_text(_IMPORTS)
    shutil.copy(KILLED_ONCE, config)
    return root


def airflow_of(root: Path, database: str, settings: Mapping[str, str], **more: Any) -> LocalAirflow:
    """An Airflow, to be entered, that runs the project in a folder; ``more``: see there."""
    return LocalAirflow(
        root / "airflow",
        root / "dags",
        parallelism=4,
        database=database,
        settings={**CALM, **settings},
        **more,
    )


@contextmanager
def running(airflow: LocalAirflow) -> Iterator[LocalAirflow]:
    """Run an Airflow, and kill it in the end: to end well takes it as long as a run."""
    with airflow:
        yield airflow
        airflow.kill()
