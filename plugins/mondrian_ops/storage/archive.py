"""The archive of releases: what became of each run, and its report, kept for people to look at.

::

    LOCATION/index/0000001-….jsonl        one entry, as a line of JSON
    LOCATION/index/0000032-….jsonl        a segment: the entries of files that it stands for
    LOCATION/reports/ID/_report.json      the files of an entry
    LOCATION/key                          32 random bytes, the secret that ids are made with

No file of the index is written twice, and none is shared: every change of state is a file of its
own. When many of them have gathered, whoever keeps an entry then rewrites them as one segment,
before it removes them; so whatever is killed, or compacts beside it, an entry may be there twice
and is never lost. Of entries with one id the latest counts.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

from mondrian_ops.core.errors import StorageError
from mondrian_ops.storage.documents import json_value
from mondrian_ops.storage.files import names_in, read_file, remove_file, write_file
from mondrian_ops.storage.keys import KEY_BYTES, make_key
from mondrian_ops.storage.locations import filesystem, is_local, joined, local_path, shown

__all__ = ["Archive", "Entry"]

Entry = Mapping[str, Any]
"""A small flat JSON value; ``id`` and ``time`` (ISO 8601, UTC) are required."""

LOOSE = 32
"""Entries with a file of their own that are let gather before they become a segment."""

_INDEX, _REPORTS, _KEY = "index", "reports", "key"
_ID_BYTES = 16
_INDEX_NAME = re.compile(r"(\d{7,})-[0-9a-f]{32}\.jsonl")
_ID = re.compile(r"[0-9a-f]{32}")
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_READERS = 8
_LOOKS = 10

_log = logging.getLogger(__name__)


class Archive:
    """The archive at a location: a path or URL of any store.

    Threads may share it. What it has read it keeps: files of the index never change.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._read: dict[str, list[Entry]] = {}
        self._lock = Lock()

    def id_of(self, *names: str | int) -> str:
        """The id for what has these names: always the same one, in this archive.

        Nobody can compute it, or find the names of an id, without the archive's key. That is made
        when it is first asked for (see :func:`make_key` for who make it at once).

        Raises StorageError where what is there is no key; OSError where it can neither be read nor
        made.
        """
        named = json.dumps(names).encode()
        return hashlib.blake2b(named, key=self._key(), digest_size=_ID_BYTES).hexdigest()

    def keep(self, entry: Entry, files: Mapping[str, bytes]) -> None:
        """Keep an entry in place of an earlier one with its id, and its files.

        An entry is seen only once its files are there.

        Raises StorageError for an id or a name that is none; OSError where it cannot be written.
        """
        paths = {name: self._path(entry["id"], name) for name in files}
        for name, content in files.items():
            _write(paths[name], content)
        self._add([{**entry, "files": sorted(files)}])
        self._compact()

    def entries(self) -> list[Entry]:
        """The latest entry of each id, newest first."""
        with self._lock:
            found = _newest(self._gathered())
        return sorted(found.values(), key=lambda entry: (entry["time"], entry["id"]), reverse=True)

    def file(self, entry_id: str, name: str) -> bytes:
        """A file of an entry; raises FileNotFoundError.

        Raises StorageError for an id or a name that is none, or leads out of the archive.
        """
        return read_file(self._path(entry_id, name))

    def _key(self) -> bytes:
        path = self._inside(_KEY)
        try:
            found = read_file(path)
        except FileNotFoundError:
            _in_directory(path, lambda: make_key(path, _mode_beside(path)))
            found = read_file(path)
        if len(found) != KEY_BYTES:
            raise StorageError(
                f"archive of reports: {shown(path)} is no key of {KEY_BYTES} bytes; remove it, and "
                "another is made: what was kept before keeps its id"
            )
        return found

    def _path(self, entry_id: str, name: str) -> str:
        if not (_ID.fullmatch(entry_id) and _FILE_NAME.fullmatch(name)):
            raise StorageError(
                "archive of reports: no such file can be there; an entry's id has 32 hexadecimal "
                "digits, and the name of a file no slash"
            )
        return self._inside(_REPORTS, entry_id, name)

    def _inside(self, *names: str) -> str:
        """What lies in the archive; raises StorageError where a symbolic link leads out of it."""
        path = joined(self.url, *names)
        if is_local(path) and not _is_below(path, self.url):
            raise StorageError(f"{shown(path)}: leads out of the archive of reports; remove it")
        return path

    def _gathered(self) -> list[Entry]:
        """Every entry of the index, some of them twice.

        A listing may miss a file that is removed and the segment that stands for it, if both
        happens while the directory is read; so it is read until it stays the same.
        """
        found: dict[str, list[Entry]] = {}
        before: set[str] | None = None
        for _ in range(_LOOKS):
            names = set(self._names())
            found |= self._entries_of(names - found.keys())
            if names == before:
                break
            before = names
        self._read = {name: entries for name, entries in found.items() if name in names}
        return [entry for entries in found.values() for entry in entries]

    def _names(self) -> list[str]:
        """The files of the index, those of fewest entries first."""
        try:
            names = names_in(self._inside(_INDEX))
        except FileNotFoundError:
            return []
        return sorted(filter(_INDEX_NAME.fullmatch, names), key=_count)

    def _entries_of(self, names: Iterable[str]) -> dict[str, list[Entry]]:
        """What files of the index hold: nothing, if damaged; those that are gone are left out."""
        known = {name: self._read[name] for name in names if name in self._read}
        missing = [name for name in names if name not in known]
        with ThreadPoolExecutor(_READERS) as readers:
            read = dict(zip(missing, readers.map(self._read_entries, missing), strict=True))
        return known | {name: entries for name, entries in read.items() if entries is not None}

    def _read_entries(self, name: str) -> list[Entry] | None:
        try:
            content = read_file(self._inside(_INDEX, name))
            found = [json_value(line) for line in content.splitlines()]
        except FileNotFoundError:  # a segment stands for it by now
            return None
        except (StorageError, ValueError):
            found = [None]
        if not all(map(_is_entry, found)):
            place = shown(joined(self.url, _INDEX, name))
            _log.warning("%s: damaged; what it held is not shown", place)
            return []
        return found

    def _add(self, entries: Sequence[Entry]) -> None:
        name = f"{len(entries):07d}-{uuid.uuid4().hex}.jsonl"
        lines = (json.dumps(entry, allow_nan=False) + "\n" for entry in entries)
        _write(self._inside(_INDEX, name), "".join(lines).encode())

    def _compact(self) -> None:
        """Rewrite the loose entries, with the segments that are no larger, as one segment.

        Segments grow by doubling, so there are few of them and each entry is seldom rewritten.
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
        found = self._entries_of(chosen)
        newest = _newest(entry for each in found.values() for entry in each)
        if newest:
            self._add(list(newest.values()))
        for name, held in found.items():
            if held:  # what is damaged is left for somebody to look into
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


def _is_below(path: str, root: str) -> bool:
    return Path(path).resolve().is_relative_to(Path(local_path(root)).resolve())


def _mode_beside(path: str) -> int:
    """The mode of a local key: who may keep entries beside it may read it, and nobody else."""
    if not is_local(path):
        return 0o600
    directory = Path(local_path(path)).parent.stat().st_mode
    return 0o600 | (directory & 0o022) << 1


def _write(url: str, content: bytes) -> None:
    """Write a file, and make the directory it lies in if that is missing."""
    _in_directory(url, lambda: write_file(url, content))


def _in_directory(url: str, write: Callable[[], None]) -> None:
    """Write something at a location, and make the directory it lies in if that is missing."""
    try:
        write()
    except FileNotFoundError:
        store, directory = filesystem(url.rpartition("/")[0])
        store.create_dir(directory, recursive=True)
        write()
