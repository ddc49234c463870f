"""How a task reaches Spark: through the Airflow connection that the job names.

The connection's type decides. ``spark_connect`` is a Spark Connect server, on which a task has a
session of its own. ``spark`` is a cluster for spark-submit, where a task's work is an application
of its own (:mod:`mondrian_ops.hooks.spark_submit`).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from mondrian_ops import pipeline
from mondrian_ops.core.errors import JobError

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Connection, Context
    from pyspark.sql.connect.session import SparkSession

    from mondrian_ops.core.job import Job
    from mondrian_ops.engines.spark import SparkEngine
    from mondrian_ops.hooks.spark_submit import SparkSubmit
    from mondrian_ops.progress import Progress

__all__ = ["CONNECT_TYPES", "SparkConnect", "spark_connection", "submitting"]

CONNECT_TYPES = ("spark_connect",)
SUBMIT_TYPES = ("spark", "k8s")  # a connection given as a URI has the master's scheme as its type

_OPENING_RETRIES = 4  # about five seconds
_STOP_S = 10


def spark_connection(job: Job) -> Connection:
    """The connection that the job names.

    Raises JobError where there is none, or one of another type.
    """
    name = job.spark.connection
    try:
        connection = BaseHook.get_connection(name)
    except AirflowNotFoundException:
        raise JobError(
            f"spark.connection: this Airflow has no connection {name!r}; make it, of the type "
            "spark_connect (a Spark Connect server) or spark (for spark-submit)"
        ) from None
    if connection.conn_type not in CONNECT_TYPES + SUBMIT_TYPES:
        raise JobError(
            f"spark.connection: the connection {name!r} is of the type {connection.conn_type!r}; "
            "name one of the type spark_connect or spark"
        )
    if not connection.host:
        raise JobError(f"spark.connection: the connection {name!r} has no host; fill it in")
    return connection


class SparkConnect:
    """A Spark Connect server does the work; each task has a session of its own there."""

    def __init__(self) -> None:
        self._session: SparkSession | None = None

    def partition(
        self, job: Job, work: str, progress: Progress, made_by: str, slots: int | None
    ) -> list[dict[str, Any]]:
        """See :func:`mondrian_ops.pipeline.partition`."""
        with self._engine(job) as engine:
            return pipeline.partition(
                job, work=work, progress=progress, engine=engine, made_by=made_by, slots=slots
            )

    def anonymize(self, job: Job, fragment: dict[str, Any]) -> dict[str, Any]:
        """See :func:`mondrian_ops.pipeline.anonymize_fragment`."""
        with self._engine(job) as engine:
            return pipeline.anonymize_fragment(job, fragment, engine)

    def stop(self) -> None:
        """Interrupt what runs on the server."""
        session = self._session
        if session is None:
            return
        # In a thread: who is told to stop may be in the middle of a call of the same client.
        interrupting = threading.Thread(target=session.interruptAll, daemon=True)
        interrupting.start()
        interrupting.join(_STOP_S)

    @contextmanager
    def _engine(self, job: Job) -> Iterator[SparkEngine]:
        from mondrian_ops.engines.spark import SparkEngine, session_of

        session: Any = session_of(_url(job))
        try:
            _reach(session, job)
            self._session = session
            yield SparkEngine(session, job.spark.conf)
        finally:
            self._session = None
            session.stop()


def _reach(session: SparkSession, job: Job) -> None:
    """Ask the server something.

    Raises ConnectionError, which a retry may cure, where it does not answer, or refuses.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client.retries import DefaultPolicy

    patience = session.client.get_retry_policies()
    session.client.set_retry_policies([DefaultPolicy(max_retries=_OPENING_RETRIES)])
    try:
        session.version  # noqa: B018 - it is the server that knows
    except (PySparkException, OSError) as error:
        raise ConnectionError(
            f"spark.connection: the Spark Connect server of {job.spark.connection!r} cannot be "
            f"reached, or refuses: {_reason(error)}"
        ) from None
    session.client.set_retry_policies(patience)


def submitting(operator: BaseOperator, context: Context) -> SparkSubmit:
    """What has a task's work done by spark-submit."""
    with _provider():
        from mondrian_ops.hooks.spark_submit import SparkSubmit
    return SparkSubmit(operator, context)


def _url(job: Job) -> str:
    with _provider():
        from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
    return SparkConnectHook(job.spark.connection).get_connection_url()


@contextmanager
def _provider() -> Iterator[None]:
    """Say what to install where the import of Airflow's Spark provider fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("airflow.providers"):
            raise
        raise JobError(
            "engine: spark needs Airflow's provider apache-airflow-providers-apache-spark, which "
            "this worker does not have; install mondrian_ops[spark] there"
        ) from None


def _reason(error: BaseException) -> str:
    """What gRPC gives as the reason, or the first line of another error."""
    details = re.search(r'details = "(.*)"', str(error))
    return details[1] if details else str(error).strip().partition("\n")[0]
