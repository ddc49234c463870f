"""What becomes of a release by a steward's answer; with an Airflow: tests/servers."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pyarrow as pa
import pytest
from airflow.sdk import DAG, Param, TriggerRule, task, task_group
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, TaskAwaitingInput
from airflow.sdk.execution_time import task_runner

import handed_over
from mondrian_ops import pipeline, publish, stores
from mondrian_ops.catalogue import approvals
from mondrian_ops.errors import ApprovalError, JobError, PrivacyError
from mondrian_ops.operators import (
    PartitionOperator,
    RecodeOperator,
    WrapUpOperator,
    approval,
    base,
    questions,
)
from mondrian_ops.operators import wrap_up as wrapping_up
from mondrian_ops.operators.airflow_record import Answer
from mondrian_ops.pipeline import Approval
from mondrian_ops.report import Report, render_html
from recording_notifier import RecordingNotifier
from releases import recorded_releases
from report_samples import make
from task_contexts import begun_work, read_job
from teardowns import clean_up_after
from waiting_questions import AT, installed

PARKED = approval.Parked({"k": 2}, "/some/work", "a token", "a seal", -1)


def answer(option, name="ada", **more):
    user = {"id": "1", "name": name} if name else None
    return {"chosen_options": [option], "responded_at": AT, "responded_by_user": user, **more}


@pytest.mark.parametrize(
    ("event", "decision", "text"),
    [
        (answer("Approve"), "approved", "approved by ada"),
        (answer("Reject"), "rejected", "rejected by ada"),
        (answer("Reject", name=None, timedout=True), "expired", "nobody approved it in time"),
        # An answer at the last moment counts.
        (answer("Approve", timedout=False), "approved", "approved by ada"),
        ({"error": "too late", "error_type": "timeout"}, "expired", "nobody approved it in time"),
        (answer("Approved?"), "rejected", "rejected by ada"),
        (answer("Approve", chosen_options=[]), "rejected", "rejected by ada"),
        (answer("", chosen_options=["Approve", "Reject"]), "rejected", "rejected by ada"),
        (answer("Approve", name=None, timedout=True), "expired", "nobody approved it in time"),
    ],
)
def test_only_somebodys_approval_is_one(event, decision, text):
    made = approval.Decision.of(event)
    assert (made.decision, str(made)) == (decision, text)
    assert made.approved is (decision == "approved")


@pytest.mark.parametrize(
    ("hours", "limit", "expected"),
    [
        (72, None, timedelta(hours=72)),
        (72, timedelta(hours=2), timedelta(minutes=88)),  # half an hour of it is over
        (1, timedelta(hours=2), timedelta(hours=1)),
        (72, timedelta(minutes=31), timedelta(seconds=1)),
    ],
)
def test_nobody_is_waited_for_longer_than_the_run_lasts(context, job, hours, limit, expected):
    context["dag"].dagrun_timeout = limit
    context["dag_run"].start_date = datetime.now(UTC) - timedelta(minutes=30)
    job = read_job({**job, "approval_hours": hours, "require_approval": True})
    with pytest.raises(TaskAwaitingInput) as caught:
        approval.park(job, context, resume="decided", parked=PARKED)
    assert caught.value.kwargs == {"parked": PARKED._asdict()}
    assert abs(caught.value.timeout - expected) < timedelta(seconds=30)


@pytest.fixture
def airflow(monkeypatch):
    """The Airflow that asks people."""
    return installed(monkeypatch)


@pytest.fixture
def asks(context, job, airflow):
    """Ask for an approval of the job's release."""

    def ask(body="b", stewards=(), link="", subject="s"):
        parked = PARKED._replace(job={**job, "require_approval": True})
        given = {"subject": subject, "body": body, "stewards": stewards, "link": link}
        approval.ask(context, read_job(parked.job), parked=parked, **given)

    return ask


def test_the_question_is_put_to_stewards(asks, airflow):
    asks(stewards=["ada", "grace"])
    (question,) = airflow.asked
    assert question["options"] == ["Approve", "Reject"]
    assert question["defaults"] == ["Reject"]
    assert question["assigned_users"] == [
        {"id": "ada", "name": "ada"},
        {"id": "grace", "name": "grace"},
    ]


