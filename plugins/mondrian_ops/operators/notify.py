"""Tell metrics and notifiers about a release that is not published."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from airflow.sdk import BaseNotifier

from mondrian_ops.errors import MondrianOpsError, PrivacyError
from mondrian_ops.operators.base import is_trial
from mondrian_ops.operators.metrics import count_release
from mondrian_ops.operators.release_records import ended, record, record_failure
from mondrian_ops.report.outcome import REFUSED

if TYPE_CHECKING:
    from airflow.sdk import Context

    from mondrian_ops.job.job import Job
    from mondrian_ops.operators.base import MondrianOperator

OneOrMore = BaseNotifier | Sequence[BaseNotifier]

_log = logging.getLogger(__name__)


class Notifiers:
    """The notifiers of one event.

    Airflow stores the arguments of mapped tasks as text; a stable ``repr`` keeps it from recording
    a new version of the DAG.
    """

    def __init__(self, notifiers: Sequence[BaseNotifier]) -> None:
        self._notifiers = tuple(notifiers)

    @classmethod
    def of(cls, notifiers: OneOrMore | Notifiers) -> Notifiers:
        """From one notifier, several or none."""
        if isinstance(notifiers, Notifiers):
            return notifiers
        return cls(notifiers if isinstance(notifiers, Sequence) else [notifiers])

    def __repr__(self) -> str:
        return f"Notifiers({', '.join(type(notifier).__name__ for notifier in self._notifiers)})"

    def __call__(self, context: Context, release: Mapping[str, str]) -> None:
        """Call each notifier with ``release`` in its context; a failure is a warning in the log."""
        for notifier in self._notifiers:
            try:
                notifier({**context, "release": release})
            except Exception as error:  # it must not change what became of the release
                _log.warning("%s could not be sent: %s", type(notifier).__name__, error)


class Refusing(Protocol):
    """An operator that may find that no release can be published."""

    on_refusal: Notifiers
    release_url: str


def notify(
    notifiers: Notifiers, context: Context, job: Job, report: Mapping[str, Any], link: str
) -> None:
    """Count the release and call its notifiers; ``link`` is the address of its page, or empty.

    ``report``: that of the release, which says what became of it.
    """
    from mondrian_ops import stores

    outcome = report["outcome"]
    count_release(context, job, outcome["state"])
    decision = ("decision", "decided_by", "decided_at", "decision_reason")
    release = {
        "dataset": stores.shown(str(job.output)),
        "state": outcome["state"],
        "reason": outcome["reason"],
        "requested_by": report.get("requested_by") or "",
        **{key: outcome.get(key, "") for key in decision},
        "link": link,
    }
    notifiers(context, release)


@contextmanager
def refusal_notified(operator: Refusing, context: Context, job: Job) -> Iterator[None]:
    """Record, link and notify a refusal if the block ends with a PrivacyError."""
    try:
        yield
    except PrivacyError as error:
        if is_trial():
            raise
        report = ended(context, job, REFUSED, str(error), error.report)
        operator.release_url = record(context, job, report)
        notify(operator.on_refusal, context, job, report, operator.release_url)
        raise


@contextmanager
def failure_recorded(
    operator: MondrianOperator, context: Context, map_index: int | None = None
) -> Iterator[None]:
    """Record that there is no release, and why, if the block ends with a final error.

    ``map_index``: that of the release's ``wrap_up``, for a task that is not mapped with it.
    """
    try:
        yield
    except MondrianOpsError as error:
        if is_trial():
            raise
        job = operator.known_job
        state = "refused" if isinstance(error, PrivacyError) else "failed"
        given = operator.job if job is None else job
        recorded = record_failure(context, given, str(error), state=state, map_index=map_index)
        if recorded and job is not None:
            count_release(context, job, state)
        raise
