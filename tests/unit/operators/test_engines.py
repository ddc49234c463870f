"""The engine of a task by its connection, and the errors of a connection that leads nowhere."""

from __future__ import annotations

import builtins
import json
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from local_airflow import free_port
from mondrian_ops import pipeline, publish
from mondrian_ops.engines.handover import Fragment
from mondrian_ops.engines.local import LocalEngine
from mondrian_ops.engines.run import Run
from mondrian_ops.engines.spark_submit import Result, SparkSubmitEngine
from mondrian_ops.errors import JobError
from mondrian_ops.operators import AnonymizeFragmentOperator, PartitionOperator
from mondrian_ops.operators.base import work_of
from spark_master import spark_master
from task_contexts import begun_work, read_job


@pytest.fixture
def connected(monkeypatch, job):
    """A job, and the connection that it names, by the connection's attributes."""

    def connect(conf=None, **attributes):
        monkeypatch.setenv("AIRFLOW_CONN_A_SPARK", json.dumps(attributes))
        return {**job, "engine": "spark", "spark": {"connection": "a_spark", "conf": conf or {}}}

    return connect


def test_the_type_of_the_connection_decides(connected, context):
    task = PartitionOperator(task_id="t", job={})
    with task.working(read_job(connected(conn_type="spark", host="a.host")), context) as engine:
        assert isinstance(engine, SparkSubmitEngine)
        assert task.engine is engine
    assert task.engine is None
    connect = read_job(connected(conn_type="spark_connect", host="127.0.0.1", port=free_port()))
    with pytest.raises(ConnectionError), task.working(connect, context):
        pass


@pytest.mark.parametrize(
    ("attributes", "error"),
    [
        ({"conn_type": "http", "host": "a.host"}, "'a_spark' is of the type 'http'"),
        ({"conn_type": "spark"}, "'a_spark' has no host"),
    ],
)
def test_a_connection_of_no_use_is_refused(connected, context, attributes, error):
    task = PartitionOperator(task_id="t", job=connected(**attributes))
    with pytest.raises(AirflowFailException, match=error):
        task.execute(context)


def test_a_connection_that_is_not_there_is_refused(context, job):
    job.update(engine="spark", spark={"connection": "nowhere"})
    work = begun_work(context, job).root
    fragment = Fragment(id=0, where="", rows=1, work=work).to_dict()
    for task in (
        PartitionOperator(task_id="p", job=job),
        AnonymizeFragmentOperator(task_id="a", job=job, fragment=fragment),
    ):
        with pytest.raises(AirflowFailException, match=r"spark\.connection: .* no connection"):
            task.execute(context)