def test_who_answers_may_write_why(asks, airflow):
    asks()
    (question,) = airflow.asked
    assert Param.deserialize(question["params"]["reason"], 1).resolve() is None  # may stay empty
    told = approval.Decision.of(
        answer("Reject", params_input={"reason": f" too fine {'x' * 2000}"})
    )
    assert told.why.startswith("too fine x") and len(told.why) == 1000
    for empty in ({}, {"reason": None}, {"reason": " "}, None):
        assert approval.Decision.of(answer("Reject", params_input=empty)).why == ""


@pytest.mark.parametrize("option", ["Approve", "Reject"])
def test_the_reason_of_a_decision_is_in_the_report(release, option):
    parked, event = release.park(), answer(option, params_input={"reason": "the <b>postcode</b>"})
    if option == "Approve":
        release.decide(parked, event)
        ((_, given),) = release.done
        assert given.decision["decision_reason"] == "the <b>postcode</b>"
        return
    with pytest.raises(AirflowSkipException) as skipped:
        release.decide(parked, event)
    assert "postcode" not in str(skipped.value)  # which is in the log, where a name might be read
    (entry,) = recorded_releases()
    report = Report.from_json(entry["documents"]["_report.json"])
    assert report.state == entry["state"] == "rejected"
    assert (report.outcome.decided_by, report.outcome.decided_at) == (GIVEN.by, GIVEN.at)
    assert report.outcome.decision_reason == "the <b>postcode</b>"
    assert "the &lt;b&gt;postcode" in render_html(report)
    assert release.notifier.releases[-1]["decision_reason"] == "the <b>postcode</b>"


@pytest.mark.parametrize("other", ["k is 6", "k is", "k is 5 ", "k is 5\n\n[The release](a)\nb"])
def test_a_question_with_other_figures_is_not_asked(asks, airflow, other):
    asks("k is 5")
    asks("k is 5")
    with pytest.raises(ApprovalError, match="trigger a new run"):
        asks(other)
    assert len(airflow.asked) == 3


@pytest.mark.parametrize("other", ["a", "z"])
def test_nor_is_one_about_another_output(asks, other):
    asks()
    with pytest.raises(ApprovalError, match="trigger a new run"):
        asks(subject=other)


def test_a_question_without_its_link_is_the_same_question(asks, airflow):
    """The link comes from the catalogue, which another try may not reach."""
    asks("k is 5", link="http://airflow/release")
    asks("k is 5")
    assert [each["body"].split() for each in airflow.asked] == [
        ["k", "is", "5", "[The", "release](http://airflow/release)"],
        ["k", "is", "5"],
    ]


@pytest.mark.parametrize(
    ("first", "then"), [(["ada"], ["grace"]), (["ada"], ["ada", "grace"]), (["ada"], [])]
)
def test_a_question_that_would_not_reach_all_stewards_is_not_asked(asks, first, then):
    """Airflow leaves the question with the first stewards."""
    asks(stewards=first)
    asks(stewards=first)
    with pytest.raises(ApprovalError, match="its stewards have changed"):
        asks(stewards=then)


@pytest.mark.parametrize("first", [["ada", "grace"], []])
def test_a_question_that_reaches_more_than_may_answer_is_asked(asks, airflow, first):
    """What others answer does not count."""
    asks(stewards=first)
    asks(stewards=["ada"])
    assert len(airflow.asked) == 2


GIVEN = Approval("a seal", "ada", "2025-06-01T12:00:00+00:00")

APPROVED = approval.Decision.of(answer("Approve"))

REJECTED = approval.Decision.of(answer("Reject"))


@pytest.fixture
def waiting(context, tmp_path):
    """Working files, and what is kept of a release in them."""
    work = publish.WorkDir(str(tmp_path / "work"))
    work.create()
    return work, approval.Parked({}, work.root, work.token, "a seal", -1)


def decided(context, parked, decision, state=approvals.DECIDED):
    """The question about a release, after somebody has answered."""
    asked = questions.open_question(context, parked._asdict(), "a digest")
    return questions.note(context, asked, state, decision)


@pytest.mark.parametrize("decision", [APPROVED, REJECTED])
def test_a_decision_is_remembered_for_the_same_working_files(context, waiting, decision):
    work, parked = waiting
    assert approval.earlier_decision(context, {work.root}) is None
    asked = decided(context, parked, decision)
    assert approval.earlier_decision(context, {work.root}) == (asked, decision)
    assert approval.earlier_decision(context, {"/another/work"}) is None
    work.create()
    assert approval.earlier_decision(context, {work.root}) is None


