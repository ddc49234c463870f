"""A notifier that keeps what it would send, and a release for it."""

from __future__ import annotations

from airflow.sdk import BaseNotifier

from mondrian_ops.notifications import HTML, SUBJECT

RELEASE = {
    "dataset": "out/people",
    "state": "refused",
    "reason": "l: 3 classes have fewer than 2 values of <b>diagnosis</b>",
    "link": "http://airflow/release",
}


class RecordingNotifier(BaseNotifier):
    """A notifier with templated texts, as a provider's."""

    template_fields = ("subject", "html")

    def __init__(self, subject=SUBJECT, html=HTML):
        super().__init__()
        self.subject, self.html = subject, html
        self.sent = []
        self.releases = []

    def notify(self, context):
        self.sent.append((self.subject, self.html))
        self.releases.append(context["release"])
