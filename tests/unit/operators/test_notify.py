"""Notifiers are called with what became of a release, and cannot spoil it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from airflow.sdk import BaseNotifier

from mondrian_ops.errors import InputError, PrivacyError
from mondrian_ops.notifications import MESSAGE, SUBJECT
from mondrian_ops.operators.notify import Notifiers, notify, refusal_notified
from mondrian_ops.report import Report
from recording_notifier import RELEASE, RecordingNotifier
from report_samples import STATES, make_in
from task_contexts import read_job


class Failing(BaseNotifier):
    def notify(self, context):
        raise ConnectionError("nobody there")


def test_a_notifier_says_what_became_of_which_release_and_why():
    noting = RecordingNotifier()
    Notifiers.of(noting)({"dag": None}, RELEASE)
    ((subject, html),) = noting.sent
    assert subject == "out/people: the release is refused"
    assert "&lt;b&gt;diagnosis&lt;/b&gt;" in html
    assert 'href="http://airflow/release"' in html


@pytest.mark.parametrize("state", ["waiting", "refused", "rejected", "expired"])
def test_a_notification_says_what_the_report_says(context, job, state):
    noting = RecordingNotifier(subject=SUBJECT, html=MESSAGE)
    notify(Notifiers.of(noting), context, read_job(job), make_in(state), "http://airflow/release")
    ((subject, message),) = noting.sent
    assert subject == f"{job['output']}: the release is {state}"
    assert STATES[state]["reason"] in message and "Asked for by ada." in message
    assert ("grace: the postcode is too fine" in message) == (state == "rejected")
    (release,) = noting.releases
    assert (release["state"], release["requested_by"]) == (state, "ada")
    assert release["decided_by"] == ("grace" if state == "rejected" else "")


def test_one_that_fails_is_a_warning_and_the_others_are_called(caplog):
    first, last = RecordingNotifier(), RecordingNotifier()
    Notifiers.of([first, Failing(), last])({}, RELEASE)
    assert len(first.sent) == len(last.sent) == 1
    assert "Failing could not be sent: nobody there" in caplog.text


def test_notifiers_are_written_down_without_an_address_in_memory():
    assert (
        repr(Notifiers.of([RecordingNotifier(), Failing()]))
        == "Notifiers(RecordingNotifier, Failing)"
    )
    assert repr(Notifiers.of(())) == "Notifiers()"


def test_the_context_of_the_task_stays_as_it_was():
    context = {"dag": None}
    Notifiers.of(RecordingNotifier())(context, RELEASE)
    assert context == {"dag": None}


def test_a_refusal_is_kept_with_its_reason_and_other_errors_are_not(context, job, kept):
    task = SimpleNamespace(on_refusal=Notifiers.of(()), release_url="")
    with pytest.raises(InputError), refusal_notified(task, context, read_job(job)):
        raise InputError("no such file")
    assert kept() == []
    assert task.release_url == ""
    with pytest.raises(PrivacyError), refusal_notified(task, context, read_job(job)):
        raise PrivacyError("k: 3 classes are smaller than k = 5")
    (entry,) = kept()
    assert task.release_url.endswith(entry["id"])
    report = Report.from_json(entry["documents"]["_report.json"])
    assert (entry["state"], report.state, report.is_measured) == ("refused", "refused", False)
    assert (report.requested_by, report.outcome.reason) == ("ada", entry["reason"])
    assert entry["reason"] == "k: 3 classes are smaller than k = 5"
