"""The DAGs with the Spark engine: a real Airflow, a real cluster, by each type of connection.

Executors, and drivers in cluster mode, have the libraries but no copy of this project.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import psutil
import pytest
from pyarrow import parquet

from dag_runs import asked_for, classes, form, published, states, tries
from local_airflow import TRIGGERER, free_port
from mondrian_ops import pipeline
from mondrian_ops.datasets import generate
from projects import (
    FAILING_DAGS,
    Project,
    airflow_of,
    copied,
    forking_with_imports,
    opened,
    running,
)
from servers.needs import needs
from servers.processes import wait_until
from servers.spark import SparkCluster

pytestmark = [pytest.mark.airflow, pytest.mark.java]

ROWS = 12_000
SECRET = ("AIRFLOW__API_AUTH__JWT_SECRET", "AIRFLOW_CONN_CONNECT")
_DRIVER = "org.apache.spark.deploy.worker.DriverWrapper"
NOWHERE = {
    "nobody": ("the Spark Connect server of 'nobody' cannot be reached", 2),
    "odd": ("is of the type 'http'; name one of the type", 1),
    "missing": ("this Airflow has no connection 'missing'; make it", 1),
}
"""Connections, what is said of them, and how often a task tries."""
EXECUTORS = {"spark.executor.memory": "600m", "spark.driver.memory": "600m"}


@dataclass(frozen=True)
class Site(Project):
    """An Airflow, the cluster that its connections name, and a dataset of several files."""

    cluster: SparkCluster

    def spark_job(self, name: str, connection: str, **changed: Any) -> dict[str, Any]:
        """A job by the Spark engine, as a DAG's author writes it."""
        shape = "fragments" if connection == "connect" else "application"
        spark = {"connection": connection, "shape": shape, "conf": {}}
        if connection != "connect":
            spark["conf"] = EXECUTORS
        options = {"input": str(self.root / "people"), "engine": "spark", "spark": spark, **changed}
        return {**self.job(name, **options), "partitioning": {"fragments": 3, "sample": 1.0}}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """Drivers take cores too: two for each worker."""
    needs("java")
    with SparkCluster(tmp_path_factory.mktemp("spark"), cores=2, brief=True) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def site(cluster, airflow_database, tmp_path_factory) -> Iterator[Site]:
    root = forking_with_imports(copied(tmp_path_factory.mktemp("spark_project")))
    shutil.copy(FAILING_DAGS.with_name("retried.py"), root / "dags")
    generate("people", rows=ROWS, seed=0, output=str(root / "people.parquet"))
    (root / "people").mkdir()
    table = parquet.read_table(root / "people.parquet")
    for number in range(3):
        part = table.slice(number * ROWS // 3, ROWS // 3)
        parquet.write_table(part, root / "people" / f"{number}.parquet")
    rest = {"rest-port": str(cluster.rest_port)}
    connect = cluster.remote.removeprefix("sc://").rpartition(":")
    connections = {
        "connect": {"conn_type": "spark_connect", "host": connect[0], "port": int(connect[2])},
        "client": {"conn_type": "spark", "host": cluster.master},
        "cluster": {
            "conn_type": "spark",
            "host": cluster.master,
            "extra": json.dumps({"deploy-mode": "cluster", **rest}),
        },
        "nobody": {"conn_type": "spark_connect", "host": "127.0.0.1", "port": free_port()},
        "odd": {"conn_type": "http", "host": "127.0.0.1"},
    }
    told = {
        f"AIRFLOW_CONN_{name.upper()}": json.dumps(value) for name, value in connections.items()
    }
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    spark = {name: value for name, value in cluster.settings.items() if name != "PYTHONPATH"}
    settings = {
        **opened(root),
        "AIRFLOW__MONDRIAN_OPS__ALLOWED_CONNECTIONS": ", ".join([*connections, "missing"]),
        **told,
        **spark,
        "PATH": path,
        # A triggerer that is gone is missed after seconds.
        "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
        "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "4",
    }
    with running(airflow_of(root, airflow_database(), settings)) as airflow:
        airflow.start_triggerer()
        yield Site(root, airflow, cluster)


@dataclass
class Runs:
    """The runs that were started, and the release that the local engine makes of the same data."""

    site: Site
    started: dict[str, tuple[str, str]] = field(default_factory=dict)

    def start(self, dag_id: str, name: str, conf: dict[str, Any]) -> None:
        self.started[name] = dag_id, self.site.airflow.trigger(dag_id, conf)

    def over(self, name: str) -> tuple[str, list[dict[str, Any]]]:
        """Wait until a run is over; its state and its task instances."""
        run = self.started[name]
        return self.site.airflow.finish(*run), self.site.airflow.tasks(*run)

    def log(self, name: str, task: dict[str, Any]) -> str:
        return self.site.airflow.log_of(*self.started[name], task)


@pytest.fixture(scope="module")
def runs(request, site):
    """Runs of which several are under way at once; drivers on the cluster come one by one."""
    found = Runs(site)
    started_by_form(site, found, "connect", "fragments")
    for connection in asked_for(request, "connection") & {*NOWHERE}:
        name = f"connection_{connection}"
        found.start("retried", name, {"job": site.spark_job(name, connection)})
    return found


@pytest.fixture(scope="module")
def local(site):
    """The report and the classes of the local engine's release."""
    job = site.spark_job("local", "connect", engine="local")
    report = pipeline.run(pipeline.load_job(job))
    return report, classes(site.output("local"))


def agree(site, name, local):
    """Compare a release of the Spark engine with the local engine's."""
    report, its_classes = local
    assert published(site.output(name)) == ROWS
    assert classes(site.output(name)) == its_classes
    found = json.loads((site.output(name) / "_report.json").read_text())
    for key in ("metrics", "achieved", "equivalence_classes", "attributes", "risk"):
        assert found[key] == report[key], key
    parts = [(each["where"], each["rows"], each["NCP"]) for each in found["fragments"]]
    assert parts == [(each["where"], each["rows"], each["NCP"]) for each in report["fragments"]]
    assert site.leftovers(name) == []


@pytest.mark.parametrize(
    ("connection", "shape"),
    [
        ("connect", "fragments"),
        pytest.param("client", "application", marks=pytest.mark.soak),
        pytest.param("connect", "application", marks=pytest.mark.soak),
        pytest.param("cluster", "application", marks=pytest.mark.soak),
        pytest.param("client", "fragments", marks=pytest.mark.soak),
    ],
)
def test_the_trigger_form_reaches_spark(site, runs, local, connection, shape):
    name = started_by_form(site, runs, connection, shape)
    state, tasks = runs.over(name)
    assert state == "success"
    assert states(tasks)["anonymize_fragment", "success"] == (3 if shape == "fragments" else 1)
    assert set(tries(tasks).values()) == {1}
    agree(site, name, local)


def started_by_form(site, runs, connection, shape):
    """The name of a run that the form started, now or before."""
    name = f"{connection}_{shape}"
    if name in runs.started:
        return name
    properties = [] if connection == "connect" else [f"{k}={v}" for k, v in EXECUTORS.items()]
    job = site.job(
        name,
        input=str(site.root / "people"),
        engine="spark",
        spark_connection=connection,
        spark_shape=shape,
        spark_conf=properties,
    )
    runs.start("mondrian_anonymize", name, form(job))
    return name


# What goes wrong: the first try of a task is killed with SIGKILL while Spark works for it.


def killed(site, runs, name, task_id):
    """SIGKILL the task that runs, once the application that works for it is known to be there."""
    dag_id, run_id = runs.started[name]
    for tasks in site.airflow.watch(dag_id, run_id, every=0.2):
        running = [
            each for each in tasks if (each["task_id"], each["state"]) == (task_id, "running")
        ]
        if running and (running[0]["pid"] or 0) > 0 and at_work(site, dag_id, run_id, running[0]):
            os.kill(running[0]["pid"], signal.SIGKILL)
            return
    pytest.fail(f"{task_id} was over too soon")


def new_drivers(site, before):
    """The drivers that were not there before, and what became of them."""
    return {each: state for each, state in site.cluster.drivers().items() if each not in before}


def environments_of_drivers(site):
    """What the drivers that the cluster runs have in their environments."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if _DRIVER in command and site.cluster.master in str(command):
            assert "attempt" not in str(command)
            with suppress(psutil.NoSuchProcess):
                found.append(process.environ())
    return found


def told_to_drivers(site):
    """What the drivers are told by their environments, once the cluster runs one."""
    seen = []
    wait_until(lambda: bool(seen.extend(environments_of_drivers(site)) or seen))
    assert all("SPARK_MONDRIAN_OPS_REQUEST" in each for each in seen)
    return {value for each in seen for value in each.values()}


def at_work(site, dag_id, run_id, task):
    """Whether the task has noted which driver works for it."""
    path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task['task_id']}/state-store"
    found = site.airflow.request("GET", f"{path}?map_index={task['map_index']}")
    return "spark_job_id" in {each["key"] for each in found["task_state_store"]}


def killed_run(site, runs, name, task_id):
    """Start a run and kill one of its tasks; returns the drivers that were there before it."""
    before = set(site.cluster.drivers())
    runs.start("retried", name, {"job": site.spark_job(name, "cluster")})
    killed(site, runs, name, task_id)
    return before


def check_that_it_found_its_driver(site, runs, name, task):
    assert task["state"] == "success"
    assert task["try_number"] == 2
    log = runs.log(name, task)
    assert "Reconnecting to existing job" in log or "Job already completed" in log
    assert "Spark-Submit cmd" not in log


def test_a_retry_finds_the_driver_that_is_there(site, runs):
    name = "found"
    before = killed_run(site, runs, name, "partition")
    assert not told_to_drivers(site) & {site.airflow.environment[each] for each in SECRET}
    (again,) = until(site, runs, name, "partition", "success")
    check_that_it_found_its_driver(site, runs, name, again)
    stopped(site, runs, name, before)


@pytest.mark.soak
@pytest.mark.parametrize("task_id", ["partition", "anonymize_fragment"])
def test_a_run_whose_retry_found_a_driver_publishes(site, runs, local, task_id):
    name = f"killed_{task_id}"
    before = killed_run(site, runs, name, task_id)
    state, tasks = runs.over(name)
    assert state == "success"
    # One each for partition, all fragments, and the check.
    assert list(new_drivers(site, before).values()) == ["FINISHED"] * 3
    (again,) = [each for each in tasks if each["task_id"] == task_id]
    check_that_it_found_its_driver(site, runs, name, again)
    agree(site, name, local)


def until(site, runs, name, task_id, state):
    """The task instances of a task, once one of them is in a state."""
    for tasks in site.airflow.watch(*runs.started[name], every=0.2):
        found = [each for each in tasks if each["task_id"] == task_id]
        if state in {each["state"] for each in found}:
            return found
    pytest.fail(f"no {task_id} was {state}")


def stopped(site, runs, name, before):
    """Fail a run that has shown what it should; its drivers are over then, and none will come."""
    dag_id, run_id = runs.started[name]
    site.airflow.request("PATCH", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}", {"state": "failed"})
    # The next task may have begun already, and submits its driver before it is told to end.
    tasks = site.airflow.tasks(dag_id, run_id)
    pids = [each["pid"] for each in tasks if each["state"] == "failed" and each["pid"]]
    wait_until(lambda: not any(map(psutil.pid_exists, pids)))
    wait_until(lambda: not {"SUBMITTED", "RUNNING"} & {*new_drivers(site, before).values()})


@pytest.mark.soak
def test_a_task_that_is_cleared_is_done_again(site, runs, local):
    name = started_by_form(site, runs, "cluster", "application")
    runs.over(name)
    before = set(site.cluster.drivers())
    dag_id, run_id = runs.started[name]
    path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/clear"
    site.airflow.request("POST", path, {"dry_run": False, "only_failed": False})
    state, _tasks = runs.over(name)
    assert state == "success"
    assert len(new_drivers(site, before)) == 2
    agree(site, name, local)


@pytest.mark.soak
def test_a_client_that_is_killed_is_started_again(site, runs, local):
    name = "killed_client"
    runs.start("retried", name, {"job": site.spark_job(name, "client")})
    dag_id, run_id = runs.started[name]
    for tasks in site.airflow.watch(dag_id, run_id, every=0.2):
        running = [each for each in tasks if each["task_id"] == "anonymize_fragment"]
        if (
            running
            and running[0]["state"] == "running"
            and "Added file" in runs.log(name, running[0])
        ):
            os.kill(running[0]["pid"], signal.SIGKILL)
            break
    state, tasks = runs.over(name)
    assert state == "success"
    assert tries(tasks)["anonymize_fragment"] == 2
    agree(site, name, local)


@pytest.mark.soak
def test_a_worker_that_is_lost_is_done_without(site, runs):
    name = "lost_worker"
    data = site.root / "many.parquet"
    generate("people", rows=150_000, seed=1, output=str(data))
    job = site.spark_job(name, "connect", input=str(data), cut="lookahead")
    job["spark"]["shape"] = "application"
    job["partitioning"] = {"fragments": 24}
    runs.start("retried", name, {"job": job})
    parts = site.output(name).parent
    wait_until(lambda: any(parts.glob(".*/release/part-*")), timeout=300)
    busy = site.cluster.busy_workers()[0]
    site.cluster.kill_worker(busy)
    try:
        state, _tasks = runs.over(name)
    finally:
        site.cluster.restart_worker(busy)
    assert state == "success"
    # Tasks that ran there were lost, and so were the rows that its shuffle files held.
    log = (site.cluster.logs / "connect.log").read_text()
    assert "TaskSchedulerImpl: Lost executor" in log
    assert "DAGScheduler: Resubmitting failed stages" in log
    assert published(site.output(name)) == 150_000
    local_job = {**job, "engine": "local", "output": str(site.output("no_lost_worker"))}
    pipeline.run(pipeline.load_job(local_job))
    assert classes(site.output(name)) == classes(site.output("no_lost_worker"))


def test_a_deferred_task_outlives_its_triggerer(site, runs):
    name = "outlives"
    before = set(site.cluster.drivers())
    runs.start("deferred", name, {"job": site.spark_job(name, "cluster")})
    until(site, runs, name, "partition", "deferred")
    site.airflow.kill_worker(TRIGGERER)
    site.airflow.start_triggerer()
    (task,) = until(site, runs, name, "partition", "success")
    assert task["try_number"] == 1
    assert "FINISHED" in new_drivers(site, before).values()
    stopped(site, runs, name, before)


@pytest.mark.soak
def test_a_run_whose_tasks_are_deferred_publishes(site, runs, local):
    name = "deferred"
    before = set(site.cluster.drivers())
    runs.start("deferred", name, {"job": site.spark_job(name, "cluster")})
    state, tasks = runs.over(name)
    assert state == "success"
    assert set(tries(tasks).values()) == {1}
    assert list(new_drivers(site, before).values()) == ["FINISHED"] * 3
    agree(site, name, local)


@pytest.mark.parametrize("dag_id", ["retried", pytest.param("deferred", marks=pytest.mark.soak)])
def test_a_run_that_is_stopped_stops_its_driver(site, runs, dag_id):
    name = f"stopped_{dag_id}"
    before = set(site.cluster.drivers())
    data = site.root / "slow.parquet"  # it shall not be over before the order to stop comes
    generate("people", rows=600_000, seed=2, output=str(data))
    runs.start(dag_id, name, {"job": site.spark_job(name, "cluster", input=str(data))})
    _, run_id = runs.started[name]
    wait_until(lambda: "RUNNING" in new_drivers(site, before).values())
    site.airflow.request("PATCH", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}", {"state": "failed"})
    wait_until(lambda: "RUNNING" not in new_drivers(site, before).values())
    ((driver, state),) = new_drivers(site, before).items()
    # A driver whose working files went before the order to kill it came has failed by itself.
    assert state in {"KILLED", "FAILED"}
    wait_until(lambda: site.leftovers(name) == [])
    (partition,) = [
        each for each in site.airflow.tasks(dag_id, run_id) if each["task_id"] == "partition"
    ]
    wait_until(lambda: f"Killing driver {driver}" in runs.log(name, partition))
    assert not site.output(name).exists()


@pytest.mark.parametrize(
    "connection",
    [  # what a task says of each of the others, the tests of operators show
        pytest.param(name, marks=() if name == "missing" else pytest.mark.soak) for name in NOWHERE
    ],
)
def test_a_connection_that_leads_nowhere(site, runs, connection):
    told, attempts = NOWHERE[connection]
    name = f"connection_{connection}"
    state, tasks = runs.over(name)
    assert state == "failed"
    assert tries(tasks)["partition"] == attempts
    (partition,) = [each for each in tasks if each["task_id"] == "partition"]
    assert told in runs.log(name, partition)
    assert site.leftovers(name) == []


@pytest.mark.soak
def test_what_no_release_can_meet_is_final_from_a_driver_too(site, runs):
    name = "impossible"
    runs.start("retried", name, {"job": site.spark_job(name, "cluster", l=1000)})
    state, tasks = runs.over(name)
    assert state == "failed"
    assert tries(tasks)["partition"] == 1
    (partition,) = [each for each in tasks if each["task_id"] == "partition"]
    assert "lower l" in runs.log(name, partition)
    assert site.leftovers(name) == []
