"""Notify people of a release that is not published: texts for any notifier, one for webhooks.

:class:`WrapUpOperator` calls its ``on_refusal`` and ``on_waiting`` notifiers with a ``release`` in
their template context::

    release.dataset   the output, as reports show it
    release.state     refused, rejected, expired or waiting
    release.reason    the reason, in a sentence; holds no person's value
    release.requested_by  who asked for the run; empty if Airflow does not say
    release.decision  what a person answered, approved or rejected; empty if nobody did
    release.decided_by, release.decided_at, release.decision_reason   who, when and why
    release.link      the page of the release; empty if the catalogue cannot be read

They are those of the release's report.

A notifier of any provider can use texts of your own or these::

    anonymize_group(
        job,
        on_refusal=SmtpNotifier(to="privacy@example.org", subject=SUBJECT, html_content=HTML),
    )
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook, BaseNotifier

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["HTML", "MESSAGE", "SUBJECT", "WebhookNotifier"]

SUBJECT = "{{ release.dataset }}: the release is {{ release.state }}"
MESSAGE = (
    SUBJECT + ". {{ release.reason }}"
    "{% if release.requested_by %} Asked for by {{ release.requested_by }}.{% endif %}"
    "{% if release.decision_reason %} {{ release.decided_by }}: {{ release.decision_reason }}"
    "{% endif %}"
    "{% if release.link %} {{ release.link }}{% endif %}"
)
HTML = """<p><b>{{ release.dataset | e }}</b>: the release is {{ release.state | e }}.</p>
<p>{{ release.reason | e }}</p>
{% if release.requested_by %}<p>Asked for by {{ release.requested_by | e }}.</p>
{% endif %}{% if release.decision_reason %}<p>{{ release.decided_by | e }}:
{{ release.decision_reason | e }}</p>
{% endif %}{% if release.link %}<p><a href="{{ release.link | e }}">The release</a></p>
{% endif %}"""

_PATIENCE_S = 30


class WebhookNotifier(BaseNotifier):
    """Post the message to a webhook of Slack, Mattermost or a similar service.

    The body is JSON: ``{"text": MESSAGE, "release": {...}}``.

    :param http_conn_id: the Airflow connection, of the type HTTP, whose host is the URL of the
        webhook; its password, if any, is sent as a bearer token.
    :param message: the text (templated).
    """

    template_fields: Sequence[str] = ("message",)

    def __init__(self, http_conn_id: str = "mondrian_ops_webhook", message: str = MESSAGE) -> None:
        super().__init__()
        self.http_conn_id = http_conn_id
        self.message = message

    def notify(self, context: Context) -> None:
        """Post the message. Raises ConnectionError if the webhook refuses it.

        No error names the URL, which is a secret: whoever knows it may post.
        """
        import httpx

        connection = BaseHook.get_connection(self.http_conn_id)
        headers = {}
        if connection.password:
            headers["Authorization"] = f"Bearer {connection.password}"
        release: Any = context["release"]  # type: ignore[typeddict-item]
        answer = httpx.post(
            _url(connection),
            json={"text": self.message, "release": dict(release)},
            headers=headers,
            timeout=_PATIENCE_S,
        )
        if answer.is_error:
            raise ConnectionError(
                f"the webhook of connection {self.http_conn_id!r} answered {answer.status_code}; "
                "check the URL in its host field"
            )


def _url(connection: Any) -> str:
    host = str(connection.host or "")
    if "://" in host:
        return host
    scheme = connection.schema or "https"
    port = f":{connection.port}" if connection.port else ""
    return f"{scheme}://{host}{port}"