@pytest.mark.parametrize("token", ["", "z"])
@pytest.mark.parametrize("decision", [APPROVED, REJECTED])
def test_a_decision_about_other_working_files_is_none(context, waiting, decision, token):
    work, parked = waiting
    decided(context, parked._replace(token=token), decision)
    assert approval.earlier_decision(context, {work.root}) is None


@pytest.mark.parametrize("other", [{"token": ""}, {"token": "z"}, {"seal": ""}, {"seal": "z"}])
def test_an_answer_about_another_release_is_none(context, waiting, other):
    _, parked = waiting
    with pytest.raises(ApprovalError, match="the answer came when the question was closed"):
        approval.taken(context, answer("Approve"), parked)  # nobody has asked
    questions.open_question(context, parked._asdict(), "a digest")
    with pytest.raises(ApprovalError, match="about another release"):
        approval.taken(context, answer("Approve"), parked._replace(**other))
    asked, decision = approval.taken(context, answer("Approve"), parked._replace(job={"k": 3}))
    assert (asked.state, decision) == (approvals.DECIDED, APPROVED)


def test_a_decision_that_somebody_has_changed_stops_a_job_that_never_asks_too(context, monkeypatch):
    monkeypatch.setattr(questions, "last", Mock(side_effect=ApprovalError("changed")))
    with pytest.raises(ApprovalError, match="changed"):
        approval.earlier_decision(context, set())


def test_a_denial_stands_when_it_was_carried_out_and_an_approval_does_not(context, waiting):
    work, parked = waiting
    work.remove()
    for state in (approvals.DECIDED, approvals.USED):
        asked = decided(context, parked, REJECTED, state)
        assert approval.earlier_decision(context, {work.root}) == (asked, REJECTED)
        # The run was cleared, and its job now has another output.
        assert approval.earlier_decision(context, {"/another/work"}) is None
        decided(context, parked, APPROVED, state)
        assert approval.earlier_decision(context, {work.root}) is None


@pytest.mark.parametrize("state", [approvals.USED, approvals.CLOSED])
def test_an_approval_is_used_once_and_not_after_the_question_was_closed(context, waiting, state):
    work, parked = waiting
    decided(context, parked, APPROVED, state)
    assert approval.earlier_decision(context, {work.root}) is None


ASKS = (
    {"require_approval": True},
    {"max_gcp": 0.5, "on_exceeded": "ask"},
    # The policies of rows that waited may ask.
    {"series": {"hold_nights": 3}, "output": "{output}/2025-01-01"},
)


@pytest.mark.parametrize("options", [*ASKS, {}])
def test_without_the_catalogue_what_may_have_been_decided_waits(
    context, job, monkeypatch, tmp_path, options, caplog
):
    """A job that never asks is published without it."""
    options = {**options, "output": options.get("output", "{output}").format(**job)}
    work = begun_work(context, {**job, **options})
    (tmp_path / "file").touch()
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__CATALOGUE", str(tmp_path / "file" / "no.db"))
    with pytest.raises(OSError) if len(options) > 1 else nullcontext():
        assert approval.earlier_decision(context, {work.root}) is None
    work.remove()
    assert approval.earlier_decision(context, {work.root}) is None
    assert "the catalogue cannot be used: " in caplog.text


