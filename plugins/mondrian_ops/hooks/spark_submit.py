"""Applications for spark-submit, submitted by Airflow's Spark provider.

The provider submits, follows and kills applications on each kind of cluster. In cluster mode it
lets a retry find the driver that an earlier try started: it asks the master of a standalone
cluster, YARN's resource manager or Kubernetes. The application is :mod:`mondrian_ops.spark_app`.
"""

from __future__ import annotations

import contextvars
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.bases.operator import ExecutorSafeguard
from airflow.sdk.exceptions import TaskDeferred

from mondrian_ops import publish, spark_app
from mondrian_ops.engines import shipping
from mondrian_ops.errors import JobError
from mondrian_ops.hooks.spark_driver import LATER, LONGEST, TIMED_OUT, DriverTrigger, kill_driver

if TYPE_CHECKING:
    from datetime import timedelta

    from airflow.sdk import BaseOperator, Context

    from mondrian_ops.engines.spark_submit import Request
    from mondrian_ops.job.job import Job

# In cluster mode the master of a standalone cluster starts Java classes, not Python programs. This
# class runs a Python program: the zip of this package, which the driver's machine has fetched.
_PYTHON_RUNNER = "org.apache.spark.deploy.PythonRunner"
_FETCHED = "{{USER_JAR}}"
# Spark gives these to all its JVMs but the driver that a standalone cluster starts.
_OPENED = (
    *("java.io", "java.lang", "java.lang.invoke", "java.lang.reflect", "java.net", "java.nio"),
    *("java.util", "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref"),
    *("sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar"),
)
_JAVA_OPTIONS = " ".join(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED)
_PROGRAM = Path(spark_app.__file__).with_name("program.py")


class SparkSubmission:
    """Submits an application for a task, through the connection that its job names.

    See :class:`mondrian_ops.engines.spark_submit.Submission`.

    :param deferrable: whether the task waits for a driver on the cluster without its slot.
    :param event: what the task's trigger has seen of the driver, if the task goes on after that.
    """

    def __init__(
        self,
        job: Job,
        operator: BaseOperator,
        context: Context,
        deferrable: bool = False,
        event: Mapping[str, str] | None = None,
    ) -> None:
        self._job = job
        self._operator = operator
        self._context = context
        self._deferrable = deferrable
        self._event = event
        self._submitting: _Submitting | None = None

    def run(self, step: str, request: Callable[[], Request], is_done: Callable[[], bool]) -> None:
        """Wait for the application that an earlier try submitted; without one, submit it.

        A deferrable task that has to wait for a driver on the cluster ends here, with TaskDeferred.
        """
        if self._event is None:
            self._submit(step, request, is_done)
        else:
            self._conclude(self._event, is_done)
        if is_done() and (states := self._context.get("task_state_store")) is not None:
            states.clear()  # if a person clears the task, it must start over

    def _submit(
        self, step: str, request: Callable[[], Request], is_done: Callable[[], bool]
    ) -> None:
        limit = self._operator.execution_timeout or LONGEST
        self._submitting = _Submitting(
            task_id=self._operator.task_id,
            conn_id=self._job.spark.connection,
            conf=dict(self._job.spark.conf),
            name=f"mondrian_ops-{step}",
            request=request,
            is_done=is_done,
            deferred_for=limit if self._deferrable else None,
        )
        try:
            self._submitting.run(self._context)
        except FileNotFoundError as error:
            raise JobError(
                f"spark.connection: spark-submit needs {error.filename!r}, which is not on the "
                "PATH of this worker; install it there (PySpark brings spark-submit)"
            ) from None

    def _conclude(self, event: Mapping[str, str], is_done: Callable[[], bool]) -> None:
        """Raise ConnectionError, which a retry may cure, if the driver has left no result."""
        if is_done():
            return
        driver, status = event["driver_id"], event["status"]
        if status == TIMED_OUT:
            kill_driver(self._job.spark.connection, driver)
        raise ConnectionError(
            f"Spark driver {driver}: {status}, and it left no result; see the driver's log on the "
            "cluster"
        )

    def kill(self) -> None:
        """Kill the driver."""
        if self._submitting is not None:
            self._submitting.on_kill()


