"""The nights of a series in the catalogue, and what becomes of a night whose process was killed.

A night ends in three steps, since no transaction spans a database and a file store: a transaction
notes the intention (:func:`intend`); the release is published; a second transaction makes it
current (:func:`conclude`). The waiting rows are those of the last night that is not pending. So
whoever finds a pending night looks whether its release is there (:func:`settle`): then it is
concluded; if it cannot be there any more, the night is taken back, and all is as it was before.

Of two nights that were computed from the same waiting rows, the unique number of a night in its
series lets one win; the other has to be computed anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from time import sleep
from typing import Any, NamedTuple, cast

import pyarrow as pa
import sqlalchemy as sa

from mondrian_ops import catalogue, publish, stores
from mondrian_ops.catalogue import publication, signatures
from mondrian_ops.catalogue.tables import PENDING, night, series, waiting
from mondrian_ops.engines.handover import SeriesNight
from mondrian_ops.errors import JobError, StorageError
from mondrian_ops.job.job import Job
from mondrian_ops.series.history import HELD, PUBLISHED, Came, Waiting, nights_of, no_series, signed
from mondrian_ops.series.naming import (
    is_one_series,
    is_same_night,
    name_of_series,
    output_of,
    outputs_beside,
    place_of,
    series_name,
)
from mondrian_ops.series.terms import keep_terms, refuse_other_terms
from mondrian_ops.stores.dataset_name import dates_in

_PAUSE_S = 0.15
"""Who waits to write into SQLite asks again every 0.1 seconds."""


class Concluded(NamedTuple):
    """The result of a night: rows published and suppressed, and all rows that wait after it.

    ``figures``: those of its release, as the columns of a night have them.
    """

    published: int
    suppressed: int
    waiting: Sequence[Waiting]
    figures: Mapping[str, Any] = {}

    @property
    def waits(self) -> int:
        """The number of rows that wait."""
        return sum(each.rows for each in self.waiting)


def check_new(job: Job) -> None:
    """Raise StorageError if the job's night is in its series already, before any row is read.

    Raises JobError if the nights before had other terms, or the output has no date.
    """
    name = series_name(job)
    with catalogue.current().reading() as connection:
        _refuse_other_name(connection, name)
        refuse_other_terms(connection, name, job)
        _refuse_again(connection, name, output_of(job))


def ask_to_refit(output: str) -> None:
    """Have the next night of a series fit new boundaries; ``output``: that of any of its nights.

    Raises StorageError where the catalogue has no such series, JobError where it has no boundaries.
    """
    name = name_of_series(output)
    with catalogue.current().writing() as connection:
        asked = series.update().where(series.c.name == name).values(refit=True)
        if not connection.execute(asked).rowcount:
            raise no_series(output)
        fitted = nights_of(name).where(night.c.boundaries.is_not(None))
        if connection.execute(fitted).first() is None:
            raise JobError(
                "series.boundaries: no night of this series has fitted any yet; with `boundaries: "
                "stable` in the job the next night fits them"
            )


def came_of(of: SeriesNight, job: Job) -> Came:
    """From where, and under which policies, the rows of a night's drop came, signed.

    Raises StorageError where an earlier version gathered them.
    """
    if of.policies is None:
        raise StorageError(
            "series: this run began with an earlier version, which kept no policies with the rows; "
            "nothing is published; run again from the partition task"
        )
    place = place_of(str(job.input))
    came = Came(of.number, dates_in(output_of(job)), place, json.dumps(of.policies), None)
    return came._replace(signature=signed(of.series, came))


def intend(
    of: SeriesNight,
    job: Job,
    work: publish.WorkDir,
    outcome: Concluded,
    persons: pa.Table | None = None,
    types: Mapping[str, str] | None = None,
) -> None:
    """Note that the night is about to become current; ``held`` nights are so at once.

    ``persons``: what is left for the persons of the release, where they are followed, and the
    ``types`` of the columns that tell them and their values apart.

    What an earlier try of this attempt has noted is replaced, unless it is current. Raises
    StorageError if another night has become current since the rows were gathered, or this one has;
    or if a row is lost or there twice.
    """
    token, output, came = work.token, output_of(job), came_of(of, job)
    with catalogue.current().writing() as connection:
        _take_back(connection, token)
        if connection.execute(sa.select(night.c.id).where(night.c.token == token)).first():
            return
        refuse_other_terms(connection, of.series, job)
        _refuse_again(connection, of.series, output)
        number = (
            sa.select(sa.func.max(night.c.number)).join(series).where(series.c.name == of.series)
        )
        if (connection.execute(number).scalar() or 0) != of.number - 1:
            raise StorageError(
                "series: another night was published since the rows of this one were gathered, so "
                "rows that waited may be in both; run again from the partition task"
            )
        added = {
            "number": of.number,
            "token": token,
            "state": PENDING if outcome.published else HELD,
            "label": came.since,
            "input": came.input,
            "output": output,
            "work": work.root,
            "time": datetime.now(UTC).isoformat(timespec="microseconds"),
            "rows_in": of.rows,
            "rows_published": outcome.published,
            "rows_suppressed": outcome.suppressed,
            "rows_waiting": outcome.waits,
            "policies": came.policies,
            "signature": came.signature,
            **outcome.figures,
        }
        series_id = _series_id(connection, of.series)
        keep_terms(connection, of.series, job, types or {})
        night_id = _key(connection.execute(night.insert().values(series=series_id, **added)))
        for each in outcome.waiting:
            row = {"series": series_id, "night": night_id, **each._asdict()}
            connection.execute(waiting.insert().values(**row))
        _refuse_imbalance(connection, series_id, outcome.waits)
        if not outcome.published:
            _make_current(connection, series_id, night_id)
        elif persons is not None:
            signatures.note(connection, night_id, persons)


def conclude(token: str) -> bool:
    """Make the night of an attempt current, after its release was published; once is enough.

    The retry of one that was killed meanwhile does what is left.

    The people of the last release who are not in it are filed away before, each part in a
    transaction of its own, so that others, who take turns with it, need not wait for all of them.
    The last transaction files away whom these have not, or whose rows were lost meanwhile.

    False where the catalogue has no such night: a stale attempt took it back, or a backup of the
    time before was restored.
    """
    opened = catalogue.current()
    with opened.reading() as connection:
        found = _night(connection, token)
        is_pending = found is not None and found.state == PENDING
        parts = signatures.who_left(connection, found.series, found.id) if is_pending else []
    for part in _in_turns(opened, parts):
        with opened.writing() as connection:
            found = _night(connection, token)
            if found is None or found.state != PENDING:
                break
            signatures.file_away(connection, found.series, part)
    with opened.writing() as connection:
        found = _night(connection, token)
        if found is None:
            return False
        if found.state == PENDING:
            signatures.make_current(connection, found.series, found.id)
            connection.execute(night.update().where(night.c.id == found.id).values(state=PUBLISHED))
            if found.boundaries is not None:
                done = series.update().where(series.c.id == found.series)
                connection.execute(done.values(refit=False))
            _make_current(connection, found.series, found.id)
    return True


def _in_turns(opened: catalogue.Catalogue, parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The parts; in SQLite with time for others to write between them."""
    for number, part in enumerate(parts):
        if number and opened.is_sqlite:
            sleep(_PAUSE_S)
        yield part


