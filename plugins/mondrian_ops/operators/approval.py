"""A steward's approval, by Airflow's own human-in-the-loop machinery.

The release waits in its ``wrap_up`` task, in the state ``awaiting_input``, as with Airflow's
:class:`HITLOperator`: it takes no slot and needs no triggerer. A task of its own for the question
could be cleared, skipped or marked without ``wrap_up``, and a third task would have to publish.

Three things differ from Airflow's :class:`ApprovalOperator`. A rejected task is skipped, not a
success: it emits no Asset event. All tasks after it are skipped, whatever their trigger rules,
except teardowns. And the next try of a task that was killed while it carried out a decision carries
it out, instead of asking the steward again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from mondrian_ops.core.errors import ApprovalError, MondrianOpsError, StorageError
from mondrian_ops.report.outcome import MAX_WHY, decided

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

    from mondrian_ops.core.job import Job
    from mondrian_ops.core.policy import Required

__all__ = [
    "DECISION",
    "Decision",
    "Parked",
    "approvers",
    "ask",
    "counted",
    "earlier_decision",
    "park",
    "remember",
    "skip_followers",
    "staged_report",
]

APPROVE, REJECT = "Approve", "Reject"
WHY = "reason"
"""The field of the question in which a person may write why."""
_WHY = {
    "value": None,
    "description": "For the report of the release. Name nobody.",
    "schema": {"type": ["null", "string"], "title": "Reason", "maxLength": MAX_WHY},
}
DECISION = "decision"
"""The XCom that tells how a release was discarded: rejected or expired."""

_ASKED, _DECIDED = "mondrian_ops_asked", "mondrian_ops_decision"
_PARKED = "parked.json"
# A run that times out ends without its teardowns: the release has to be discarded before that.
_BEFORE_TIMEOUT = timedelta(minutes=2)


class Decision(NamedTuple):
    """The decision about a release: approved, rejected or, if nobody answered in time, expired.

    ``reason``: why an approval does not count, which makes it a rejection. ``why``: what the
    person wrote.
    """

    decision: str
    by: str
    at: str
    reason: str = ""
    why: str = ""

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Decision:
        """The decision in the event with which Airflow resumes a task."""
        by = (event.get("responded_by_user") or {}).get("name") or ""
        at = event.get("responded_at") or datetime.now(UTC)
        if event.get("timedout") or "error" in event:
            return cls("expired", "", _iso(at))
        approved = list(event["chosen_options"]) == [APPROVE]
        why = str((event.get("params_input") or {}).get(WHY) or "").strip()
        return cls("approved" if approved else "rejected", by, _iso(at), why=why[:MAX_WHY])

    @property
    def approved(self) -> bool:
        """Whether the release may be published."""
        return self.decision == "approved"

    @property
    def reported(self) -> dict[str, str] | None:
        """The person's answer as a report has it; None where there was none."""
        if self.decision == "expired":
            return None
        return decided("approved" if self.reason else self.decision, self.by, self.at, self.why)

    def __str__(self) -> str:
        if self.decision == "expired":
            return "nobody approved it in time"
        if self.reason:
            return f"the approval does not count: {self.reason}"
        return f"{self.decision} by {self.by or 'somebody'}"


class Parked(NamedTuple):
    """A release that waits for an approval, described in values that JSON can hold.

    ``job`` is the whole job, because its file may change meanwhile; ``token`` tells the working
    files at ``work`` from those that a cleared run makes anew; ``seal`` is the digest of the files
    that were checked; ``map_index`` is that of the ``wrap_up`` task.
    """

    job: Mapping[str, Any]
    work: str
    token: str
    seal: str
    map_index: int

    @classmethod
    def of(cls, job: Job, work: str, seal: str, context: Context) -> Parked:
        """The release in these working files. Raises StorageError if there are none."""
        from mondrian_ops.storage import WorkDir

        index = context["ti"].map_index
        return cls(job.to_dict(), work, WorkDir(work).token, seal, -1 if index is None else index)

    @classmethod
    def left_in(cls, work: str) -> Parked | None:
        """The release that :meth:`leave` has described in these working files, if any."""
        from mondrian_ops.storage import WorkDir

        try:
            return cls(**WorkDir(work).read_json(_PARKED))
        except (MondrianOpsError, TypeError):
            return None

    def leave(self) -> None:
        """Describe it in its working files, for :class:`CleanUpOperator`."""
        from mondrian_ops.storage import WorkDir

        WorkDir.attach(self.work).write_json(_PARKED, self._asdict())

    @property
    def current_token(self) -> str | None:
        """The token of the working files that are there now; None if there are none."""
        from mondrian_ops.storage import WorkDir

        try:
            return WorkDir(self.work).token
        except StorageError:
            return None


