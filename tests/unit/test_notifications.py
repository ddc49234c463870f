"""Notifiers: any of Airflow's gets what became of a release, and one posts it to a webhook."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from http_server import http_server
from mondrian_ops import notifications
from mondrian_ops.notifications import MESSAGE, WebhookNotifier
from mondrian_ops.operators.notify import Notifiers
from recording_notifier import RELEASE, RecordingNotifier

OPERATE = Path(__file__).parents[2] / "docs" / "operate.md"


@pytest.fixture
def webhook():
    """A server that notes what is posted to it; (its URL, what came)."""
    came = []

    def answer(request):
        came.append((request.path, request.headers, json.loads(request.body)))
        return 500 if request.path == "/broken" else 200, ""

    with http_server(answer) as port:
        yield f"http://127.0.0.1:{port}", came


def test_a_webhook_gets_the_text_and_the_release(webhook, monkeypatch):
    url, came = webhook
    monkeypatch.setenv(
        "AIRFLOW_CONN_PRIVACY", json.dumps({"conn_type": "http", "host": f"{url}/x"})
    )
    Notifiers.of(WebhookNotifier(http_conn_id="privacy"))({}, RELEASE)
    ((path, headers, body),) = came
    assert path == "/x"
    assert body["release"] == RELEASE
    assert body["text"] == (
        "out/people: the release is refused. l: 3 classes have fewer than 2 values of "
        "<b>diagnosis</b> http://airflow/release"
    )
    assert "Authorization" not in headers
    assert WebhookNotifier().message == MESSAGE


def test_a_release_without_a_page_is_told_without_a_link():
    noting = RecordingNotifier(subject=MESSAGE)
    Notifiers.of(noting)({}, {**RELEASE, "link": ""})
    ((message, page),) = noting.sent
    assert message.endswith("of <b>diagnosis</b>")
    assert "<a" not in page


def test_a_webhook_may_want_a_token(webhook, monkeypatch):
    url, came = webhook
    host, port = url.removeprefix("http://").split(":")
    connection = {
        "conn_type": "http",
        "host": host,
        "port": int(port),
        "schema": "http",
        "password": "a token",
    }
    monkeypatch.setenv("AIRFLOW_CONN_PRIVACY", json.dumps(connection))
    Notifiers.of(WebhookNotifier(http_conn_id="privacy", message="{{ release.state }}!"))(
        {}, RELEASE
    )
    ((_path, headers, body),) = came
    assert headers["Authorization"] == "Bearer a token"
    assert body["text"] == "refused!"


def test_a_webhook_that_does_not_take_it_is_an_error_of_the_notifier(webhook, monkeypatch, caplog):
    url, _came = webhook
    connection = {"conn_type": "http", "host": f"{url}/broken"}
    monkeypatch.setenv("AIRFLOW_CONN_PRIVACY", json.dumps(connection))
    Notifiers.of(WebhookNotifier(http_conn_id="privacy"))({}, RELEASE)
    assert "the webhook of connection 'privacy' answered 500" in caplog.text
    assert url not in caplog.text


@pytest.mark.parametrize("text", [notifications.__doc__, OPERATE.read_text("utf-8")])
def test_the_examples_send_no_page_that_is_not_escaped(text):
    assert "html_content=HTML" in text
    assert "html_content=MESSAGE" not in text
