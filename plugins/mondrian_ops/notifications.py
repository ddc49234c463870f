"""Notify people of a release that is not published: texts for the notifiers of any provider.

:class:`WrapUpOperator` calls its ``on_refusal`` and ``on_waiting`` notifiers with a ``release`` in
their template context::

    release.dataset   the output, as reports show it
    release.state     refused, rejected, expired or waiting
    release.reason    the reason, in a sentence; holds no person's value
    release.requested_by  who asked for the run; empty if Airflow does not say
    release.decision  what a person answered, approved or rejected; empty if nobody did
    release.decided_by, release.decided_at, release.decision_reason   who, when and why
    release.link      the page of the release; empty if the catalogue cannot be read

They are those of the release's report. Use these texts or your own::

    anonymize_group(
        job,
        on_refusal=SmtpNotifier(to="privacy@example.org", subject=SUBJECT, html_content=HTML),
        on_waiting=HttpNotifier(http_conn_id="privacy_webhook", json={"text": MESSAGE}),
    )
"""

from __future__ import annotations

__all__ = ["HTML", "MESSAGE", "SUBJECT"]

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
