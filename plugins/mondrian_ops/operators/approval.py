"""A steward's approval by Airflow's own human-in-the-loop machinery.

The release waits in its ``wrap_up`` task, parked in the state ``awaiting_input``: it takes no slot
and needs no triggerer. That is what :class:`HITLOperator` does. A task of its own beside
``wrap_up`` could be cleared, skipped or marked without the other, and a third one would have to
publish; in one task, who publishes is who verified.

Three things Airflow's :class:`ApprovalOperator` does not do are done here. A rejected task is
skipped rather than a success, so that it emits no Asset event and nobody who waits for its success
goes on. Everything after it is skipped, whatever its trigger rule, but teardowns. And what was
decided is remembered across tries of the task, so that a worker that is killed while it carries it
out does not have the steward asked again: the next try carries it out.

What waits is described by a :class:`Parked`, so that neither the job's file nor the working files
are needed to discard it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from mondrian_ops.core.errors import ApprovalError, MondrianOpsError, StorageError

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

    from mondrian_ops.core.job import Job

__all__ = [
    "Decision",
    "Parked",
    "ask",
    "earlier",
    "park",
    "remember",
    "skip_followers",
    "staged_report",
]

APPROVE, REJECT = "Approve", "Reject"

_ASKED, _DECIDED = "mondrian_ops_asked", "mondrian_ops_decision"
_PARKED = "parked.json"
# A run that times out is ended without its teardowns: the release has to be discarded before.
_BEFORE_TIMEOUT = timedelta(minutes=2)


class Decision(NamedTuple):
    """What was decided about a release: approved, rejected or, by nobody, expired."""

    decision: str
    by: str
    at: str

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Decision:
        """The decision in what Airflow resumes a task with."""
        by = (event.get("responded_by_user") or {}).get("name") or ""
        at = event.get("responded_at") or datetime.now(UTC)
        if event.get("timedout") or "error" in event:
            return cls("expired", "", _iso(at))
        approved = list(event["chosen_options"]) == [APPROVE]
        return cls("approved" if approved else "rejected", by, _iso(at))

    @property
    def approved(self) -> bool:
        """Whether the release may be published."""
        return self.decision == "approved"

    def __str__(self) -> str:
        if self.decision == "expired":
            return "nobody approved it in time"
        return f"{self.decision} by {self.by or 'somebody'}"


class Parked(NamedTuple):
    """A release that waits, as it was when it was asked about; what is in it can be JSON.

    ``job`` is the whole job, whatever its file says meanwhile; ``token`` that of the working files
    at ``work``, which others have after the run was cleared; ``seal`` that of what was checked;
    ``map_index`` that of its ``wrap_up``.
    """

    job: Mapping[str, Any]
    work: str
    token: str
    seal: str
    map_index: int

    @classmethod
    def of(cls, job: Job, work: str, seal: str, context: Context) -> Parked:
        """The release of this job in these working files; raises StorageError without any."""
        from mondrian_ops.storage import WorkDir

        index = context["ti"].map_index
        return cls(job.to_dict(), work, WorkDir(work).token, seal, -1 if index is None else index)

    @classmethod
    def left_in(cls, work: str) -> Parked | None:
        """The release that :meth:`leave` described in these working files, where there is one."""
        from mondrian_ops.storage import WorkDir

        try:
            return cls(**WorkDir(work).read_json(_PARKED))
        except (MondrianOpsError, TypeError):
            return None

    def leave(self) -> None:
        """Describe it in its working files, for who has to tell what became of it."""
        from mondrian_ops.storage import WorkDir

        WorkDir.attach(self.work).write_json(_PARKED, self._asdict())

    @property
    def current_token(self) -> str | None:
        """The token of the working files that are there now; None where there are none."""
        from mondrian_ops.storage import WorkDir

        try:
            return WorkDir(self.work).token
        except StorageError:
            return None


def ask(
    context: Context, *, subject: str, body: str, stewards: Sequence[str], link: str = ""
) -> None:
    """Show the question where Airflow shows what needs an answer; ``body`` is Markdown.

    Raises ApprovalError where Airflow would show an earlier question, or put it to others; an
    earlier one without the ``link`` to the release, or with another, is the same one.
    """
    from airflow.sdk.execution_time.hitl import HITLUser, upsert_hitl_detail

    _refuse_other_question(context, subject, body, *stewards)
    upsert_hitl_detail(
        ti_id=context["ti"].id,
        options=[APPROVE, REJECT],
        subject=subject,
        body=f"{body}\n\n[The release]({link})" if link else body,
        defaults=[REJECT],
        params={},
        assigned_users=[HITLUser(id=each, name=each) for each in stewards],
    )


def park(job: Job, context: Context, *, resume: str, parked: Parked) -> NoReturn:
    """End the task for now; ``resume`` is the method that gets ``parked`` and Airflow's answer."""
    from airflow.sdk.exceptions import TaskAwaitingInput

    raise TaskAwaitingInput(
        method_name=resume, kwargs={"parked": parked._asdict()}, timeout=_patience(job, context)
    )


