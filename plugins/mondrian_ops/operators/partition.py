"""Phase one: from a sample of the data to the conditions of its fragments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import conf

from mondrian_ops.core.errors import JobError
from mondrian_ops.operators.base import (
    MondrianOperator,
    announce_work,
    final_errors,
    read_job,
    work_of,
)
from mondrian_ops.operators.places import place_of
from mondrian_ops.operators.telling import Notifiers, Telling, refusal_told

if TYPE_CHECKING:
    from airflow.sdk import Context

    from mondrian_ops.core.job import Job

__all__ = ["PartitionOperator", "check_map_length"]


class PartitionOperator(MondrianOperator):
    """Cut the data set into fragments that can each stand alone; returns one dict per fragment.

    The same data and job give the same fragments, so a retry or a rerun maps to the same tasks.

    :param on_refusal: notifiers to call when no release of the data can be made; see
        :mod:`mondrian_ops.notifications`.
    """

    _work: str | None = None

    def __init__(self, *, on_refusal: Notifiers = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.on_refusal = Telling.by(on_refusal)

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Survey, sample, plan, count, merge and, where it pays, scatter."""
        with final_errors():
            job = read_job(self.job)
            check_fragments(job)
            self._work = work_of(job, self, context)
            announce_work(context, self._work)
            self.place = place_of(job, self, context)
            with refusal_told(self.on_refusal, context, job):
                fragments = self.place.partition(job, self._work, self.log_progress())
            self._check_number(fragments)
        self.log.info("%d fragments of %s", *_sizes(fragments))
        return fragments

    def _check_number(self, fragments: list[dict[str, Any]]) -> None:
        """Refuse more fragments than this Airflow maps: `max_rows` can make many."""
        from mondrian_ops import pipeline

        try:
            check_map_length(len(fragments), "partitioning.max_rows")
        except JobError:
            pipeline.discard(str(self._work))
            raise

    def on_kill(self) -> None:
        """Remove the working files: a retry begins anew."""
        from mondrian_ops import pipeline

        try:
            super().on_kill()
        finally:
            if self._work is not None:
                pipeline.discard(self._work)


def check_fragments(job: Job) -> None:
    """Refuse more fragments than this Airflow maps, before any work is done.

    Raises JobError.
    """
    if job.engine == "spark" and job.spark.shape == "application":
        return  # one task has them all
    check_map_length(job.partitioning.fragments, "partitioning.fragments")


def check_map_length(length: int, what: str) -> None:
    """Raise JobError if ``length`` mapped tasks are more than ``[core] max_map_length``."""
    limit = conf.getint("core", "max_map_length", fallback=1024)
    if length > limit:
        raise JobError(
            f"{what}: {length} mapped tasks are more than [core] max_map_length of this Airflow, "
            f"{limit}; ask for fewer fragments or raise the limit"
        )


def _sizes(fragments: list[dict[str, Any]]) -> tuple[int, str]:
    """How many fragments there are, and how large; many may be together in one value."""
    rows = [fragment["rows"] for fragment in fragments]
    number = sum(fragment.get("fragments", 1) for fragment in fragments)
    if number > len(rows) or not rows:
        return number, f"{sum(rows):,} rows together"
    return number, f"{min(rows):,} to {max(rows):,} rows, {sum(rows):,} together"
