"""Find files of waiting rows that no night needs, and remove them: what killed nights have left."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from mondrian_ops import storage
from mondrian_ops.core.errors import MondrianOpsError
from mondrian_ops.series import nights, waiting
from mondrian_ops.storage.access_policy import WAITING
from mondrian_ops.storage.discovery import data_file
from mondrian_ops.storage.files import remove_file
from mondrian_ops.storage.sweeping import Swept, directories_below

__all__ = ["sweep"]

_AT_LEAST = timedelta(hours=1)


def sweep(folder: str, keep: timedelta) -> Iterator[Swept]:
    """Remove the files below ``folder`` that no night needs; yields what became of each.

    Rows that wait are never removed. A file goes if the catalogue knows its series, no night that
    is current or pending has it, and it has not changed for the time ``keep``, at least an hour: a
    night writes its file before the catalogue knows of it.
    """
    keep = max(keep, _AT_LEAST)
    for directory in directories_below(folder, WAITING.__eq__):
        known = {waiting.directory_of(name).rpartition("/")[2] for name in nights.names()}
        needed = {file.rpartition("/")[2] for file in nights.files()}
        for name in storage.names_in(directory):
            if name not in known:
                yield Swept(storage.joined(directory, name), "kept", "of another catalogue")
                continue
            yield from _swept(storage.joined(directory, name), needed, keep)


def _swept(directory: str, needed: set[str], keep: timedelta) -> Iterator[Swept]:
    for name in storage.names_in(directory):
        if name in needed:
            continue
        file = storage.joined(directory, name)
        try:
            age = datetime.now(UTC) - datetime.fromtimestamp(data_file(file).changed / 1e9, UTC)
            if age > keep:
                remove_file(file)
            state = "removed" if age > keep else "kept"
            yield Swept(file, state, f"unchanged for {age / timedelta(hours=1):.1f} hours")
        except FileNotFoundError:  # its night is current meanwhile
            continue
        except (PermissionError, MondrianOpsError) as error:
            yield Swept(file, "failed", str(error))
