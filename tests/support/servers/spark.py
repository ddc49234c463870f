"""A Spark standalone cluster with a Spark Connect server, from the installed PySpark's jars."""

from __future__ import annotations

import json
import shutil
import sys
import sysconfig
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any

import psutil

from local_airflow import free_port
from servers.class_archive import BRIEF, CONF, SPARK_HOME, archived
from servers.java import java_home
from servers.processes import Process, ServerError, answers, wait_until

_LOG4J = """
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex
"""

# An application that spark-submit starts has one executor then.
_ONE_CORE = " -Dspark.deploy.defaultCores=1"

_REGISTERED = "Successfully registered with master"
_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"

# What executors run: the libraries that are installed here, but not this project, which the
# environment of a checkout finds through a .pth file. -S reads no such file.
_PYTHON = """#!/bin/sh
PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}{libraries}" exec "{python}" -S "$@"
"""


class SparkCluster:
    """A context manager: a master, workers of 2 GB, and a Spark Connect server.

    The Connect server gives executors back that have nothing to do, as it should on a cluster that
    others use: an application that spark-submit starts gets its turn. The executors' Python has the
    libraries of the tests, but not this project.

    :param folder: for logs, event logs and the workers' directories.
    :param workers: how many.
    :param cores: of each worker.
    :param conf: Spark settings of the Connect server beside those needed here.
    :param brief: start drivers and executors for less of the processor, not to be measured.
    :param hosts_apart: each worker has an address of its own (which only Linux gives unasked): on
        one host, Spark never runs a task twice.

    Attributes: ``master`` (spark://…), ``rest_port`` (where the master answers about drivers),
    ``remote`` (sc://…), ``events`` (the folder of the event logs), ``logs`` (the folder of the
    processes' logs), ``settings`` (environment variables for who calls spark-submit).
    """

    def __init__(
        self,
        folder: Path,
        *,
        workers: int = 2,
        cores: int = 1,
        conf: dict[str, str] | None = None,
        brief: bool = False,
        hosts_apart: bool = False,
    ) -> None:
        self.logs = folder / "logs"
        self.events = folder / "events"
        self._folder = folder
        self._count = workers
        self._cores = cores
        self._conf = conf or {}
        self._hosts_apart = hosts_apart
        self._web = free_port()
        self._connect_port = free_port()
        self.master = f"spark://127.0.0.1:{free_port()}"
        self.rest_port = free_port()
        self.remote = f"sc://127.0.0.1:{self._connect_port}"
        self._processes: dict[str, Process] = {}
        self._log4j = folder / "log4j2.properties"
        options = [BRIEF, *archived()] if brief else []
        self.settings = {
            "JAVA_HOME": java_home() or "",
            # All JVMs read it, executors and the drivers that run on the cluster among them.
            "JDK_JAVA_OPTIONS": " ".join(
                [f"-Dlog4j2.configurationFile={self._log4j.as_uri()}", *options]
            ),
            "PYSPARK_PYTHON": str(folder / "python"),
            "PYTHONPATH": "",
            "SPARK_DAEMON_JAVA_OPTS": BRIEF,  # the master and the workers have little to do
            "SPARK_DAEMON_MEMORY": "512m",
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=true "
            f"-Dspark.master.rest.port={self.rest_port}{_ONE_CORE if brief else ''}",
            "SPARK_CONF_DIR": str(CONF),
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }

    def __enter__(self) -> SparkCluster:
        if not java_home():
            raise ServerError("Spark needs Java 17, 21 or 25; set JAVA_HOME or install one")
        for folder in (self.logs, self.events):
            folder.mkdir(parents=True, exist_ok=True)
        self._write_conf()
        try:
            self._start_master()
            for number in range(self._count):
                self._start_worker(number)
            self._start_connect()
            self._wait_for_workers(self._count)
            self._wait_for_connect()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop()

    def restart_worker(self, number: int) -> None:
        """Start a worker again that was killed; returns once the master knows it."""
        log = self.logs / f"worker-{number}.log"
        before = log.read_text().count(_REGISTERED)
        self._start_worker(number)
        self._processes[log.stem].wait_for(lambda: log.read_text().count(_REGISTERED) > before)

    def kill_worker(self, number: int) -> None:
        """SIGKILL a worker, its executor and the Python processes there."""
        self._processes.pop(f"worker-{number}").kill()

    def busy_workers(self) -> list[int]:
        """The workers that run an executor of the Connect server, that of the oldest one first."""
        apps = [app["id"] for app in self._state()["activeapps"] if app["name"] == "connect"]
        numbers = {
            process.pid: int(name.removeprefix("worker-"))
            for name, process in self._processes.items()
            if name.startswith("worker-")
        }
        executors = [
            each.info
            for each in psutil.process_iter(["ppid", "cmdline", "create_time"])
            if each.info["ppid"] in numbers
            and _EXECUTOR in (each.info["cmdline"] or ())
            and not set(apps).isdisjoint(each.info["cmdline"])
        ]
        executors.sort(key=lambda each: each["create_time"])
        return [numbers[each["ppid"]] for each in executors]

    def alive_workers(self) -> int:
        """How many workers the master knows of and can reach."""
        return int(self._state()["aliveworkers"])

    def drivers(self) -> dict[str, str]:
        """What became of each driver that the master was asked to start."""
        state = self._state()
        known = [*state["activedrivers"], *state["completeddrivers"]]
        return {driver["id"]: driver["state"] for driver in known}

    def stop_connect(self) -> None:
        """Stop the Connect server; its sessions are gone."""
        self._processes.pop("connect").stop()

    def restart_connect(self) -> None:
        """Start the Connect server again, at the same address."""
        self._start_connect()
        self._wait_for_connect()

    def _write_conf(self) -> None:
        self._log4j.write_text(_LOG4J)
        python = self._folder / "python"
        libraries = sysconfig.get_path("purelib")
        python.write_text(_PYTHON.format(libraries=libraries, python=sys.executable))
        python.chmod(0o755)

    def _start_connect(self) -> None:
        settings = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self._connect_port),
            "spark.cores.max": str(self._count * self._cores),
            "spark.driver.host": "127.0.0.1",
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.executorIdleTimeout": "15s",
            "spark.dynamicAllocation.shuffleTracking.timeout": "15s",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": self.events.as_uri(),
            "spark.ui.port": str(free_port()),
            **self._conf,
        }
        self._start(
            "connect",
            "spark-submit",
            *("--master", self.master, "--name", "connect", "--driver-memory", "1g"),
            *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
            *(f"--conf={name}={value}" for name, value in settings.items()),
            "spark-internal",
        )

    def _wait_for_connect(self) -> None:
        self._processes["connect"].wait_for(lambda: answers(self._connect_port))

    def _start_master(self) -> None:
        port = self.master.rpartition(":")[2]
        self._start(
            "master",
            "spark-class",
            "org.apache.spark.deploy.master.Master",
            *("--host", "127.0.0.1", "--port", port, "--webui-port", str(self._web)),
        )
        self._processes["master"].wait_for(lambda: self._told().get("status") == "ALIVE")

    def _start_worker(self, number: int) -> None:
        name = f"worker-{number}"
        self._start(
            name,
            "spark-class",
            "org.apache.spark.deploy.worker.Worker",
            *("--host", self._host(number), "--webui-port", str(free_port())),
            *(
                "--cores",
                str(self._cores),
                "--memory",
                "2g",
                "--work-dir",
                str(self._folder / name),
            ),
            self.master,
        )

    def _host(self, number: int) -> str:
        return f"127.0.0.{1 + number}" if self._hosts_apart else "127.0.0.1"

    def _wait_for_workers(self, count: int) -> None:
        self._processes["master"].wait_for(lambda: self.alive_workers() >= count)

    def _start(self, name: str, program: str, *arguments: str) -> None:
        self._processes[name] = Process(
            [str(SPARK_HOME / "bin" / program), *arguments],
            self.logs / f"{name}.log",
            self.settings,
        )

    def _state(self) -> dict[str, Any]:
        """What the master says of itself, once it does."""
        state: dict[str, Any] = {}

        def told() -> bool:
            state.update(self._told())
            return bool(state)

        wait_until(told)
        return state

    def _told(self) -> dict[str, Any]:
        """What the master says of itself; nothing while its pages are not there."""
        # A proxy of the environment is no way to this machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"http://127.0.0.1:{self._web}/json/", timeout=10) as page:
                state: dict[str, Any] = json.load(page)
        except (OSError, HTTPException, ValueError):
            return {}
        return state

    def _stop(self) -> None:
        for name in sorted(self._processes):  # connect, master, workers
            self._processes.pop(name).stop()
        for work in self._folder.glob("worker-*"):
            shutil.rmtree(work, ignore_errors=True)