@pytest.mark.parametrize("word", ["refuse", "publish"])
def test_without_the_catalogue_nobody_is_asked(release, context, monkeypatch, tmp_path, word):
    """Whether or not other runs may publish without it."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__CATALOGUE", str(tmp_path / "file" / "no.db"))
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__WITHOUT_CATALOGUE", word)
    for each in (PartitionOperator(task_id="t", job=release.job), release.task):
        with pytest.raises(OSError):
            each.execute(context)
    assert release.asked == []


@task(trigger_rule=TriggerRule.ALL_DONE)
def always(_number=0):
    """Runs whatever happened."""


@task
def next_one():
    """What follows what follows."""


def test_all_that_follows_is_skipped_but_teardowns(context, job, monkeypatch):
    sent, pushed = [], {}
    comms = SimpleNamespace(send=sent.append)
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", comms, raising=False)
    context["ti"].xcom_push = lambda key, value: pushed.update({key: value})
    context["ti"].get_ti_count = lambda dag_id, task_ids, run_ids: 2

    @task_group
    def group(_number):
        always.override(task_id="inside")()

    with DAG("a_dag", schedule=None):
        wrap_up = WrapUpOperator(task_id="wrap_up", job=job, summaries=[])
        before = always.override(task_id="before")()
        before >> wrap_up >> always() >> next_one()
        wrap_up >> always.override(task_id="mapped").expand(_number=[1, 2])
        wrap_up >> group.expand(_number=[1, 2])
        wrap_up >> always.override(task_id="clean_up")().as_teardown()
    approval.skip_followers(wrap_up, context)
    ((message),) = sent
    assert {each for each in message.tasks if isinstance(each, str)} == {
        *("always", "next_one", "mapped", "group.inside"),
    }
    assert {each for each in message.tasks if isinstance(each, tuple)} == {
        *(("mapped", 0), ("mapped", 1), ("group.inside", 0), ("group.inside", 1)),
    }
    # What Airflow looks at when one of them is cleared: it looks at direct parents only.
    assert set(pushed["skipmixin_key"]["skipped"]) == {"always", "mapped", "group.inside"}


def test_where_nothing_follows_nothing_is_skipped(context, job):
    with DAG("a_dag", schedule=None):
        wrap_up = WrapUpOperator(task_id="wrap_up", job=job, summaries=[])
    approval.skip_followers(wrap_up, context)


REPORT = make()
WAITING = make(state="waiting")


class Release:
    """A `wrap_up` whose release passes its check; ``done`` is what became of that."""

    def __init__(self, context, job, airflow):
        self.context, self.airflow, self.job = context, airflow, job
        self.output = job["output"]
        self.done = []
        self.stewards = ()
        self.notifier = RecordingNotifier()
        self.work = begun_work(context, job)
        part = pa.table({"age": ["[1, 2]", "[1, 2]"]})
        publish.write_part(self.work.part_path(0), part)
        self.write_report(WAITING)

    @property
    def task(self):
        """As a new process has it."""
        return WrapUpOperator(
            task_id="t",
            job=self.job,
            summaries=[handed_over.summary(0, self.work.root)] if hasattr(self, "work") else [],
            stewards=self.stewards,
            on_refusal=self.notifier,
            on_waiting=self.notifier,
        )

    def write_report(self, report):
        content = report if isinstance(report, bytes) else json.dumps(report).encode()
        stores.write_file(f"{self.work.staging}/_report.json", content)

    def park(self):
        """Let it be checked and asked about; what its task is resumed with."""
        with pytest.raises(TaskAwaitingInput) as caught:
            self.task.execute(self.context)
        return json.loads(json.dumps(caught.value.kwargs))

    @property
    def asked(self):
        return self.airflow.asked

    def decide(self, parked, event):
        who = event.get("responded_by_user")
        if who:
            chosen = tuple(event["chosen_options"])
            self.airflow.answer = Answer(chosen, who["id"], who["name"], AT.isoformat())
        return self.task.decided(self.context, **parked, event=event)

    def reject(self, parked):
        with pytest.raises(AirflowSkipException, match="the release is discarded"):
            self.decide(parked, answer("Reject"))

    def clean_up(self):
        clean_up_after(self.job, "partition").execute(self.context)

    @property
    def states(self):
        return [each["state"] for each in recorded_releases()]

    @property
    def is_there(self):
        return Path(self.work.root).exists()


@pytest.fixture
def release(monkeypatch, context, job, airflow):
    job["require_approval"] = True
    release = Release(context, job, airflow)

    def publish(_job, *, work, approval, progress):
        release.done.append(("published", approval))
        return REPORT

    monkeypatch.setattr(pipeline, "check", lambda *_a, **_k: pipeline.Checked(WAITING, "a seal"))
    monkeypatch.setattr(pipeline, "publish", publish)
    monkeypatch.setattr(approval, "skip_followers", lambda *_a: release.done.append("skipped"))
    return release


def test_a_release_that_needs_approval_waits_and_raw_rows_do_not(release, context):
    fragments = publish.WorkDir(release.work.root).path("fragments")
    task = release.task
    with pytest.raises(TaskAwaitingInput) as caught:
        task.execute(context)
    assert caught.value.method_name == "decided"
    parked = approval.Parked(**caught.value.kwargs["parked"])
    assert (parked.seal, parked.work, parked.token) == (
        *("a seal", release.work.root, release.work.token),
    )
    assert read_job(parked.job) == read_job(release.job)
    assert release.done == []
    with pytest.raises(FileNotFoundError):
        stores.names_in(fragments)
    (entry,) = recorded_releases()
    assert entry["state"] == "waiting"
    (notice,) = release.notifier.releases
    assert (notice["state"], notice["link"]) == ("waiting", task.release_url)
    assert notice["link"].endswith(entry["id"])
    (question,) = release.asked
    assert f"[The release]({notice['link']})" in question["body"]


def test_an_approved_one_is_published_and_its_task_returns_its_summary(release, context):
    summary = release.decide(release.park(), answer("Approve"))
    assert release.done == [("published", GIVEN)]
    assert questions.last(context).state == approvals.USED
    assert summary["rows"] == REPORT["rows"]
    assert release.states == ["published"]
    assert [each["state"] for each in release.notifier.releases] == ["waiting"]


@pytest.fixture
def decree(job, tmp_path, monkeypatch):
    """Set the approval of the policy that holds for the job's input."""

    def set_approval(**approval):
        policy = {"name": "people", "inputs": [job["input"]], "approval": approval}
        (tmp_path / "policies.json").write_text(json.dumps({"policies": [policy]}))
        monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__POLICIES", str(tmp_path / "policies.json"))

    yield set_approval
    stores.use_policies(None)


