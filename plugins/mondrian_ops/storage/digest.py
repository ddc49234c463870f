"""Digests of files: of one that lies on a store, and of one while it is written."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Protocol

from mondrian_ops.storage.locations import is_local, local_path
from mondrian_ops.storage.remote import open_stream, store_errors

__all__ = ["DigestingSink", "digest_of"]


class _Sink(Protocol):
    def write(self, data: bytes) -> object: ...

    def flush(self) -> None: ...


class DigestingSink:
    """A file to write that knows the digest of what was written; closing it is the owner's."""

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
        """Hand on what is buffered."""
        self._sink.flush()

    def close(self) -> None:
        """Nothing: the file beneath stays open."""

    @property
    def digest(self) -> str:
        """The digest so far, as :func:`digest_of` gives it for the file."""
        return self._digest.hexdigest()


def digest_of(url: str) -> str:
    """The SHA-256 of a file's content, in hexadecimal; raises FileNotFoundError."""
    if is_local(url):
        with Path(local_path(url)).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    with store_errors(url), open_stream(url) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
