"""Import what versions before the catalogue kept in files: archives of reports, and ledgers.

::

    REPORTS/index/….jsonl        entries, one a line; of several with one id the latest counts
    REPORTS/reports/ID/…         the documents of an entry
    LEDGER/key                   the 32 bytes that its persons are hashed with
    LEDGER/releases/ID.json      the people of a release, as a sketch
    LEDGER/releases/ID.sure      marks a release that was published

Both may be imported again: what the catalogue has already, or in a newer state, stays.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from mondrian_ops.catalogue import people, publication, releases, secret_key
from mondrian_ops.catalogue.database import Catalogue
from mondrian_ops.catalogue.tables import FIGURES, release
from mondrian_ops.catalogue.tables import publication as publications
from mondrian_ops.core.errors import StorageError
from mondrian_ops.core.sketch import Sketch
from mondrian_ops.storage.documents import json_value
from mondrian_ops.storage.files import names_in, read_file
from mondrian_ops.storage.locations import joined, shown

__all__ = ["Imported", "import_ledger", "import_reports"]

_AT_ONCE = 200
_ID = re.compile(r"[0-9a-f]{32}")
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_KEY_BYTES = 32


class Imported(NamedTuple):
    """How many entries were imported and were there already, and the damaged files."""

    imported: int
    known: int
    damaged: Sequence[str]


def import_reports(catalogue: Catalogue, url: str) -> Imported:
    """Import an archive of reports, a path or URL, with the ids that its entries have.

    Raises FileNotFoundError if there is none.
    """
    entries, damaged = _newest_entries(url)
    imported = 0
    for at in range(0, len(entries), _AT_ONCE):
        kept = [(entry, _documents(url, entry, damaged)) for entry in entries[at : at + _AT_ONCE]]
        with catalogue.writing() as connection:
            for entry, documents in kept:
                imported += _import_entry(connection, entry, documents)
    return Imported(imported, len(entries) - imported, damaged)


def _newest_entries(url: str) -> tuple[list[Mapping[str, Any]], list[str]]:
    index = joined(url, "index")
    newest: dict[str, Mapping[str, Any]] = {}
    damaged = []
    for name in sorted(names_in(index)):
        if not name.endswith(".jsonl"):
            continue
        try:
            entries = [json_value(line) for line in read_file(joined(index, name)).splitlines()]
        except ValueError:
            entries = [None]
        if not all(map(_is_entry, entries)):
            damaged.append(shown(joined(index, name)))
            continue
        for entry in entries:
            other = newest.setdefault(entry["id"], entry)
            if entry["time"] > other["time"]:
                newest[entry["id"]] = entry
    return list(newest.values()), damaged


def _is_entry(value: object) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("id"), str)
        and _ID.fullmatch(value["id"]) is not None
        and isinstance(value.get("time"), str)
    )


def _documents(url: str, entry: Mapping[str, Any], damaged: list[str]) -> dict[str, bytes]:
    names = entry.get("files")
    documents = {}
    for name in names if isinstance(names, list) else ():
        if not (isinstance(name, str) and _FILE_NAME.fullmatch(name)):
            continue
        path = joined(url, "reports", entry["id"], name)
        try:
            documents[name] = read_file(path)
        except FileNotFoundError:
            damaged.append(shown(path))
    return documents


def _import_entry(
    connection: sa.Connection, entry: Mapping[str, Any], documents: Mapping[str, bytes]
) -> bool:
    """Whether the entry was imported; not if the catalogue has it in this or a newer state."""
    time = connection.scalar(sa.select(release.c.time).where(release.c.id == entry["id"]))
    columns = _columns(entry)
    if time is not None and time >= columns["time"]:
        return False
    releases.keep(connection, columns, documents)
    return True


def _columns(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of an entry; a value of a wrong type counts as missing."""
    texts = ("dataset", "input", "dag_id", "run_id", "task_id", "algorithm", "engine")
    return {
        "id": entry["id"],
        "time": _time(entry["time"]),
        "state": _text(entry.get("state"))[:16],
        "reason": _text(entry.get("reason")) or None,
        "map_index": _index(entry.get("map_index")),
        **{name: _text(entry.get(name)) for name in texts},
        **{name: _number(entry.get(name)) for name in FIGURES},
    }


