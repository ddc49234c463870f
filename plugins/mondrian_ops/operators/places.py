"""Where the work of a task is done: in the task itself, or on a Spark cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from mondrian_ops.lean_imports import import_lean

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

    from mondrian_ops.core.job import Job
    from mondrian_ops.progress import Progress

__all__ = ["Place", "place_of"]


class Place(Protocol):
    """Does the work of the phases that have much of it, as :mod:`mondrian_ops.pipeline` does."""

    def partition(
        self, job: Job, work: str, progress: Progress, made_by: str, slots: int | None
    ) -> list[dict[str, Any]]:
        """The fragments of the data set; see :func:`mondrian_ops.pipeline.partition`."""

    def anonymize(self, job: Job, fragment: dict[str, Any]) -> dict[str, Any]:
        """A fragment's summary."""

    def stop(self) -> None:
        """Stop what is being done outside this process."""


class Here:
    """This process does the work, and cuts a fragment on so many ``cores``."""

    def __init__(self, cores: int = 1) -> None:
        self._cores = cores

    def partition(
        self, job: Job, work: str, progress: Progress, made_by: str, slots: int | None
    ) -> list[dict[str, Any]]:
        """See :func:`mondrian_ops.pipeline.partition`."""
        import_lean()
        from mondrian_ops import pipeline

        return pipeline.partition(job, work=work, progress=progress, made_by=made_by, slots=slots)

    def anonymize(self, job: Job, fragment: dict[str, Any]) -> dict[str, Any]:
        """See :func:`mondrian_ops.pipeline.anonymize_fragment`."""
        import_lean()
        from mondrian_ops import pipeline

        return pipeline.anonymize_fragment(job, fragment, cores=self._cores)

    def stop(self) -> None:
        """Nothing is outside."""


def place_of(job: Job, operator: BaseOperator, context: Context, cores: int = 1) -> Place:
    """The place that the job's engine and its connection name; ``cores`` are those of this process.

    Raises JobError where the connection, or what it needs, is not there.
    """
    if job.engine != "spark":
        return Here(cores)
    from mondrian_ops.hooks import spark

    if spark.spark_connection(job).conn_type in spark.CONNECT_TYPES:
        return spark.SparkConnect()
    return spark.submitting(operator, context)
