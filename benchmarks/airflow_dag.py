"""The DAG over a million rows beside a DAG of the same shape whose tasks do nothing.

Both run in an Airflow of their own: SQLite, LocalExecutor, in the scratch directory.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

from benchmarks import required
from benchmarks.context import Context
from benchmarks.measure import ROOT, python_path
from benchmarks.tables import Table, seconds, times

_RELEASE, _NOTHING = "benchmark_release", "benchmark_nothing"
_COMPONENTS = ("api-server", "dag-processor", "scheduler")
_START_S, _RUN_S = 180, 600


class AirflowError(Exception):
    """An Airflow of ours did not do what it was told in time."""


def beside_empty_dag(context: Context) -> Iterator[Table]:
    """Median durations of the two DAG runs, taken in turn after one run each to warm up."""
    job = context.job(context.rows, cut="median", partitioning={"fragments": 8})
    file = context.scratch / "dag-job.json"
    file.write_text(json.dumps(job), encoding="utf-8")
    found: dict[str, list[float]] = {_NOTHING: [], _RELEASE: []}
    with _airflow(context.scratch / "airflow", file) as airflow:
        for turn in range(context.rounds + 1):
            for dag, durations in found.items():
                context.say(f"{dag}, run {turn}")
                shutil.rmtree(job["output"], ignore_errors=True)
                took = airflow.run(dag, f"run_{turn}")
                if turn:
                    durations.append(took)
    nothing, release = (statistics.median(found[dag]) for dag in (_NOTHING, _RELEASE))
    yield Table(
        f"The DAG over {context.rows:,} rows, 8 fragments, LocalExecutor",
        ("", "required", "here", ""),
        [
            ("a DAG of the same shape whose tasks do nothing", "", seconds(nothing), ""),
            ("mondrian_ops", f"≤ {times(required.TIMES_EMPTY_DAG)}", seconds(release),
             context.verdict(release <= required.TIMES_EMPTY_DAG * nothing)),
            ("ratio", "", times(release / nothing), ""),
        ],
        note="From the start to the end of the DAG run, as Airflow records them; cut: median. "
        f"SQLite, runs in turn, median of {context.rounds} after one to warm up.",
    )  # fmt: skip


class _Airflow:
    """A running Airflow."""

    def __init__(self, home: Path, environment: dict[str, str]) -> None:
        self._database = home / "airflow.db"
        self._environment = environment

    def run(self, dag: str, run_id: str) -> float:
        """Trigger, wait for the end, and return the seconds from start to end."""
        _command(self._environment, "dags", "trigger", dag, "--run-id", run_id)
        query = "SELECT state, start_date, end_date FROM dag_run WHERE dag_id = ? AND run_id = ?"
        state, start, end = self._wait(query, (dag, run_id), ("success", "failed"), _RUN_S)
        if state != "success":
            raise AirflowError(f"{dag} {run_id}: {state}; see {self._database.parent / 'logs'}")
        return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()

    def wait_for_dags(self) -> None:
        """Wait until both DAGs are known, and let them run."""
        for dag in (_NOTHING, _RELEASE):
            self._wait("SELECT dag_id FROM dag_version WHERE dag_id = ?", (dag,), (dag,), _START_S)
            _command(self._environment, "dags", "unpause", dag, "--yes")

    def _wait(
        self, query: str, values: tuple[str, ...], wanted: tuple[str, ...], limit: float
    ) -> tuple[str, ...]:
        until = time.monotonic() + limit
        while time.monotonic() < until:
            with closing(sqlite3.connect(f"file:{self._database}?mode=ro", uri=True)) as database:
                row = database.execute(query, values).fetchone()
            if row and row[0] in wanted:
                return tuple(row)
            time.sleep(0.25)
        raise AirflowError(f"{values[0]}: nothing after {limit} s; see {self._database.parent}")


@contextmanager
def _airflow(home: Path, job: Path) -> Iterator[_Airflow]:
    home.mkdir()
    environment = _environment(home, job)
    _command(environment, "db", "migrate")
    processes = []
    try:
        for component in _COMPONENTS:
            with (home / f"{component}.log").open("wb") as log:
                processes.append(
                    subprocess.Popen(
                        [sys.executable, "-m", "airflow", component],
                        env=environment,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                )
        airflow = _Airflow(home, environment)
        airflow.wait_for_dags()
        yield airflow
    finally:
        for process in processes:
            _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            continue


def _environment(home: Path, job: Path) -> dict[str, str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ours = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    return ours | python_path() | {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "benchmarks" / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
        "BENCHMARK_JOB": str(job),
    }  # fmt: skip


def _command(environment: dict[str, str], *arguments: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "airflow", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        raise AirflowError(f"airflow {' '.join(arguments)}: {result.stderr[-2000:]}")
