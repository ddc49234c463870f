"""Phase one: from a sample of the data to the conditions of its fragments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import conf

from mondrian_ops.core.errors import JobError
from mondrian_ops.operators.base import MondrianOperator, final_errors, read_job, work_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from mondrian_ops.core.job import Job

__all__ = ["PartitionOperator", "check_map_length"]


class PartitionOperator(MondrianOperator):
    """Cut the data set into fragments that can each stand alone; returns one dict per fragment.

    The same data and job give the same fragments, so a retry or a rerun maps to the same tasks.
    """

    _work: str | None = None

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Survey, sample, plan, count, merge and, where it pays, scatter."""
        from mondrian_ops import pipeline

        with final_errors():
            job = read_job(self.job)
            check_fragments(job)
            self._work = work_of(job, self, context)
            try:
                fragments = pipeline.partition(job, work=self._work, progress=self.log_progress())
            except BaseException:
                pipeline.discard(self._work)
                raise
        self.log.info("%d fragments of %s", len(fragments), _sizes(fragments))
        return fragments

    def on_kill(self) -> None:
        """Remove the working files: a retry begins anew."""
        from mondrian_ops import pipeline

        if self._work is not None:
            pipeline.discard(self._work)
        super().on_kill()


def check_fragments(job: Job) -> None:
    """Refuse more fragments than this Airflow maps, before any work is done.

    Raises JobError.
    """
    check_map_length(job.partitioning.fragments, "partitioning.fragments")


def check_map_length(length: int, what: str) -> None:
    """Raise JobError if ``length`` mapped tasks are more than ``[core] max_map_length``."""
    limit = conf.getint("core", "max_map_length", fallback=1024)
    if length > limit:
        raise JobError(
            f"{what}: {length} mapped tasks are more than [core] max_map_length of this Airflow, "
            f"{limit}; ask for fewer fragments or raise the limit"
        )


def _sizes(fragments: list[dict[str, Any]]) -> str:
    rows = [fragment["rows"] for fragment in fragments]
    if not rows:
        return "no rows"
    return f"{min(rows):,} to {max(rows):,} rows, {sum(rows):,} together"