@pytest.mark.parametrize("kind", ["spark_connect", "spark"])
def test_without_the_provider_the_remedy_is_named(monkeypatch, connected, context, kind):
    imported = builtins.__import__

    def lacking(name, *arguments, **options):
        if name.startswith("airflow.providers.apache.spark"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return imported(name, *arguments, **options)

    monkeypatch.delitem(sys.modules, "mondrian_ops.hooks.spark_submit", raising=False)
    monkeypatch.setattr(builtins, "__import__", lacking)
    task = PartitionOperator(task_id="t", job=connected(conn_type=kind, host="a.host"))
    with pytest.raises(AirflowFailException, match="apache-airflow-providers-apache-spark"):
        task.execute(context)


def test_a_server_that_is_not_there_may_be_there_for_a_retry(connected, context):
    job = connected(conn_type="spark_connect", host="127.0.0.1", port=free_port(), password="hush")
    with pytest.raises(ConnectionError, match=r"server of 'a_spark' cannot be reached") as caught:
        PartitionOperator(task_id="t", job=job).execute(context)
    assert "hush" not in str(caught.value)


@pytest.fixture
def served(connected, spark_cluster):
    """A job whose connection leads to a real server."""
    host, port = spark_cluster.remote.removeprefix("sc://").split(":")
    return lambda conf=None: connected(conf, conn_type="spark_connect", host=host, port=int(port))


@pytest.mark.java
def test_properties_are_those_of_the_session(served, context):
    job = read_job(served({"spark.sql.shuffle.partitions": 3}))
    with PartitionOperator(task_id="t", job={}).working(job, context) as engine:
        assert engine._session.conf.get("spark.sql.shuffle.partitions") == "3"


@pytest.mark.java
def test_a_property_that_is_none_of_a_session_is_refused(served, context):
    job = read_job(served({"spark.executor.memory": "1g"}))
    with (
        pytest.raises(JobError, match=r"spark\.conf\.spark\.executor\.memory: cannot be set"),
        PartitionOperator(task_id="t", job={}).working(job, context),
    ):
        pass


@pytest.mark.java
def test_a_task_that_is_stopped_interrupts_its_session(served, context):
    task, errors, begun = PartitionOperator(task_id="t", job={}), [], threading.Event()

    def wait_long(batches):
        import time

        time.sleep(600)
        yield from batches

    def work():
        try:
            with task.working(read_job(served()), context) as engine:
                begun.set()
                engine._session.range(1).mapInArrow(wait_long, "id long").collect()
        except Exception as error:
            errors.append(str(error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    begun.wait(120)
    while thread.is_alive():
        if task.engine is not None:
            task.engine.stop()
        thread.join(1)
    assert len(errors) == 1
    assert "OPERATION_CANCELED" in errors[0]


@pytest.fixture
def deferred(connected, context, monkeypatch):
    """A job, the master of a cluster, and the deferral of the task that has submitted a driver."""
    from mondrian_ops.hooks import spark_submit

    def submit(hook, _application):
        hook._request()
        return "driver-1"

    monkeypatch.setattr(spark_submit._Hook, "submit", submit)
    with spark_master() as master:
        job = connected(**master.connection)
        Path(job["input"]).write_text("age\n1\n2\n3\n4\n")
        with pytest.raises(TaskDeferred) as deferral:
            PartitionOperator(task_id="t", job=job, deferrable=True).execute(context)
        yield job, master, deferral.value


def resumed(job, context, status):
    """What the task returns that goes on in another process."""
    task = PartitionOperator(task_id="t", job=job, deferrable=True)
    return task.resume(context, {"driver_id": "driver-1", "status": status})


def test_a_deferred_task_takes_the_result_of_its_driver(deferred, context):
    job, master, deferral = deferred
    assert deferral.method_name == "resume"
    assert deferral.trigger.driver_id == "driver-1"
    work = publish.WorkDir.attach(work_of(read_job(job), context))
    pipeline.divide(Run(work), LocalEngine())
    Result(None).leave(work, "partition", None)
    (fragment,) = resumed(job, context, "FINISHED")
    assert fragment["rows"] == 4
    assert context["task_state_store"] == {}
    assert master.killed == []


@pytest.mark.parametrize(
    ("status", "killed"),
    [("FAILED", []), ("FINISHED", []), ("UNREACHABLE", []), ("TIMED OUT", ["driver-1"])],
)
def test_a_driver_without_a_result_fails_the_try_and_is_submitted_by_the_next(
    deferred, context, status, killed
):
    job, master, _deferral = deferred
    with pytest.raises(ConnectionError, match=f"driver-1: {status}, and it left no result"):
        resumed(job, context, status)
    assert master.killed == killed
    master.statuses = ["FAILED"]
    with pytest.raises(TaskDeferred):
        PartitionOperator(task_id="t", job=job, deferrable=True).execute(context)


def test_a_deferred_task_waits_no_longer_than_it_may_run(deferred, context):
    job, _master, _deferral = deferred
    limit = timedelta(minutes=5)
    task = PartitionOperator(task_id="t", job=job, deferrable=True, execution_timeout=limit)
    with pytest.raises(TaskDeferred) as deferral:
        task.execute(context)
    assert deferral.value.trigger.until <= time.time() + limit.total_seconds()
    assert deferral.value.timeout > limit


def test_the_default_is_that_of_all_operators(monkeypatch):
    assert not PartitionOperator(task_id="t", job={}).deferrable
    monkeypatch.setenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", "True")
    assert PartitionOperator(task_id="t", job={}).deferrable
    assert not PartitionOperator(task_id="t", job={}, deferrable=False).deferrable