class _Submitting(SparkSubmitOperator):
    """The provider's operator with our application; the two callables are those of
    :meth:`SparkSubmission.run`, and ``deferred_for`` is how long it may wait without its slot."""

    def __init__(
        self,
        *,
        request: Callable[[], Request],
        is_done: Callable[[], bool],
        deferred_for: timedelta | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._request = request
        self._is_done = is_done
        self._deferred_for = deferred_for

    def run(self, context: Context) -> None:
        """Execute this operator within the task of another one, as the task runner would."""
        running = contextvars.copy_context()
        running.run(ExecutorSafeguard.tracker.set, self)
        running.run(self.execute, context)

    def is_job_succeeded(self, status: str) -> bool:
        """Whether no retry is needed; the working files may have vanished meanwhile."""
        return super().is_job_succeeded(status) and self._is_done()

    def poll_until_complete(self, external_id: Any, context: Context) -> None:
        """Wait for the driver: here, or by deferring the task."""
        if self._deferred_for is None:
            super().poll_until_complete(external_id, context)
            return
        until = time.time() + self._deferred_for.total_seconds()
        raise TaskDeferred(
            trigger=DriverTrigger(self._conn_id, external_id, until),
            method_name="resume",
            timeout=self._deferred_for + LATER,
        )

    def _get_hook(self) -> SparkSubmitHook:
        return _Hook(self._request, conf=self.conf, conn_id=self._conn_id, name=self.name)


class _Hook(SparkSubmitHook):
    """The provider's hook, which submits our application in a way that suits the cluster."""

    def __init__(self, request: Callable[[], Request], **options: Any) -> None:
        super().__init__(**options)
        self._request = request
        in_cluster = self._connection["deploy_mode"] == "cluster"
        self._takes_files = in_cluster and not self._should_track_driver_status
        if self._should_track_driver_status:
            self._java_class = _PYTHON_RUNNER
            self._application_args = [_FETCHED, _FETCHED]
            options = self._conf.get("spark.driver.extraJavaOptions", "")
            self._conf["spark.driver.extraJavaOptions"] = f"{_JAVA_OPTIONS} {options}".rstrip()
            return
        self._py_files = shipping.packed()
        if not in_cluster:
            self._conf.setdefault("spark.pyspark.driver.python", sys.executable)
        self._yarn_track_via_rm_api = self._is_yarn_cluster_mode
        self._track_driver_via_k8s_api = in_cluster and self._is_kubernetes

    def submit(self, application: str = "", **options: Any) -> str | None:
        """Submit the application; its request never appears on a command line."""
        request = self._request()
        shared = self._should_track_driver_status
        application = self._shared_package(request) if shared else str(_PROGRAM)
        # Spark sends the whole environment to the cluster: withhold Airflow's, which has secrets.
        # A session with a Connect server leaves SPARK_CONNECT_MODE_ENABLED, which is for it alone.
        withheld = ("AIRFLOW", "_AIRFLOW", "SPARK_REMOTE", "SPARK_CONNECT_MODE")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(withheld)}
        if not self._takes_files:
            environment[spark_app.REQUEST_VARIABLE] = request.to_json()
            return super().submit(application, env=environment, **options)
        with TemporaryDirectory() as folder:
            self._files = str(Path(folder, spark_app.REQUEST_FILE))
            Path(self._files).write_text(request.to_json(), encoding="utf-8")
            return super().submit(application, env=environment, **options)

    def _shared_package(self, request: Request) -> str:
        """The URL of the package among the working files, where the cluster can read it."""
        package = Path(shipping.packed())
        name = f"{package.stem}.jar"  # the only ending that Spark accepts
        work = publish.WorkDir(request.location.work, request.location.attempt)
        work.write_bytes(name, package.read_bytes())
        return _spark_url(work.path(name))


def _spark_url(location: str) -> str:
    """A location as Spark's file system clients name it."""
    scheme, separator, rest = location.partition("://")
    if not separator:
        return Path(location).absolute().as_uri()
    authority, _, path = rest.partition("/")
    return f"{'s3a' if scheme == 's3' else scheme}://{authority.rpartition('@')[2]}/{path}"
