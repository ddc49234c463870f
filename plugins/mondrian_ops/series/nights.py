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
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

import pyarrow as pa
import sqlalchemy as sa

from mondrian_ops import catalogue, storage
from mondrian_ops.catalogue import persons as of_persons
from mondrian_ops.catalogue import publication
from mondrian_ops.catalogue.tables import night, series, waiting
from mondrian_ops.core.dataset_name import dataset_name, dates_in
from mondrian_ops.core.errors import InputError, JobError, StorageError
from mondrian_ops.core.job import Job
from mondrian_ops.core.series_options import Series
from mondrian_ops.engines.handover import Night

__all__ = [
    "Current",
    "Outcome",
    "Waiting",
    "WithRelease",
    "ask_to_refit",
    "boundaries_of",
    "check_new",
    "conclude",
    "current",
    "files",
    "held",
    "intend",
    "name_of_series",
    "names",
    "nights_with_releases",
    "outputs_beside",
    "refuse_forgotten",
    "refuse_other_types",
    "series_name",
    "settle",
    "was_held",
    "withdraw",
]

_TYPES = "types"
_PENDING, _PUBLISHED, _HELD = "pending", "published", "held"


class Waiting(NamedTuple):
    """Some rows that wait: they first came in the night ``origin``."""

    origin: int
    rows: int
    file: str


class Current(NamedTuple):
    """The state of a series: the number of its last night, and the rows that wait.

    ``boundaries``: those that its nights share, as `SeriesBoundaries` writes them; ``refit``: a
    person asked for new ones.
    """

    last: int
    waiting: Sequence[Waiting]
    boundaries: Mapping[str, Any] | None = None
    refit: bool = False


class WithRelease(NamedTuple):
    """A night that is not held, as the catalogue has it; ``rows`` are those of its release."""

    id: int
    number: int
    label: str
    output: str
    token: str
    rows: int
    is_pending: bool


class Outcome(NamedTuple):
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


def series_name(job: Job) -> str:
    """The name of the job's series: its output without dates.

    Raises JobError where no date is in the output.
    """
    output = _output(job)
    if not dates_in(output):
        raise JobError(
            "output: a series tells its nights apart by the date in it, and there is none in "
            f"{storage.shown(str(job.output))}; add one, such as out/people/2025-06-01"
        )
    return dataset_name(output)


def check_new(job: Job) -> None:
    """Raise StorageError if the job's night is in its series already, before any row is read.

    Raises JobError if the nights before had another of :func:`_terms`, or the output has no date.
    """
    name = series_name(job)
    with catalogue.current().reading() as connection:
        _refuse_other_terms(connection, name, job)
        _refuse_again(connection, name, _label(job))


def refuse_other_types(name: str, types: Mapping[str, str]) -> None:
    """Raise InputError where a column of a drop has another type than in the nights before."""
    with catalogue.current().reading() as connection:
        noted = connection.execute(sa.select(series.c.terms).where(series.c.name == name)).scalar()
    before = json.loads(noted or "{}").get(_TYPES, {})
    for column, type_ in types.items():
        if before.get(column, type_) != type_:
            raise InputError(
                f"column {column!r}: {type_}, but {before[column]} in the nights before, so nobody "
                f"would be recognized by it; deliver it as {before[column]}, or begin another "
                "series with another output"
            )


def current(name: str) -> Current:
    """The state of a series."""
    with catalogue.current().reading() as connection:
        last = connection.execute(_nights(name).order_by(night.c.number.desc())).first()
        if last is None:
            return Current(0, [])
        found = sa.select(waiting.c.origin, waiting.c.rows, waiting.c.file)
        of_last = found.where(waiting.c.night == last.id).order_by(waiting.c.origin)
        waits = [Waiting(*row) for row in connection.execute(of_last)]
        fitted = _nights(name).where(night.c.boundaries.is_not(None))
        fitting = connection.execute(fitted.order_by(night.c.number.desc())).first()
        refit = connection.execute(sa.select(series.c.refit).where(series.c.name == name)).scalar()
        boundaries = None if fitting is None else json.loads(fitting.boundaries)
        return Current(last.number, waits, boundaries, bool(refit))


