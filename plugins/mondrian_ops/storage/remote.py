"""What lies on a remote store, and its errors as Python's own."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mondrian_ops.storage.locations import filesystem, is_s3, joined, name_of, shown

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs as pa_fs

__all__ = ["Entry", "entries", "entry", "open_file", "open_stream", "own_error", "store_errors"]

_READ_AHEAD = 1 << 20
_S3_MISSING = (
    "AWS Error NO_SUCH_BUCKET",
    "AWS Error NO_SUCH_KEY",
    "AWS Error RESOURCE_NOT_FOUND",
    "not found. To create buckets",
)


@dataclass(frozen=True)
class Entry:
    """A file or directory: where it is, its bytes, a text that changes with its size or time."""

    url: str
    is_directory: bool
    bytes: int
    stamp: str

    @property
    def name(self) -> str:
        """The last name of its location."""
        return name_of(self.url)


def entry(url: str) -> Entry | None:
    """What is there, if anything."""
    import pyarrow.fs as pa_fs

    store, path = filesystem(url)
    with store_errors(url):
        info = store.get_file_info(path)
    return None if info.type == pa_fs.FileType.NotFound else _entry(url, info)


def entries(url: str) -> list[Entry]:
    """What a directory holds, by name; raises FileNotFoundError where there is none."""
    import pyarrow.fs as pa_fs

    store, path = filesystem(url)
    with store_errors(url):
        infos = store.get_file_info(pa_fs.FileSelector(path))
    found = [_entry(joined(url, info.base_name), info) for info in infos]
    return sorted(found, key=lambda each: each.url)


def _entry(url: str, info: pa_fs.FileInfo) -> Entry:
    import pyarrow.fs as pa_fs

    is_directory = info.type == pa_fs.FileType.Directory
    moment = info.mtime_ns
    if moment is not None and is_s3(url):
        moment //= 10**9  # a listing may be more precise than the answer about one object
    return Entry(url, is_directory, info.size or 0, f"{info.size}-{moment}")


def open_file(url: str) -> pa.NativeFile:
    """A file to read here and there in; raises FileNotFoundError, PermissionError."""
    store, path = filesystem(url)
    with store_errors(url):
        return store.open_input_file(path)


def open_stream(url: str) -> pa.NativeFile:
    """A file to read from its start, a megabyte ahead; raises as :func:`open_file` does."""
    store, path = filesystem(url)
    with store_errors(url):
        return store.open_input_stream(path, compression=None, buffer_size=_READ_AHEAD)


@contextmanager
def store_errors(url: str) -> Iterator[None]:
    """Raise what a store says without an error number as the OSError that it is."""
    try:
        yield
    except OSError as error:
        raise own_error(error, url) or error from None


def own_error(error: OSError, url: str) -> OSError | None:
    """An error of the machine or the store, not of the file's content; None if it is of that.

    S3's have no number, and say what they are in their text.
    """
    if error.errno is not None:
        return error
    text = str(error)
    if "AWS Error ACCESS_DENIED" in text or "HTTP status 403" in text:
        return PermissionError(errno.EACCES, os.strerror(errno.EACCES), shown(url))
    if any(each in text for each in _S3_MISSING) or isinstance(error, FileNotFoundError):
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown(url))
    if "AWS Error" in text:
        return OSError(errno.EIO, text, shown(url))
    return None
