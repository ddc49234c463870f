"""An Airflow of this checkout's own: one folder, loopback only, stopped as a whole.

For `make demo`, `make ui` and the tests: a real scheduler, API server and DAG processor, with
SQLite and the LocalExecutor, or with the caller's PostgreSQL, Redis and Celery workers. It writes
nothing outside its folder and needs no fixed port.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TextIO

import psutil

from airflow_api import START_S, AirflowApi, AirflowError

CHECKOUT = Path(__file__).resolve().parents[1]

# Gives each Celery worker on one machine a host name of its own. Airflow imports this module from
# the config folder of its home.
_WORKER_NAMES = """
import os


def worker_name():
    return os.environ["MONDRIAN_OPS_WORKER"]
"""

TRIGGERER = "triggerer"
_API_SERVER = "api-server"
_COMPONENTS = ((_API_SERVER,), ("scheduler", "--skip-serve-logs"), ("dag-processor",))
_CELERY = "airflow.providers.celery.executors.celery_executor.CeleryExecutor"
_STOP_S = 15


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
    raise AirflowError("no free port on 127.0.0.1")


class LocalAirflow(AirflowApi):
    """A context manager that runs Airflow, which answers at ``url``.

    :param home: its AIRFLOW_HOME; created if missing.
    :param dags: the DAG folder.
    :param port: of the API server; 0 takes a free one.
    :param parallelism: tasks that may run at once.
    :param database: SQLAlchemy's URL of the metadata database; SQLite in the folder without it.
    :param broker: Celery's URL of a broker: tasks then run on the workers that
        :meth:`start_worker` starts.
    :param settings: further environment variables.
    :param login: user and password of whoever uses the API, where not everybody is an admin.
    :param folder: the working directory of its processes; by default the caller's.
    :param python: a Python in which this package and Airflow are installed; by default the
        caller's, with the package of this checkout.
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
        login: tuple[str, str] | None = None,
        folder: Path | None = None,
        python: Path | None = None,
    ) -> None:
        self.home = home
        self._python = str(python or sys.executable)
        self._folder = folder
        self._login = login
        self._sqlite = None if database else home / "airflow.db"
        self._broker = broker
        self.port = port or free_port()
        super().__init__(f"http://127.0.0.1:{self.port}", logs=str(home / "logs"))
        self.environment = {
            **os.environ,
            **self._settings(dags, parallelism or max(4, os.cpu_count() or 1)),
            **({} if python else self._checkout()),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database
            or f"sqlite:///{self._sqlite}?timeout=60",
            **self._executor(),
            **(settings or {}),
        }
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._lock: TextIO | None = None

    def _settings(self, dags: Path, parallelism: int) -> dict[str, str]:
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
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(self.home / "logs"),
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
            "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
            "NO_PROXY": "127.0.0.1,localhost",
        }

    def _checkout(self) -> dict[str, str]:
        plugins = str(CHECKOUT / "plugins")
        path = [plugins, *filter(None, [os.environ.get("PYTHONPATH")])]
        return {"AIRFLOW__CORE__PLUGINS_FOLDER": plugins, "PYTHONPATH": os.pathsep.join(path)}

    def _executor(self) -> dict[str, str]:
        if not self._broker:
            return {"AIRFLOW__CORE__EXECUTOR": "LocalExecutor"}
        return {
            "AIRFLOW__CELERY__BROKER_URL": self._broker,
            # A day, the default; without it every log has a warning.
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

    def __exit__(self, *_error: object) -> None:
        self._stop()

    def migrate(self) -> None:
        """Create the database, or migrate it to this Airflow's version."""
        if self._broker:
            config = self.home / "config"
            config.mkdir(parents=True, exist_ok=True)
            (config / "airflow_local_settings.py").write_text(_WORKER_NAMES)
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
        """Start a Celery worker, and wait until its log says that it is ready.

        :param name: the host name of its task instances.
        :param concurrency: the number of tasks that it runs at once.
        :param queues: the queues whose tasks it takes.
        :param within: a command that runs the worker's command, such as ``unshare --mount``.
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
        if not self.comes_true(lambda: f"{name} ready." in self._log(name)):
            raise AirflowError(f"worker {name} did not start; see {self.home / name}.log")

    def start_triggerer(self) -> None:
        """Start a triggerer, which deferred tasks need; :meth:`kill_worker` kills it, too."""
        self._start(TRIGGERER, [TRIGGERER, "--skip-serve-logs"])

    def kill_worker(self, name: str) -> None:
        """SIGKILL a worker and all its processes at once, as in a power cut."""
        process = self._processes.pop(name)
        kill_all(family(process.pid))
        process.wait()

    def kill(self) -> None:
        """SIGKILL all its processes at once, as in a power cut; they are still to be left."""
        kill_all([each for process in self._processes.values() for each in family(process.pid)])

    def command(self, *arguments: str) -> str:
        """Run an ``airflow`` command; returns what it printed."""
        log = self.home / "command.log"
        with log.open("ab") as errors:
            done = subprocess.run(
                [self._python, "-m", "airflow", *arguments],
                cwd=self._folder,
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=errors,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        if done.returncode:
            raise AirflowError(f"`airflow {' '.join(arguments)}` failed; see {log}")
        return done.stdout.decode()

    def _hold_lock(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        self._lock = (self.home / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise AirflowError(
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
                [*within, self._python, "-m", "airflow", *arguments],
                cwd=self._folder,
                env={**self.environment, **(settings or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _log(self, name: str) -> str:
        return (self.home / f"{name}.log").read_text(errors="replace")

    def _wait_until_it_answers(self) -> None:
        if not self.comes_true(self._answers):
            raise AirflowError(f"Airflow did not start in {START_S} s; see {self.home}/*.log")

    def _answers(self) -> bool:
        try:
            # The first request to this part of the API, which tasks use, takes seconds: make it
            # now, while the scheduler starts, too.
            self.request("GET", "/execution/health/ping")
            if self._login is None:
                self._token = self.request("GET", "/auth/token")["access_token"]
            else:
                self.log_in(*self._login)
        except (urllib.error.URLError, OSError):
            return False
        return True

    def processes(self) -> dict[str, psutil.Process]:
        """Its components, by name."""
        return {name: psutil.Process(each.pid) for name, each in self._processes.items()}

    def check_alive(self) -> None:
        """Raise AirflowError if one of its processes has ended."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                log = self.home / f"{name}.log"
                raise AirflowError(f"airflow {name} ended by itself; see {log}")

    def _stop(self) -> None:
        # All at once but the API server, to which tasks report to the last.
        api_servers = [each for name, each in self._processes.items() if name == _API_SERVER]
        _end([each for name, each in self._processes.items() if name != _API_SERVER])
        _end(api_servers)
        self._processes.clear()
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


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """End processes and all that they started: SIGTERM to all at once, then SIGKILL."""
    started = [each for process in processes for each in family(process.pid)]
    for process in processes:
        _signal(process, signal.SIGTERM)
    end = time.monotonic() + _STOP_S
    for process in processes:
        try:
            process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGKILL)
            process.wait()
        _signal(process, signal.SIGKILL)  # the rest of its session
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
    """SIGKILL the processes that still run."""
    for process in processes:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