def boundaries_of(release: str) -> Mapping[str, Any] | None:
    """The boundaries that held for a release, as JSON; None where the catalogue has none."""
    output = _place(release)
    with catalogue.current().reading() as connection:
        nights_of = _nights(dataset_name(output))
        found = connection.execute(nights_of.where(night.c.output == output)).first()
        if found is None:
            return None
        fitted = nights_of.where(night.c.boundaries.is_not(None), night.c.number <= found.number)
        fitting = connection.execute(fitted.order_by(night.c.number.desc())).first()
    return None if fitting is None else cast("Mapping[str, Any]", json.loads(fitting.boundaries))


def nights_with_releases(job: Job, output: str) -> list[WithRelease]:
    """The nights of a series that have a release, in order; ``output``: that of any of them.

    A night that is pending may have none yet.

    Raises StorageError where the catalogue has no such series, JobError if its nights had another
    of :func:`_terms` than the job.
    """
    name = name_of_series(output)
    columns = (night.c.id, night.c.number, night.c.label, night.c.output, night.c.token)
    of_series = sa.select(*columns, night.c.rows_published, night.c.state == _PENDING).join(series)
    not_held = of_series.where(series.c.name == name, night.c.state != _HELD)
    with catalogue.current().reading() as connection:
        _refuse_other_terms(connection, name, job)
        found = connection.execute(not_held.order_by(night.c.number)).all()
    if not found:
        raise _no_series(output)
    return [WithRelease(*row) for row in found]


def name_of_series(output: str) -> str:
    """The name of the series of an output, which may be relative."""
    return dataset_name(_place(output))


def ask_to_refit(output: str) -> None:
    """Have the next night of a series fit new boundaries; ``output``: that of any of its nights.

    Raises StorageError where the catalogue has no such series.
    """
    name = name_of_series(output)
    with catalogue.current().writing() as connection:
        asked = series.update().where(series.c.name == name).values(refit=True)
        if not connection.execute(asked).rowcount:
            raise _no_series(output)


def _no_series(output: str) -> StorageError:
    return StorageError(
        f"series: the catalogue has none with the output {storage.shown(output)}; give that of one "
        "of its nights, and name the catalogue that they are in"
    )


def intend(
    of: Night,
    job: Job,
    work: storage.WorkDir,
    outcome: Outcome,
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
    token = work.token
    with catalogue.current().writing() as connection:
        _take_back(connection, token)
        if connection.execute(sa.select(night.c.id).where(night.c.token == token)).first():
            return
        _refuse_other_terms(connection, of.series, job)
        _refuse_again(connection, of.series, _label(job))
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
            "state": _PENDING if outcome.published else _HELD,
            "label": _label(job),
            "output": _output(job),
            "work": work.root,
            "time": datetime.now(UTC).isoformat(timespec="microseconds"),
            "rows_in": of.rows,
            "rows_published": outcome.published,
            "rows_suppressed": outcome.suppressed,
            "rows_waiting": outcome.waits,
            **outcome.figures,
        }
        series_id = _series_id(connection, of.series, job)
        _keep_types(connection, series_id, types or {})
        night_id = _key(connection.execute(night.insert().values(series=series_id, **added)))
        for each in outcome.waiting:
            row = {"series": series_id, "night": night_id, **each._asdict()}
            connection.execute(waiting.insert().values(**row))
        _refuse_imbalance(connection, series_id, outcome.waits)
        if not outcome.published:
            _make_current(connection, series_id, night_id)
        elif persons is not None:
            of_persons.note(connection, night_id, persons)


