"""The persons of a series whose nights are released together, read and written in bulk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import sqlalchemy as sa
from numpy.typing import NDArray

from mondrian_ops.catalogue.tables import (
    PENDING,
    night,
    night_persons,
    person,
    sensitive_value,
    series,
)

__all__ = [
    "Known",
    "classes_in",
    "known",
    "left",
    "make_current",
    "note",
    "packed",
    "parts",
    "remove_earlier",
    "stage",
    "to_table",
    "values",
    "withdraw",
]

_AT_ONCE = 10_000

Ints = NDArray[np.int64]


class Known(NamedTuple):
    """What is known of some persons, one entry each.

    ``is_known`` (persons,) bool; without it the others mean nothing: ``night``, ``class_of`` and
    ``place`` (persons,) int64, ``common`` (persons, words) uint64, as in the table ``person``.
    """

    is_known: NDArray[np.bool_]
    night: Ints
    class_of: Ints
    place: Ints
    common: NDArray[np.uint64]


def values(connection: sa.Connection, name: str) -> list[int]:
    """The hashes of the sensitive values of a series, in the order of their codes."""
    found = sa.select(sensitive_value.c.hash).join(series).where(series.c.name == name)
    return list(connection.execute(found.order_by(sensitive_value.c.code)).scalars())


def known(connection: sa.Connection, name: str, hashes: Ints, words: int) -> Known:
    """What is known of the persons with these ``hashes`` (persons,), in ``words`` of values."""
    distinct, rows = np.unique(hashes, return_inverse=True)
    of_series = _current(
        name, person.c.hash, person.c.night, person.c.class_of, person.c.place, person.c.common
    )
    is_known, common = np.zeros(len(distinct), np.bool_), np.zeros((len(distinct), words), "<u8")
    numbers = np.zeros((3, len(distinct)), np.int64)
    for part in _parts(np.arange(len(distinct))):
        wanted = person.c.hash.in_(distinct[part].tolist())
        found = connection.execute(of_series.where(wanted)).all()
        if not found:
            continue
        keys, *three, bits = zip(*found, strict=True)
        at = np.searchsorted(distinct, np.array(keys, np.int64))
        is_known[at] = True
        numbers[:, at] = three
        padded = b"".join(bytes(each).ljust(8 * words, b"\0") for each in bits)
        common[at] = np.frombuffer(padded, "<u8").reshape(-1, words)
    night, class_of, place = numbers[:, rows]
    return Known(is_known[rows], night, class_of, place, common[rows].astype(np.uint64))


def left(connection: sa.Connection, name: str) -> dict[int, list[int]]:
    """The hashes of the sensitive values left for each person of a series, by the person's hash."""
    hashes = values(connection, name)
    found = _current(name, person.c.hash, person.c.common)
    by_bits: dict[bytes, list[int]] = {}
    persons = {}
    for key, common in connection.execute(found):
        bits = bytes(common)
        if bits not in by_bits:
            number = int.from_bytes(bits, "little")
            by_bits[bits] = [value for i, value in enumerate(hashes) if number >> i & 1]
        persons[key] = by_bits[bits]
    return persons


def _current(name: str, *columns: sa.Column[Any]) -> sa.Select[Any]:
    """Rows of the persons of a series; of several rows of a person the last one counts."""
    of_night = sa.and_(night.c.series == person.c.series, night.c.number == person.c.night)
    found = sa.select(*columns).select_from(person.join(series).join(night, of_night))
    return found.where(series.c.name == name, night.c.state != PENDING).order_by(person.c.night)


def classes_in(connection: sa.Connection, night_id: int) -> dict[int, int] | None:
    """The class of each person in the release of a night, both as hashes; None if not kept."""
    found = sa.select(night_persons.c.content).where(night_persons.c.night == night_id)
    content = connection.execute(found).scalar()
    if content is None:
        return None
    table = pa.ipc.open_stream(content).read_all()
    return dict(zip(table["hash"].to_pylist(), table["published"].to_pylist(), strict=True))


