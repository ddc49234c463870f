"""A steward's approval by Airflow's own human-in-the-loop machinery.

The release waits in its ``wrap_up`` task, parked in the state ``awaiting_input``: it takes no slot
and needs no triggerer. That is what :class:`HITLOperator` does. A task of its own beside
``wrap_up`` could be cleared, skipped or marked without the other, and a third one would have to
publish; in one task, who publishes is who verified.

Three things Airflow's :class:`ApprovalOperator` does not do are done here. A rejected task is
skipped rather than a success, so that it emits no Asset event and nobody who waits for its success
goes on. Everything after it is skipped, whatever its trigger rule, but teardowns. And what was
decided is remembered across tries of the task, so that a worker that is killed while it carries it
out does not have the steward asked again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from mondrian_ops.core.errors import ApprovalError, StorageError

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

    from mondrian_ops.core.job import Job
    from mondrian_ops.pipeline import Approval

__all__ = ["Decision", "ask", "denied", "given", "park", "remember", "skip_followers"]

APPROVE, REJECT = "Approve", "Reject"

_ASKED, _DECIDED = "mondrian_ops_asked", "mondrian_ops_decision"
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


def ask(context: Context, *, subject: str, body: str, stewards: Sequence[str]) -> None:
    """Show the question where Airflow shows what needs an answer; ``body`` is Markdown.

    Raises ApprovalError where Airflow would show the figures of an earlier question.
    """
    from airflow.sdk.execution_time.hitl import HITLUser, upsert_hitl_detail

    _refuse_other_question(context, subject + body)
    upsert_hitl_detail(
        ti_id=context["ti"].id,
        options=[APPROVE, REJECT],
        subject=subject,
        body=body,
        defaults=[REJECT],
        params={},
        assigned_users=[HITLUser(id=each, name=each) for each in stewards],
    )


def park(job: Job, context: Context, *, resume: str, seal: str) -> NoReturn:
    """End the task for now; ``resume`` is the method that gets the seal and Airflow's answer."""
    from airflow.sdk.exceptions import TaskAwaitingInput

    raise TaskAwaitingInput(
        method_name=resume, kwargs={"seal": seal}, timeout=_patience(job, context)
    )


def _refuse_other_question(context: Context, question: str) -> None:
    """Airflow keeps the first text that it was given for a task of a run, over all its tries."""
    store = context["task_state_store"]
    digest = hashlib.sha256(question.encode()).hexdigest()
    if store.get(_ASKED, digest) != digest:
        raise ApprovalError(
            "this run was cleared after its release had been shown for approval, and its figures "
            "have changed since, but Airflow keeps showing the former ones; trigger a new run"
        )
    store.set(_ASKED, digest)


def _patience(job: Job, context: Context) -> timedelta:
    """How long to wait: what the job says, but not longer than the run lasts."""
    patience = timedelta(hours=job.approval_hours)
    limit, started = context["dag"].dagrun_timeout, context["dag_run"].start_date
    if limit is None or started is None:
        return patience
    left = started + limit - datetime.now(UTC) - _BEFORE_TIMEOUT
    return max(min(patience, left), timedelta(seconds=1))


def remember(context: Context, work: str, seal: str, decision: Decision) -> None:
    """Keep a decision for the next try of the task, which has the same working files."""
    from mondrian_ops.storage import WorkDir

    kept: Any = {"token": WorkDir(work).token, "seal": seal, "decision": list(decision)}
    context["task_state_store"].set(_DECIDED, kept)


def given(context: Context, work: str) -> Approval | None:
    """The approval that an earlier try of the task was given for these working files."""
    from mondrian_ops.pipeline import Approval
    from mondrian_ops.storage import WorkDir

    kept: Any = context["task_state_store"].get(_DECIDED)
    if not kept or kept["token"] != WorkDir(work).token:
        return None
    decision = Decision(*kept["decision"])
    return Approval(kept["seal"], decision.by, decision.at) if decision.approved else None


def denied(context: Context, work: str) -> Decision | None:
    """The decision by which an earlier try of the task discarded the working files."""
    from mondrian_ops.storage import WorkDir

    kept: Any = context["task_state_store"].get(_DECIDED)
    if not kept or (decision := Decision(*kept["decision"])).approved:
        return None
    try:
        WorkDir(work).token  # noqa: B018 - whether it can be read
    except StorageError:
        return decision
    return None


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
    # For those that are cleared later on: Airflow looks here whether they may run then.
    skipped = {XCOM_SKIPMIXIN_SKIPPED: [task.task_id for task in followers]}
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
