"""The content of a release: its parts, ``_SUCCESS``, which lists them, and their digests.

``_SUCCESS`` marks a complete release. It is a JSON value, ``{"token": …, "files": [{"name": …,
"bytes": …}, …]}``. Where a release cannot appear in one step (S3), its files are those
that this list names, and no others.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from mondrian_ops.stores.documents import json_value
from mondrian_ops.stores.files import concurrently, names_in, open_stream, read_file, store_errors
from mondrian_ops.stores.locations import joined

NAME = "_SUCCESS"
PART_PATTERN = "part-*.parquet"


class Manifest(NamedTuple):
    """``_SUCCESS``: the token of the attempt that published, and the names of the files."""

    token: str
    names: frozenset[str]


def build(token: str, files: Iterable[tuple[str, int]]) -> bytes:
    """The content of ``_SUCCESS`` for an attempt's token and the name and bytes of files."""
    listed = [{"name": name, "bytes": size} for name, size in files]
    return json.dumps({"token": token, "files": listed}, indent=1).encode() + b"\n"


def read(release: str) -> Manifest | None:
    """The manifest in a directory; None if there is none, or another program's."""
    try:
        value = json_value(read_file(joined(release, NAME)))
        token, names = value["token"], frozenset(file["name"] for file in value["files"])
    except (FileNotFoundError, NotADirectoryError, ValueError, LookupError, TypeError):
        return None
    return Manifest(token, names) if all(isinstance(name, str) for name in names) else None


def parts_among(names: Iterable[str]) -> list[str]:
    """Those of a directory's names that are parts of a release, sorted."""
    return sorted(name for name in names if fnmatch.fnmatchcase(name, PART_PATTERN))


def digest_of_parts(directory: str) -> str:
    """A digest of the names and contents of a release's parts.

    Nothing is decoded, so a change in a column that no check counts changes the digest. Raises
    FileNotFoundError if the directory, or a part listed in it, is missing.
    """
    names = parts_among(names_in(directory))
    digests = concurrently(digest_of, [joined(directory, name) for name in names])
    # JSON keeps apart what a line break in a name would join.
    content = json.dumps(list(zip(names, digests, strict=True)))
    return hashlib.sha256(content.encode()).hexdigest()


def digest_of(url: str) -> str:
    """The SHA-256 of a file's content, in hexadecimal; raises FileNotFoundError."""
    with store_errors(url), open_stream(url) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


class _Sink(Protocol):
    def write(self, data: bytes) -> object: ...

    def flush(self) -> None: ...


class DigestingSink:
    """Writes to ``sink`` and computes the digest of the content; the owner closes ``sink``."""

    closed = False

    def __init__(self, sink: _Sink) -> None:
        self._sink = sink
        self._digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        """Write ``data``; returns its length."""
        self._digest.update(data)
        self._sink.write(data)
        return len(data)

    def flush(self) -> None:
        """Flush ``sink``."""
        self._sink.flush()

    def close(self) -> None:
        """Do nothing."""

    @property
    def digest(self) -> str:
        """The digest so far, as :func:`digest_of` computes it for the file."""
        return self._digest.hexdigest()
