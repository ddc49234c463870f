"""A steward's approval, by Airflow's own human-in-the-loop machinery.

The release waits in its ``wrap_up`` task, in the state ``awaiting_input``, as with Airflow's
:class:`HITLOperator`: it takes no slot and needs no triggerer. A task of its own for the question
could be cleared, skipped or marked without ``wrap_up``, and a third task would have to publish.

Three things differ from Airflow's :class:`ApprovalOperator`. A rejected task is skipped, not a
success: it emits no Asset event. All tasks after it are skipped, whatever their trigger rules,
except teardowns. And the next try of a task that was killed while it carried out a decision carries
it out, instead of asking the steward again.

What was asked and decided is in the catalogue, signed
(:mod:`mondrian_ops.operators.questions`). An approval counts only if Airflow's own record of the
answer (:mod:`mondrian_ops.operators.airflow_record`) says the same.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from mondrian_ops.errors import ApprovalError, MondrianOpsError, StorageError
from mondrian_ops.operators import questions
from mondrian_ops.operators.airflow_record import Answer
from mondrian_ops.operators.release_records import map_index_of
from mondrian_ops.report.outcome import MAX_WHY, decided

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

    from mondrian_ops.catalogue.approvals import Asked
    from mondrian_ops.job.job import Job
    from mondrian_ops.job.policy import Required

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

_log = logging.getLogger(__name__)

_LINK = "\n\n[The release]("
_PARKED = "parked.json"
# A run that times out ends without its teardowns: the release has to be discarded before that.
_BEFORE_TIMEOUT = timedelta(minutes=2)


class Decision(NamedTuple):
    """The decision about a release: approved, rejected or, if nobody answered in time, expired.

    ``by`` is the user's name, ``user`` the id. ``reason``: why an approval does not count, which
    makes it a rejection. ``why``: what the person wrote.
    """

    decision: str
    by: str
    at: str
    reason: str = ""
    why: str = ""
    user: str = ""

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Decision:
        """The decision in the event with which Airflow resumes a task."""
        user = event.get("responded_by_user") or {}
        by = str(user.get("name") or "")
        at = event.get("responded_at") or datetime.now(UTC)
        if event.get("timedout") or "error" in event:
            return cls("expired", "", _iso(at))
        approved = list(event["chosen_options"]) == [APPROVE]
        why = str((event.get("params_input") or {}).get(WHY) or "").strip()
        what = "approved" if approved else "rejected"
        return cls(what, by, _iso(at), "", why[:MAX_WHY], str(user.get("id") or ""))

    @property
    def approved(self) -> bool:
        """Whether the release may be published."""
        return self.decision == "approved"

    @property
    def is_answered(self) -> Answer:
        """The answer of which this is the approval, as Airflow has it."""
        return Answer((APPROVE,), self.user, self.by, self.at)

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
        from mondrian_ops.publish import WorkDir

        return cls(job.to_dict(), work, WorkDir(work).token, seal, map_index_of(context))

    @classmethod
    def left_in(cls, work: str) -> Parked | None:
        """The release that :meth:`leave` has described in these working files, if any."""
        from mondrian_ops.publish import WorkDir

        try:
            return cls(**WorkDir(work).read_json(_PARKED))
        except (MondrianOpsError, TypeError):
            return None

    def leave(self) -> None:
        """Describe it in its working files, for :class:`CleanUpOperator`."""
        from mondrian_ops.publish import WorkDir

        WorkDir.attach(self.work).write_json(_PARKED, self._asdict())

    @property
    def current_token(self) -> str | None:
        """The token of the working files that are there now; None if there are none."""
        from mondrian_ops.publish import WorkDir

        try:
            return WorkDir(self.work).token
        except StorageError:
            return None


def approvers(
    job: Job,
    stewards: Sequence[str],
    context: Context,
    work: str | None = None,
    changed_by: Collection[str] = (),
) -> dict[str, str]:
    """The name by id of each user who may approve; empty if all may who may answer in Airflow.

    The DAG's stewards, if it names some, as far as the policies allow; ``work``: the working files
    of the run, for the policies of rows that waited. With four eyes neither who triggered the run
    may, nor who has changed it since: ``changed_by``, names without case.

    Raises ApprovalError if nobody may.
    """
    from mondrian_ops import publish

    required = publish.required(job, work)
    askers = _askers(required, context, changed_by)
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
        if askers.isdisjoint((user.casefold(), name.casefold()))
    }
    if not allowed:
        raise ApprovalError(
            f"approval: nobody may approve the release by the policies {_listed(required)}, the "
            "DAG's stewards and who triggered or changed the run; add a steward to the DAG, let "
            "somebody else trigger it, or have an administrator add an approver to the policy"
        )
    return allowed


def _askers(required: Required, context: Context, changed_by: Collection[str]) -> set[str]:
    """Who asked for the release, without case; nobody if no policy wants four eyes.

    Nobody triggered the runs of a schedule.
    """
    if not required.four_eyes:
        return set()
    run = context["dag_run"]
    if run.run_type == "manual" and not run.triggering_user_name:
        raise ApprovalError(
            f"four_eyes: the policies {_listed(required)} want to know who triggered the run, and "
            "Airflow does not; trigger it in the UI or by the REST API"
        )
    return {*changed_by, (run.triggering_user_name or "").casefold()} - {""}


def _listed(required: Required) -> str:
    return ", ".join(map(repr, required.policies))


def ask(
    context: Context,
    job: Job,
    *,
    parked: Parked,
    subject: str,
    body: str,
    stewards: Sequence[str] = (),
    link: str = "",
) -> None:
    """Ask for an approval under Airflow's *Required Actions*; ``body`` is Markdown.

    ``stewards``: the DAG's, see :func:`approvers`. The catalogue has the question before anybody
    sees it.

    Raises ApprovalError if nobody may approve, and where Airflow shows another question, or to
    others: it keeps the first one that a task of a run has asked. The ``link`` to the release may
    differ.
    """
    from airflow.sdk.execution_time import task_runner
    from airflow.sdk.execution_time.comms import CreateHITLDetailPayload

    from mondrian_ops import publish

    digest = questions.digest_of(subject, body)
    asked = questions.open_question(context, parked._asdict(), digest)
    changed_by: Collection[str] = ()
    if publish.required(job, parked.work).four_eyes:
        changed_by = questions.record_of(context, asked).changed_by()
    allowed = approvers(job, stewards, context, parked.work, changed_by)
    question = {
        "ti_id": context["ti"].id,
        "options": [APPROVE, REJECT],
        "subject": subject,
        "body": f"{body}{_LINK}{link})" if link else body,
        "defaults": [REJECT],
        "params": {WHY: _WHY},
        "assigned_users": [{"id": user, "name": name} for user, name in allowed.items()],
    }
    # Airflow answers with the question that it shows; `upsert_hitl_detail` drops that.
    shown = task_runner.SUPERVISOR_COMMS.send(CreateHITLDetailPayload.model_validate(question))
    _refuse_other_question(shown, subject, body, allowed)


def _refuse_other_question(shown: Any, subject: str, body: str, allowed: Mapping[str, str]) -> None:
    """Raise ApprovalError unless Airflow shows this question, to all who may approve.

    It may show it to more people: the approval of others does not count.
    """
    text, link = str(shown.body or ""), f"{body}{_LINK}"
    is_same = text == body or (text.startswith(link) and "\n" not in text[len(link) :])
    asked = {user.id for user in shown.assigned_users or ()}
    reaches = not asked or (bool(allowed) and allowed.keys() <= asked)
    if shown.subject != subject or not is_same or not reaches:
        raise ApprovalError(
            "this run was cleared after it had asked for approval, and the release's figures or "
            "its stewards have changed since, but Airflow keeps the first question; trigger a new "
            "run"
        )


def taken(context: Context, event: Mapping[str, Any], parked: Parked) -> tuple[Asked, Decision]:
    """The decision in the event with which Airflow resumes the task, kept in the catalogue.

    Raises ApprovalError if the question is not open, or not about this release.
    """
    from mondrian_ops.catalogue import approvals

    asked, decision = questions.last(context), Decision.of(event)
    if asked is None or asked.state == approvals.CLOSED:
        raise ApprovalError(
            "approval: the answer came when the question was closed, because the run had ended "
            "or its task was marked by hand; nothing is published; clear wrap_up to have the "
            "release asked about again, or trigger a new run"
        )
    if asked.decision is not None:
        return asked, Decision(*asked.decision)  # an answer counts once
    if _waits(asked) != parked._replace(job=asked.release["job"]):
        raise ApprovalError(
            "approval: the answer is about another release than the one that the catalogue says "
            "was asked about; nothing is published; trigger a new run"
        )
    return questions.note(context, asked, approvals.DECIDED, decision), decision


def _waits(asked: Asked) -> Parked:
    return Parked(**asked.release)


def confirmed(
    context: Context, asked: Asked, decision: Decision, stewards: Sequence[str]
) -> tuple[Asked, Decision]:
    """An approval as it counts now: a rejection where the policies do not let its user approve.

    Airflow refuses answers of users who are not assigned to the question, but not in all cases: it
    assigns nobody where everybody may answer, and does not look where everybody is an admin.

    Raises ApprovalError unless Airflow's own record has this answer.
    """
    from mondrian_ops.catalogue import approvals

    record = questions.record_of(context, asked)
    if record.answer != decision.is_answered:
        raise ApprovalError(
            "approval: Airflow's own record of the answer differs from the decision, so nothing is "
            "published; find out who has changed either, and trigger a new run"
        )
    changed_by = record.changed_by(datetime.fromisoformat(decision.at))
    reason = _why_not(decision, _waits(asked), stewards, context, changed_by)
    if not reason:
        return asked, decision
    rejected = decision._replace(decision="rejected", reason=reason)
    return questions.note(context, asked, approvals.DECIDED, rejected), rejected


def _why_not(
    decision: Decision,
    parked: Parked,
    stewards: Sequence[str],
    context: Context,
    changed_by: Collection[str],
) -> str:
    """Why an approval does not count; empty if it does."""
    from mondrian_ops import publish, stores

    job = stores.load_job(parked.job)
    required = publish.required(job, parked.work)
    who = {decision.user.casefold(), decision.by.casefold()}
    for askers, what in (((), "triggered"), (changed_by, "cleared or changed")):
        if not who.isdisjoint(_askers(required, context, askers)):
            return f"{decision.by} {what} the run, and {_listed(required)} wants four eyes"
    allowed = approvers(job, stewards, context, parked.work, changed_by)
    if allowed and decision.user not in allowed:
        return f"{decision.by or 'nobody'} is none of those who may approve"
    return ""


def park(job: Job, context: Context, *, resume: str, parked: Parked) -> NoReturn:
    """End the task for now; Airflow resumes it in the method ``resume`` with ``parked``."""
    from airflow.sdk.exceptions import TaskAwaitingInput

    raise TaskAwaitingInput(
        method_name=resume, kwargs={"parked": parked._asdict()}, timeout=_time_to_wait(job, context)
    )


def _time_to_wait(job: Job, context: Context) -> timedelta:
    """The job's ``approval_hours``, unless the run times out before."""
    hours = timedelta(hours=job.approval_hours)
    limit, started = context["dag"].dagrun_timeout, context["dag_run"].start_date
    if limit is None or started is None:
        return hours
    left = started + limit - datetime.now(UTC) - _BEFORE_TIMEOUT
    return max(min(hours, left), timedelta(seconds=1))