def _text(value: object) -> str:
    """A text that either database holds: PostgreSQL has no NUL."""
    if not isinstance(value, str):
        return ""
    return value.replace("\0", "\ufffd").encode(errors="replace").decode()


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:  # JSON holds integers of any length
        return None
    return number if math.isfinite(number) else None


def _index(value: object) -> int:
    return value if isinstance(value, int) and -1 <= value < 1 << 31 else -1


def _time(text: str) -> str:
    """A time as the catalogue writes it; what is none comes before all others."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = datetime.fromtimestamp(0, UTC)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def import_ledger(catalogue: Catalogue, url: str, population: str = "") -> Imported:
    """Import a ledger, a path or URL, and its key, which the catalogue uses from then on.

    :param population: whose people it has recorded, as jobs name it; empty for none.

    Raises FileNotFoundError if there is none; StorageError if it or the catalogue has another key.
    """
    catalogue.adopt(_ledger_key(url))
    folder = joined(url, "releases")
    names = names_in(folder)
    paths = {name: joined(folder, name) for name in sorted(names) if name.endswith(".json")}
    fingerprint = secret_key.fingerprint(catalogue.key)
    damaged, imported = [], 0
    by_token: dict[str, tuple[Mapping[str, Any], Sketch, bool]] = {}
    for name, path in paths.items():
        entry = _ledger_entry(path)
        if entry is None or entry["key"] != fingerprint:
            damaged.append(shown(path))
            continue
        is_sure = name.removesuffix(".json") + ".sure" in names
        if is_sure or entry["token"] not in by_token:
            by_token[entry["token"]] = entry, Sketch.from_json(entry["sketch"]), is_sure
    for entry, sketch, is_sure in by_token.values():
        with catalogue.writing() as connection:
            imported += _import_people(connection, entry, sketch, is_sure, population)
    return Imported(imported, len(by_token) - imported, damaged)


def _import_people(
    connection: sa.Connection,
    entry: Mapping[str, Any],
    sketch: Sketch,
    is_sure: bool,
    population: str,
) -> bool:
    """Whether the people were imported; not if the catalogue has them."""
    token = entry["token"]
    of_it = publications.c.scope == people.SCOPE, publications.c.token == token
    known = connection.scalar(sa.select(sa.func.count()).where(*of_it))
    if not known:
        intention = publication.intend(
            connection,
            people.SCOPE,
            token=token,
            work=entry["work"],
            output=entry["output"],
            time=_time(entry["time"]),
        )
        people.note(
            connection,
            intention,
            population=population,
            by=entry["by"],
            dataset=entry["dataset"],
            people=sketch,
        )
    if is_sure:
        connection.execute(publications.update().where(*of_it).values(published=True))
    return not known


def _ledger_key(url: str) -> bytes:
    path = joined(url, "key")
    key = read_file(path)
    if len(key) != _KEY_BYTES:
        raise StorageError(
            f"ledger: {shown(path)} is not a key of {_KEY_BYTES} bytes; restore it and import again"
        )
    return key


def _ledger_entry(path: str) -> Mapping[str, Any] | None:
    """An entry of a ledger; None if it is damaged."""
    try:
        entry = json_value(read_file(path))
        texts = [entry[name] for name in ("token", "work", "output", "time", "dataset", "key")]
        Sketch.from_json(entry["sketch"])
        by = entry["by"]
    except (ValueError, KeyError, TypeError):
        return None
    is_complete = isinstance(by, list) and all(isinstance(text, str) for text in (*texts, *by))
    return entry if is_complete else None