def _night(connection: sa.Connection, token: str) -> Any:
    """The row of an attempt's night; None if there is none."""
    columns = night.c.id, night.c.series, night.c.boundaries, night.c.state
    return connection.execute(sa.select(*columns).where(night.c.token == token)).first()


def withdraw(token: str) -> None:
    """Take back the pending night of an attempt that did not publish."""
    with catalogue.current().writing() as connection:
        _take_back(connection, token)


def settle(job: Job) -> None:
    """Conclude or take back the pending night of the job's series, if there is one.

    Raises TimeoutError, which a retry may cure, while its run may still publish it; StorageError as
    :func:`check_new` if it is the job's own night, and published.
    """
    with catalogue.current().reading() as connection:
        pending = connection.execute(nights_of(series_name(job), pending=True)).all()
    for each in pending:
        state = publication.state_of(each.work, each.token, each.output)
        if state is publication.State.PUBLISHED:
            conclude(each.token)
        elif state is publication.State.PENDING:
            raise TimeoutError(
                f"series: the night {each.label} is being published by another run, whose working "
                f"files are {stores.shown(each.work)}; run again when that run is over; if it "
                "failed, clear its failed tasks or remove these files"
            )
        else:
            withdraw(each.token)
    check_new(job)


def refuse_forgotten(job: Job) -> None:
    """Raise StorageError if a release beside the job's is of a night that the catalogue has not.

    A backup that is older than the night was restored. So rows that waited then are in that
    release, and would be published twice.
    """
    output = output_of(job)
    with catalogue.current().reading() as connection:
        of_name = sa.select(night.c.output).join(series).where(series.c.name == series_name(job))
        known = {output, *connection.execute(of_name).scalars()}
    unknown = (each for each in outputs_beside(output) if each not in known)
    if forgotten := [each for each in unknown if "series" in (publish.report_of(each) or {})]:
        raise StorageError(
            f"series: {stores.shown(forgotten[-1])} is one of {len(forgotten)} release(s) of "
            "nights that the catalogue does not have: a backup from before them was restored, or "
            "this is another catalogue; name the right one; or remove these releases, if nobody "
            "has read them, and run their drops again; or begin another series with another output"
        )


