"""The releases of the catalogue: what became of a task group in a run, and its report."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from mondrian_ops.catalogue.tables import document, release
from mondrian_ops.report.document import JSON_NAME, Report, json_content
from mondrian_ops.report.json_reading import ReportError
from mondrian_ops.report.outcome import PUBLISHED
from mondrian_ops.stores.dataset_name import dataset_name

FRONTIER = "frontier"
"""The state of an entry that is no release, but the figures of a frontier."""

_ID_BYTES = 16


def id_of(key: bytes, *names: str | int) -> str:
    """The id of these names, always the same; only who has the key can compute it."""
    named = json.dumps(names).encode()
    return hashlib.blake2b(named, key=key, digest_size=_ID_BYTES, person=b"release").hexdigest()


def find(
    connection: sa.Connection, entry_id: str, name: str = ""
) -> tuple[Mapping[str, Any] | None, bytes | None]:
    """The entry with an id, and its document with a ``name``; None where there is none."""
    row = connection.execute(release.select().where(release.c.id == entry_id)).mappings()
    entry = row.one_or_none()
    of_it = sa.select(document.c.content).where(
        document.c.release == entry_id, document.c.name == name
    )
    return None if entry is None else dict(entry), connection.execute(of_it).scalar()


def keep(
    connection: sa.Connection, entry: Mapping[str, Any], documents: Mapping[str, bytes]
) -> None:
    """Keep a release and its documents, in place of an earlier one with its id.

    :param entry: the columns of the table, without those that follow from others.
    """
    dataset = entry["dataset"]
    series = dataset_name(dataset)
    derived = {
        "series": series,
        "searched": f"{dataset}\n{series}".casefold(),
        "input_series": dataset_name(entry["input"]),
    }
    connection.execute(document.delete().where(document.c.release == entry["id"]))
    connection.execute(release.delete().where(release.c.id == entry["id"]))
    connection.execute(release.insert().values({**entry, **derived}))
    for name, content in documents.items():
        values = {"release": entry["id"], "name": name, "content": content}
        connection.execute(document.insert().values(values))


def keep_reported(
    connection: sa.Connection, entry: Mapping[str, Any], report: Mapping[str, Any]
) -> None:
    """Keep a release by its report, from which its state, reason and figures in the list follow.

    :param entry: as for :func:`keep`, without these.

    Raises ReportError where the report does not say what became of the release.
    """
    read = Report.of(report)
    if read.outcome is None:
        raise ReportError("the report does not say what became of the release")
    outcome = {"state": read.outcome.state, "reason": read.outcome.reason or None}
    documents = {JSON_NAME: json_content(report)}
    keep(connection, {**entry, **read.overview(), **outcome}, documents)


def keep_aside(connection: sa.Connection, key: bytes, entry_id: str) -> None:
    """Give the published release of a cleared run an entry of its own: it is still there."""
    is_it = sa.and_(release.c.id == entry_id, release.c.state == PUBLISHED)
    published = connection.execute(release.select().where(is_it)).mappings().one_or_none()
    if published is None:
        return
    other = id_of(key, entry_id, published["time"])
    connection.execute(release.insert().values({**published, "id": other}))
    of_it = document.update().where(document.c.release == entry_id)
    connection.execute(of_it.values(release=other))