def test_what_is_rejected_is_discarded_though_no_policy_allows_it_any_more(
    release, tmp_path, monkeypatch
):
    parked = release.park()
    (tmp_path / "policies.json").write_text("{")
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__POLICIES", str(tmp_path / "policies.json"))
    release.reject(parked)
    assert release.states == ["rejected"]
    assert not release.is_there
    stores.use_policies(None)


def triggered_by(context, name, run_type="manual"):
    context["dag_run"].triggering_user_name = name
    context["dag_run"].run_type = run_type


def assigned(release):
    return [user["id"] for user in release.asked[-1]["assigned_users"]]


def test_a_policy_s_approval_is_asked_for_although_the_job_does_not(release, decree):
    del release.job["require_approval"]
    decree(required=True, approvers=["1=ada", "2=grace"])
    release.park()
    assert assigned(release) == ["1", "2"]


@pytest.mark.parametrize(
    ("approval_", "stewards", "expected"),
    [
        ({"approvers": ["1", "2"]}, ["2", "3"], ["2"]),
        ({"approvers": ["1", "2=ada"], "four_eyes": True}, [], ["1"]),
        # A name is the same name by other letters.
        ({"approvers": ["1", "ADA"], "four_eyes": True}, [], ["1"]),
        ({"four_eyes": True}, ["ada", "grace"], ["grace"]),
        ({"four_eyes": True}, [], []),
    ],
)
def test_the_dag_s_stewards_are_asked_as_far_as_the_policy_allows(
    release, decree, context, approval_, stewards, expected
):
    triggered_by(context, "ada")
    decree(**approval_)
    release.stewards = stewards
    release.park()
    assert assigned(release) == expected


@pytest.mark.parametrize(
    ("approval_", "stewards"),
    [
        ({"approvers": ["1"]}, ["2"]),
        ({"approvers": ["ada"], "four_eyes": True}, []),
        ({"four_eyes": True}, ["ada"]),
    ],
)
def test_where_nobody_may_approve_everybody_may_not(release, decree, context, approval_, stewards):
    """Airflow takes a question to nobody for one to everybody."""
    triggered_by(context, "ada")
    decree(**approval_)
    release.stewards = stewards
    with pytest.raises(AirflowFailException, match="nobody may approve the release"):
        release.task.execute(context)
    assert release.asked == []


def test_where_nobody_may_approve_no_row_is_read(release, decree, context):
    triggered_by(context, "ada")
    decree(required=True, approvers=["ada"], four_eyes=True)
    with pytest.raises(AirflowFailException, match="nobody may approve the release"):
        PartitionOperator(task_id="t", job=release.job).execute(context)


@pytest.mark.parametrize("name", ["ada", "Ada"])
def test_whoever_triggered_a_run_does_not_approve_its_release(release, decree, context, name):
    """Airflow lets them where it assigns nobody, and where everybody is an admin."""
    decree(four_eyes=True)
    triggered_by(context, name)
    parked = release.park()
    with pytest.raises(AirflowSkipException, match="ada triggered the run"):
        release.decide(parked, answer("Approve"))
    assert release.done == ["skipped"]
    assert release.states == ["rejected"]
    assert not release.is_there