def _take_back(connection: sa.Connection, token: str) -> None:
    found = sa.select(night.c.id).where(night.c.token == token, night.c.state == PENDING)
    connection.execute(waiting.delete().where(waiting.c.night.in_(found)))
    signatures.withdraw(connection, found)
    connection.execute(night.delete().where(night.c.id.in_(found)))


def _make_current(connection: sa.Connection, series_id: int, night_id: int) -> None:
    """The rows that wait are those of this night."""
    others = waiting.c.series == series_id, waiting.c.night != night_id
    connection.execute(waiting.delete().where(*others))


def _refuse_again(connection: sa.Connection, name: str, output: str) -> None:
    columns = night.c.output, night.c.label, night.c.state
    for noted in connection.execute(nights_of(name).with_only_columns(*columns)):
        if not is_same_night(noted.output, output):
            continue
        raise StorageError(
            f"output: the night {noted.label} is in the series already ({noted.state}), and its "
            "rows would be published twice; deliver new or corrected rows as the drop of another "
            "day"
        )


def _refuse_other_name(connection: sa.Connection, name: str) -> None:
    """Raise JobError if a series is at the same place that calls its store otherwise."""
    has_night = sa.exists().where(night.c.series == series.c.id)
    for other in connection.scalars(sa.select(series.c.name).where(has_night)):
        if other != name and is_one_series(other, name):
            raise JobError(
                f"output: this is the place of the series {stores.shown(other)}, whose nights "
                "name the store or its connection otherwise; write the output as they do"
            )


def _refuse_imbalance(connection: sa.Connection, series_id: int, waits: int) -> None:
    """Raise StorageError unless each row of all drops was published, suppressed, or waits."""
    sums = [
        sa.func.sum(column)
        for column in (night.c.rows_in, night.c.rows_published, night.c.rows_suppressed)
    ]
    came, published, suppressed = map(
        int, connection.execute(sa.select(*sums).where(night.c.series == series_id)).one()
    )
    if came != published + suppressed + waits:
        raise StorageError(
            f"series: {came} rows came in all its nights, but {published} were published, "
            f"{suppressed} suppressed and {waits} wait; nothing is published; restore the "
            "catalogue and the waiting rows from backups of the same time, or begin another series "
            "with another output"
        )


def _series_id(connection: sa.Connection, name: str) -> int:
    found = connection.execute(sa.select(series.c.id).where(series.c.name == name)).scalar()
    if found is not None:
        return int(found)
    return _key(connection.execute(series.insert().values(name=name, terms="{}")))


def _key(inserted: sa.CursorResult[Any]) -> int:
    """The number that the database gave to a row."""
    (key,) = cast("tuple[int]", inserted.inserted_primary_key)
    return key
