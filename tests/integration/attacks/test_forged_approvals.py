"""Somebody who may edit task instances forges an approval, or has one given to other rows.

Airflow's API lets them write the state that a task keeps over its tries, clear tasks, and mark them
as success. What was asked and decided is therefore in the catalogue, signed, and an approval counts
only if Airflow's own record of the answer says the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from airflow.sdk import BaseNotifier
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, TaskAwaitingInput

from mondrian_ops import catalogue, publish, stores
from mondrian_ops.catalogue.tables import approval
from mondrian_ops.errors import ApprovalError
from mondrian_ops.operators.approval import _refuse_other_question
from releases import recorded_releases
from task_runs import TaskRun
from tiers import one_in
from waiting_questions import Airflow, installed

ROWS = 200


def rows(number: int, first: int = 0) -> str:
    return "age,zip,sex,name,ill\n" + "".join(
        f"{20 + at % 40},{10000 + at % 7},{'fm'[at % 2]},n{at},{'abcd'[at % 4]}\n"
        for at in range(first, first + number)
    )


@pytest.fixture(autouse=True)
def allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Jobs may read and write here."""
    for option in ("INPUTS", "OUTPUTS"):
        monkeypatch.setenv(f"AIRFLOW__MONDRIAN_OPS__ALLOWED_{option}", str(tmp_path))
    for setting, name in (("CATALOGUE", "catalogue.db"), ("CATALOGUE_KEY", "key")):
        monkeypatch.setenv(f"AIRFLOW__MONDRIAN_OPS__{setting}", str(tmp_path / name))
    yield
    stores.use_policy(None)
    stores.use_policies(None)


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Airflow:
    return installed(monkeypatch)


@pytest.fixture
def job(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "in.csv").write_text(rows(ROWS))
    return {
        "input": str(tmp_path / "in.csv"),
        "output": str(tmp_path / "out"),
        "k": 5,
        "l": 2,
        "identifiers": ["name"],
        "quasi_identifiers": ["age", "zip", "sex"],
        "sensitive": ["ill"],
        "unlisted": "drop",
        "require_approval": True,
        "cut": "median",
        "partitioning": {"fragments": 1, "sample": 1.0},
    }


class Waiting:
    """A run whose release waits for an answer."""

    def __init__(self, job: dict[str, Any], airflow: Airflow, **options: Any) -> None:
        self.run, self.airflow = TaskRun(job, **options), airflow
        self.output = Path(job["output"])
        self.parked = self.asked()

    def asked(self) -> dict[str, Any]:
        """Run the tasks from the first on until the release waits; with what it is resumed."""
        self.run.partition()
        self.run.summaries = []
        self.run.anonymize()
        return self.asked_again()

    def asked_again(self) -> dict[str, Any]:
        with pytest.raises(TaskAwaitingInput) as caught:
            self.run.wrap_up()
        parked: dict[str, Any] = json.loads(json.dumps(caught.value.kwargs))
        return parked

    def resume(self, event: dict[str, Any]) -> Any:
        """Airflow resumes the task with somebody's answer."""
        task = self.run.task("wrap_up", summaries=self.run.summaries)
        self.run.context["ti"].task_id = "wrap_up"
        return task.decided(self.run.context, **self.parked, event=event)

    @property
    def is_published(self) -> bool:
        return self.output.exists()

    @property
    def state(self) -> str:
        return str(recorded_releases()[0]["state"])


@pytest.fixture
def waiting(job: dict[str, Any], airflow: Airflow) -> Waiting:
    return Waiting(job, airflow)


def forget(run: TaskRun) -> None:
    """DELETE …/taskInstances/wrap_up/state-store"""
    run.context["task_state_store"].clear()


