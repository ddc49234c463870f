"""The ledger of releases: records published releases, to find people who are in several of them.

::

    LOCATION/key                 32 random bytes, the secret key of the hashes of persons
    LOCATION/releases/ID.json    one entry: counts and hashes, no value
    LOCATION/releases/ID.sure    marks the entry of a release that was published

The directory is private (mode 0700, the key 0600) where the store has modes. Whoever can read it
can find out whether somebody they know is in a release; without the key nobody can.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

from mondrian_ops.core.errors import JobError, StorageError
from mondrian_ops.core.sketch import Sketch
from mondrian_ops.storage.access_policy import check_location
from mondrian_ops.storage.discovery import lies_in, would_be_read
from mondrian_ops.storage.documents import json_value
from mondrian_ops.storage.files import (
    make_parent,
    make_private,
    names_in,
    read_file,
    remove_file,
    write_file,
    write_once,
)
from mondrian_ops.storage.locations import joined, shown

__all__ = ["Ledger", "LedgerContent", "check_ledger"]

Entry = Mapping[str, Any]
"""A JSON value; ``id`` names its file."""

_KEY, _RELEASES = "key", "releases"
_KEY_BYTES = 32
_ENTRY, _SURE = ".json", ".sure"
_READERS = 8
_TEXTS = ("id", "run", "token", "work", "output", "time", "dataset", "key")
_OTHERS = ("by", "sketch")


class LedgerContent(NamedTuple):
    """The entries of a ledger, in no order, and its damaged files."""

    entries: list[Entry]
    damaged: list[str]


def check_ledger(ledger: str | None, input_url: str, output: str) -> None:
    """Raise JobError if the access policy does not allow a ledger, or its place is impossible.

    It must lie neither in the output, nor around it, nor in the input.
    """
    if ledger is None:
        return
    check_location("ledger", ledger, writing=True)
    remedy = "choose a directory outside both, such as one beside the output"
    if lies_in(ledger, output) or lies_in(output, ledger):
        raise JobError(
            f"ledger: {shown(ledger)} and the output {shown(output)} are the same directory, or "
            f"one lies in the other; {remedy}"
        )
    if would_be_read(joined(ledger, _RELEASES, "0.json"), input_url):
        raise JobError(
            f"ledger: {shown(ledger)} lies inside the input and would be read as data; {remedy}"
        )


class Ledger:
    """The ledger at a location: a path or URL of any store."""

    def __init__(self, url: str) -> None:
        self.url = url

    def key(self) -> bytes:
        """The secret key, made when it is first read.

        Processes that make it concurrently on a remote store may get different keys, of which the
        last stays (S3 has no other way): read it again before a publication.

        Raises StorageError if the file is no key, or is missing while there are entries.
        """
        path = joined(self.url, _KEY)
        try:
            key = read_file(path)
        except FileNotFoundError:
            key = self._first_key(path)
        if len(key) != _KEY_BYTES:
            raise StorageError(
                f"ledger: {shown(path)} is not a key of {_KEY_BYTES} bytes; restore it, or name "
                "another location"
            )
        return key

    def _first_key(self, path: str) -> bytes:
        """The key, made unless there are entries of another key."""
        entries = sum(map(_is_entry, self._names()))
        if not entries:
            with suppress(FileExistsError):
                make_private(self.url)
            write_once(path, os.urandom(_KEY_BYTES))
        try:
            return read_file(path)  # of whichever writer won
        except FileNotFoundError:
            raise StorageError(
                f"ledger: {shown(path)} is missing, and without it the {entries} release(s) "
                "recorded there cannot be searched; restore it, or name another location"
            ) from None

    @staticmethod
    def key_id(key: bytes) -> str:
        """A name of a key, which does not disclose it: only entries of one key are comparable."""
        return hashlib.blake2b(b"id", key=key, digest_size=8).hexdigest()

    def write(self, entry: Entry) -> None:
        """Write an entry; do so before its release is published."""
        path = self._path(entry)
        content = json.dumps(entry, allow_nan=False).encode()
        try:
            write_file(path, content)
        except FileNotFoundError:
            make_parent(path)
            write_file(path, content)

    def mark_published(self, entry: Entry) -> None:
        """Record that the release of an entry was published.

        This is a second file, because a concurrent listing may miss a file that is being replaced.
        """
        write_file(self._path(entry, _SURE), b"published\n")

    def remove(self, entry: Entry) -> None:
        """Remove an entry; a missing one is no error."""
        remove_file(self._path(entry))

    def file_of(self, entry: Entry) -> str:
        """The file of an entry, as it may be shown."""
        return shown(self._path(entry))

    def _path(self, entry: Entry, ending: str = _ENTRY) -> str:
        return joined(self.url, _RELEASES, entry["id"] + ending)

    def read(self) -> LedgerContent:
        """All entries, each with whether its release was published (``sure``)."""
        names = self._names()
        with ThreadPoolExecutor(_READERS) as readers:
            contents = list(readers.map(self._read_file, filter(_is_entry, names)))
        entries = [entry for content in contents for entry in content.entries]
        return LedgerContent(
            [{**entry, "sure": entry["id"] + _SURE in names} for entry in entries],
            sorted(file for content in contents for file in content.damaged),
        )

    def _names(self) -> set[str]:
        try:
            return set(names_in(joined(self.url, _RELEASES)))
        except FileNotFoundError:
            return set()

    def _read_file(self, name: str) -> LedgerContent:
        path = joined(self.url, _RELEASES, name)
        try:
            entry = json_value(read_file(path))
        except FileNotFoundError:  # its release was refused meanwhile
            return LedgerContent([], [])
        except ValueError:
            entry = None
        if not _is_complete(entry):
            return LedgerContent([], [shown(path)])
        return LedgerContent([entry], [])


def _is_complete(entry: Any) -> bool:
    """Whether a value has all fields of an entry, of the right types."""
    if not isinstance(entry, dict) or not entry.keys() >= {*_TEXTS, *_OTHERS}:
        return False
    try:
        Sketch.from_json(entry["sketch"])
    except (ValueError, KeyError, TypeError):
        return False
    if not isinstance(entry["by"], list):
        return False
    return all(isinstance(text, str) for text in (*map(entry.get, _TEXTS), *entry["by"]))


def _is_entry(name: str) -> bool:
    return name.endswith(_ENTRY) and not name.startswith(".")
