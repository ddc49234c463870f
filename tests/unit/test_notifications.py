"""The texts for notifiers, in those of Airflow and in one with fields like any provider's."""

from __future__ import annotations

import email
import json
import socketserver
import threading
from email import policy
from pathlib import Path

import pytest
from airflow.providers.smtp.notifications.smtp import SmtpNotifier

from mondrian_ops import notifications
from mondrian_ops.notifications import HTML, MESSAGE, SUBJECT
from mondrian_ops.operators.notify import Notifiers
from recording_notifier import RELEASE, RecordingNotifier

OPERATE = Path(__file__).parents[2] / "docs" / "operate.md"
TEXT = (
    "out/people: the release is refused. l: 3 classes have fewer than 2 values of "
    "<b>diagnosis</b> http://airflow/release"
)


@pytest.fixture
def mailbox(monkeypatch):
    """A mail server that Airflow's connection names; the mails that came."""
    came = []

    class Session(socketserver.StreamRequestHandler):
        def handle(self):
            self.say("220 hello")
            for line in self.rfile:
                command = line.split()[0].upper()
                self.say("354 go on" if command == b"DATA" else "250 yes")
                if command == b"DATA":
                    lines = list(iter(self.rfile.readline, b".\r\n"))
                    came.append(email.message_from_bytes(b"".join(lines), policy=policy.default))
                    self.say("250 yes")
                if command == b"QUIT":
                    return

        def say(self, line):
            self.wfile.write(f"{line}\r\n".encode())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Session) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        connection = {
            "conn_type": "smtp",
            "host": "127.0.0.1",
            "port": server.server_address[1],
            "extra": {"disable_ssl": True, "disable_tls": True},
        }
        monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(connection))
        yield came
        server.shutdown()


def test_airflow_s_own_notifier_mails_the_release(mailbox):
    to, sender = "privacy@example.org", "airflow@example.org"
    mail = SmtpNotifier(to=to, from_email=sender, subject=SUBJECT, html_content=HTML)
    Notifiers.of(mail)({}, RELEASE)
    (came,) = mailbox
    assert came["subject"] == "out/people: the release is refused"
    page = came.get_body(["html"]).get_content()
    assert "&lt;b&gt;diagnosis&lt;/b&gt;" in page
    assert '<a href="http://airflow/release">' in page


def test_a_text_inside_a_field_of_a_notifier_is_rendered():
    """As in ``HttpNotifier(json={"text": MESSAGE})``."""
    noting = RecordingNotifier(html={"text": MESSAGE})
    Notifiers.of(noting)({}, RELEASE)
    ((_subject, body),) = noting.sent
    assert body == {"text": TEXT}


def test_a_release_without_a_page_is_told_without_a_link():
    noting = RecordingNotifier(subject=MESSAGE)
    Notifiers.of(noting)({}, {**RELEASE, "link": ""})
    ((message, page),) = noting.sent
    assert message.endswith("of <b>diagnosis</b>")
    assert "<a" not in page


@pytest.mark.parametrize("text", [notifications.__doc__, OPERATE.read_text("utf-8")])
def test_the_examples_send_no_page_that_is_not_escaped(text):
    assert "html_content=HTML" in text
    assert "html_content=MESSAGE" not in text