def earlier_decision(context: Context, works: Collection[str]) -> tuple[Asked, Decision] | None:
    """The decision that an earlier try of the task has taken, with its question.

    None if it was used to publish, or the run was cleared since and has made another release, which
    is asked about anew; ``works`` are the working directories of the fragments that there are now.
    A rejection holds even if its working files are gone: carrying it out removes them.

    Raises ApprovalError where somebody has changed the decision; OSError or StorageError where the
    catalogue cannot be used, unless no job of these working files ever asks.
    """
    from mondrian_ops.catalogue import approvals
    from mondrian_ops.hooks.settings import use_settings

    use_settings()
    try:
        asked = questions.last(context)
    except (MondrianOpsError, OSError) as error:
        if isinstance(error, ApprovalError) or any(map(_may_have_asked, works)):
            raise
        _log.warning("the catalogue cannot be used: %s: %s", type(error).__name__, error)
        return None
    if asked is None or asked.decision is None or asked.state == approvals.CLOSED:
        return None
    parked, decision = _waits(asked), Decision(*asked.decision)
    if decision.approved and asked.state == approvals.USED:
        return None
    current = parked.current_token
    still_there = current == parked.token
    discarded = current is None and not decision.approved
    is_ours = parked.work in works and (still_there or discarded)
    return (asked, decision) if is_ours else None


def _may_have_asked(work: str) -> bool:
    """Whether the release in these working files may be one that somebody has to approve."""
    from mondrian_ops.publish import WorkDir

    try:
        job = WorkDir(work).job
    except MondrianOpsError:  # there is nothing left to publish
        return False
    # The policies of rows that waited may ask, too.
    return job.may_ask or job.series is not None


def staged_report(work: str) -> dict[str, Any] | None:
    """The report of a release that is not published yet; None if it is missing or damaged."""
    from mondrian_ops import publish, stores
    from mondrian_ops import report as reports

    path = f"{publish.WorkDir(work).staging}/{reports.JSON_NAME}"
    try:
        return reports.Report.from_json(stores.read_file(path)).to_dict()
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
        moment = datetime.fromisoformat(moment)
    return moment.astimezone(UTC).isoformat(timespec="seconds")
