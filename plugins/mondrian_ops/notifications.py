"""Telling people what became of a release: texts for any notifier of Airflow, and one for webhooks.

:class:`WrapUpOperator` calls the notifiers it was given as ``on_refusal`` and ``on_waiting`` with a
``release`` in their template context::

    release.dataset   the output, as reports show it
    release.state     refused, rejected, expired or waiting
    release.reason    why, in a sentence; holds no person's value
    release.link      the page of the release; empty where the archive of reports cannot be read

So a notifier of any provider says what happened, with texts of one's own or with these::

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
MESSAGE = SUBJECT + ". {{ release.reason }}{% if release.link %} {{ release.link }}{% endif %}"
HTML = """<p><b>{{ release.dataset | e }}</b>: the release is {{ release.state | e }}.</p>
<p>{{ release.reason | e }}</p>
{% if release.link %}<p><a href="{{ release.link | e }}">The release</a></p>{% endif %}"""

_PATIENCE_S = 30


class WebhookNotifier(BaseNotifier):
    """Post the message to a webhook, as Slack, Mattermost and their like take it.

    The body is JSON: ``{"text": MESSAGE, "release": {...}}``.

    :param connection: id of the Airflow connection whose host is the URL of the webhook; a
        password, if it has one, goes along as a bearer token.
    :param message: the text (templated).
    """

    template_fields: Sequence[str] = ("message",)

    def __init__(self, connection: str = "mondrian_ops_webhook", message: str = MESSAGE) -> None:
        super().__init__()
        self.connection = connection
        self.message = message

    def notify(self, context: Context) -> None:
        """Post it; raises ConnectionError where the webhook does not take it.

        Its URL is a secret, for whoever has it may post: no error names it.
        """
        import httpx

        connection = BaseHook.get_connection(self.connection)
        release: Any = context["release"]  # type: ignore[typeddict-item]
        answer = httpx.post(
            _url(connection),
            json={"text": self.message, "release": dict(release)},
            headers=_headers(connection),
            timeout=_PATIENCE_S,
        )
        if answer.is_error:
            raise ConnectionError(
                f"the webhook of connection {self.connection!r} answered {answer.status_code}; "
                "see to the URL in its host"
            )


def _url(connection: Any) -> str:
    host = str(connection.host or "")
    if "://" in host:
        return host
    scheme = connection.schema or "https"
    port = f":{connection.port}" if connection.port else ""
    return f"{scheme}://{host}{port}"


def _headers(connection: Any) -> dict[str, str]:
    if not connection.password:
        return {}
    return {"Authorization": f"Bearer {connection.password}"}
