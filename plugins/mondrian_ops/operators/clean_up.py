"""Whatever happened: no working file stays behind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mondrian_ops.core.errors import MondrianOpsError, StorageError
from mondrian_ops.operators import approval
from mondrian_ops.operators.base import MondrianOperator, announced_works, read_job, work_of
from mondrian_ops.operators.metrics import count_release
from mondrian_ops.operators.records import record

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["CleanUpOperator"]


class CleanUpOperator(MondrianOperator):
    """Remove the working files of a run; made to be a teardown of the three phases.

    ``job`` may also be a list of jobs. Working files are where the tasks before this one have said,
    and where the jobs say now: a job's file may have changed, or be gone. A release that was asked
    about, but is neither published nor discarded, is recorded as failed.
    """

    def execute(self, context: Context) -> None:
        """Remove the working files that are still there."""
        from mondrian_ops import storage  # not the pipeline: cutting takes a second to import
        from mondrian_ops.hooks.settings import use_settings

        use_settings()
        for work in sorted(announced_works(self, context) | self._works_now(context)):
            self._conclude(work, context)
            storage.WorkDir(work).remove()

    def _works_now(self, context: Context) -> set[str]:
        """Where the working files are by what the jobs say now."""
        works = set()
        for given in _each(self.job):
            try:
                works.add(work_of(read_job(given), self, context))
            except MondrianOpsError:
                self.log.info("a job that cannot be read does not say where its working files are")
        return works

    def _conclude(self, work: str, context: Context) -> None:
        """Say of a release that was asked about, and is not published, that it never will be."""
        from mondrian_ops import storage

        parked = approval.Parked.left_in(work)
        if parked is None or not _is_staged(work):
            return
        job = read_job(parked.job)
        if storage.published(str(job.output), parked.token):
            return
        report = approval.staged_report(work)
        if report is not None:
            report["approval"] = {"decision": "abandoned"}
        reason = "its run ended before it was published"
        record(context, job, "failed", report, reason, parked.map_index)
        count_release(context, job, "failed")

    def on_kill(self) -> None:
        """Carry on: removing takes no longer than being told to stop."""


def _is_staged(work: str) -> bool:
    """Whether there are files of a release, which its publication would have moved."""
    from mondrian_ops import storage

    try:
        return bool(storage.WorkDir(work).staged())
    except StorageError:
        return False


def _each(job: Any) -> Iterable[Any]:
    if job is None:  # the task that was to describe it failed
        return ()
    return [job] if isinstance(job, Mapping | str) else job