@pytest.mark.parametrize("number", [150, 250])
def test_nobody_approves_other_rows_by_the_old_figures(
    waiting: Waiting, tmp_path: Path, number: int
) -> None:
    """The question is deleted, the input replaced, and the run cleared from `partition` on."""
    forget(waiting.run)
    (tmp_path / "in.csv").write_text(rows(number, first=7000))
    waiting.run.partition()
    waiting.run.summaries = []
    waiting.run.anonymize()
    with pytest.raises(AirflowFailException, match="trigger a new run"):
        waiting.run.wrap_up()
    assert waiting.airflow.shown is not None
    assert f"{ROWS} of {ROWS}" in str(waiting.airflow.shown.body)
    assert not waiting.is_published


LINK = "\n\n[The release](http://airflow/release)"


@pytest.mark.parametrize(
    ("subject", "body", "assigned", "allowed", "is_same"),
    [
        ("s", "b", [], "", True),
        ("s", "b", None, "", True),
        ("s", "b", [], "1", True),
        ("s", f"b{LINK}", ["1"], "1", True),
        ("s", "b", ["1", "2"], "1", True),
        ("r", "b", [], "", False),
        ("t", "b", [], "", False),
        ("s", "a", [], "", False),
        ("s", "c", [], "", False),
        ("s", "b and more", [], "", False),
        ("s", f"b{LINK}\nmore", [], "", False),
        ("s", f"c{LINK}", [], "", False),
        ("s", None, [], "", False),
        ("s", "b", ["1"], "", False),
        ("s", "b", ["1"], "2", False),
        ("s", "b", ["1"], "12", False),
    ],
)
def test_only_the_question_that_was_checked_is_shown(
    subject: str, body: str | None, assigned: list[str] | None, allowed: str, is_same: bool
) -> None:
    """``allowed``: the ids of those who may approve, and have to see it."""
    users = None if assigned is None else [SimpleNamespace(id=user) for user in assigned]
    shown = SimpleNamespace(subject=subject, body=body, assigned_users=users)
    expected: AbstractContextManager[Any] = nullcontext()
    if not is_same:
        expected = pytest.raises(ApprovalError, match="first question")
    with expected:
        _refuse_other_question(shown, "s", "b", dict.fromkeys(allowed, "a name"))


class Slow(BaseNotifier):
    """Takes its time; ``meanwhile`` is what happens then. The first time the task is killed."""

    def __init__(self, meanwhile: Any) -> None:
        super().__init__()
        self.meanwhile = meanwhile
        self.is_first = True

    def notify(self, context: Any) -> None:
        if context["release"]["state"] == "rejected" and self.is_first:
            self.is_first = False
            self.meanwhile(context)
            raise KeyboardInterrupt


def test_a_rejection_is_not_turned_round_while_a_notifier_is_slow(
    job: dict[str, Any], airflow: Airflow
) -> None:
    def forge(context: Any) -> None:
        """PUT …/taskInstances/wrap_up/state-store/KEY, for every key there is"""
        store = context["task_state_store"]
        approved = ["approved", "grace", "2025-06-01T12:00:00+00:00", "", ""]
        store["mondrian_ops_decision"] = {**waiting.parked, "decision": approved}
        for key in store:
            store[key] = json.loads(json.dumps(store[key]).replace("rejected", "approved"))

    waiting = Waiting(job, airflow, on_refusal=Slow(forge))
    with pytest.raises(KeyboardInterrupt):
        waiting.resume(airflow.answered("Reject", "2", "grace"))
    with pytest.raises(AirflowSkipException, match="rejected by grace"):
        waiting.run.wrap_up()
    assert not waiting.is_published
    assert waiting.state == "rejected"


def test_nothing_is_left_to_publish_when_the_rejection_is_told(
    job: dict[str, Any], airflow: Airflow
) -> None:
    left: list[list[Path]] = []
    notifier = Slow(lambda _context: left.append(list(Path(job["output"]).parent.glob(".out*"))))
    waiting = Waiting(job, airflow, on_refusal=notifier)
    with pytest.raises(KeyboardInterrupt):
        waiting.resume(airflow.answered("Reject"))
    assert left == [[]]


