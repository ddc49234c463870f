"""Applications for spark-submit, by the Spark provider.

The provider knows how to submit, to follow and to kill an application on each kind of cluster, and
how a retry finds the driver again that an attempt before it has started (cluster mode: by the
master of a standalone cluster, YARN's resource manager or Kubernetes). What it runs is
:mod:`mondrian_ops.spark_app`.
"""

from __future__ import annotations

import contextvars
import os
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.bases.operator import ExecutorSafeguard

from mondrian_ops import spark_app, storage
from mondrian_ops.core.errors import JobError
from mondrian_ops.engines import shipping

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

    from mondrian_ops.core.job import Job
    from mondrian_ops.engines.spark_submit import Request

__all__ = ["SparkSubmission"]

# The master of a standalone cluster starts no Python program in cluster mode, but any class: this
# one runs a Python program, and here that is the very zip that the driver's machine has fetched.
_PYTHON_RUNNER = "org.apache.spark.deploy.PythonRunner"
_FETCHED = "{{USER_JAR}}"
# Spark gives these to every JVM of its own but to a driver that a standalone cluster starts.
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
    """

    def __init__(self, job: Job, operator: BaseOperator, context: Context) -> None:
        self._job = job
        self._operator = operator
        self._context = context
        self._submitting: _Submitting | None = None

    def run(self, step: str, request: Callable[[], Request], is_done: Callable[[], bool]) -> None:
        """Wait for an application that an earlier try has submitted; without one, submit it."""
        self._submitting = _Submitting(
            task_id=self._operator.task_id,
            conn_id=self._job.spark.connection,
            conf=dict(self._job.spark.conf),
            name=f"mondrian_ops-{step}",
            request=request,
            is_done=is_done,
        )
        try:
            self._submitting.run(self._context)
        except FileNotFoundError as error:
            raise JobError(
                f"spark.connection: spark-submit needs {error.filename!r}, which this worker has "
                "not on its PATH; install it there (PySpark brings spark-submit)"
            ) from None
        if is_done() and (states := self._context.get("task_state_store")) is not None:
            states.clear()  # cleared by hand, the task shall do it all again

    def kill(self) -> None:
        """Kill the driver."""
        if self._submitting is not None:
            self._submitting.on_kill()


class _Submitting(SparkSubmitOperator):
    """The provider's operator with our application; the two callables are those of
    :meth:`SparkSubmission.run`."""

    def __init__(
        self, *, request: Callable[[], Request], is_done: Callable[[], bool], **options: Any
    ) -> None:
        super().__init__(**options)
        self._request = request
        self._is_done = is_done

    def run(self, context: Context) -> None:
        """Execute it as the task runner would, within the task of another operator."""
        running = contextvars.copy_context()
        running.run(ExecutorSafeguard.tracker.set, self)
        running.run(self.execute, context)

    def is_job_succeeded(self, status: str) -> bool:
        """Whether there is no need to do it again: working files may be gone meanwhile."""
        return super().is_job_succeeded(status) and self._is_done()

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
        """Submit it; the request is never seen on a command line."""
        request = self._request()
        shared = self._should_track_driver_status
        application = self._shared_package(request) if shared else str(_PROGRAM)
        # The whole environment goes to the cluster, whose business is not what Airflow knows.
        # A session with a Connect server has left SPARK_CONNECT_MODE_ENABLED: for itself alone.
        withheld = ("AIRFLOW", "_AIRFLOW", "SPARK_REMOTE", "SPARK_CONNECT_MODE")
        known = {k: v for k, v in os.environ.items() if not k.startswith(withheld)}
        if not self._takes_files:
            known[spark_app.REQUEST_VARIABLE] = request.to_json()
            return super().submit(application, env=known, **options)
        with TemporaryDirectory() as folder:
            self._files = str(Path(folder, spark_app.REQUEST_FILE))
            Path(self._files).write_text(request.to_json(), encoding="utf-8")
            return super().submit(application, env=known, **options)

    def _shared_package(self, request: Request) -> str:
        """The URL of the package among the working files, where a worker of the cluster sees it."""
        package = Path(shipping.packed())
        name = f"{package.stem}.jar"  # Spark takes no other
        work = storage.WorkDir(request.location.work, request.location.attempt)
        work.write_bytes(name, package.read_bytes())
        return _spark_url(work.path(name))


def _spark_url(location: str) -> str:
    """A location as Spark's own clients of file systems name it."""
    scheme, separator, rest = location.partition("://")
    if not separator:
        return Path(location).absolute().as_uri()
    authority, _, path = rest.partition("/")
    return f"{'s3a' if scheme == 's3' else scheme}://{authority.rpartition('@')[2]}/{path}"
