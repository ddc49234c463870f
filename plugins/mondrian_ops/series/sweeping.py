"""Find files of waiting rows that no night needs, and remove them: what killed nights have left.

Rows may also wait for a night that never comes, because somebody removed `series` from a job, or
gave it another output. Nobody else would notice.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from mondrian_ops import catalogue, stores
from mondrian_ops.catalogue import tables
from mondrian_ops.errors import MondrianOpsError
from mondrian_ops.publish.sweeping import ANOTHERS, Swept, directories_below, is_anothers
from mondrian_ops.series import history, waiting
from mondrian_ops.stores.files import remove_file
from mondrian_ops.stores.locations import WAITING, name_of
from mondrian_ops.tables.discovery import data_file

_AT_LEAST = timedelta(hours=1)
_NIGHTS_COME = timedelta(days=30)
"""After so long without a night, rows that wait are forgotten."""


def sweep(folder: str, keep: timedelta) -> Iterator[Swept]:
    """Remove the files below ``folder`` that no night needs; yields what became of each.

    Rows that wait are never removed. A file goes if the catalogue knows its series, no night that
    is current or pending has it, and it has not changed for the time ``keep``, at least an hour: a
    night writes its file before the catalogue knows of it. Where rows wait, and the last night was
    a month ago, the directory is ``forgotten``. Another user's is ``kept``; a link is not followed
    but ``failed``, and stops nothing else.
    """
    keep = max(keep, _AT_LEAST)
    for directory in directories_below(folder, WAITING.__eq__):
        known = {waiting.name_of(name) for name in history.names()}
        forgotten = {waiting.name_of(name): reason for name, reason in _forgotten()}
        needed = {file.rpartition("/")[2] for file in history.files()}
        for series in _each_in(directory):
            if isinstance(series, Swept):
                yield series
                continue
            name = name_of(series)
            if name not in known:
                yield Swept(series, "kept", "of another catalogue")
                continue
            if name in forgotten:
                yield Swept(series, "forgotten", forgotten[name])
            for file in _each_in(series):
                if isinstance(file, Swept):
                    yield file
                elif name_of(file) not in needed:
                    yield from _swept(file, keep)


def _each_in(directory: str) -> list[str | Swept]:
    """What is in a directory; or what became of it, if it cannot be listed."""
    try:
        if is_anothers(directory):
            return [Swept(directory, "kept", ANOTHERS)]
        return [stores.joined(directory, name) for name in stores.names_in(directory)]
    except FileNotFoundError:  # gone meanwhile
        return []
    except (OSError, MondrianOpsError) as error:
        return [Swept(directory, "failed", str(error))]


def _forgotten() -> list[tuple[str, str]]:
    """The series whose rows wait although no night came for long, and what to tell of each."""
    before = (datetime.now(UTC) - _NIGHTS_COME).isoformat(timespec="microseconds")
    night = tables.night.c
    found = (
        sa.select(tables.series.c.name, night.output)
        .select_from(tables.waiting)
        .join(tables.night, tables.night.c.id == tables.waiting.c.night)
        .join(tables.series, tables.series.c.id == night.series)
        .where(night.state != tables.PENDING, night.time < before)
        .group_by(tables.series.c.name, night.output)
    )
    with catalogue.current().reading() as connection:
        return [
            (
                name,
                f"rows have waited since the night {stores.shown(output)}, and the series "
                f"has had no night for {_NIGHTS_COME.days} days; run its next night, or end the "
                "series (docs/operate.md, Run a series)",
            )
            for name, output in connection.execute(found)
        ]


def _swept(file: str, keep: timedelta) -> Iterator[Swept]:
    if not waiting.is_file_name(name_of(file)):
        yield Swept(file, "kept", "it has no name of a file of rows that wait")
        return
    try:
        age = datetime.now(UTC) - datetime.fromtimestamp(data_file(file).changed / 1e9, UTC)
        is_old = age > keep
        if is_old:
            remove_file(file)
        state = "removed" if is_old else "kept"
        yield Swept(file, state, f"unchanged for {age / timedelta(hours=1):.1f} hours")
    except FileNotFoundError:
        pass  # its night is current meanwhile
    except (OSError, MondrianOpsError) as error:
        yield Swept(file, "failed", str(error))
