"""An Airflow of this checkout's own: one folder, loopback only, stopped as a whole.

For `make demo`, `make ui` and the tests: a real scheduler, API server and DAG processor, with
SQLite and the LocalExecutor, or with a PostgreSQL, a Redis and Celery workers that the caller
names. Nothing outside its folder is written, and no fixed port is needed.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO
from urllib.parse import quote

import psutil

CHECKOUT = Path(__file__).resolve().parents[1]
FINISHED = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})

# Airflow imports this module of a home's config folder in every process. Tasks are forked from the
# scheduler's workers, or Celery's: what those have imported, no task need import, which halves a
# small task. Celery workers on one machine go by the names they were given.
_LOCAL_SETTINGS = """
import os
import sys

if {"scheduler", "worker"} & {*sys.argv}:
    import pandas  # pyarrow imports it at the first value
    import mondrian_ops.pipeline


def worker_name():
    return os.environ["MONDRIAN_OPS_WORKER"]
"""

_COMPONENTS = (("api-server",), ("scheduler", "--skip-serve-logs"), ("dag-processor",))
_CELERY = "airflow.providers.celery.executors.celery_executor.CeleryExecutor"
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
    :param database: SQLAlchemy's URL of the metadata database; SQLite in the folder without it.
    :param broker: Celery's URL of a broker: tasks then run on the workers that
        :meth:`start_worker` starts.
    :param settings: further environment variables.
    """

    def __init__(
        self,
        home: Path,
        dags: Path = CHECKOUT / "dags",
        *,
        port: int = 0,
        parallelism: int = 0,
        database: str = "",
        broker: str = "",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.home = home
        self._sqlite = None if database else home / "airflow.db"
        self._broker = broker
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = {
            **os.environ,
            **self._settings(dags, parallelism or max(4, os.cpu_count() or 1)),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database
            or f"sqlite:///{self._sqlite}?timeout=60",
            **self._executor(),
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
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PARALLELISM": str(parallelism),
            "AIRFLOW__CORE__PLUGINS_FOLDER": plugins,
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(self.home / "logs"),
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
            "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
            "NO_PROXY": "127.0.0.1,localhost",
            "PYTHONPATH": os.pathsep.join(path),
        }

    def _executor(self) -> dict[str, str]:
        if not self._broker:
            return {"AIRFLOW__CORE__EXECUTOR": "LocalExecutor"}
        return {
            "AIRFLOW__CELERY__BROKER_URL": self._broker,
            # A day, as is the default; said here, it is not warned of in every log.
            "AIRFLOW__CELERY_BROKER_TRANSPORT_OPTIONS__VISIBILITY_TIMEOUT": "86400",
            "AIRFLOW__CORE__EXECUTOR": _CELERY,
        }

    def __enter__(self) -> LocalAirflow:
        self._hold_lock()
        try:
            self.migrate()
            for component, *options in _COMPONENTS:
                self._start(component, [component, *options])
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
        if self._sqlite is not None:
            # Readers and the writer do not wait for one another, which three processes need.
            database = sqlite3.connect(self._sqlite)
            database.execute("PRAGMA journal_mode=WAL")
            database.close()

    def start_worker(
        self,
        name: str,
        *,
        concurrency: int = 1,
        queues: str = "default",
        within: Sequence[str] = (),
    ) -> None:
        """Start a Celery worker; it is ready when it has said so in its log.

        :param name: what task instances give as their host.
        :param concurrency: tasks it runs at once.
        :param queues: whose tasks it takes.
        :param within: a command that runs the worker's, such as ``unshare --mount``.
        """
        options = {
            "--celery-hostname": name,
            "--concurrency": str(concurrency),
            "--pid": str(self.home / f"{name}.pid"),
            "--queues": queues,
        }
        self._start(
            name,
            ["celery", "worker", "--skip-serve-logs", *chain.from_iterable(options.items())],
            settings={
                "AIRFLOW__CORE__HOSTNAME_CALLABLE": "airflow_local_settings.worker_name",
                "MONDRIAN_OPS_WORKER": name,
            },
            within=within,
        )
        if not self._comes_true(lambda: f"{name} ready." in self._log(name)):
            raise LocalAirflowError(f"worker {name} did not start; see {self.home / name}.log")

    def kill_worker(self, name: str) -> None:
        """SIGKILL a worker and all its processes at once: nobody is told, as in a power cut."""
        process = self._processes.pop(name)
        kill_all(family(process.pid))
        process.wait()

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

    def _start(
        self,
        name: str,
        arguments: Sequence[str],
        *,
        settings: Mapping[str, str] | None = None,
        within: Sequence[str] = (),
    ) -> None:
        with (self.home / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                [*within, sys.executable, "-m", "airflow", *arguments],
                env={**self.environment, **(settings or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _log(self, name: str) -> str:
        return (self.home / f"{name}.log").read_text(errors="replace")

    def _wait_until_it_answers(self) -> None:
        if not self._comes_true(self._answers):
            raise LocalAirflowError(f"Airflow did not start in {_START_S} s; see {self.home}/*.log")

    def _answers(self) -> bool:
        try:
            # Tasks talk to this part of the API, which takes seconds to get ready when first
            # asked: let that be now, beside the scheduler's own start.
            self.request("GET", "/execution/health/ping")
            self._token = self.request("GET", "/auth/token")["access_token"]
        except (urllib.error.URLError, OSError):
            return False
        return True

    def _wait_for_dag(self, dag_id: str) -> None:
        if not self._comes_true(lambda: self._knows(dag_id)):
            errors = self._import_errors()
            raise LocalAirflowError(f"{dag_id}: no such DAG after {_START_S} s{errors}")

    def _knows(self, dag_id: str) -> bool:
        try:
            self.request("GET", f"/api/v2/dags/{dag_id}")
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return False
        return True

    def _comes_true(self, condition: Callable[[], bool]) -> bool:
        """Whether a condition holds within the time that a start may take."""
        end = time.monotonic() + _START_S
        while not condition():
            self.check_alive()
            if time.monotonic() > end:
                return False
            time.sleep(0.2)
        return True

    def _import_errors(self) -> str:
        found = self.request("GET", "/api/v2/importErrors")["import_errors"]
        return "".join(f"\n{each['filename']}: {each['stack_trace']}" for each in found)

    def check_alive(self) -> None:
        """Raise LocalAirflowError if one of its processes has ended."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                log = self.home / f"{name}.log"
                raise LocalAirflowError(f"airflow {name} ended by itself; see {log}")

    def _stop(self) -> None:
        # Last in, first out: tasks report to the API server to the last.
        while self._processes:
            _name, process = self._processes.popitem()
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
    started = family(process.pid)
    _signal(process, signal.SIGTERM)
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGKILL)
        process.wait()
    _signal(process, signal.SIGKILL)  # what it left of its session
    kill_all(started)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return


def family(pid: int) -> list[psutil.Process]:
    """A process and all it started, itself first, whatever process groups they are in."""
    try:
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def kill_all(processes: Sequence[psutil.Process]) -> None:
    """SIGKILL, to those that are still there."""
    for each in processes:
        try:
            each.kill()
        except psutil.NoSuchProcess:
            continue