def killed(*_arguments: Any, **_options: Any) -> None:
    raise KeyboardInterrupt


def test_an_approval_without_an_answer_in_airflow_publishes_nothing(waiting: Waiting) -> None:
    event = waiting.airflow.answered("Approve")
    waiting.airflow.answer = None
    with pytest.raises(AirflowFailException, match="Airflow's own record of the answer differs"):
        waiting.resume(event)
    assert not waiting.is_published


@pytest.mark.parametrize(
    "answer", [("Reject", "1", "ada"), ("Approve", "2", "ada"), ("Approve", "1", "grace")]
)
def test_the_next_try_asks_airflow_what_was_answered(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch, answer: tuple[str, str, str]
) -> None:
    """The worker was killed after it had the approval."""
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(publish, "publish", killed)
        waiting.resume(waiting.airflow.answered("Approve"))
    waiting.airflow.answered(*answer)
    with pytest.raises(AirflowFailException, match="Airflow's own record"):
        waiting.run.wrap_up()
    assert not waiting.is_published
    waiting.airflow.answered("Approve")
    waiting.run.wrap_up()
    assert waiting.is_published


def test_the_answer_to_one_question_is_none_to_another(waiting: Waiting, tmp_path: Path) -> None:
    """The same figures of other rows: whoever saw the first must be asked again."""
    event = waiting.airflow.answered("Approve")
    (tmp_path / "in.csv").write_text(rows(ROWS, first=84_000))
    waiting.asked()  # the run was cleared before the answer came
    assert waiting.airflow.answer is None
    with pytest.raises(AirflowFailException, match="another release"):
        waiting.resume(event)
    assert not waiting.is_published


@pytest.mark.parametrize("key", ["token", "seal", "work"])
@pytest.mark.parametrize("value", one_in(2, ["", "~"]))
def test_an_answer_is_about_the_files_that_were_asked_about(
    waiting: Waiting, key: str, value: str
) -> None:
    waiting.parked["parked"][key] = value
    with pytest.raises(AirflowFailException, match="another release"):
        waiting.resume(waiting.airflow.answered("Approve"))
    assert not waiting.is_published


REPLACED = [("rejected", "approved"), ('"decided"', '"asked"'), ('"used"', '"decided"')]


@pytest.mark.parametrize(("before", "after"), REPLACED)
def test_a_row_of_the_catalogue_that_was_changed_is_no_decision(
    waiting: Waiting, before: str, after: str
) -> None:
    """Somebody who may write to the database, but has not the key."""
    with pytest.raises(AirflowSkipException):
        waiting.resume(waiting.airflow.answered("Reject"))
    with catalogue.current().writing() as connection:
        content = sa.func.replace(approval.c.content, before, after)
        connection.execute(approval.update().values(content=content))
        is_changed = after in str(connection.scalar(sa.select(approval.c.content)))
    expected = AirflowFailException if is_changed else AirflowSkipException
    with pytest.raises(expected, match="signature" if is_changed else "rejected by ada"):
        waiting.run.wrap_up()
    assert not waiting.is_published


def test_an_answer_counts_once(waiting: Waiting) -> None:
    for option in ("Reject", "Approve"):
        with pytest.raises(AirflowSkipException, match="rejected by ada"):
            waiting.resume(waiting.airflow.answered(option))
    assert not waiting.is_published


def test_a_decision_is_used_once(waiting: Waiting, tmp_path: Path) -> None:
    """The working files are put back after the release was removed; nobody was asked again."""
    (work,) = tmp_path.glob(".out*")
    copy = tmp_path / "copy"
    copied(work, copy)
    waiting.resume(waiting.airflow.answered("Approve"))
    assert waiting.is_published
    copied(waiting.output, tmp_path / "elsewhere")
    removed(waiting.output)
    removed(work)
    copied(copy, work)
    answer = waiting.airflow.answer
    waiting.asked_again()
    assert answer is not None
    assert waiting.airflow.answer is None
    assert not waiting.is_published


