"""Whatever happened: no working file stays behind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mondrian_ops.core.errors import MondrianOpsError
from mondrian_ops.operators.base import MondrianOperator, read_job, work_of

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["CleanUpOperator"]


class CleanUpOperator(MondrianOperator):
    """Remove the working files of a run; made to be a teardown of the three phases.

    ``job`` may also be a list of jobs. A job that makes no sense has no working files.
    """

    def execute(self, context: Context) -> None:
        """Remove the working files that are still there."""
        from mondrian_ops import storage  # not the pipeline: cutting takes a second to import

        for job in _each(self.job):
            try:
                work = work_of(read_job(job), self, context)
            except MondrianOpsError:
                self.log.info("nothing to remove for a job that cannot be read")
                continue
            storage.WorkDir(work).remove()

    def on_kill(self) -> None:
        """Carry on: removing takes no longer than being told to stop."""


def _each(job: Any) -> Iterable[Any]:
    if job is None:  # the task that was to describe it failed
        return ()
    return (job,) if isinstance(job, Mapping | str) else job
