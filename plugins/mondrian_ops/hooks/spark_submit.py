"""Work as an application that spark-submit starts, by the Spark provider.

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

from mondrian_ops import pipeline, spark_app, storage
from mondrian_ops.core import limits
from mondrian_ops.core.errors import JobError, MondrianOpsError
from mondrian_ops.engines import shipping
from mondrian_ops.spark_app import Answer, Order

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

    from mondrian_ops.core.job import Job
    from mondrian_ops.progress import Progress

__all__ = ["SparkSubmit"]

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


class SparkSubmit:
    """An application does the work; a retry waits for the one that is there already."""

    def __init__(self, operator: BaseOperator, context: Context) -> None:
        self._operator = operator
        self._context = context
        self._submission: _Submission | None = None

    def partition(
        self, job: Job, work: str, progress: Progress, made_by: str, slots: int | None
    ) -> list[dict[str, Any]]:
        """See :func:`mondrian_ops.pipeline.partition`.

        Only an error that is final removes the working files: a driver may still be at them. One
        that has answered is not, whichever try has started it.
        """

        def order() -> Order:
            pipeline.begin(job, work, made_by, slots)
            return _order(job, "partition", work)

        try:
            found: list[dict[str, Any]] = self._answered(job, order, work, "partition")
        except MondrianOpsError:
            if Answer.left(work, "partition", None) is not None:
                pipeline.discard(work)
            pipeline.give_up(work)
            raise
        return found

    def anonymize(self, job: Job, fragment: dict[str, Any]) -> dict[str, Any]:
        """See :func:`mondrian_ops.pipeline.anonymize_fragment`."""
        work, number = fragment["work"], None if "fragments" in fragment else int(fragment["id"])
        order = _order(job, "anonymize", work, number)  # says so where the working files are gone
        summaries = self._answered(job, lambda: order, work, "anonymize", number)
        return {"summaries": summaries} if number is None else summaries[0]

    def stop(self) -> None:
        """Kill the driver."""
        if self._submission is not None:
            self._submission.on_kill()

    def _answered(
        self, job: Job, order: Callable[[], Order], work: str, step: str, number: int | None = None
    ) -> Any:
        self._submission = _Submission(
            task_id=self._operator.task_id,
            conn_id=job.spark.connection,
            conf=dict(job.spark.conf),
            name=f"mondrian_ops-{step}",
            ordered=order,
            is_answered=lambda: Answer.left(work, step, number) is not None,
        )
        try:
            self._submission.run(self._context)
        except FileNotFoundError as error:
            raise JobError(
                f"spark.connection: spark-submit needs {error.filename!r}, which this worker has "
                "not on its PATH; install it there (PySpark brings spark-submit)"
            ) from None
        answer = Answer.left(work, step, number)
        if answer is None:
            raise RuntimeError(
                f"{work}: the Spark application left no answer; its driver must be able to write "
                "there, and its own log tells more"
            )
        if (states := self._context.get("task_state_store")) is not None:
            states.clear()  # cleared by hand, the task shall do it all again
        return answer.result()


def _order(job: Job, step: str, work: str, fragment: int | None = None) -> Order:
    reached = storage.options_of([str(job.input), work, *filter(None, [job.ledger])])
    may_name = storage.limits()
    allowed = None if may_name is None else may_name.to_json()
    token = storage.WorkDir(work).token
    return Order(step, work, token, fragment, reached, allowed, dict(limits.in_use()))


class _Submission(SparkSubmitOperator):
    """The provider's operator with our application.

    ``ordered`` is called when an application is to be submitted: what it is to do. ``is_answered``
    tells whether one has left its answer.
    """

    def __init__(
        self, *, ordered: Callable[[], Order], is_answered: Callable[[], bool], **options: Any
    ) -> None:
        super().__init__(**options)
        self._ordered = ordered
        self._is_answered = is_answered

    def run(self, context: Context) -> None:
        """Execute it as the task runner would, within the task of another operator."""
        running = contextvars.copy_context()
        running.run(ExecutorSafeguard.tracker.set, self)
        running.run(self.execute, context)

    def is_job_succeeded(self, status: str) -> bool:
        """Whether there is no need to do it again: working files may be gone meanwhile."""
        return super().is_job_succeeded(status) and self._is_answered()

    def _get_hook(self) -> SparkSubmitHook:
        return _Hook(self._ordered, conf=self.conf, conn_id=self._conn_id, name=self.name)


class _Hook(SparkSubmitHook):
    """The provider's hook, which orders our application in a way that suits the cluster."""

    def __init__(self, ordered: Callable[[], Order], **options: Any) -> None:
        super().__init__(**options)
        self._ordered = ordered
        in_cluster = self._connection["deploy_mode"] == "cluster"
        self._takes_files = in_cluster and not self._should_track_driver_status
        if self._should_track_driver_status:
            self._java_class = _PYTHON_RUNNER
            self._application_args = [_FETCHED, _FETCHED]
            asked = self._conf.get("spark.driver.extraJavaOptions", "")
            self._conf["spark.driver.extraJavaOptions"] = f"{_JAVA_OPTIONS} {asked}".rstrip()
            return
        self._py_files = shipping.packed()
        if not in_cluster:
            self._conf.setdefault("spark.pyspark.driver.python", sys.executable)
        self._yarn_track_via_rm_api = self._is_yarn_cluster_mode
        self._track_driver_via_k8s_api = in_cluster and self._is_kubernetes

    def submit(self, application: str = "", **options: Any) -> str | None:
        """Submit it; the order is never seen on a command line."""
        order = self._ordered()
        shared = self._should_track_driver_status
        application = self._shared_package(order) if shared else str(_PROGRAM)
        # The whole environment goes to the cluster, whose business is not what Airflow knows.
        # A session with a Connect server has left SPARK_CONNECT_MODE_ENABLED: for itself alone.
        withheld = ("AIRFLOW", "_AIRFLOW", "SPARK_REMOTE", "SPARK_CONNECT_MODE")
        known = {k: v for k, v in os.environ.items() if not k.startswith(withheld)}
        if not self._takes_files:
            known[spark_app.ORDER_VARIABLE] = order.to_json()
            return super().submit(application, env=known, **options)
        with TemporaryDirectory() as folder:
            self._files = str(Path(folder, spark_app.ORDER_FILE))
            Path(self._files).write_text(order.to_json(), encoding="utf-8")
            return super().submit(application, env=known, **options)

    def _shared_package(self, order: Order) -> str:
        """The URL of the package among the working files, where a worker of the cluster sees it."""
        package = Path(shipping.packed())
        name = f"{package.stem}.jar"  # Spark takes no other
        work = storage.WorkDir(order.work, order.attempt)
        work.write_bytes(name, package.read_bytes())
        return _spark_url(work.path(name))


def _spark_url(location: str) -> str:
    """A location as Spark's own clients of file systems name it."""
    scheme, separator, rest = location.partition("://")
    if not separator:
        return Path(location).absolute().as_uri()
    authority, _, path = rest.partition("/")
    return f"{'s3a' if scheme == 's3' else scheme}://{authority.rpartition('@')[2]}/{path}"
