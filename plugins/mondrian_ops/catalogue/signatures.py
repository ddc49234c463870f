"""The persons of a series whose nights are released together, read and written in bulk.

Most people of a night were in the night before. So the persons of the last release are an Arrow
stream beside that night, and only those who are in an earlier release only have a row each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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
from mondrian_ops.errors import StorageError

_AT_ONCE = 20_000
_PIECE = 1_000_000  # persons: some 30 MB; PostgreSQL takes no value of more than 250 MB

Ints = NDArray[np.int64]


class Known(NamedTuple):
    """What is known of some persons, one entry each.

    ``is_known`` (persons,) bool; ``class_of`` (persons,) int64, the class in the last release, -1
    for who is not in it; ``place`` (persons,) int64, a keyed hash of the quasi-identifiers there;
    ``common`` (persons, words) uint64, as in the table ``person``; 0 for who is not known.
    ``signature`` (persons, words): the signature, likewise; 0 for all where the series has none.
    """

    is_known: NDArray[np.bool_]
    class_of: Ints
    place: Ints
    common: NDArray[np.uint64]
    signature: NDArray[np.uint64]


def values(connection: sa.Connection, name: str) -> list[int]:
    """The hashes of the sensitive values of a series, in the order of their codes."""
    found = sa.select(sensitive_value.c.hash).join(series).where(series.c.name == name)
    return list(connection.execute(found.order_by(sensitive_value.c.code)).scalars())


def known(
    connection: sa.Connection, name: str, hashes: Ints, words: int, *, signed: bool = False
) -> Known:
    """What is known of the persons with these ``hashes`` (persons,), in ``words`` of values.

    ``signed``: the persons of the series have signatures, which follow on what is common.
    """
    distinct, rows = np.unique(hashes, return_inverse=True)
    count = len(distinct)
    is_known, class_of, place = np.zeros(count, np.bool_), np.full(count, -1), np.zeros(count, int)
    common = np.zeros((count, words * (1 + signed)), "<u8")
    series_id = _id(connection, name)
    last = _last(connection, series_id)
    if last is not None:
        keys = last["hash"].to_numpy()
        _, at, of = np.intersect1d(distinct, keys, return_indices=True)
        is_known[at] = True
        class_of[at] = np.unique(last["published"], return_inverse=True)[1][of]
        place[at] = last["place"].to_numpy()[of]
        common[at] = _words(last["common"].take(of).to_pylist(), words, signed)
    earlier = sa.select(person.c.hash, person.c.common).where(person.c.series == series_id)
    for part in _parts(distinct[~is_known].tolist()):
        found = connection.execute(earlier.where(person.c.hash.in_(part))).all()
        at = np.searchsorted(distinct, np.array([key for key, _ in found], np.int64))
        is_known[at] = True
        common[at] = _words([bits for _, bits in found], words, signed)
    common = common[rows].astype(np.uint64)
    signature = common[:, words:] if signed else np.zeros_like(common)
    return Known(is_known[rows], class_of[rows], place[rows], common[:, :words], signature)


def _words(bits: Sequence[bytes], words: int, signed: bool = False) -> NDArray[np.uint64]:
    """Values of persons as (persons, words) uint64; raises StorageError for more than that.

    Those of ``signed`` persons are as many words of what is common, then of their signatures.
    """
    if signed:
        halves = [(each[: len(each) // 2], each[len(each) // 2 :]) for each in map(bytes, bits)]
        both = [_words([half[at] for half in halves], words) for at in (0, 1)]
        return np.hstack(both)
    padded = b"".join(bytes(each).ljust(8 * words, b"\0") for each in bits)
    if len(padded) != 8 * words * len(bits):
        raise StorageError(
            "catalogue: persons have more common values than the series has; restore a backup of "
            "it, or begin another series"
        )
    return np.frombuffer(padded, "<u8").reshape(-1, words)


def left(connection: sa.Connection, name: str, *, signed: bool = False) -> dict[int, list[int]]:
    """The hashes of the sensitive values left for each person of a series, by the person's hash.

    ``signed``: as for :func:`known`.
    """
    series_id = _id(connection, name)
    earlier = sa.select(person.c.hash, person.c.common).where(person.c.series == series_id)
    bits_of = {key: bytes(bits) for key, bits in connection.execute(earlier)}
    last = _last(connection, series_id)
    if last is not None:
        bits_of |= zip(last["hash"].to_pylist(), last["common"].to_pylist(), strict=True)
    hashes = values(connection, name)
    numbers = {
        bits: int.from_bytes(bits[: len(bits) // (1 + signed)], "little")
        for bits in {*bits_of.values()}
    }
    by_bits = {
        bits: [value for code, value in enumerate(hashes) if number >> code & 1]
        for bits, number in numbers.items()
    }
    return {key: by_bits[bits] for key, bits in bits_of.items()}


def classes_in(connection: sa.Connection, night_id: int) -> dict[int, int] | None:
    """The class of each person in the release of a night, both as hashes; None if not kept."""
    table = _noted(connection, night_id)
    if table is None:
        return None
    return dict(zip(table["hash"].to_pylist(), table["published"].to_pylist(), strict=True))


def to_table(
    hashes: Ints,
    published: Ints,
    place: Ints,
    common: NDArray[np.uint64],
    new_values: Sequence[int],
) -> pa.Table:
    """The persons of a night, with the values that the series had not before (as metadata).

    ``published``: a hash of what is published of the person's class. The persons are sorted by it,
    and not kept in the order of the release: the n-th hash would be that of the n-th row, and
    somebody who has both would need no key.
    """
    order = np.lexsort([hashes, published])
    hashes, published, place = (each[order] for each in (hashes, published, place))
    words = np.ascontiguousarray(common[order].astype("<u8"))
    packed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(8 * words.shape[1]), len(words), [None, pa.py_buffer(words)]
    )
    numbers = {"hash": hashes, "published": published, "place": place}
    table = pa.table({**numbers, "common": packed})
    return table.replace_schema_metadata({"values": ",".join(map(str, new_values))})


def note(connection: sa.Connection, night_id: int, persons: pa.Table) -> None:
    """Keep the persons of a night, in place of those that were noted before."""
    connection.execute(night_persons.delete().where(night_persons.c.night == night_id))
    for first in range(0, max(1, persons.num_rows), _PIECE):
        content = packed(persons.slice(first, _PIECE))
        piece = {"night": night_id, "first": first, "content": content}
        connection.execute(night_persons.insert().values(piece))


def withdraw(connection: sa.Connection, nights: sa.Select[Any]) -> None:
    """Forget the persons of nights that do not become current."""
    connection.execute(night_persons.delete().where(night_persons.c.night.in_(nights)))


def who_left(connection: sa.Connection, series_id: int, night_id: int) -> list[pa.Table]:
    """The persons of the last release who are not in a pending night, in parts, sorted."""
    tonight = _noted(connection, night_id)
    last = None if tonight is None else _last(connection, series_id)
    if tonight is None or last is None:
        return []
    stay = pc.is_in(last["hash"], tonight["hash"])
    gone = last.select(["hash", "common"]).filter(pc.invert(stay)).sort_by("hash")
    return [gone.slice(start, _AT_ONCE) for start in range(0, gone.num_rows, _AT_ONCE)]


def file_away(connection: sa.Connection, series_id: int, part: pa.Table) -> None:
    """Write what is left for a part of :func:`who_left`, as often as it takes.

    As long as they are in the last release, that one counts. So others need not wait for all parts.
    """
    mine = person.c.series == series_id, person.c.hash.in_(part["hash"].to_pylist())
    connection.execute(person.delete().where(*mine))
    rows = [{**row, "series": series_id} for row in part.to_pylist()]
    connection.execute(person.insert(), rows)


def _is_filed(connection: sa.Connection, series_id: int, part: pa.Table) -> bool:
    """Whether all persons of a part of :func:`who_left` are filed away, with what is left."""
    hashes, common = part["hash"].to_pylist(), part["common"].to_pylist()
    mine = person.c.series == series_id, person.c.hash.in_(hashes)
    found = connection.execute(sa.select(person.c.hash, person.c.common).where(*mine))
    filed = {key: bytes(bits) for key, bits in found}
    return filed == dict(zip(hashes, common, strict=True))


def make_current(connection: sa.Connection, series_id: int, night_id: int) -> None:
    """Have a pending night be the last release of its series, if its persons are noted.

    Those of the release before who are not in it are filed away, unless they are. Who was in which
    class stays with each night, for a later check of all. New values become those of the series.
    """
    persons = _noted(connection, night_id)
    if persons is None:
        return
    for part in who_left(connection, series_id, night_id):
        if not _is_filed(connection, series_id, part):
            file_away(connection, series_id, part)
    count = sa.select(sa.func.count()).where(sensitive_value.c.series == series_id)
    first = int(connection.execute(count.select_from(sensitive_value)).scalar_one())
    added = [int(each) for each in persons.schema.metadata[b"values"].decode().split(",") if each]
    if added:
        rows = [
            {"series": series_id, "code": first + i, "hash": each} for i, each in enumerate(added)
        ]
        connection.execute(sensitive_value.insert(), rows)
    last, last_night = _last(connection, series_id), _last_night(connection, series_id)
    if last is not None and last_night is not None:
        note(connection, last_night, last.select(["hash", "published"]))


def _id(connection: sa.Connection, name: str) -> int | None:
    """The id of a series; None if there is none."""
    return connection.execute(sa.select(series.c.id).where(series.c.name == name)).scalar()


def _last(connection: sa.Connection, series_id: int | None) -> pa.Table | None:
    """The persons of the last release of a series, as :func:`to_table`; None if there is none.

    Raises StorageError where the catalogue has lost them.
    """
    last = _last_night(connection, series_id)
    persons = None if last is None else _noted(connection, last)
    if last is not None and (persons is None or "common" not in persons.column_names):
        raise StorageError(
            "catalogue: it has lost the persons of the last release of the series; restore a "
            "backup of it, or begin another series"
        )
    return persons


def _last_night(connection: sa.Connection, series_id: int | None) -> int | None:
    """The last night of a series that has a release, and is not pending."""
    nights = sa.select(night.c.id).where(night.c.series == series_id, night.c.state != PENDING)
    released = nights.where(night.c.rows_published > 0)
    return connection.execute(released.order_by(night.c.number.desc()).limit(1)).scalar()


def _noted(connection: sa.Connection, night_id: int) -> pa.Table | None:
    """The persons of a night; None if it has none noted."""
    noted = sa.select(night_persons.c.content).where(night_persons.c.night == night_id)
    pieces = connection.execute(noted.order_by(night_persons.c.first)).scalars().all()
    tables = [pa.ipc.open_stream(each).read_all() for each in pieces]
    return pa.concat_tables(tables) if tables else None


def packed(table: pa.Table) -> bytes:
    """A table as the catalogue keeps it: a compressed Arrow stream."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _parts(hashes: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(hashes), _AT_ONCE):
        yield hashes[start : start + _AT_ONCE]