def test_another_person_approves_it(release, decree, context):
    decree(four_eyes=True)
    triggered_by(context, "grace")
    release.decide(release.park(), answer("Approve"))
    assert release.done == [("published", GIVEN)]


@pytest.mark.parametrize("run_type", ["asset_triggered", "backfill", "scheduled"])
def test_what_nobody_triggered_may_be_approved_by_anybody(release, decree, context, run_type):
    decree(four_eyes=True)
    triggered_by(context, None, run_type)
    release.decide(release.park(), answer("Approve"))
    assert release.done == [("published", GIVEN)]


def test_a_run_of_an_unknown_user_has_no_four_eyes(release, decree, context):
    decree(four_eyes=True)
    triggered_by(context, None)
    with pytest.raises(AirflowFailException, match="want to know who triggered the run"):
        release.task.execute(context)


@pytest.mark.parametrize("stewards", [["2"], []])
def test_only_those_who_were_asked_approve(release, decree, stewards):
    """Where everybody is an admin, Airflow takes every answer."""
    decree(**({} if stewards else {"approvers": ["2"]}))
    release.stewards = stewards
    parked = release.park()
    with pytest.raises(AirflowSkipException, match="ada is none of those who may approve"):
        release.decide(parked, answer("Approve"))
    assert not release.is_there


def test_an_approver_who_is_none_any_more_does_not_approve(release, decree):
    decree(approvers=["1=ada", "2"])
    parked = release.park()
    decree(approvers=["2"])
    with pytest.raises(AirflowSkipException, match="ada is none of those"):
        release.decide(parked, answer("Approve"))


def test_an_approval_that_does_not_count_stays_so_when_its_task_is_cleared(
    release, decree, context
):
    decree(four_eyes=True)
    triggered_by(context, "ada")
    parked = release.park()
    with pytest.raises(AirflowSkipException):
        release.decide(parked, answer("Approve"))
    triggered_by(context, "grace")
    with pytest.raises(AirflowSkipException, match="ada triggered the run"):
        release.task.execute(context)


killed = Mock(side_effect=KeyboardInterrupt)


def test_the_next_try_of_an_approved_one_publishes_without_asking(release, context, monkeypatch):
    parked = release.park()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(pipeline, "publish", killed)
        release.decide(parked, answer("Approve"))
    release.task.execute(context)
    assert release.done == [("published", GIVEN)]
    assert len(release.asked) == 1


def test_the_refusal_of_one_that_may_no_longer_be_published_is_notified(release, monkeypatch):
    """Its people were released elsewhere while it waited."""
    parked = release.park()
    refuse = Mock(side_effect=PrivacyError("overlap: the release is refused"))
    monkeypatch.setattr(pipeline, "publish", refuse)
    with pytest.raises(AirflowFailException, match="overlap"):
        release.decide(parked, answer("Approve"))
    assert release.states == ["refused"]
    assert [each["state"] for each in release.notifier.releases] == ["waiting", "refused"]


# Where a worker is killed while it discards: the module, and what it is about to do there.
STEPS = [
    (approval, "skip_followers"),
    (approval, "staged_report"),
    (wrapping_up, "record"),
    (wrapping_up, "notify"),
    (pipeline, "discard"),
]


@pytest.mark.parametrize(("where", "step"), STEPS)
def test_a_rejection_that_was_killed_half_way_is_carried_out_and_not_asked_again(
    release, context, monkeypatch, where, step, capsys
):
    parked = release.park()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(where, step, killed)
        release.decide(parked, answer("Reject"))
    task = release.task
    capsys.readouterr()
    with pytest.raises(AirflowSkipException, match="rejected by ada"):
        task.execute(context)
    assert len(release.asked) == 1
    assert release.done in (["skipped"], ["skipped", "skipped"])
    (entry,) = recorded_releases()
    assert (entry["state"], entry["rows_published"], entry["rows_input"]) == ("rejected", 0, 110)
    assert release.notifier.releases[-1]["state"] == "rejected"
    assert "rejected by ada" in capsys.readouterr().out  # Airflow logs no reason of a skip
    assert task.release_url.endswith(entry["id"])
    assert not release.is_there


