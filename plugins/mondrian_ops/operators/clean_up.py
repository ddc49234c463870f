"""Remove the working files of a run, whether it succeeded or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from mondrian_ops.core.errors import MondrianOpsError, StorageError
from mondrian_ops.operators import approval
from mondrian_ops.operators.base import MondrianOperator, announced_works, work_of
from mondrian_ops.operators.metrics import count_release
from mondrian_ops.operators.report_archiving import record

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["CleanUpOperator"]


class CleanUpOperator(MondrianOperator):
    """Remove the working files of a run; meant to be the teardown of the three phases.

    ``job`` may also be a list of jobs. A job's file may have changed or be gone by now, so the task
    looks where the tasks before it have announced working files, too. A release that waits for an
    approval, and is neither published nor discarded, is recorded as failed.

    Where jobs may no longer write, the task removes nothing and fails for good.
    """

    def execute(self, context: Context) -> None:
        """Remove the working files; AirflowFailException if some are out of reach."""
        from mondrian_ops import storage  # the pipeline would take a second to import
        from mondrian_ops.hooks.settings import use_settings

        use_settings()
        works = announced_works(self, context) | self._works_now(context)
        removable = {work for work in works if storage.may_write(work)}
        for work in sorted(removable):
            self._conclude(work, context)
            storage.WorkDir(work).remove()
        if works > removable:
            raise _out_of_reach(works - removable)

    def _works_now(self, context: Context) -> set[str]:
        """The working directories by the jobs as they are now."""
        works = set()
        for given in _as_list(self.job):
            try:
                works.add(work_of(self.read_job(given), self, context))
            except MondrianOpsError:
                self.log.info(
                    "a job cannot be read; its working files are where its tasks announced them"
                )
        return works

    def _conclude(self, work: str, context: Context) -> None:
        """Record a release that waits for an approval, and is not published, as failed."""
        from mondrian_ops import storage

        parked = approval.Parked.left_in(work)
        if parked is None or not _is_staged(work):
            return
        job = storage.load_job(parked.job)  # its input need not be allowed any more
        if storage.published(str(job.output), parked.token):
            return
        report = approval.staged_report(work)
        if report is not None:
            report["approval"] = {"decision": "abandoned"}
        reason = "its run ended before it was published"
        record(context, job, "failed", report, reason, parked.map_index)
        count_release(context, job, "failed")

    def on_kill(self) -> None:
        """Carry on: the removal takes a moment."""


def _is_staged(work: str) -> bool:
    """Whether the working files hold a release; publication would have moved it away."""
    from mondrian_ops import storage

    try:
        return bool(storage.WorkDir(work).staged())
    except StorageError:
        return False


def _out_of_reach(works: Iterable[str]) -> AirflowFailException:
    from mondrian_ops import storage

    places = ", ".join(storage.shown(work) for work in sorted(works))
    return AirflowFailException(
        f"{places}: working files with original rows may remain there, because jobs may no longer "
        "write there; remove them by hand, or have an administrator add the location to "
        "allowed_outputs again and clear this task"
    )


def _as_list(job: Any) -> Iterable[Any]:
    if job is None:  # the upstream task that returns the job failed
        return ()
    return [job] if isinstance(job, Mapping | str) else job
