"""An Airflow of this checkout's own: one folder, SQLite, LocalExecutor, loopback only.

For `make demo`, `make ui` and the tests: a real scheduler, API server and DAG processor, started
and stopped as a whole. Nothing outside its folder is written, and no fixed port is needed.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO
from urllib.parse import quote

CHECKOUT = Path(__file__).resolve().parents[1]
FINISHED = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})

# Airflow imports this module of a home's config folder in every process. Tasks are forked from the
# scheduler's workers: what those have imported, no task need import, which halves a small task.
_LOCAL_SETTINGS = """
import sys

if "scheduler" in sys.argv:
    import pandas  # pyarrow imports it at the first value
    import mondrian_ops.pipeline
"""

_COMPONENTS = (("api-server",), ("scheduler", "--skip-serve-logs"), ("dag-processor",))
_START_S = 120
_STOP_S = 15


class LocalAirflowError(Exception):
    """Airflow did not start, answer or finish; the message says where to look."""


def free_port(preferred: int = 0) -> int:
    """A free port on the loopback interface; the preferred one if it is free."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise LocalAirflowError("no free port on 127.0.0.1")


class LocalAirflow:
    """A context manager: inside it Airflow runs, and answers at ``url``.

    :param home: its AIRFLOW_HOME; made if it is not there.
    :param dags: the DAG folder.
    :param port: of the API server; 0 takes a free one.
    :param parallelism: tasks that may run at once.
    :param settings: further environment variables.
    """

    def __init__(
        self,
        home: Path,
        dags: Path = CHECKOUT / "dags",
        *,
        port: int = 0,
        parallelism: int = 0,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.home = home
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = {
            **os.environ,
            **self._settings(dags, parallelism or max(4, os.cpu_count() or 1)),
            **(settings or {}),
        }
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._lock: TextIO | None = None
        self._token = ""
        # A proxy of the environment is no way to this machine.
        self._http = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def _settings(self, dags: Path, parallelism: int) -> dict[str, str]:
        plugins = str(CHECKOUT / "plugins")
        path = [plugins, *filter(None, [os.environ.get("PYTHONPATH")])]
        return {
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW_CONFIG": str(self.home / "airflow.cfg"),
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
            "AIRFLOW__CORE__AUTH_MANAGER": (
                "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager"
            ),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PARALLELISM": str(parallelism),
            "AIRFLOW__CORE__PLUGINS_FOLDER": plugins,
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self._database}?timeout=60",
            "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(self.home / "logs"),
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
            "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
            "NO_PROXY": "127.0.0.1,localhost",
            "PYTHONPATH": os.pathsep.join(path),
        }

    @property
    def _database(self) -> Path:
        return self.home / "airflow.db"

    def __enter__(self) -> LocalAirflow:
        self._hold_lock()
        try:
            self.migrate()
            for component, *options in _COMPONENTS:
                self._start(component, options)
            self._wait_until_it_answers()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def migrate(self) -> None:
        """Make the database, or bring it up to this Airflow's version."""
        config = self.home / "config"
        config.mkdir(parents=True, exist_ok=True)
        (config / "airflow_local_settings.py").write_text(_LOCAL_SETTINGS)
        self.command("db", "migrate")
        # Readers and the writer do not wait for one another, which three processes need.
        database = sqlite3.connect(self._database)
        database.execute("PRAGMA journal_mode=WAL")
        database.close()

    def command(self, *arguments: str) -> str:
        """Run an ``airflow`` command; returns what it printed."""
        log = self.home / "command.log"
        with log.open("ab") as errors:
            done = subprocess.run(
                [sys.executable, "-m", "airflow", *arguments],
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=errors,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        if done.returncode:
            raise LocalAirflowError(f"`airflow {' '.join(arguments)}` failed; see {log}")
        return done.stdout.decode()

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Call the REST API; returns the decoded answer.

        Raises urllib.error.HTTPError for an answer that is an error.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(  # noqa: S310 - our own server, over http
            f"{self.url}{path}", data=data, method=method, headers=headers
        )
        with self._http.open(request, timeout=30) as answer:
            return json.load(answer)

    def unpause(self, dag_id: str) -> None:
        """Wait until the DAG is known and let its runs be scheduled."""
        self._wait_for_dag(dag_id)
        self.request("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": False})

    def trigger(
        self,
        dag_id: str,
        conf: Mapping[str, Any] | None = None,
        logical_date: str | None = None,
    ) -> str:
        """Unpause a DAG and start a run of it; returns the run's id."""
        self.unpause(dag_id)
        body = {"logical_date": logical_date, "conf": conf or {}}
        return str(self.request("POST", f"/api/v2/dags/{dag_id}/dagRuns", body)["dag_run_id"])

    def run(self, dag_id: str, run_id: str) -> dict[str, Any]:
        """The run as the API describes it."""
        found: dict[str, Any] = self.request("GET", _run_path(dag_id, run_id))
        return found

    def tasks(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """The task instances of a run."""
        path = f"{_run_path(dag_id, run_id)}/taskInstances?limit=1000"
        found: list[dict[str, Any]] = self.request("GET", path)["task_instances"]
        return found

    def watch(
        self, dag_id: str, run_id: str, timeout: float = 600, every: float = 0.5
    ) -> Iterator[list[dict[str, Any]]]:
        """The task instances of a run, again and again until the run is over."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            self.check_alive()
            over = self.run(dag_id, run_id)["state"] in ("success", "failed")
            yield self.tasks(dag_id, run_id)
            if over:
                return
            time.sleep(every)
        raise LocalAirflowError(
            f"{dag_id}: not over after {timeout:.0f} s; see {self.home / 'logs'}"
        )

    def finish(self, dag_id: str, run_id: str, timeout: float = 600) -> str:
        """Wait until a run is over; returns its state."""
        for _tasks in self.watch(dag_id, run_id, timeout):
            pass
        return str(self.run(dag_id, run_id)["state"])

    def log_of(self, dag_id: str, run_id: str, task: Mapping[str, Any]) -> str:
        """What the last try of a task instance logged."""
        path = (
            f"{_run_path(dag_id, run_id)}/taskInstances/{task['task_id']}/logs/"
            f"{max(1, task['try_number'])}?map_index={task['map_index']}"
        )
        lines = self.request("GET", path)["content"]
        return "\n".join(_log_line(line) for line in lines)

    def _hold_lock(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        self._lock = (self.home / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LocalAirflowError(
                f"an Airflow already runs in {self.home}; stop it first (Ctrl-C where it runs)"
            ) from None

    def _start(self, component: str, options: Sequence[str]) -> None:
        with (self.home / f"{component}.log").open("wb") as log:
            self._processes[component] = subprocess.Popen(
                [sys.executable, "-m", "airflow", component, *options],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _wait_until_it_answers(self) -> None:
        end = time.monotonic() + _START_S
        while time.monotonic() < end:
            self.check_alive()
            try:
                # Tasks talk to this part of the API, which takes seconds to get ready when first
                # asked: let that be now, beside the scheduler's own start.
                self.request("GET", "/execution/health/ping")
                self._token = self.request("GET", "/auth/token")["access_token"]
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
                continue
            return
        raise LocalAirflowError(f"Airflow did not start in {_START_S} s; see {self.home}/*.log")

    def _wait_for_dag(self, dag_id: str) -> None:
        end = time.monotonic() + _START_S
        while time.monotonic() < end:
            self.check_alive()
            try:
                self.request("GET", f"/api/v2/dags/{dag_id}")
            except urllib.error.HTTPError as error:
                if error.code != 404:
                    raise
                time.sleep(0.2)
                continue
            return
        raise LocalAirflowError(f"{dag_id}: no such DAG after {_START_S} s{self._import_errors()}")

    def _import_errors(self) -> str:
        found = self.request("GET", "/api/v2/importErrors")["import_errors"]
        return "".join(f"\n{each['filename']}: {each['stack_trace']}" for each in found)

    def check_alive(self) -> None:
        """Raise LocalAirflowError if one of its processes has ended."""
        for component, process in self._processes.items():
            if process.poll() is not None:
                log = self.home / f"{component}.log"
                raise LocalAirflowError(f"airflow {component} ended by itself; see {log}")

    def _stop(self) -> None:
        # The scheduler first: its tasks report to the API server to the last.
        for component in ("scheduler", "dag-processor", "api-server"):
            process = self._processes.pop(component, None)
            if process is not None:
                _end(process)
        if self._lock is not None:
            self._lock.close()


@contextmanager
def termination_as_exit() -> Iterator[None]:
    """Make SIGTERM raise SystemExit, so that context managers stop what they started."""

    def stop(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run_path(dag_id: str, run_id: str) -> str:
    return f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}"


def _log_line(line: Any) -> str:
    if not isinstance(line, Mapping):
        return str(line)
    details = "".join(
        f"\n{each.get('exc_type')}: {each.get('exc_value')}"
        for each in line.get("error_detail") or ()
    )
    return f"{line.get('event', '')}{details}"


def _end(process: subprocess.Popen[bytes]) -> None:
    _signal(process, signal.SIGTERM)
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGKILL)
        process.wait()
    _signal(process, signal.SIGKILL)  # what it left of its session


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return