def approvers(
    job: Job, stewards: Sequence[str], context: Context, work: str | None = None
) -> dict[str, str]:
    """The name by id of each user who may approve; empty if all may who may answer in Airflow.

    The DAG's stewards, if it names some, as far as the policies allow; ``work``: the working files
    of the run, for the policies of rows that waited.

    Raises ApprovalError if nobody may.
    """
    from mondrian_ops import storage

    required = storage.required(job, work)
    asker = _asker(required, context)
    if required.approvers is None and not stewards:
        return {}
    named = required.approvers
    if named is None:
        named = {steward: steward for steward in stewards}
    elif stewards:
        named = {user: name for user, name in named.items() if user in stewards}
    allowed = {
        user: name
        for user, name in named.items()
        if asker not in (user.casefold(), name.casefold())
    }
    if not allowed:
        raise ApprovalError(
            f"approval: nobody may approve the release by the policies {_listed(required)}, the "
            "DAG's stewards and who triggered the run; add a steward to the DAG, let somebody else "
            "trigger it, or have an administrator add an approver to the policy"
        )
    return allowed


def _asker(required: Required, context: Context) -> str:
    """The user who triggered the run, if a policy wants four eyes; empty if a schedule did."""
    if not required.four_eyes:
        return ""
    run = context["dag_run"]
    if run.run_type == "manual" and not run.triggering_user_name:
        raise ApprovalError(
            f"four_eyes: the policies {_listed(required)} want to know who triggered the run, and "
            "Airflow does not; trigger it in the UI or by the REST API"
        )
    return (run.triggering_user_name or "").casefold()


def _listed(required: Required) -> str:
    return ", ".join(map(repr, required.policies))


def counted(
    decision: Decision,
    user: Mapping[str, str] | None,
    *,
    parked: Parked,
    stewards: Sequence[str],
    context: Context,
) -> Decision:
    """The decision, or a rejection where the policies do not let this user approve.

    Airflow refuses answers of users who are not assigned to the question, but not in all cases: it
    assigns nobody where everybody may answer, and does not look where everybody is an admin.
    """
    from mondrian_ops import storage
    from mondrian_ops.hooks.settings import use_settings

    if not decision.approved:
        return decision
    use_settings()
    job = storage.load_job(parked.job)
    required = storage.required(job, parked.work)
    allowed = approvers(job, stewards, context, parked.work)
    who = {str(value).casefold() for value in (user or {}).values()}
    asker, reason = _asker(required, context), ""
    if asker and asker in who:
        reason = f"{decision.by} triggered the run, and {_listed(required)} wants four eyes"
    elif allowed and (user or {}).get("id") not in allowed:
        reason = f"{decision.by or 'nobody'} is none of those who may approve"
    return decision._replace(decision="rejected", reason=reason) if reason else decision


def ask(
    context: Context, *, subject: str, body: str, stewards: Mapping[str, str], link: str = ""
) -> None:
    """Ask for an approval under Airflow's *Required Actions*; ``body`` is Markdown.

    ``stewards``: see :func:`approvers`.

    Raises ApprovalError if an earlier try has asked another question, or other stewards, because
    Airflow keeps the first one; the ``link`` to the release may differ.
    """
    from airflow.sdk.execution_time.hitl import HITLUser, upsert_hitl_detail

    _refuse_other_question(context, subject, body, *stewards)
    upsert_hitl_detail(
        ti_id=context["ti"].id,
        options=[APPROVE, REJECT],
        subject=subject,
        body=f"{body}\n\n[The release]({link})" if link else body,
        defaults=[REJECT],
        params={WHY: _WHY},
        assigned_users=[HITLUser(id=steward, name=name) for steward, name in stewards.items()],
    )


