"""The archive of reports: the outcome of each run and its report, kept for people to look at.

::

    LOCATION/index/0000001-….jsonl        one entry, as a line of JSON
    LOCATION/index/0000032-….jsonl        a segment: the entries of the files that it replaces
    LOCATION/reports/ID/_report.json      the files of an entry
    LOCATION/key                          32 random bytes, the secret key of the ids

Every change of state is a new file of the index; no file is written twice, or by two writers. When
many have gathered, the process that keeps an entry rewrites them as one segment, and only then
removes them. So an entry may occur twice, but is never lost, even if a process is killed or two
compact the index at once. Of several entries with the same id the latest counts.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

from mondrian_ops.core.errors import StorageError
from mondrian_ops.storage.discovery import lies_in
from mondrian_ops.storage.documents import json_value
from mondrian_ops.storage.files import (
    make_parent,
    names_in,
    read_file,
    remove_file,
    write_file,
    write_once,
)
from mondrian_ops.storage.locations import is_local, joined, local_path, shown

__all__ = ["Entry", "ReportArchive"]

Entry = Mapping[str, Any]
"""A small flat JSON value; ``id`` and ``time`` (ISO 8601, UTC) are required."""

LOOSE = 32
"""How many entries with a file of their own gather before they become a segment."""

_INDEX, _REPORTS, _KEY = "index", "reports", "key"
_ID_BYTES, _KEY_BYTES = 16, 32
_INDEX_NAME = re.compile(r"(\d{7,})-[0-9a-f]{32}\.jsonl")
_ID = re.compile(r"[0-9a-f]{32}")
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_READERS = 8
_MAX_LISTINGS = 10

_log = logging.getLogger(__name__)


class ReportArchive:
    """The archive of reports at a location: a path or URL of any store.

    Threads may share it. It caches the files of the index, which never change.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._read: dict[str, list[Entry]] = {}
        self._lock = Lock()

    def id_of(self, *names: str | int) -> str:
        """The id that this archive gives to these names, always the same.

        Only the archive's key, which is made when it is first read, allows computing an id, or
        finding its names.

        Raises StorageError if the file of the key is invalid; OSError if the key can neither be
        read nor made.
        """
        named = json.dumps(names).encode()
        return hashlib.blake2b(named, key=self._key(), digest_size=_ID_BYTES).hexdigest()

    def keep(self, entry: Entry, files: Mapping[str, bytes]) -> None:
        """Keep an entry and its files, in place of an earlier entry with its id.

        The files are written first, so an entry that is listed has them.

        Raises StorageError for an invalid id or name; OSError if writing fails.
        """
        paths = {name: self._path(entry["id"], name) for name in files}
        for name, content in files.items():
            _write(paths[name], content)
        self._add([{**entry, "files": sorted(files)}])
        self._compact()

    def entries(self) -> list[Entry]:
        """The latest entry of each id, newest first."""
        with self._lock:
            newest = _newest(self._all_entries())
        return sorted(newest.values(), key=lambda entry: (entry["time"], entry["id"]), reverse=True)

    def file(self, entry_id: str, name: str) -> bytes:
        """A file of an entry; raises FileNotFoundError.

        Raises StorageError for an id or name that is invalid, or leads out of the archive.
        """
        return read_file(self._path(entry_id, name))

    def _key(self) -> bytes:
        path = self._inside(_KEY)
        try:
            key = read_file(path)
        except FileNotFoundError:
            new = os.urandom(_KEY_BYTES)
            _in_directory(path, lambda: write_once(path, new, _key_mode(path)))
            key = read_file(path)
        if len(key) != _KEY_BYTES:
            raise StorageError(
                f"archive of reports: {shown(path)} is not a key of {_KEY_BYTES} bytes; remove "
                "it: a new one is made, and existing entries keep their ids"
            )
        return key

    def _path(self, entry_id: str, name: str) -> str:
        if not (_ID.fullmatch(entry_id) and _FILE_NAME.fullmatch(name)):
            raise StorageError(
                "archive of reports: this is not the name of a file in it; the id of an entry "
                "has 32 hexadecimal digits, and a file name no slash"
            )
        return self._inside(_REPORTS, entry_id, name)

    def _inside(self, *names: str) -> str:
        """A location in the archive; raises StorageError if a symbolic link leads out of it."""
        path = joined(self.url, *names)
        if is_local(path) and not lies_in(path, self.url):
            raise StorageError(
                f"{shown(path)}: is a link that leads out of the archive of reports; remove it"
            )
        return path

    def _all_entries(self) -> list[Entry]:
        """Every entry of the index, perhaps several times.

        A listing may miss both a file and the segment that replaces it meanwhile; so the index is
        listed until it stays the same.
        """
        by_file: dict[str, list[Entry]] = {}
        before: set[str] | None = None
        for _ in range(_MAX_LISTINGS):
            names = set(self._names())
            by_file |= self._entries_of(names - by_file.keys())
            if names == before:
                break
            before = names
        self._read = {name: entries for name, entries in by_file.items() if name in names}
        return [entry for entries in by_file.values() for entry in entries]

    def _names(self) -> list[str]:
        """The files of the index, fewest entries first."""
        try:
            names = names_in(self._inside(_INDEX))
        except FileNotFoundError:
            return []
        return sorted(filter(_INDEX_NAME.fullmatch, names), key=_count)

    def _entries_of(self, names: Iterable[str]) -> dict[str, list[Entry]]:
        """The entries by file of the index: none of a damaged one; a vanished file is left out."""
        cached = {name: self._read[name] for name in names if name in self._read}
        missing = [name for name in names if name not in cached]
        with ThreadPoolExecutor(_READERS) as readers:
            read = dict(zip(missing, readers.map(self._read_entries, missing), strict=True))
        return cached | {name: entries for name, entries in read.items() if entries is not None}

    def _read_entries(self, name: str) -> list[Entry] | None:
        try:
            content = read_file(self._inside(_INDEX, name))
            entries = [json_value(line) for line in content.splitlines()]
        except FileNotFoundError:  # a segment has replaced it
            return None
        except (StorageError, ValueError):
            entries = [None]
        if not all(map(_is_entry, entries)):
            place = shown(joined(self.url, _INDEX, name))
            _log.warning("%s: damaged; its contents are not shown", place)
            return []
        return entries

    def _add(self, entries: Sequence[Entry]) -> None:
        name = f"{len(entries):07d}-{uuid.uuid4().hex}.jsonl"
        lines = (json.dumps(entry, allow_nan=False) + "\n" for entry in entries)
        _write(self._inside(_INDEX, name), "".join(lines).encode())

    def _compact(self) -> None:
        """Rewrite the loose entries, and the segments that are no larger, as one segment.

        Segments about double in size, so they are few and each entry is seldom rewritten.
        """
        names = self._names()
        loose = sum(_count(name) == 1 for name in names)
        if loose < LOOSE:
            return
        chosen, entries = names[:loose], loose
        for name in names[loose:]:
            if _count(name) > entries:
                break
            chosen.append(name)
            entries += _count(name)
        by_file = self._entries_of(chosen)
        newest = _newest(entry for held in by_file.values() for entry in held)
        if newest:
            self._add(list(newest.values()))
        for name, held in by_file.items():
            if held:  # a damaged file stays, for somebody to look into
                remove_file(joined(self.url, _INDEX, name))


def _newest(entries: Iterable[Entry]) -> dict[str, Entry]:
    newest: dict[str, Entry] = {}
    for entry in entries:
        other = newest.setdefault(entry["id"], entry)
        if entry["time"] > other["time"]:
            newest[entry["id"]] = entry
    return newest


def _count(name: str) -> int:
    return int(name.partition("-")[0])


def _is_entry(value: object) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("id"), str)
        and _ID.fullmatch(value["id"]) is not None
        and isinstance(value.get("time"), str)
    )


def _key_mode(path: str) -> int:
    """The mode of a local key: only users who may write entries beside it may read it."""
    if not is_local(path):
        return 0o600
    directory = Path(local_path(path)).parent.stat().st_mode
    return 0o600 | (directory & 0o022) << 1


def _write(url: str, content: bytes) -> None:
    _in_directory(url, lambda: write_file(url, content))


def _in_directory(url: str, write: Callable[[], None]) -> None:
    """Call ``write``; if the directory of the location is missing, make it first."""
    try:
        write()
    except FileNotFoundError:
        make_parent(url)
        write()
