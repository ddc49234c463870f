"""Calling the notifiers of a task with what became of a release."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from airflow.sdk import BaseNotifier

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["Notifiers", "Telling"]

Notifiers = BaseNotifier | Sequence[BaseNotifier]

_log = logging.getLogger(__name__)


class Telling:
    """The notifiers of one occasion.

    Airflow writes the arguments of mapped tasks down as text, and takes a DAG whose text is another
    one for a new version: so they go by their names.
    """

    def __init__(self, notifiers: Sequence[BaseNotifier]) -> None:
        self._notifiers = tuple(notifiers)

    @classmethod
    def by(cls, notifiers: Notifiers | Telling) -> Telling:
        """One notifier, several or none."""
        if isinstance(notifiers, Telling):
            return notifiers
        return cls(notifiers if isinstance(notifiers, Sequence) else [notifiers])

    def __repr__(self) -> str:
        return f"Telling({', '.join(type(each).__name__ for each in self._notifiers)})"

    def __call__(self, context: Context, release: Mapping[str, str]) -> None:
        """Call each with ``release`` in its context; one that fails is a warning in the log."""
        for notifier in self._notifiers:
            try:
                notifier({**context, "release": release})
            except Exception as error:
                # What became of the release stands, whoever hears of it.
                _log.warning("%s could not be sent: %s", type(notifier).__name__, error)