def to_table(
    hashes: Ints,
    class_of: Ints,
    published: Ints,
    place: Ints,
    common: NDArray[np.uint64],
    new_values: Sequence[int],
) -> pa.Table:
    """The persons of a night, with the values that the series had not before (as metadata).

    ``published``: a hash of what is published of the person's class.
    """
    words = np.ascontiguousarray(common.astype("<u8"))
    packed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(8 * words.shape[1]), len(words), [None, pa.py_buffer(words)]
    )
    numbers = {"hash": hashes, "class_of": class_of, "published": published, "place": place}
    table = pa.table({**numbers, "common": packed})
    return table.replace_schema_metadata({"values": ",".join(map(str, new_values))})


def note(connection: sa.Connection, night_id: int, persons: pa.Table) -> None:
    """Keep the persons of a night that is pending."""
    connection.execute(night_persons.insert().values(night=night_id, content=packed(persons)))


def withdraw(connection: sa.Connection, nights: sa.Select[Any]) -> None:
    """Forget the persons of nights that do not become current."""
    of_nights = sa.select(night.c.series, night.c.number).where(night.c.id.in_(nights))
    for series_id, number in connection.execute(of_nights).all():
        mine = person.c.series == series_id, person.c.night == number
        connection.execute(person.delete().where(*mine))
    connection.execute(night_persons.delete().where(night_persons.c.night.in_(nights)))


def parts(connection: sa.Connection, night_id: int) -> list[pa.Table]:
    """The persons of a night, if it has any noted, in parts to :func:`stage` while it is pending.

    Those of a night that is current have only what :func:`remove_earlier` needs.
    """
    persons = _noted(connection, night_id)
    if persons is None:
        return []
    persons = persons.drop_columns(["published"]).sort_by("hash")
    return [persons.slice(start, _AT_ONCE) for start in range(0, persons.num_rows, _AT_ONCE)]


def stage(connection: sa.Connection, series_id: int, number: int, part: pa.Table) -> None:
    """Write a part of the persons of a pending night, as often as it takes.

    They count once the night is not pending any more. So others need not wait for all of them.
    """
    connection.execute(person.delete().where(*_among(series_id, part), person.c.night == number))
    same = {"series": series_id, "night": number}
    connection.execute(person.insert(), [{**row, **same} for row in part.to_pylist()])


def make_current(connection: sa.Connection, series_id: int, night_id: int) -> None:
    """Keep with a night who was in which class, for a later check of all nights; once is enough.

    Its values become those of the series. The persons are all staged.
    """
    persons = _noted(connection, night_id)
    if persons is None or "common" not in persons.column_names:
        return
    count = sa.select(sa.func.count()).where(sensitive_value.c.series == series_id)
    first = int(connection.execute(count.select_from(sensitive_value)).scalar() or 0)
    added = [int(each) for each in persons.schema.metadata[b"values"].decode().split(",") if each]
    if added:
        rows = [
            {"series": series_id, "code": first + i, "hash": each} for i, each in enumerate(added)
        ]
        connection.execute(sensitive_value.insert(), rows)
    kept = packed(persons.select(["hash", "published"]).sort_by("published"))
    of_night = night_persons.update().where(night_persons.c.night == night_id)
    connection.execute(of_night.values(content=kept))


def remove_earlier(connection: sa.Connection, series_id: int, number: int, part: pa.Table) -> None:
    """Remove the earlier rows of the persons in a part of a night that is not pending."""
    among = _among(series_id, part)
    of_night = sa.select(person.c.hash).where(*among, person.c.night == number)
    earlier = person.c.night < number, person.c.hash.in_(of_night)
    connection.execute(person.delete().where(*among, *earlier))


def _noted(connection: sa.Connection, night_id: int) -> pa.Table | None:
    """The persons of a night; None if it has none noted."""
    noted = sa.select(night_persons.c.content).where(night_persons.c.night == night_id)
    content = connection.execute(noted).scalar()
    if content is None:
        return None
    return pa.ipc.open_stream(content).read_all()


def _among(series_id: int, part: pa.Table) -> Sequence[sa.ColumnElement[bool]]:
    """The rows of a series between the first and the last person of a part."""
    first, last = part["hash"][0].as_py(), part["hash"][-1].as_py()
    return person.c.series == series_id, person.c.hash.between(first, last)


def packed(table: pa.Table) -> bytes:
    """A table as the catalogue keeps it: a compressed Arrow stream."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _parts(order: Ints) -> Iterator[Ints]:
    for start in range(0, len(order), _AT_ONCE):
        yield order[start : start + _AT_ONCE]
