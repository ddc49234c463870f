"""Saying what became of a release that is not published: to a metric, and to notifiers."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow.sdk import BaseNotifier

from mondrian_ops.core.errors import PrivacyError
from mondrian_ops.operators.links import release_url
from mondrian_ops.operators.metrics import count_release
from mondrian_ops.operators.report_archiving import refusal_recorded

if TYPE_CHECKING:
    from airflow.sdk import Context

    from mondrian_ops.core.job import Job

__all__ = ["Notifiers", "OneOrMore", "notify", "refusal_notified"]

OneOrMore = BaseNotifier | Sequence[BaseNotifier]

_log = logging.getLogger(__name__)


class Notifiers:
    """The notifiers of one occasion.

    A stable ``repr`` keeps Airflow, which writes the arguments of mapped tasks down as text, from
    recording a new version of the DAG.
    """

    def __init__(self, notifiers: Sequence[BaseNotifier]) -> None:
        self._notifiers = tuple(notifiers)

    @classmethod
    def of(cls, notifiers: OneOrMore | Notifiers) -> Notifiers:
        """One notifier, several or none."""
        if isinstance(notifiers, Notifiers):
            return notifiers
        return cls(notifiers if isinstance(notifiers, Sequence) else [notifiers])

    def __repr__(self) -> str:
        return f"Notifiers({', '.join(type(each).__name__ for each in self._notifiers)})"

    def __call__(self, context: Context, release: Mapping[str, str]) -> None:
        """Call each with ``release`` in its context; one that fails is a warning in the log."""
        for notifier in self._notifiers:
            try:
                notifier({**context, "release": release})
            except Exception as error:
                # What became of the release stands, whoever hears of it.
                _log.warning("%s could not be sent: %s", type(notifier).__name__, error)


def notify(notifiers: Notifiers, context: Context, job: Job, state: str, reason: str) -> None:
    """Count the release, and call the notifiers with it."""
    from mondrian_ops import storage

    count_release(context, job, state)
    release = {
        "dataset": storage.shown(str(job.output)),
        "state": state,
        "reason": reason,
        "link": release_url(context),
    }
    notifiers(context, release)


@contextmanager
def refusal_notified(notifiers: Notifiers, context: Context, job: Job) -> Iterator[None]:
    """Record and notify that the release is refused when the block ends with a PrivacyError."""
    try:
        with refusal_recorded(context, job):
            yield
    except PrivacyError as error:
        notify(notifiers, context, job, "refused", str(error))
        raise
