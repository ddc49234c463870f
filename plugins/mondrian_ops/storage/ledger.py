"""The ledger of releases: which drops were published, to find people who are in several of them.

::

    LOCATION/key                 32 random bytes, the secret that entities are hashed with
    LOCATION/releases/ID.json    one entry; it tells counts and hashes, and no value

The directory is private (mode 0700, the key 0600) where the store knows modes. Who has it can find
out whether somebody they know is in a release; without the key nobody can.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

from mondrian_ops.core.errors import JobError, StorageError
from mondrian_ops.core.sketch import Sketch
from mondrian_ops.storage.allowed import check_given
from mondrian_ops.storage.documents import json_value
from mondrian_ops.storage.files import make_private, names_in, read_file, remove_file, write_file
from mondrian_ops.storage.keys import KEY_BYTES, make_key
from mondrian_ops.storage.locations import filesystem, joined, shown
from mondrian_ops.storage.nesting import lies_in, would_be_read

__all__ = ["Ledger", "Noted", "check_ledger"]

Entry = Mapping[str, Any]
"""A JSON value; ``id`` names its file."""

_KEY, _RELEASES = "key", "releases"
_ENTRY, _SURE = ".json", ".sure"
_READERS = 8
_TEXTS = ("id", "run", "token", "work", "output", "time", "dataset", "key")
_OTHERS = ("by", "sketch")


class Noted(NamedTuple):
    """What a ledger holds: its entries, in no order, and the files that are damaged."""

    entries: list[Entry]
    damaged: list[str]


def check_ledger(ledger: str | None, input_url: str, output: str) -> None:
    """Refuse a ledger where nothing could be published, or which would be read as data.

    Raises JobError where it is not allowed, is the output, lies in it or holds it, or lies in the
    input.
    """
    if ledger is None:
        return
    check_given("ledger", ledger, writing=True)
    remedy = "name a directory apart from both, such as one beside the output"
    if lies_in(ledger, output) or lies_in(output, ledger):
        raise JobError(
            f"ledger: {shown(ledger)} and the output {shown(output)} are, or lie, one in the "
            f"other; {remedy}"
        )
    if would_be_read(joined(ledger, _RELEASES, "0.json"), input_url):
        raise JobError(
            f"ledger: {shown(ledger)} lies in the input, and would be read with it; {remedy}"
        )


class Ledger:
    """The ledger at a location: a path or URL of any store."""

    def __init__(self, url: str) -> None:
        self.url = url

    def key(self) -> bytes:
        """The secret, made when it is first asked for.

        Of several who make it at once, those of a remote store may not all get the same: the last
        one's stays (S3 knows no other way), so who publishes asks for it again.

        Raises StorageError where what is there is no key, or it is gone and its entries are not.
        """
        path = joined(self.url, _KEY)
        try:
            found = read_file(path)
        except FileNotFoundError:
            found = self._first_key(path)
        if len(found) != KEY_BYTES:
            raise StorageError(
                f"ledger: {shown(path)} is no key of {KEY_BYTES} bytes; restore it, or name "
                "another location"
            )
        return found

    def _first_key(self, path: str) -> bytes:
        """The key, made where there is no entry that another one was made with."""
        entries = sum(map(_is_entry, self._names()))
        if not entries:
            self._make_key(path)
        try:
            return read_file(path)  # of whoever came first, or last (see key)
        except FileNotFoundError:
            raise StorageError(
                f"ledger: {shown(path)} is missing, and without it nobody can be found in the "
                f"{entries} release(s) noted there; restore it, or name another location"
            ) from None

    @staticmethod
    def key_id(key: bytes) -> str:
        """A name of a key that does not tell it: entries of another key cannot be compared."""
        return hashlib.blake2b(b"id", key=key, digest_size=8).hexdigest()

    def _make_key(self, path: str) -> None:
        with suppress(FileExistsError):
            make_private(self.url)
        make_key(path)

    def write(self, entry: Entry) -> None:
        """Keep a new entry, of a release that is not sure to be published."""
        path = self._path(entry)
        content = json.dumps(entry, allow_nan=False).encode()
        try:
            write_file(path, content)
        except FileNotFoundError:
            store, directory = filesystem(joined(self.url, _RELEASES))
            store.create_dir(directory, recursive=True)
            write_file(path, content)

    def make_sure(self, entry: Entry) -> None:
        """Note that the release of an entry was published.

        By a file of its own: a listing may miss one that is replaced while it is made.
        """
        write_file(self._path(entry, _SURE), b"published\n")

    def remove(self, entry: Entry) -> None:
        """Take an entry out; one that is missing is no error."""
        remove_file(self._path(entry))

    def file_of(self, entry: Entry) -> str:
        """The file of an entry, as people may see it."""
        return shown(self._path(entry))

    def _path(self, entry: Entry, ending: str = _ENTRY) -> str:
        return joined(self.url, _RELEASES, entry["id"] + ending)

    def noted(self) -> Noted:
        """All that is in it, each entry with whether it is ``sure``; what cannot be understood is
        damaged."""
        names = self._names()
        entries = filter(_is_entry, names)
        with ThreadPoolExecutor(_READERS) as readers:
            read = list(readers.map(self._read, entries))
        return Noted(
            [
                {**entry, "sure": entry["id"] + _SURE in names}
                for each in read
                for entry in each.entries
            ],
            sorted(file for each in read for file in each.damaged),
        )

    def _names(self) -> set[str]:
        try:
            return set(names_in(joined(self.url, _RELEASES)))
        except FileNotFoundError:
            return set()

    def _read(self, name: str) -> Noted:
        path = joined(self.url, _RELEASES, name)
        try:
            found = json_value(read_file(path))
        except FileNotFoundError:  # its release was refused meanwhile
            return Noted([], [])
        except ValueError:
            found = None
        return Noted([found], []) if _is_whole(found) else Noted([], [shown(path)])


def _is_whole(found: Any) -> bool:
    """Whether it has what every entry has."""
    if not isinstance(found, dict) or not found.keys() >= {*_TEXTS, *_OTHERS}:
        return False
    try:
        Sketch.from_json(found["sketch"])
    except (ValueError, KeyError, TypeError):
        return False
    if not isinstance(found["by"], list):
        return False
    return all(isinstance(text, str) for text in (*map(found.get, _TEXTS), *found["by"]))


def _is_entry(name: str) -> bool:
    return name.endswith(_ENTRY) and not name.startswith(".")