def conclude(token: str) -> bool:
    """Make the night of an attempt current, after its release was published; once is enough.

    False where the catalogue has no such night: a stale attempt took it back, or a backup of the
    time before was restored.
    """
    with catalogue.current().writing() as connection:
        found = connection.execute(
            sa.select(
                night.c.id, night.c.series, night.c.number, night.c.boundaries, night.c.state
            ).where(night.c.token == token)
        ).first()
        if found is None or found.state != _PENDING:
            return found is not None
        connection.execute(night.update().where(night.c.id == found.id).values(state=_PUBLISHED))
        if found.boundaries is not None:
            done = series.update().where(series.c.id == found.series)
            connection.execute(done.values(refit=False))
        of_persons.make_current(connection, found.series, found.id, found.number)
        _make_current(connection, found.series, found.id)
        return True


def withdraw(token: str) -> None:
    """Take back the pending night of an attempt that did not publish."""
    with catalogue.current().writing() as connection:
        _take_back(connection, token)


def _take_back(connection: sa.Connection, token: str) -> None:
    found = sa.select(night.c.id).where(night.c.token == token, night.c.state == _PENDING)
    connection.execute(waiting.delete().where(waiting.c.night.in_(found)))
    of_persons.withdraw(connection, found)
    connection.execute(night.delete().where(night.c.id.in_(found)))


def was_held(token: str) -> bool:
    """Whether the night of this attempt is over, without a release."""
    with catalogue.current().reading() as connection:
        state = sa.select(night.c.state).where(night.c.token == token)
        return bool(connection.execute(state).scalar() == _HELD)


def held(outputs: Iterable[str]) -> dict[str, str]:
    """Those of some outputs whose nights are over without a release, each with its time."""
    found = {}
    with catalogue.current().reading() as connection:
        for output in outputs:
            mine = night.c.output == _place(output), night.c.state == _HELD
            time = connection.execute(sa.select(night.c.time).where(*mine)).scalar()
            if time is not None:
                found[output] = str(time)
    return found


def names() -> list[str]:
    """The names of all series."""
    with catalogue.current().reading() as connection:
        return list(connection.execute(sa.select(series.c.name)).scalars())


def refuse_forgotten(job: Job) -> None:
    """Raise StorageError if a release beside the job's is of a night that the catalogue has not.

    A backup that is older than the night was restored. So rows that waited then are in that
    release, and would be published twice.
    """
    output = _output(job)
    with catalogue.current().reading() as connection:
        of_name = sa.select(night.c.output).join(series).where(series.c.name == series_name(job))
        known = {output, *connection.execute(of_name).scalars()}
    unknown = [each for each in outputs_beside(output) if each not in known]
    if forgotten := sorted(filter(_is_of_series, unknown)):
        raise StorageError(
            f"series: {storage.shown(forgotten[-1])} is one of {len(forgotten)} release(s) of "
            "nights that the catalogue does not have: a backup from before them was restored, or "
            "this is another catalogue; name the right one, or withdraw these releases and deliver "
            "their drops again, or begin another series with another output"
        )


def outputs_beside(output: str) -> list[str]:
    """What lies beside an output under the name of its series, the output included."""
    output = _place(output)
    above, name = output.rpartition("/")[0], dataset_name(output)
    beside = [storage.joined(above, each) for each in _names_in(above)]
    return sorted(each for each in beside if dataset_name(each) == name)


def _names_in(directory: str) -> Iterable[str]:
    try:
        return storage.names_in(directory)
    except FileNotFoundError:
        return ()


def _is_of_series(release: str) -> bool:
    """Whether there is a release, by its report one of a series."""
    try:
        report = json.loads(storage.read_file(storage.joined(release, "_report.json")))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    return isinstance(report, dict) and "series" in report


def files() -> set[str]:
    """The files of rows that wait, and those that will wait after a pending night."""
    with catalogue.current().reading() as connection:
        return set(connection.execute(sa.select(waiting.c.file)).scalars())


