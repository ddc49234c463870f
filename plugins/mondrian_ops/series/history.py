"""What the catalogue knows of a series: its nights, the rows that wait, the boundaries."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import sqlalchemy as sa

from mondrian_ops import catalogue, stores
from mondrian_ops.catalogue import contracts
from mondrian_ops.catalogue.secret_key import signature
from mondrian_ops.catalogue.tables import PENDING, night, series, waiting
from mondrian_ops.data.contract import named_types
from mondrian_ops.errors import StorageError
from mondrian_ops.job.job import Job
from mondrian_ops.job.policy import Arrival
from mondrian_ops.series.naming import name_of_series, place_of
from mondrian_ops.series.terms import refuse_other_terms

PUBLISHED, HELD = "published", "held"
"""The states of a night."""


class Waiting(NamedTuple):
    """Some rows that wait: they first came in the night ``origin``."""

    origin: int
    rows: int
    file: str


class Came(NamedTuple):
    """From where, and under which policies, the rows of a night's drop came, as it is noted.

    ``policies`` are JSON; ``signature`` is that of :func:`signed`.
    """

    number: int
    since: str
    input: str
    policies: str | None
    signature: str | None


class Current(NamedTuple):
    """The state of a series: the number of its last night, and the rows that wait.

    ``came``: the nights in which these came. ``boundaries``: those that its
    nights share, as `SeriesBoundaries` writes them; ``refit``: a person asked for new ones.
    """

    last: int
    waiting: Sequence[Waiting]
    boundaries: Mapping[str, Any] | None = None
    refit: bool = False
    came: Sequence[Came] = ()


class Noted(NamedTuple):
    """A night as the catalogue has it; ``rows`` are those of its release."""

    id: int
    label: str
    input: str
    output: str
    token: str
    rows: int
    state: str


def current(name: str) -> Current:
    """The state of a series."""
    with catalogue.current().reading() as connection:
        last = connection.execute(nights_of(name).order_by(night.c.number.desc())).first()
        if last is None:
            return Current(0, [])
        found = sa.select(waiting.c.origin, waiting.c.rows, waiting.c.file)
        of_last = found.where(waiting.c.night == last.id).order_by(waiting.c.origin)
        waits = [Waiting(*row) for row in connection.execute(of_last)]
        refit = connection.execute(sa.select(series.c.refit).where(series.c.name == name)).scalar()
        came = _came(connection, last.series, [each.origin for each in waits])
        return Current(last.number, waits, _boundaries(connection, last), bool(refit), came)


def _came(connection: sa.Connection, series_id: int, origins: Sequence[int]) -> list[Came]:
    columns = night.c.number, night.c.label, night.c.input, night.c.policies, night.c.signature
    mine = night.c.series == series_id, night.c.number.in_(origins)
    found = connection.execute(sa.select(*columns).where(*mine).order_by(night.c.number))
    return [Came(*row) for row in found]


def arrivals_of(name: str, state: Current) -> list[Arrival]:
    """Where the rows that wait in a series came from, and their policies.

    Raises StorageError where these do not carry the signature of the catalogue's key, or the
    catalogue lacks the night in which some of these rows came.
    """
    nights = {each.number: each for each in state.came}
    for origin in sorted(each.origin for each in state.waiting):
        came = nights.get(origin)
        if came is None:
            since, problem = f"night {origin}", "the catalogue lacks: somebody has changed it"
        elif not _is_genuine(name, came):  # nor are those that are missing
            since = came.since
            problem = (
                "do not carry the catalogue's signature: somebody has changed them, or a version "
                "that signed none has kept them"
            )
        else:
            continue
        raise StorageError(
            f"series: in {stores.shown(name)} rows wait since {since} whose policies {problem}; "
            "nothing is published; find out who may write to the catalogue, and restore it from a "
            "backup; or begin another series with another output, and deliver the drop of that "
            "night there"
        )
    return [
        Arrival.from_json(
            {"since": each.since, "input": each.input, "policies": json.loads(each.policies or "")}
        )
        for each in state.came
    ]


def signed(name: str, came: Came) -> str:
    """The signature of the catalogue's key: a night of one series is none of another."""
    return signature(catalogue.current().key, "arrival", name, *came[:-1])