def test_a_rejection_is_carried_out_although_the_run_has_failed_since(release, monkeypatch):
    """Its task was killed before it recorded anything, and then cleared."""
    parked = release.park()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(wrapping_up, "record", killed)
        release.decide(parked, answer("Reject"))
    release.clean_up()
    assert release.states == ["failed"]
    with pytest.raises(AirflowSkipException, match="rejected by ada"):
        release.task.execute(release.context)
    assert release.states == ["rejected"]
    assert release.notifier.releases[-1]["state"] == "rejected"


@pytest.mark.parametrize("other", [("Approve", "0", "ada"), ("Approve", "9", "ada"),
                                   ("Approve", "1", "eve"), ("Reject", "1", "ada")])  # fmt: skip
def test_an_approval_that_airflow_knows_otherwise_publishes_nothing(release, other):
    parked, event = release.park(), answer("Approve")
    option, user, name = other
    release.airflow.answer = Answer((option,), user, name, AT.isoformat())
    with pytest.raises(AirflowFailException, match="Airflow's own record of the answer differs"):
        release.task.decided(release.context, **parked, event=event)
    assert release.done == []


def test_a_wrap_up_that_is_cleared_after_a_rejection_is_skipped_again(release, context):
    release.reject(release.park())
    notices = list(release.notifier.releases)
    task = release.task
    with pytest.raises(AirflowSkipException, match="rejected by ada"):
        task.execute(context)
    assert release.done == ["skipped", "skipped"]
    assert release.notifier.releases == notices  # and no more
    (entry,) = recorded_releases()
    assert (entry["state"], entry["rows_published"], entry["rows_input"]) == ("rejected", 0, 110)
    assert task.release_url.endswith(entry["id"])


def test_a_rejection_of_spark_s_summaries_is_carried_out_without_them(release, context):
    """They lie among the working files, which are gone."""
    release.reject(release.park())
    task = release.task
    task.summaries = [{"summaries": 2, "work": release.work.root}]
    with pytest.raises(AirflowSkipException, match="rejected by ada"):
        task.execute(context)


@pytest.mark.parametrize(
    ("event", "state"),
    [
        (answer("Reject"), "rejected"),
        (answer("Reject", name=None, timedout=True), "expired"),
    ],
)
def test_a_denied_one_is_skipped_with_all_that_follows(release, context, event, state):
    parked = release.park()
    with pytest.raises(AirflowSkipException, match="the release is discarded"):
        release.decide(parked, event)
    assert release.done == ["skipped"]
    assert context["ti"].xcoms["decision"] == state  # for the nights to come
    assert release.states == [state]
    assert release.notifier.releases[-1]["state"] == state
    assert not release.is_there


@pytest.fixture
def of_a_file(release, tmp_path):
    """The release, with its job in a file; as the nightly DAG has them."""
    file = tmp_path / "job.yaml"
    file.write_text(json.dumps(release.job))
    release.job = {"file": str(file), "set": ["k=2"]}
    release.file = file
    return release


def gone(file):
    file.unlink()


def invalid(file):
    file.write_text("k: [")


def elsewhere(file):
    file.write_text(json.dumps({**json.loads(file.read_text()), "output": "/elsewhere/out"}))


@pytest.mark.parametrize("change", [gone, invalid, elsewhere])
@pytest.mark.parametrize("option", ["Approve", "Reject"])
def test_what_becomes_of_a_job_s_file_while_it_waits_does_not_matter(of_a_file, change, option):
    release = of_a_file
    parked = release.park()
    change(release.file)
    if option == "Approve":
        release.decide(parked, answer("Approve"))
        assert release.done == [("published", GIVEN)]
        assert release.states == ["published"]
    else:
        release.reject(parked)
        assert release.states == ["rejected"]
        assert not release.is_there


@pytest.mark.parametrize("change", [gone, invalid, elsewhere])
def test_working_files_are_removed_wherever_the_job_s_file_now_says_they_are(
    of_a_file, context, change
):
    release = of_a_file
    base.announce_work(context, release.work.root)
    release.park()
    change(release.file)
    release.clean_up()
    assert not release.is_there
    (entry,) = recorded_releases()
    assert (entry["state"], entry["dataset"]) == ("failed", release.output)


def test_only_working_files_of_the_run_are_removed(release, context, tmp_path):
    """Whoever may write an XCom could name any directory."""
    other = tmp_path / ".out.mondrian_ops-0123456789ab"
    for directory in (other, tmp_path / "data"):
        directory.mkdir()
        base.announce_work(context, str(directory))
        release.clean_up()
        assert directory.exists()


