"""Whatever happened: no working file stays behind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from mondrian_ops.core.errors import MondrianOpsError, StorageError
from mondrian_ops.operators import approval
from mondrian_ops.operators.base import MondrianOperator, announced_works, read_job, work_of
from mondrian_ops.operators.metrics import count_release
from mondrian_ops.operators.report_archiving import record

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["CleanUpOperator"]


class CleanUpOperator(MondrianOperator):
    """Remove the working files of a run; made to be a teardown of the three phases.

    ``job`` may also be a list of jobs. Working files are where the tasks before this one have said,
    and where the jobs say now: a job's file may have changed, or be gone. A release that was asked
    about, but is neither published nor discarded, is recorded as failed.

    Where nothing may be written any more nothing is removed, and the task fails for good.
    """

    def execute(self, context: Context) -> None:
        """Remove the working files that are still there; AirflowFailException: some may stay."""
        from mondrian_ops import storage  # not the pipeline: cutting takes a second to import
        from mondrian_ops.hooks.settings import use_settings

        use_settings()
        works = announced_works(self, context) | self._works_now(context)
        ours = {work for work in works if storage.may_write(work)}
        for work in sorted(ours):
            self._conclude(work, context)
            storage.WorkDir(work).remove()
        if works > ours:
            raise _out_of_reach(works - ours)

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
        job = storage.load_job(parked.job)  # allowed as it was; its input may not be any more
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


def _out_of_reach(works: Iterable[str]) -> AirflowFailException:
    from mondrian_ops import storage

    places = ", ".join(storage.shown(work) for work in sorted(works))
    return AirflowFailException(
        f"{places}: working files, with rows as they were read, may have stayed behind, for jobs "
        "may not write there any more; remove them by hand, or have an administrator add the "
        "location to allowed_outputs again and clear this task"
    )


def _each(job: Any) -> Iterable[Any]:
    if job is None:  # the task that was to describe it failed
        return ()
    return [job] if isinstance(job, Mapping | str) else job