def park(job: Job, context: Context, *, resume: str, parked: Parked) -> NoReturn:
    """End the task for now; Airflow resumes it in the method ``resume`` with ``parked``."""
    from airflow.sdk.exceptions import TaskAwaitingInput

    raise TaskAwaitingInput(
        method_name=resume, kwargs={"parked": parked._asdict()}, timeout=_time_to_wait(job, context)
    )


def _refuse_other_question(context: Context, *question: str) -> None:
    """Raise ApprovalError for a second question: Airflow shows the first one to all tries."""
    from airflow.sdk.execution_time.context import NEVER_EXPIRE

    store = context["task_state_store"]
    digest = hashlib.sha256(json.dumps(question).encode()).hexdigest()
    if store.get(_ASKED, digest) != digest:
        raise ApprovalError(
            "this run was cleared after it had asked for approval, and the release's figures or "
            "its stewards have changed since, but Airflow keeps the first question; trigger a new "
            "run"
        )
    store.set(_ASKED, digest, retention=NEVER_EXPIRE)


def _time_to_wait(job: Job, context: Context) -> timedelta:
    """The job's ``approval_hours``, unless the run times out before."""
    hours = timedelta(hours=job.approval_hours)
    limit, started = context["dag"].dagrun_timeout, context["dag_run"].start_date
    if limit is None or started is None:
        return hours
    left = started + limit - datetime.now(UTC) - _BEFORE_TIMEOUT
    return max(min(hours, left), timedelta(seconds=1))


def remember(context: Context, parked: Parked, decision: Decision) -> None:
    """Keep the decision for the next try of the task."""
    from airflow.sdk.execution_time.context import NEVER_EXPIRE

    kept: Any = {"parked": parked._asdict(), "decision": list(decision)}
    context["task_state_store"].set(_DECIDED, kept, retention=NEVER_EXPIRE)


def earlier_decision(context: Context, works: Collection[str]) -> tuple[Parked, Decision] | None:
    """The decision that an earlier try of the task has kept, with its release.

    None if the run was cleared since and has made another release, which is asked about anew;
    ``works`` are the working directories of the fragments that there are now. A rejection holds
    even if its working files are gone: carrying it out removes them.
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
    """The report of a release that is not published yet; None if it is missing or damaged."""
    from mondrian_ops import report as reports
    from mondrian_ops import storage

    path = f"{storage.WorkDir(work).staging}/{reports.JSON_NAME}"
    try:
        return reports.Report.from_json(storage.read_file(path)).to_dict()
    except (OSError, ValueError):
        return None


def skip_followers(operator: BaseOperator, context: Context) -> None:
    """Skip every task that follows, whatever its trigger rule, except teardowns."""
    from airflow.sdk.bases.skipmixin import XCOM_SKIPMIXIN_KEY, XCOM_SKIPMIXIN_SKIPPED
    from airflow.sdk.execution_time import task_runner
    from airflow.sdk.execution_time.comms import SkipDownstreamTasks

    followers = [
        task for task in operator.get_flat_relatives(upstream=False) if not task.is_teardown
    ]
    if not followers:
        return
    # Airflow reads this when such a task is cleared later, to see whether it may run: only of the
    # tasks that follow directly, and never behind a mapped task.
    skipped = {
        XCOM_SKIPMIXIN_SKIPPED: [
            task.task_id for task in followers if task.task_id in operator.downstream_task_ids
        ]
    }
    context["ti"].xcom_push(key=XCOM_SKIPMIXIN_KEY, value=skipped)
    instances = [instance for task in followers for instance in _instances(task, context)]
    task_runner.SUPERVISOR_COMMS.send(SkipDownstreamTasks(tasks=instances))


def _instances(task: Any, context: Context) -> list[str | tuple[str, int]]:
    """The instances of a task; Airflow may have expanded a mapped one already."""
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