@pytest.mark.parametrize(
    "report", [b"", b"{", b"[]", b"{}", b'{"metrics": 1}', b"\xff", None], ids=str
)
def test_a_release_whose_report_is_damaged_is_discarded_too(release, report):
    parked = release.park()
    if report is None:
        os.unlink(f"{release.work.staging}/_report.json")
    else:
        release.write_report(report)
    release.reject(parked)
    assert release.done == ["skipped"]
    assert release.states == ["rejected"]
    assert release.notifier.releases[-1]["state"] == "rejected"
    assert not release.is_there


def test_what_follows_is_skipped_before_anything_can_fail(release, monkeypatch):
    parked = release.park()
    monkeypatch.setattr(stores, "load_job", Mock(side_effect=JobError("k: no number")))
    with pytest.raises(AirflowFailException):
        release.decide(parked, answer("Reject"))
    assert release.done == ["skipped"]


def test_working_files_that_vanished_while_it_waited_can_be_rejected(release):
    parked = release.park()
    release.work.remove()
    release.reject(parked)
    assert release.done == ["skipped"]
    assert release.states == ["rejected"]


@pytest.mark.parametrize("noted", ["asked", "approved"])
def test_a_release_that_was_not_published_when_its_run_is_over_has_failed(release, noted):
    """`approved`: and then its publication failed."""
    release.park()
    told = {"asked": WAITING, "approved": REPORT}[noted]
    release.write_report(told)
    release.clean_up()
    (entry,) = recorded_releases()
    assert (entry["state"], entry["rows_published"], entry["map_index"]) == ("failed", 0, -1)
    assert "before it was published" in entry["reason"]
    assert not release.is_there


def test_a_release_whose_report_is_damaged_has_failed_too(release):
    release.park()
    release.write_report(b"{")
    release.clean_up()
    assert release.states == ["failed"]


def test_a_release_that_was_published_has_not_failed(release):
    release.park()
    token = release.work.token
    publish.publish(release.work.staging, release.job["output"], token)
    release.clean_up()
    assert release.states == ["waiting"]
    assert not release.is_there


def test_a_release_that_nobody_was_asked_about_has_not_failed(release):
    release.clean_up()
    assert release.states == []
    assert not release.is_there


def test_a_release_whose_input_is_not_allowed_any_more_is_discarded_too(
    release, context, monkeypatch
):
    home = Path(release.work.root).parent
    release.job = {**release.job, "input": f"{home}_in.csv"}
    base.announce_work(context, release.work.root)
    release.park()
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__ALLOWED_INPUTS", str(home))
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__ALLOWED_OUTPUTS", str(home))
    release.clean_up()
    assert release.states == ["failed"]
    assert not release.is_there


def test_each_of_several_releases_has_failed_by_itself(release, context, job):
    context["ti"].map_index = 1
    release.park()
    context["ti"].map_index = -1
    clean_up_after([{**job, "output": f"{job['output']}2"}, job]).execute(context)
    assert [(each["map_index"], each["state"]) for each in recorded_releases()] == [(1, "failed")]


def test_refusals_are_recorded_with_their_figures(release, context, monkeypatch):
    refuse = Mock(side_effect=PrivacyError("max_gcp: GCP is 0.5", REPORT))
    monkeypatch.setattr(pipeline, "check", refuse)
    with pytest.raises(AirflowFailException, match="max_gcp"):
        release.task.execute(context)
    (notice,) = release.notifier.releases
    assert (notice["state"], notice["reason"]) == ("refused", "max_gcp: GCP is 0.5")
    (entry,) = recorded_releases()
    assert (entry["state"], entry["rows_published"], entry["rows_input"]) == ("refused", 0, 110)


@pytest.mark.parametrize(
    ("operator", "step", "arguments"),
    [(PartitionOperator, "partition", {}), (RecodeOperator, "recode", {"parts": []})],
)
def test_a_dataset_that_cannot_be_released_is_notified_at_once(
    context, job, monkeypatch, operator, step, arguments
):
    notifier = RecordingNotifier()
    refuse = Mock(side_effect=PrivacyError("k: the input has 3 rows"))
    monkeypatch.setattr(pipeline, step, refuse)
    begun_work(context, job)
    with pytest.raises(AirflowFailException, match="3 rows"):
        operator(task_id="t", job=job, on_refusal=notifier, **arguments).execute(context)
    assert notifier.releases[0]["reason"] == "k: the input has 3 rows"