def _is_genuine(name: str, came: Came) -> bool:
    return hmac.compare_digest(str(came.signature), signed(name, came))


def boundaries_of(release: str) -> Mapping[str, Any] | None:
    """The boundaries that held for a release, as JSON; None where the catalogue has none."""
    output = place_of(release)
    with catalogue.current().reading() as connection:
        of_series = nights_of(name_of_series(output))
        found = connection.execute(of_series.where(night.c.output == output)).first()
        return None if found is None else _boundaries(connection, found)


def _boundaries(connection: sa.Connection, of: sa.Row[Any]) -> Mapping[str, Any] | None:
    """The boundaries that hold in a night: those that were fitted last, up to it."""
    found = (
        sa.select(night.c.boundaries)
        .where(night.c.series == of.series, night.c.number <= of.number)
        .where(night.c.state != PENDING, night.c.boundaries.is_not(None))
        .order_by(night.c.number.desc())
    )
    fitted = connection.execute(found).scalar()
    return None if fitted is None else cast("Mapping[str, Any]", json.loads(fitted))


def types_of(name: str, output: str) -> dict[str, str]:
    """The types that columns of CSV files had in a night of a series, where that is known."""
    with catalogue.current().reading() as connection:
        found = contracts.of_output(connection, name, output)
    return {} if found is None else named_types(found.columns)


def noted(job: Job, output: str) -> list[Noted]:
    """The nights of a series in order; ``output``: that of any of them.

    A night that is held has no release, and one that is pending may have none yet.

    Raises StorageError where the catalogue has no such series, JobError if its nights had another
    of :func:`terms_of` than the job.
    """
    name = name_of_series(output)
    where = night.c.label, night.c.input, night.c.output
    columns = (night.c.id, *where, night.c.token, night.c.rows_published, night.c.state)
    of_series = sa.select(*columns).join(series).where(series.c.name == name)
    with catalogue.current().reading() as connection:
        refuse_other_terms(connection, name, job)
        found = connection.execute(of_series.order_by(night.c.number)).all()
    if not found:
        raise no_series(output)
    return [Noted(*row) for row in found]


def no_series(output: str) -> StorageError:
    """The error that the catalogue has no series with this output."""
    return StorageError(
        f"series: the catalogue has no series with the output {stores.shown(output)}; give the "
        "output of one of its nights, and name the catalogue that has them"
    )


def was_held(token: str) -> bool:
    """Whether the night of this attempt is over, without a release."""
    with catalogue.current().reading() as connection:
        state = sa.select(night.c.state).where(night.c.token == token)
        return bool(connection.execute(state).scalar() == HELD)


def held(outputs: Iterable[str]) -> dict[str, str]:
    """Those of some outputs whose nights are over without a release, each with its time."""
    found = {}
    with catalogue.current().reading() as connection:
        for output in outputs:
            mine = night.c.output == place_of(output), night.c.state == HELD
            time = connection.execute(sa.select(night.c.time).where(*mine)).scalar()
            if time is not None:
                found[output] = str(time)
    return found


def names() -> list[str]:
    """The names of all series."""
    with catalogue.current().reading() as connection:
        return list(connection.execute(sa.select(series.c.name)).scalars())


def files() -> set[str]:
    """The files of rows that wait, and those that will wait after a pending night."""
    with catalogue.current().reading() as connection:
        return set(connection.execute(sa.select(waiting.c.file)).scalars())


def nights_of(name: str, pending: bool = False) -> sa.Select[tuple[object, ...]]:
    """The nights of a series that are pending, or those that are not."""
    is_pending = night.c.state == PENDING if pending else night.c.state != PENDING
    return sa.select(night).join(series).where(series.c.name == name, is_pending)
