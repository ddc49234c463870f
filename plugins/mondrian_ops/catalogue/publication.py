"""Intentions to publish: who publishes first, and what became of a publisher that was killed.

A publication spans a database and a store of files, so it has three steps:

1. One transaction looks whether the release may be published and notes the intention (`intend`).
   Writing transactions take turns, so of two that exclude each other the second sees the first.
2. `publish.publish` publishes. No transaction is open meanwhile.
3. One transaction notes that it did (`confirm`), or removes the intention (`withdraw`).

A publisher that is killed leaves its intention. Whoever finds it asks the store (`settle`): the
release is out, or may still come, or never will.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa

from mondrian_ops import publish
from mondrian_ops.catalogue.tables import publication
from mondrian_ops.errors import MondrianOpsError

if TYPE_CHECKING:
    from mondrian_ops.catalogue.database import Catalogue

_log = logging.getLogger(__name__)


class State(Enum):
    """What is known of the release of an intention."""

    PUBLISHED = "published"
    PENDING = "pending"
    GONE = "gone"
    """It is not published and never will be."""


class Intention(NamedTuple):
    """An attempt's intention to publish.

    ``id`` grows and is never used again. ``token`` is the attempt's
    (:attr:`mondrian_ops.publish.WorkDir.token`), ``work`` the path of its working files, which all
    attempts at its run share, and ``output`` the release's absolute path or URL.
    """

    id: int
    scope: str
    token: str
    work: str
    output: str


def intend(
    connection: sa.Connection, scope: str, *, token: str, work: str, output: str, time: str
) -> Intention:
    """Note an intention; rows of other tables may refer to its id and go when it is withdrawn.

    ``scope`` names what excludes each other, such as a series; ``time`` is in ISO 8601.
    """
    noted = {"scope": scope, "token": token, "work": work, "output": output}
    one = publication.insert().values(**noted, time=time, published=False)
    return Intention(connection.execute(one.returning(publication.c.id)).scalar_one(), **noted)


def pending(connection: sa.Connection, scope: str) -> list[Intention]:
    """The intentions of a scope that are neither confirmed nor withdrawn, the oldest first."""
    columns = [publication.c[name] for name in Intention._fields]
    found = sa.select(*columns).where(publication.c.scope == scope, ~publication.c.published)
    return [Intention(*row) for row in connection.execute(found.order_by(publication.c.id))]


def confirm(
    catalogue: Catalogue,
    scope: str,
    token: str,
    again: Callable[[sa.Connection], object] = lambda _: None,
) -> None:
    """Note that the attempt with this token has published what it intended in a scope.

    ``again`` notes its intention once more where a backup without it was restored meanwhile. While
    the database is away, a warning is logged, since whoever finds the intention settles it.
    """
    with _best_effort("confirmed"), catalogue.writing() as connection:
        if not _confirmed(connection, scope, token):
            again(connection)
            _confirmed(connection, scope, token)


def _confirmed(connection: sa.Connection, scope: str, token: str) -> bool:
    mine = publication.c.scope == scope, publication.c.token == token
    of_token = publication.update().where(*mine)
    return bool(connection.execute(of_token.values(published=True)).rowcount)


def withdraw(connection: sa.Connection, intention: Intention) -> None:
    """Remove an intention that is not confirmed, with all that refers to it."""
    one = publication.delete().where(publication.c.id == intention.id, ~publication.c.published)
    connection.execute(one)


def settle(catalogue: Catalogue, intention: Intention) -> State:
    """Ask the store what became of a pending intention; confirm or withdraw it unless it may come.

    Whether it was published is noted at once, since another release may replace it. Where that
    cannot be found out from here, it counts as published, and stays pending.
    """
    try:
        state = state_of(intention.work, intention.token, intention.output)
    except (MondrianOpsError, OSError) as error:
        _log.warning(
            "catalogue: publication %s: cannot tell whether it was published (%s); it is treated "
            "as published",
            intention.id,
            type(error).__name__,
        )
        return State.PUBLISHED
    if state is State.PUBLISHED:
        with catalogue.writing() as connection:
            _confirmed(connection, intention.scope, intention.token)
    elif state is State.GONE:
        with catalogue.writing() as connection:
            withdraw(connection, intention)
    return state


def state_of(work: str, token: str, output: str) -> State:
    """What became of the release of an attempt, by its working files and its output.

    Raises MondrianOpsError or OSError where that cannot be found out from here.
    """
    # In this order: a run that removes its working files in between has published, or never will.
    may_publish = publish.may_publish(work, token)
    if publish.published(output, token):
        return State.PUBLISHED
    return State.PENDING if may_publish else State.GONE


@contextmanager
def publishing(
    catalogue: Catalogue, intention: Intention, again: Callable[[sa.Connection], object]
) -> Iterator[None]:
    """Publish in this context; then the intention is confirmed, as by :func:`confirm`.

    After a final error (MondrianOpsError) it is withdrawn unless the release is out. After any
    other it stays, since a retry may publish.
    """
    try:
        yield
    except MondrianOpsError:
        with _best_effort("withdrawn"):  # the error that led here matters more
            if settle(catalogue, intention) is State.PENDING:
                with catalogue.writing() as connection:
                    withdraw(connection, intention)
        raise
    confirm(catalogue, intention.scope, intention.token, again)


@contextmanager
def _best_effort(what: str) -> Iterator[None]:
    try:
        yield
    except (MondrianOpsError, OSError) as error:
        _log.warning(
            "catalogue: a publication could not be %s; the next run will do that (%s)",
            what,
            error,
        )
