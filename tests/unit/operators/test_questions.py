"""What the catalogue keeps of a question, and under which names Airflow is asked about it."""

from __future__ import annotations

import hashlib
import json

import pytest

from mondrian_ops import catalogue
from mondrian_ops.catalogue import approvals
from mondrian_ops.operators import questions

RELEASE = {"token": "a token"}
DIGEST = questions.digest_of("Publish?", "the figures")


@pytest.mark.parametrize(("map_index", "kept"), [(None, -1), (-1, -1), (0, 0), (3, 3)])
def test_airflow_is_asked_about_the_task_that_asks(context, monkeypatch, map_index, kept):
    """Of several releases of a run each has its own answer."""
    context["ti"].map_index = map_index
    asked = questions.open_question(context, RELEASE, DIGEST)
    told = []
    monkeypatch.setattr(questions, "airflow_record", lambda *given: told.append(given))
    questions.record_of(context, asked)
    ((entry_id, password),) = told
    with catalogue.current().reading() as connection:
        instance = approvals.opened(connection, entry_id, password)
    assert instance == ("a_dag", "manual__1", "t", kept)
    assert questions.last(context) == asked
    assert questions.last(context, kept) == asked
    assert questions.last(context, kept + 1) is None


def test_the_question_itself_is_signed_with_it(context):
    """Whoever looks into a dispute can tell whether this text was approved."""
    digest = questions.digest_of("Publish?", "the figures")
    asked = questions.open_question(context, RELEASE, digest)
    text = json.dumps(["Publish?", "the figures"]).encode()
    assert asked.question == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize("state", [approvals.ASKED, approvals.DECIDED, approvals.USED])
def test_only_a_question_that_nobody_has_answered_is_closed(context, state):
    asked = questions.open_question(context, RELEASE, DIGEST)
    noted = questions.note(context, asked, state)
    questions.close(context, -1)
    closed = noted._replace(state=approvals.CLOSED)
    assert questions.last(context) == (closed if state == approvals.ASKED else noted)


def test_where_nothing_was_asked_nothing_is_closed(context):
    questions.close(context, -1)
    assert questions.last(context) is None


def test_a_decision_stays_when_it_is_used(context):
    asked = questions.open_question(context, RELEASE, DIGEST)
    decided = questions.note(context, asked, approvals.DECIDED, ["approved", "ada"])
    used = questions.note(context, decided, approvals.USED)
    assert used.decision == ("approved", "ada")
    assert questions.last(context) == used


def test_a_catalogue_that_cannot_be_used_does_not_keep_a_run_from_ending(
    context, monkeypatch, tmp_path, caplog
):
    (tmp_path / "file").touch()
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__CATALOGUE", str(tmp_path / "file" / "no.db"))
    questions.close(context, -1)
    assert "the question stays open: " in caplog.text
