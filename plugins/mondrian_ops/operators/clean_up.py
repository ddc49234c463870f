"""Whatever happened: no working file stays behind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mondrian_ops.core.errors import MondrianOpsError
from mondrian_ops.operators.base import MondrianOperator, read_job, work_of
from mondrian_ops.operators.metrics import count_release
from mondrian_ops.operators.records import record

if TYPE_CHECKING:
    from airflow.sdk import Context

    from mondrian_ops.core.job import Job

__all__ = ["CleanUpOperator"]


class CleanUpOperator(MondrianOperator):
    """Remove the working files of a run; made to be a teardown of the three phases.

    ``job`` may also be a list of jobs. A job that makes no sense has no working files. A release
    that still waits for an approval, because the run was ended meanwhile, is recorded as failed.
    """

    def execute(self, context: Context) -> None:
        """Remove the working files that are still there."""
        from mondrian_ops import storage  # not the pipeline: cutting takes a second to import

        for map_index, given in _each(self.job):
            try:
                job = read_job(given)
                work = work_of(job, self, context)
            except MondrianOpsError:
                self.log.info("nothing to remove for a job that cannot be read")
                continue
            self._conclude(job, work, map_index, context)
            storage.WorkDir(work).remove()

    def _conclude(self, job: Job, work: str, map_index: int, context: Context) -> None:
        """Say of a release that was asked about, and is not published, that it never will be."""
        from mondrian_ops import report as reports
        from mondrian_ops import storage

        try:
            staged = f"{storage.WorkDir(work).staging}/{reports.JSON_NAME}"
            report = reports.parsed(storage.read_file(staged))
        except (OSError, ValueError):  # it was published, or never got as far
            return
        if reports.waits(report):
            abandoned = {**report, "approval": {"decision": "abandoned"}}
            reason = "its run ended before it was published"
            record(context, job, "failed", abandoned, reason, map_index)
            count_release(context, job, "failed")

    def on_kill(self) -> None:
        """Carry on: removing takes no longer than being told to stop."""


def _each(job: Any) -> Iterable[tuple[int, Any]]:
    """The jobs, with the map index that their tasks have."""
    if job is None:  # the task that was to describe it failed
        return ()
    return [(-1, job)] if isinstance(job, Mapping | str) else enumerate(job)