def _refuse_other_question(context: Context, *question: str) -> None:
    """Airflow keeps the first question that a task of a run has put, over all its tries."""
    from airflow.sdk.execution_time.context import NEVER_EXPIRE

    store = context["task_state_store"]
    digest = hashlib.sha256(json.dumps(question).encode()).hexdigest()
    if store.get(_ASKED, digest) != digest:
        raise ApprovalError(
            "this run was cleared after its release had been shown for approval, and its figures, "
            "or who may approve it, have changed since, but Airflow keeps to the former ones; "
            "trigger a new run"
        )
    store.set(_ASKED, digest, retention=NEVER_EXPIRE)


def _patience(job: Job, context: Context) -> timedelta:
    """How long to wait: what the job says, but not longer than the run lasts."""
    patience = timedelta(hours=job.approval_hours)
    limit, started = context["dag"].dagrun_timeout, context["dag_run"].start_date
    if limit is None or started is None:
        return patience
    left = started + limit - datetime.now(UTC) - _BEFORE_TIMEOUT
    return max(min(patience, left), timedelta(seconds=1))


def remember(context: Context, parked: Parked, decision: Decision) -> None:
    """Keep a decision for the next try of the task."""
    from airflow.sdk.execution_time.context import NEVER_EXPIRE

    kept: Any = {"parked": parked._asdict(), "decision": list(decision)}
    context["task_state_store"].set(_DECIDED, kept, retention=NEVER_EXPIRE)


def earlier(context: Context, works: Collection[str]) -> tuple[Parked, Decision] | None:
    """What an earlier try of the task was told to do with its release.

    None where the run was cleared since, so that there is another release to ask about; ``works``
    are the working files of the fragments that there are now. A denial stands where they are gone:
    then it was carried out.
    """
    from mondrian_ops.hooks.settings import use_settings

    kept: Any = context["task_state_store"].get(_DECIDED)
    if not kept:
        return None
    use_settings()
    parked, decision = Parked(**kept["parked"]), Decision(*kept["decision"])
    current = parked.current_token
    still_there = current == parked.token
    discarded = current is None and not decision.approved
    if parked.work in works and (still_there or discarded):
        return parked, decision
    return None


def staged_report(work: str) -> dict[str, Any] | None:
    """The report of a release that is not published yet; None where none can be read."""
    from mondrian_ops import report as reports
    from mondrian_ops import storage

    path = f"{storage.WorkDir(work).staging}/{reports.JSON_NAME}"
    try:
        report = reports.parsed(storage.read_file(path))
        reports.Report.of(report)  # raises ReportError for anything else
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return report


def skip_followers(operator: BaseOperator, context: Context) -> None:
    """Skip every task that follows, whatever its trigger rule, but teardowns."""
    from airflow.sdk.bases.skipmixin import XCOM_SKIPMIXIN_KEY, XCOM_SKIPMIXIN_SKIPPED
    from airflow.sdk.execution_time import task_runner
    from airflow.sdk.execution_time.comms import SkipDownstreamTasks

    followers = [
        task for task in operator.get_flat_relatives(upstream=False) if not task.is_teardown
    ]
    if not followers:
        return
    # For those that are cleared later on: Airflow looks here whether they may run then. It does so
    # for tasks that follow directly, and for none that follows a mapped task.
    skipped = {
        XCOM_SKIPMIXIN_SKIPPED: [
            task.task_id for task in followers if task.task_id in operator.downstream_task_ids
        ]
    }
    context["ti"].xcom_push(key=XCOM_SKIPMIXIN_KEY, value=skipped)
    instances = [each for task in followers for each in _instances(task, context)]
    task_runner.SUPERVISOR_COMMS.send(SkipDownstreamTasks(tasks=instances))


def _instances(task: Any, context: Context) -> list[str | tuple[str, int]]:
    """The instances that a task has; one that is mapped may have been expanded already."""
    if not task.is_mapped and task.get_closest_mapped_task_group() is None:
        return [task.task_id]
    run = context["dag_run"]
    number = context["ti"].get_ti_count(
        dag_id=run.dag_id, task_ids=[task.task_id], run_ids=[run.run_id]
    )
    return [task.task_id, *((task.task_id, index) for index in range(number))]


def _iso(moment: datetime | str) -> str:
    if isinstance(moment, str):
        return moment
    return moment.astimezone(UTC).isoformat(timespec="seconds")
