"""What a steward's answer makes of a release, without an Airflow; with one: tests/integration."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from airflow.sdk import DAG, BaseNotifier, TriggerRule, task, task_group
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, TaskAwaitingInput
from airflow.sdk.execution_time import hitl, task_runner

from mondrian_ops import pipeline, storage
from mondrian_ops.core.errors import ApprovalError, PrivacyError
from mondrian_ops.operators import (
    CleanUpOperator,
    PartitionOperator,
    RecodeOperator,
    WrapUpOperator,
    approval,
)
from mondrian_ops.operators.base import read_job, work_of
from mondrian_ops.pipeline import Approval
from mondrian_ops.report import escaped, render_markdown
from mondrian_ops.storage import Archive
from test_report import make

AT = datetime(2025, 6, 1, 12, tzinfo=UTC)


def answer(option, name="ada", **more):
    user = {"id": "1", "name": name} if name else None
    return {"chosen_options": [option], "responded_at": AT, "responded_by_user": user, **more}


@pytest.mark.parametrize(
    ("event", "decision", "said"),
    [
        (answer("Approve"), "approved", "approved by ada"),
        (answer("Reject"), "rejected", "rejected by ada"),
        (answer("Reject", name=None, timedout=True), "expired", "nobody approved it in time"),
        # What somebody answers at the last moment is no answer of nobody's.
        (answer("Approve", timedout=False), "approved", "approved by ada"),
        ({"error": "too late", "error_type": "timeout"}, "expired", "nobody approved it in time"),
        (answer("Approved?"), "rejected", "rejected by ada"),
        (answer("Approve", name=None, timedout=True), "expired", "nobody approved it in time"),
    ],
)
def test_only_somebodys_approval_is_one(event, decision, said):
    found = approval.Decision.of(event)
    assert (found.decision, str(found)) == (decision, said)
    assert found.approved is (decision == "approved")


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
        approval.park(job, context, resume="decided", seal="a seal")
    assert caught.value.kwargs == {"seal": "a seal"}
    assert abs(caught.value.timeout - expected) < timedelta(seconds=30)


@pytest.fixture
def asked(monkeypatch):
    """What Airflow was given to ask."""
    found = []
    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **question: found.append(question))
    return found


def test_the_question_is_put_to_stewards(context, asked):
    approval.ask(context, subject="s", body="b", stewards=["ada", "grace"])
    (question,) = asked
    assert question["options"] == ["Approve", "Reject"]
    assert question["defaults"] == ["Reject"]
    assert [user["id"] for user in question["assigned_users"]] == ["ada", "grace"]


def test_a_question_with_other_figures_is_not_asked(context, asked):
    approval.ask(context, subject="s", body="k is 5", stewards=())
    approval.ask(context, subject="s", body="k is 5", stewards=())
    with pytest.raises(ApprovalError, match="trigger a new run"):
        approval.ask(context, subject="s", body="k is 6", stewards=())
    assert len(asked) == 2


GIVEN = Approval("a seal", "ada", "2025-06-01T12:00:00+00:00")
APPROVED = approval.Decision.of(answer("Approve"))
REJECTED = approval.Decision.of(answer("Reject"))


def test_an_approval_is_remembered_for_the_same_working_files(context, tmp_path):
    work = storage.WorkDir(str(tmp_path / "work"))
    work.create()
    assert approval.given(context, work.root) is None
    approval.remember(context, work.root, "a seal", APPROVED)
    assert approval.given(context, work.root) == GIVEN
    assert approval.denied(context, work.root) is None
    work.create()
    assert approval.given(context, work.root) is None


def test_a_denial_is_remembered_until_there_are_new_working_files(context, tmp_path):
    work = storage.WorkDir(str(tmp_path / "work"))
    work.create()
    approval.remember(context, work.root, "a seal", REJECTED)
    assert approval.given(context, work.root) is None
    assert approval.denied(context, work.root) is None  # it was not carried out: ask again
    work.remove()
    assert approval.denied(context, work.root) == REJECTED
    work.create()
    assert approval.denied(context, work.root) is None


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
    assert set(pushed["skipmixin_key"]["skipped"]) == {
        *("always", "next_one", "mapped", "group.inside"),
    }


def test_where_nothing_follows_nothing_is_skipped(context, job):
    with DAG("a_dag", schedule=None):
        wrap_up = WrapUpOperator(task_id="wrap_up", job=job, summaries=[])
    approval.skip_followers(wrap_up, context)


class Noting(BaseNotifier):
    """Notes what it is told."""

    def __init__(self):
        super().__init__()
        self.told = []

    def notify(self, context):
        self.told.append(context["release"])


REPORT = make()


@pytest.fixture
def release(monkeypatch, context, job, asked):
    """A `wrap_up` whose release passes its check; what it does to the release is noted."""
    done = []
    noting = Noting()
    job["require_approval"] = True
    wrap_up = WrapUpOperator(
        task_id="t", job=job, summaries=[], on_refusal=noting, on_waiting=noting
    )
    work = storage.WorkDir(work_of(read_job(job), wrap_up, context))
    work.create()
    wrap_up.summaries = [{"id": 0, "work": work.root}]

    def publish(_job, *, work, approval):
        done.append(("published", approval))
        return REPORT

    def deny(work, **decision):
        done.append(("denied", decision))
        return REPORT

    monkeypatch.setattr(pipeline, "check", lambda *_a, **_k: pipeline.Checked(REPORT, "a seal"))
    monkeypatch.setattr(pipeline, "publish", publish)
    monkeypatch.setattr(pipeline, "deny", deny)
    monkeypatch.setattr(approval, "skip_followers", lambda *_a: done.append("skipped"))
    return SimpleNamespace(task=wrap_up, done=done, noting=noting, work=work, asked=asked)


def test_a_release_that_needs_approval_waits_and_raw_rows_do_not(release, context, reports):
    fragments = storage.WorkDir(release.work.root).path("fragments")
    with pytest.raises(TaskAwaitingInput) as caught:
        release.task.execute(context)
    assert caught.value.method_name == "decided"
    assert caught.value.kwargs == {"seal": "a seal"}
    assert release.done == []
    with pytest.raises(FileNotFoundError):
        storage.names_in(fragments)
    (entry,) = Archive(reports).entries()
    assert entry["state"] == "waiting"
    (told,) = release.noting.told
    assert (told["state"], told["link"]) == ("waiting", release.task.release_url)
    assert told["link"].endswith(entry["id"])
    (question,) = release.asked
    assert f"[The release]({told['link']})" in question["body"]


def test_an_approved_one_is_published_and_its_task_returns_its_summary(release, context, reports):
    summary = release.task.decided(context, seal="a seal", event=answer("Approve"))
    assert release.done == [("published", GIVEN)]
    assert summary["rows"] == REPORT["rows"]
    assert Archive(reports).entries()[0]["state"] == "published"
    assert release.noting.told == []
    assert approval.given(context, release.work.root) == GIVEN


def test_the_next_try_of_an_approved_one_publishes_without_asking(release, context):
    approval.remember(context, release.work.root, "a seal", APPROVED)
    release.task.execute(context)
    assert release.done == [("published", GIVEN)]
    assert release.asked == []


def test_the_next_try_of_a_denied_one_is_skipped_too(release, context):
    with pytest.raises(AirflowSkipException):
        release.task.decided(context, seal="a seal", event=answer("Reject"))
    release.work.remove()
    with pytest.raises(AirflowSkipException, match="rejected by ada"):
        release.task.execute(context)
    assert release.asked == []


@pytest.mark.parametrize(
    ("event", "state"),
    [
        (answer("Reject"), "rejected"),
        (answer("Reject", name=None, timedout=True), "expired"),
    ],
)
def test_a_denied_one_is_skipped_with_all_that_follows(release, context, reports, event, state):
    with pytest.raises(AirflowSkipException, match="the release is discarded"):
        release.task.decided(context, seal="a seal", event=event)
    # Who follows is stopped first: whatever then happens to this task, nobody goes on.
    assert [each if isinstance(each, str) else each[0] for each in release.done] == [
        "skipped",
        "denied",
    ]
    assert Archive(reports).entries()[0]["state"] == state
    assert release.noting.told[0]["state"] == state


@pytest.mark.parametrize(
    ("decision", "states"), [("asked", {0: "failed"}), ("approved", {}), (None, {})]
)
def test_a_release_that_still_waits_when_its_run_is_over_has_failed(
    context, job, reports, decision, states
):
    clean_up = CleanUpOperator(task_id="t", job=[job, {**job, "output": job["output"] + "2"}])
    work = storage.WorkDir(work_of(read_job(job), clean_up, context))
    work.create()
    if decision:
        told = json.dumps({**REPORT, "approval": {"decision": decision}})
        storage.write_file(f"{work.staging}/_report.json", told.encode())
    clean_up.execute(context)
    entries = Archive(reports).entries()
    assert {each["map_index"]: each["state"] for each in entries} == states
    with pytest.raises(FileNotFoundError):
        storage.names_in(work.root)


def test_refusals_are_told_with_their_figures(release, context, monkeypatch, reports):
    def refuse(*_arguments, **_options):
        raise PrivacyError("max_gcp: GCP is 0.5", REPORT)

    monkeypatch.setattr(pipeline, "check", refuse)
    with pytest.raises(AirflowFailException, match="max_gcp"):
        release.task.execute(context)
    (told,) = release.noting.told
    assert (told["state"], told["reason"]) == ("refused", "max_gcp: GCP is 0.5")
    assert Archive(reports).entries()[0]["rows_published"] == 110


@pytest.mark.parametrize(
    ("operator", "step", "arguments"),
    [(PartitionOperator, "partition", {}), (RecodeOperator, "recode", {"parts": []})],
)
def test_a_data_set_that_cannot_be_released_is_told_at_once(
    context, job, monkeypatch, operator, step, arguments
):
    def refuse(*_arguments, **_options):
        raise PrivacyError("k: the input has 3 rows")

    noting = Noting()
    monkeypatch.setattr(pipeline, step, refuse)
    with pytest.raises(AirflowFailException, match="3 rows"):
        operator(task_id="t", job=job, on_refusal=noting, **arguments).execute(context)
    assert noting.told[0]["reason"] == "k: the input has 3 rows"


def test_a_task_that_has_made_nothing_links_to_nothing(job):
    (link,) = WrapUpOperator.operator_extra_links
    wrap_up = WrapUpOperator(task_id="t", job=job, summaries=[])
    assert link.get_link(wrap_up, ti_key=None) == ""
    wrap_up.release_url = "http://airflow/release"
    assert link.get_link(wrap_up, ti_key=None) == "http://airflow/release"


def test_a_name_in_the_question_is_never_markup():
    hostile = "a|b](javascript:alert(1)) <img src=x> `c` **d**\n# e"
    told = escaped(hostile)
    assert "\n" not in told
    for sign in "|](<`*#":
        assert f"\\{sign}" in told
    report = make()
    report["attributes"] = {hostile: next(iter(report["attributes"].values()))}
    assert told in render_markdown(report)
