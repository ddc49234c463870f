"""The persons of a series whose nights are released together, read and written in bulk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import sqlalchemy as sa
from numpy.typing import NDArray

from mondrian_ops.catalogue.tables import night_persons, person, sensitive_value, series

__all__ = [
    "Known",
    "classes_in",
    "known",
    "left",
    "make_current",
    "note",
    "packed",
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
    columns = person.c.hash, person.c.night, person.c.class_of, person.c.place, person.c.common
    of_series = sa.select(*columns).join(series).where(series.c.name == name)
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
    found = sa.select(person.c.hash, person.c.common).join(series).where(series.c.name == name)
    by_bits: dict[bytes, list[int]] = {}
    persons = {}
    for key, common in connection.execute(found):
        bits = bytes(common)
        if bits not in by_bits:
            number = int.from_bytes(bits, "little")
            by_bits[bits] = [value for i, value in enumerate(hashes) if number >> i & 1]
        persons[key] = by_bits[bits]
    return persons


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
    connection.execute(night_persons.delete().where(night_persons.c.night.in_(nights)))


def make_current(connection: sa.Connection, series_id: int, night_id: int, number: int) -> None:
    """Make the persons of a night current, if it has any noted; once is enough.

    Who was in which class is kept with the night, for a later check of all nights.
    """
    noted = sa.select(night_persons.c.content).where(night_persons.c.night == night_id)
    content = connection.execute(noted).scalar()
    if content is None:
        return
    persons = pa.ipc.open_stream(content).read_all()
    if "common" not in persons.column_names:  # they are current
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
    persons = persons.drop_columns(["published"]).sort_by("hash")
    for part in _parts(np.arange(persons.num_rows)):
        table = persons.slice(int(part[0]), len(part))
        hashes = table["hash"].to_pylist()
        mine = person.c.series == series_id, person.c.hash.in_(hashes)
        connection.execute(person.delete().where(*mine))
        same = {"series": series_id, "night": number}
        connection.execute(person.insert(), [{**row, **same} for row in table.to_pylist()])
    of_night = night_persons.update().where(night_persons.c.night == night_id)
    connection.execute(of_night.values(content=kept))


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
