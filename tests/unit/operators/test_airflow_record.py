"""What a task asks Airflow's API server about an answer, and what it makes of what that tells."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from http_server import http_server
from mondrian_ops.errors import ApprovalError
from mondrian_ops.operators import airflow_record as module
from mondrian_ops.operators.airflow_record import Answer, airflow_record

NOON = "2025-06-01T12:00:00+00:00"
TOLD = {
    "answer": {"chosen": ["Approve"], "user": "2", "name": "grace", "at": NOON},
    "changes": [
        {"by": "Ada", "at": "2025-06-01T11:00:00+00:00", "event": "clear_dag_run"},
        {"by": "carol", "at": "2025-06-01T12:00:00.900000+00:00", "event": "patch_task_instance"},
        {"by": "dora", "at": "2025-06-01T12:00:01+00:00", "event": "clear_dag_run"},
    ],
}


@pytest.fixture
def server(monkeypatch):
    """An API server; what it answers next, each status with its text, and what it was asked."""
    answers, asked = [], []

    def answer(request):
        asked.append(request)
        status, text = answers.pop(0)
        return status, text, "text/html" if text.startswith("<") else "application/json"

    monkeypatch.setattr(module, "_PAUSE_S", 0.0)
    with http_server(answer) as port:
        url = f"http://127.0.0.1:{port}"
        monkeypatch.setenv("AIRFLOW__CORE__EXECUTION_API_SERVER_URL", f"{url}/execution/")
        yield answers, asked, url


def test_the_api_server_is_asked_with_the_password_beside_the_execution_api(server):
    answers, asked, _url = server
    answers.append((200, json.dumps(TOLD)))
    record = airflow_record("an_id", "a password")
    assert record.answer == Answer(("Approve",), "2", "grace", NOON)
    (request,) = asked
    assert request.path == "/mondrian_ops_record/an_id"
    headers = {name.casefold(): value for name, value in request.headers.items()}
    assert headers["x-mondrian-ops-question"] == "a password"


def test_who_changed_the_run_is_known_to_the_second(server):
    answers, _asked, _url = server
    answers.append((200, json.dumps(TOLD)))
    record = airflow_record("an_id", "a password")
    assert record.changed_by() == {"ada", "carol", "dora"}
    assert record.changed_by(datetime(2025, 6, 1, 12, tzinfo=UTC)) == {"ada", "carol"}


def test_no_answer_is_none(server):
    answers, _asked, _url = server
    answers.append((200, json.dumps({"answer": None, "changes": []})))
    assert airflow_record("an_id", "a password") == (None, ())


def test_a_server_that_is_away_is_asked_again(server):
    answers, asked, _url = server
    answers += [(503, "{}"), (502, ""), (200, json.dumps(TOLD))]
    assert airflow_record("an_id", "a password").answer is not None
    assert len(asked) == 3


def test_a_server_that_stays_away_is_an_error_that_a_retry_may_cure(server, monkeypatch):
    answers, _asked, url = server
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)
    answers.append((503, "{}"))
    with pytest.raises(OSError, match=r"answered 503.*api_url") as caught:
        airflow_record("an_id", "a password")
    assert url in str(caught.value)
    assert "password" not in str(caught.value)
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__API_URL", "http://127.0.0.1:1")
    with pytest.raises(OSError, match=r"http://127\.0\.0\.1:1/mondrian_ops_record/an_id"):
        airflow_record("an_id", "a password")


@pytest.mark.parametrize("status", [404, 200])
def test_a_server_without_the_plugin_is_a_final_error(server, status):
    """Airflow shows its UI at every address that it does not know."""
    answers, _asked, _url = server
    answers.append((status, "<html>"))
    with pytest.raises(ApprovalError, match=rf"answered {status}.*plugin mondrian_ops"):
        airflow_record("an_id", "a password")


@pytest.mark.parametrize(
    ("execution", "base", "own", "expected"),
    [
        ("http://api:8080/execution/", "http://a/b", "", "http://api:8080"),
        ("http://api:8080/air/execution", "", "", "http://api:8080/air"),
        ("", "http://a/b/", "", "http://a/b"),
        ("", "/b", "", "http://localhost:8080/b"),
        ("http://api:8080/execution/", "", "https://core/", "https://core"),
    ],
)
def test_where_the_api_server_is(monkeypatch, execution, base, own, expected):
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTION_API_SERVER_URL", execution)
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base)
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__API_URL", own)
    assert module._api_server() == expected
