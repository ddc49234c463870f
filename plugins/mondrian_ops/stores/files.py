"""Files and directories on any store: list, read, write as a whole, make private, remove.

Each function asks the store of the location. Errors are Python's own: an error that a store
describes by text alone is raised as the OSError with the number.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, TypeVar

from mondrian_ops.errors import InputError
from mondrian_ops.stores.locations import shown
from mondrian_ops.stores.store import FileInfo, NewFile, store_of

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
R = TypeVar("R")

_AT_ONCE = 16  # requests to a store; Arrow opens up to 25 connections to an S3


@contextmanager
def store_errors(url: str) -> Iterator[None]:
    """Raise an error of a store, which has no number, as the OSError that its text describes.

    An error without a number that passes is one of Arrow about the file's content.
    """
    with store_of(url).errors(url):
        yield


@contextmanager
def input_errors(url: str) -> Iterator[None]:
    """Raise InputError, which names it, if a file of the source is missing or unreadable."""
    try:
        with store_errors(url):
            yield
    except (FileNotFoundError, PermissionError) as error:
        raise unreadable(url, error) from None


def unreadable(url: str, error: OSError) -> InputError:
    """The InputError for a FileNotFoundError or PermissionError of a source's file."""
    if isinstance(error, FileNotFoundError):
        reason = "the file vanished; run again when nothing writes to `input` any more"
    else:
        reason = "permission denied; let this process read it"
    return InputError(f"{shown(url)}: {reason}")


# Listing


def file_info(url: str) -> FileInfo | None:
    """The file or directory at a location; None if there is nothing."""
    return store_of(url).info(url)


def exists(url: str) -> bool:
    """Whether a name exists, if only as a broken link; raises an error of the machine."""
    return store_of(url).exists(url)


def list_directory(url: str, hidden: bool = True) -> list[FileInfo]:
    """The content of a directory, sorted by name; raises FileNotFoundError if it is missing.

    Without ``hidden`` names that start with ``_`` or ``.`` are left out, as dataset readers do.
    """
    return store_of(url).list_directory(url, hidden)


def names_in(directory: str) -> dict[str, bool]:
    """The names in a directory, each with whether it is a directory; raises FileNotFoundError."""
    return store_of(directory).names(directory)


def last_change(directory: str) -> datetime:
    """When a file in a directory changed last, at any depth; the epoch if nothing is known."""
    import pyarrow.fs as pa_fs

    store, path = store_of(directory).arrow(directory)
    with store_errors(directory):
        infos = store.get_file_info(pa_fs.FileSelector(path, recursive=True))
        infos.append(store.get_file_info(path))
    latest = max((info.mtime_ns or 0 for info in infos), default=0)
    return datetime.fromtimestamp(max(latest, 0) / 10**9, UTC)


# Reading


def open_file(url: str) -> pa.NativeFile:
    """A file to read at any offset; raises as :func:`open_stream` does."""
    return store_of(url).open(url)


def open_stream(url: str) -> IO[bytes]:
    """A file to read from its start; raises FileNotFoundError, PermissionError.

    Raises StorageError for a local one that is no regular file.
    """
    return store_of(url).stream(url)


def read_file(url: str) -> bytes:
    """The content of a file; raises FileNotFoundError."""
    with store_errors(url), open_stream(url) as file:
        return bytes(file.read())


# Writing


def write_file(url: str, content: bytes, grows_in: str | None = None) -> None:
    """Write a file as a whole or not at all, replacing one that exists.

    ``grows_in``: as for :func:`new_file`. Raises FileNotFoundError if its directory is missing
    (object stores have no directories).
    """
    with new_file(url, grows_in=grows_in) as sink:
        sink.write(content)


@contextmanager
def new_file(
    url: str, durable: bool = False, grows_in: str | None = None, replace: bool = True
) -> Iterator[pa.NativeFile]:
    """The sink of a :func:`growing_file`."""
    with growing_file(url, durable, grows_in, replace) as file:
        yield file.sink


@contextmanager
def growing_file(
    url: str, durable: bool = False, grows_in: str | None = None, replace: bool = True
) -> Iterator[NewFile]:
    """A :class:`NewFile` to write, committed when the block ends, abandoned if that fails.

    ``grows_in``: the directory of the same local file system in which it grows.
    """
    file = store_of(url).new_file(url, grows_in)
    try:
        yield file
        file.commit(durable, replace)
    except BaseException:
        file.abandon()
        raise


# Directories


def make_private(url: str) -> None:
    """Make a directory that only this user may read, and the directories above it.

    Object stores have no such permission: whoever may read the bucket may read the directory.

    Raises FileExistsError, PermissionError, NotADirectoryError.
    """
    store_of(url).make_private(url)


def make_directory(url: str) -> None:
    """Make a directory in one that is there; raises FileExistsError, FileNotFoundError."""
    store_of(url).make_directory(url)


def remove_tree(url: str) -> None:
    """Remove a directory; it is no error if it is missing or something vanishes meanwhile.

    Files that a stale process adds meanwhile, such as an abandoned Spark task, are removed too.
    """
    store_of(url).remove_tree(url)


def remove_file(url: str) -> None:
    """Remove a file; a missing one is no error."""
    store_of(url).remove_file(url)


def remove_files(urls: Iterable[str]) -> None:
    """Remove files, several at once; missing ones are no error."""
    concurrently(remove_file, urls)


def concurrently(
    work: Callable[[T], R], items: Iterable[T], progress: Callable[[int], None] = lambda done: None
) -> list[R]:
    """``work``, which waits for a store, on every item, several at once; results in their order.

    ``progress`` is called with the number of results. The first exception, also one that it raises,
    cancels the rest.
    """
    results = []
    with closing(answers(work, items)) as answered:
        for result in answered:
            results.append(result)
            progress(len(results))
    return results


def answers(work: Callable[[T], R], items: Iterable[T]) -> Generator[R]:
    """As :func:`concurrently`, one result after the other. Closing it cancels the rest."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from pool.map(work, items)