def settle(job: Job) -> None:
    """Conclude or take back the pending night of the job's series, if there is one.

    Raises TimeoutError, which a retry may cure, while its run may still publish it; StorageError as
    :func:`check_new` if it is the job's own night, and published.
    """
    with catalogue.current().reading() as connection:
        pending = connection.execute(_nights(series_name(job), pending=True)).all()
    for each in pending:
        state = publication.state_of(each.work, each.token, each.output)
        if state is publication.State.PUBLISHED:
            conclude(each.token)
        elif state is publication.State.PENDING:
            raise TimeoutError(
                f"series: the night {each.label} is being published by another run, whose working "
                f"files are {storage.shown(each.work)}; run again when that run is over; if it "
                "failed, clear its failed tasks or remove these files"
            )
        else:
            withdraw(each.token)
    check_new(job)


def _make_current(connection: sa.Connection, series_id: int, night_id: int) -> None:
    """The rows that wait are those of this night."""
    others = waiting.c.series == series_id, waiting.c.night != night_id
    connection.execute(waiting.delete().where(*others))


def _refuse_other_terms(connection: sa.Connection, name: str, job: Job) -> None:
    """Raise JobError where a term of the job is not that of the nights before."""
    noted = connection.execute(sa.select(series.c.terms).where(series.c.name == name)).scalar()
    if noted is None:
        return
    before: dict[str, Any] = json.loads(noted)
    for option, value in _terms(job).items():
        if before.get(option) != value:
            raise JobError(
                f"{option}: {_in_words(value)}, but {_in_words(before.get(option))} in the nights "
                "before, whose promise would end; change it back, or begin another series with "
                "another output"
            )


def _in_words(value: object) -> str:
    return "not set" if value is None else str(value)


def _refuse_again(connection: sa.Connection, name: str, label: str) -> None:
    state = connection.execute(_nights(name).where(night.c.label == label)).first()
    if state is not None:
        raise StorageError(
            f"output: the night {label} is in the series already ({state.state}), and its rows "
            "would be published twice; deliver new or corrected rows as the drop of another day"
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
            "catalogue and the waiting rows of one moment, or begin another series"
        )


def _nights(name: str, pending: bool = False) -> sa.Select[tuple[object, ...]]:
    """The nights of a series that are pending, or those that are not."""
    is_pending = night.c.state == _PENDING if pending else night.c.state != _PENDING
    return sa.select(night).join(series).where(series.c.name == name, is_pending)


def _series_id(connection: sa.Connection, name: str, job: Job) -> int:
    found = connection.execute(sa.select(series.c.id).where(series.c.name == name)).scalar()
    if found is not None:
        return int(found)
    terms = json.dumps(_terms(job))
    return _key(connection.execute(series.insert().values(name=name, terms=terms)))


def _keep_types(connection: sa.Connection, series_id: int, types: Mapping[str, str]) -> None:
    """Note the types of columns that had no values before."""
    mine = series.c.id == series_id
    terms = json.loads(connection.execute(sa.select(series.c.terms).where(mine)).scalar_one())
    known = terms.get(_TYPES, {})
    if types.keys() - known.keys():
        terms[_TYPES] = {**types, **known}
        connection.execute(series.update().where(mine).values(terms=json.dumps(terms)))


def _key(inserted: sa.CursorResult[Any]) -> int:
    """The number that the database gave to a row."""
    (key,) = cast("tuple[int]", inserted.inserted_primary_key)
    return key


def _terms(job: Job) -> dict[str, Any]:
    """The options that all nights of a series must share, since its promise is about all of them.

    What tells persons and their values apart counts only where persons are followed.
    """
    options = job.series or Series()
    terms: dict[str, Any] = {"series.kind": options.kind, "series.protect": options.protect}
    if options.protect != "intersection":
        return terms
    return {
        **terms,
        "entity_id": job.entity_id,
        "sensitive": ", ".join(job.sensitive),
        "missing_sensitive": job.missing_sensitive,
    }


def _label(job: Job) -> str:
    """What tells the job's night from the others of its series: the dates in its output."""
    return dates_in(_output(job))


def _output(job: Job) -> str:
    return _place(str(job.output))


def _place(output: str) -> str:
    """The output as another process finds it."""
    return str(Path(storage.local_path(output)).resolve()) if storage.is_local(output) else output
