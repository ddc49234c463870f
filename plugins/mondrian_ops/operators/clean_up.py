"""Remove the working files of a run that is over; keep those that a repair needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from mondrian_ops.errors import MondrianOpsError, StorageError
from mondrian_ops.operators import approval, questions
from mondrian_ops.operators.base import (
    MondrianOperator,
    announced_by,
    announced_works,
    is_trial,
    work_of,
)
from mondrian_ops.operators.metrics import count_release
from mondrian_ops.operators.release_records import (
    ended,
    record,
    record_failure,
    recorded_state,
)
from mondrian_ops.report.outcome import FAILED, HELD

if TYPE_CHECKING:
    from airflow.sdk import Context

    from mondrian_ops.publish import WorkDir

_FAILED = frozenset({"failed", "upstream_failed"})
_NOT_DONE = _FAILED | {"skipped"}

_OVER = "its run ended before it was published"
_MARKED = (
    "its wrap_up was marked as success by hand before it had published anything, and an approval "
    "that comes later publishes nothing either; clear wrap_up to have the release checked, and "
    "asked about, again"
)


class _Conclusion(Enum):
    """What became of a release: ``MARKED`` is unfinished, too, by hand."""

    OVER = "over"
    UNFINISHED = "unfinished"
    MARKED = "marked"


class _States(defaultdict[str, set[str]]):
    """The states in which the instances of each task have ended.

    ``by_index``: by task, the state of each instance by its map index.
    """

    def __init__(self) -> None:
        super().__init__(set)
        self.by_index: dict[str, dict[int, str]] = defaultdict(dict)


class CleanUpOperator(MondrianOperator):
    """Remove the working files of a run; meant to be the teardown of the three phases.

    ::

        tasks >> CleanUpOperator(task_id="clean_up", job=job).as_teardown(
            on_failure_fail_dagrun=True
        )

    If a task before it failed, or was skipped because somebody marked the run as failed, it keeps
    the working files of each release that is not published, and fails for good: so the run shows as
    failed, and *Clear* of the failed tasks does this one again. :class:`SweepOperator` removes what
    is kept after ``[mondrian_ops] keep_hours``.

    ``job`` may also be a list of jobs. A job's file may have changed or be gone by now, so the task
    looks where the tasks before it have announced working files, too. A release that is neither
    published nor discarded is recorded as failed, unless a task before has recorded why: one that
    waits for an approval, whose task was killed, or whose run somebody marked as failed.

    Where jobs may no longer write, the task removes nothing and fails for good. What stops it at
    one directory, such as a link that somebody planted there, stops it at no other one.
    """

    def execute(self, context: Context) -> None:
        """Remove the working files.

        Raises AirflowFailException if a release is not made, or some files are out of reach or
        cannot be removed; OSError, after all the others, for a failure that a retry may cure.
        """
        from mondrian_ops import publish, stores  # the pipeline would take a second to import
        from mondrian_ops.hooks.settings import keep_time, use_settings

        use_settings()
        ended, keep = _states(context), keep_time()
        works = announced_works(self, context) | self._works_now(context)
        reachable = {work for work in works if stores.may_write(work)}
        conclusions, errors = set[_Conclusion](), list[MondrianOpsError | OSError]()
        for directory in map(publish.WorkDir, sorted(reachable)):
            try:
                conclusions.add(self._concluded(directory, ended, keep, context))
            except (MondrianOpsError, OSError) as error:
                errors.append(error)
        unfinished = not conclusions <= {_Conclusion.OVER}
        problems = []
        if works > reachable:
            problems.append(_out_of_reach(works - reachable))
        if errors:
            problems.append(f"working files with original rows may remain: {_joined(errors)}")
        if unfinished or self._has_failed(ended):
            self._record_failures(context, ended)
            marked = _Conclusion.MARKED in conclusions
            problems.append(_not_published(keep if unfinished else timedelta(), marked))
        if curable := [error for error in errors if isinstance(error, OSError)]:
            raise curable[0]
        if problems:
            raise AirflowFailException(". ".join(problems))

    def _concluded(
        self, directory: WorkDir, ended: _States, keep: timedelta, context: Context
    ) -> _Conclusion:
        """What became of a release, whose working files are now removed, or kept for a repair."""
        if not self._is_of_a_task_before(directory):
            return _Conclusion.OVER
        number = self._marked(directory, ended, context)
        is_unfinished = number is not None or self._is_unfinished(directory, ended)
        self._conclude(directory.root, context, _OVER if number is None else _MARKED)
        if number is not None:
            record_failure(context, directory.job, _MARKED, map_index=number)
        if is_unfinished and keep:
            directory.keep()
        else:
            directory.remove()
        if number is not None:
            return _Conclusion.MARKED
        return _Conclusion.UNFINISHED if is_unfinished else _Conclusion.OVER

    def _is_of_a_task_before(self, directory: WorkDir) -> bool:
        """Whether the files are of a task before this one, not of another branch of the DAG."""
        before = self.get_flat_relative_ids(upstream=True) | self.upstream_task_ids
        return directory.owner is None or directory.owner.task in before

    def _is_unfinished(self, directory: WorkDir, ended: _States) -> bool:
        """Whether the files hold a release that a repair could still publish.

        If the task that made them has failed, a repair begins anew.
        """
        if directory.owner is None or "success" not in ended[directory.owner.task]:
            return False
        return directory.has_release and any(
            ended[task_id] & _NOT_DONE for task_id in self.upstream_task_ids
        )

    def _marked(self, directory: WorkDir, ended: _States, context: Context) -> int | None:
        """The map index of the task that is a success and has not published this release.

        Somebody has marked it so; None if it has published, or its night of a series is held.
        """
        from mondrian_ops import publish

        if is_trial() or not directory.is_begun or not directory.has_release:
            return None
        publishers = list(self._publishers())
        for task, numbers in publishers:
            for number in numbers:
                if ended.by_index[task.task_id].get(number) != "success":
                    continue
                is_only = number == -1 and len(publishers) == 1
                if not is_only and directory.root not in announced_by(task, context, [number]):
                    continue
                output = str(directory.job.output)
                is_held = recorded_state(context, number).state == HELD
                is_out = is_held or publish.published(output, directory.token)
                return None if is_out else number
        return None

    def _publishers(self) -> Iterator[tuple[Any, range]]:
        """The tasks before this one that publish, each with the map indexes of its releases."""
        for task in self.upstream_list:
            if getattr(getattr(task, "operator_class", type(task)), "ends_run", False):
                number = len(list(_as_list(self.job)) or [None])
                yield task, range(number) if task.is_mapped else range(-1, 0)

    def _has_failed(self, ended: _States) -> bool:
        """Whether a task before this one failed, or somebody marked the run as failed.

        Airflow then skips what has not begun. Such a skip has no cause: there are jobs, and no task
        that may skip others, or was skipped itself.
        """
        if any(ended[task_id] & _FAILED for task_id in self.upstream_task_ids):
            return True
        first = [
            task
            for task in self.upstream_list
            if task.upstream_task_ids.isdisjoint(self.upstream_task_ids)
        ]
        skipped_whole = bool(first) and all(ended[task.task_id] == {"skipped"} for task in first)
        if not skipped_whole or not any(_as_list(self.job)):
            return False
        if any(ended[task_id] & _FAILED for task_id in self.get_flat_relative_ids(upstream=True)):
            return True
        before = [source for task in first for source in task.upstream_list]
        skipped = any("skipped" in ended[task.task_id] for task in before)
        return not skipped and not any(
            getattr(task, "inherits_from_skipmixin", False) for task in [*first, *before]
        )

    def _works_now(self, context: Context) -> set[str]:
        """The working directories by the jobs as they are now."""
        works = set()
        for given in _as_list(self.job):
            try:
                works.add(work_of(self.read_job(given), context))
            except MondrianOpsError:
                self.log.info(
                    "a job cannot be read; its working files are where its tasks announced them"
                )
        return works

    def _conclude(self, work: str, context: Context, reason: str) -> None:
        """Record a release that waits for an approval, and is not published, as failed.

        An answer that comes later is refused.
        """
        from mondrian_ops import publish, stores

        parked = approval.Parked.left_in(work)
        if parked is None or not _is_staged(work):
            return
        job = stores.load_job(parked.job)  # its input need not be allowed any more
        if publish.published(str(job.output), parked.token):
            return
        questions.close(context, parked.map_index)
        before = recorded_state(context, parked.map_index)
        if before.state == FAILED and before.is_new:
            reason = before.reason
        report = ended(context, job, FAILED, reason, approval.staged_report(work))
        record(context, job, report, parked.map_index)
        count_release(context, job, FAILED)

    def _record_failures(self, context: Context, ended: _States) -> None:
        """Record each release that is not published as failed, if no task has recorded why."""
        if is_trial():
            return
        for task, numbers in self._publishers():
            given = list(_as_list(self.job)) or [None]
            states = ended.by_index[task.task_id]
            for number, job in zip(numbers, given, strict=False):
                # One that Airflow has not mapped any more has no number.
                if states.get(number, states.get(-1)) != "success":
                    self._record_failure(context, ended, number, job)

    def _record_failure(self, context: Context, ended: _States, number: int, given: Any) -> None:
        from mondrian_ops.job.job import Job

        before = recorded_state(context, number)
        if before.state in ("rejected", "expired"):
            return
        is_known = before.state in ("failed", "refused")
        # Unless the task that recorded why was done again since.
        if is_known and (before.is_new or "success" not in ended[before.task_id]):
            return
        failed = sorted(
            task_id
            for task_id in self.get_flat_relative_ids(upstream=True) | self.upstream_task_ids
            if "failed" in ended[task_id]
        )
        reason = (
            f"the run ended before its release was published, because of {', '.join(failed)}; see "
            "the log of that task"
            if failed
            else "the run was marked as failed before its release was published"
        )
        job = self._job_of(context, number, given)
        if record_failure(context, job, reason, map_index=number) and isinstance(job, Job):
            count_release(context, job, "failed")

    def _job_of(self, context: Context, number: int, given: Any) -> Any:
        """The job with which a run began, as far as that is still known."""
        from mondrian_ops import publish

        for work in announced_by(self, context, [number]):
            with suppress(MondrianOpsError):
                if work is not None:
                    return publish.WorkDir(work).job
        with suppress(MondrianOpsError):
            return self.read_job(given)
        return given

    def on_kill(self) -> None:
        """Carry on: the removal takes a moment."""


def _states(context: Context) -> _States:
    """In which states the instances of each task of the run have ended."""
    run = context["dag_run"]
    this: Any = context["ti"]
    ended = _States()
    for instance in this.get_task_breadcrumbs(run.dag_id, run.run_id):
        task_id, state = instance["task_id"], str(instance["state"])
        ended[task_id].add(state)
        ended.by_index[task_id][instance["map_index"]] = state
    return ended


def _is_staged(work: str) -> bool:
    """Whether the working files hold a release; publication would have moved it away."""
    from mondrian_ops import publish

    try:
        return bool(publish.WorkDir(work).staged())
    except StorageError:
        return False


def _out_of_reach(works: Iterable[str]) -> str:
    from mondrian_ops import stores

    places = ", ".join(stores.shown(work) for work in sorted(works))
    return (
        f"{places}: working files with original rows may remain there, because jobs may no longer "
        "write there; remove them by hand, or have an administrator add the location to "
        "allowed_outputs again and clear this task"
    )


def _joined(errors: Iterable[Exception]) -> str:
    return "; ".join(dict.fromkeys(map(str, errors)))


def _not_published(kept_for: timedelta, marked: bool) -> str:
    hours = kept_for / timedelta(hours=1)
    if marked:
        kept = f"the working files are kept for {hours:g} hours" if kept_for else "clear the run"
        return f"a release is not published: {_MARKED}; {kept}"
    kept = (
        f"the working files are kept for {hours:g} hours: clear the failed tasks, and the run goes "
        "on from there"
        if kept_for
        else "no working files are kept: clear the run, and it begins anew"
    )
    return f"the run ended before its release was published; see the log of the failed task; {kept}"


def _as_list(job: Any) -> Iterable[Any]:
    if job is None:  # the upstream task that returns the job failed
        return ()
    return [job] if isinstance(job, Mapping | str) else job
