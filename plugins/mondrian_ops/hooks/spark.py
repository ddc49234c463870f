"""Spark through the Airflow connection that the job names.

The type of the connection decides. ``spark_connect`` is a Spark Connect server, on which each task
has a session. ``spark`` is a cluster for spark-submit, to which each task submits an application
(:mod:`mondrian_ops.hooks.spark_submit`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from mondrian_ops.errors import JobError

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Connection, Context
    from pyspark.sql import SparkSession

    from mondrian_ops.hooks.spark_submit import SparkSubmission
    from mondrian_ops.job.job import Job

CONNECT_TYPES = ("spark_connect",)
SUBMIT_TYPES = ("spark", "k8s")  # a connection given as a URI has the master's scheme as its type

_OPENING_RETRIES = 4  # about five seconds


def spark_connection(job: Job) -> Connection:
    """The connection that the job names.

    Raises JobError if there is none, or it is of another type.
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


@contextmanager
def connect_session(job: Job) -> Iterator[SparkSession]:
    """A session on the job's Spark Connect server, stopped in the end.

    Raises ConnectionError, which a retry may cure, if the server does not answer or refuses.
    """
    from mondrian_ops.engines.spark import session_of

    session = session_of(_url(job))
    try:
        _reach(session, job)
        yield session
    finally:
        session.stop()


def _reach(session: Any, job: Job) -> None:
    """Ask the server for its version; ConnectionError if it does not answer or refuses."""
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client.retries import DefaultPolicy

    policies = session.client.get_retry_policies()
    session.client.set_retry_policies([DefaultPolicy(max_retries=_OPENING_RETRIES)])
    try:
        session.version  # noqa: B018 - asks the server
    except (PySparkException, OSError) as error:
        raise ConnectionError(
            f"spark.connection: the Spark Connect server of {job.spark.connection!r} cannot be "
            f"reached, or refuses the connection: {_reason(error)}"
        ) from None
    session.client.set_retry_policies(policies)


def submission(
    job: Job,
    operator: BaseOperator,
    context: Context,
    deferrable: bool = False,
    event: Mapping[str, str] | None = None,
) -> SparkSubmission:
    """The submission of applications for a task; see :class:`SparkSubmission`."""
    with _provider():
        from mondrian_ops.hooks.spark_submit import SparkSubmission
    return SparkSubmission(job, operator, context, deferrable, event)


def _url(job: Job) -> str:
    with _provider():
        from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
    return SparkConnectHook(job.spark.connection).get_connection_url()


@contextmanager
def _provider() -> Iterator[None]:
    """Raise JobError with what to install if Airflow's Spark provider is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("airflow.providers"):
            raise
        raise JobError(
            "engine: spark needs Airflow's provider apache-airflow-providers-apache-spark, which "
            "this worker does not have; install the extra 'spark' of this project's wheel there"
        ) from None


def _reason(error: BaseException) -> str:
    """The reason that gRPC gives, or the first line of another error."""
    details = re.search(r'details = "(.*)"', str(error))
    return details[1] if details else str(error).strip().partition("\n")[0]