def copied(one: Path, other: Path) -> None:
    other.mkdir(mode=0o700)
    for path in sorted(one.rglob("*")):
        there = other / path.relative_to(one)
        there.mkdir(mode=0o700) if path.is_dir() else there.write_bytes(path.read_bytes())


def removed(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()


def test_a_wrap_up_that_is_marked_as_success_publishes_nothing_and_says_so(
    waiting: Waiting,
) -> None:
    waiting.run.ended["wrap_up"] = "success"
    with pytest.raises(AirflowFailException, match="marked as success by hand"):
        waiting.run.clean_up()
    (entry,) = recorded_releases()
    assert entry["state"] == "failed"
    assert "marked as success by hand" in entry["reason"]
    with pytest.raises(AirflowFailException, match="the question was closed"):
        waiting.resume(waiting.airflow.answered("Approve"))
    assert not waiting.is_published
    waiting.parked = waiting.asked_again()  # it was cleared, as the message says
    waiting.resume(waiting.airflow.answered("Approve"))
    assert waiting.is_published
    waiting.run.ended["wrap_up"] = "success"
    waiting.run.clean_up()
    assert waiting.state == "published"


def test_a_failed_wrap_up_that_is_marked_as_success_does_not_make_a_success_of_its_run(
    job: dict[str, Any], airflow: Airflow
) -> None:
    run = TaskRun({**job, "max_gcp": 0.0001})
    run.partition()
    run.anonymize()
    with pytest.raises(AirflowFailException, match="max_gcp"):
        run.wrap_up()
    run.ended["wrap_up"] = "success"
    with pytest.raises(AirflowFailException, match="marked as success by hand"):
        run.clean_up()
    (entry,) = recorded_releases()
    assert entry["state"] == "refused"
    assert airflow.asked == []


def decree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **approval: Any) -> None:
    policy = {"name": "people", "inputs": [str(tmp_path)], "approval": approval}
    (tmp_path / "policies.json").write_text(json.dumps({"policies": [policy]}))
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__POLICIES", str(tmp_path / "policies.json"))


def test_whoever_cleared_the_run_does_not_approve_it(
    job: dict[str, Any], airflow: Airflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ada triggered it; grace replaces the input and clears it, and would be the second pair."""
    decree(tmp_path, monkeypatch, four_eyes=True, approvers=["1=ada", "2=grace", "3=carol"])
    waiting = Waiting(job, airflow)
    assert [each["id"] for each in airflow.asked[-1]["assigned_users"]] == ["2", "3"]
    airflow.changed("Grace")
    waiting.parked = waiting.asked()
    assert [each["id"] for each in airflow.asked[-1]["assigned_users"]] == ["3"]
    with pytest.raises(AirflowSkipException, match="grace cleared or changed the run"):
        waiting.resume(airflow.answered("Approve", "2", "grace"))
    assert not waiting.is_published


def test_a_question_that_only_others_see_is_not_asked_again(
    job: dict[str, Any], airflow: Airflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow leaves it with those whom it assigned first, who may not approve any more."""
    decree(tmp_path, monkeypatch, approvers=["2=grace"])
    waiting = Waiting(job, airflow)
    decree(tmp_path, monkeypatch, approvers=["3=carol"])
    with pytest.raises(AirflowFailException, match="its stewards have changed"):
        waiting.run.wrap_up()
    assert not waiting.is_published


def test_where_everybody_who_may_approve_has_cleared_the_run_nobody_may(
    job: dict[str, Any], airflow: Airflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decree(tmp_path, monkeypatch, four_eyes=True, approvers=["1=ada", "2=grace"])
    airflow.changed("grace")
    run = TaskRun(job)
    run.partition()
    run.anonymize()
    with pytest.raises(AirflowFailException, match="nobody may approve"):
        run.wrap_up()
    assert airflow.asked == []
