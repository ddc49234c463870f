"""Files and directories on any store: list, read, write as a whole, make private, remove.

Errors are Python's own: an error that S3 describes by text alone is raised as the OSError with the
number.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from mondrian_ops.errors import InputError
from mondrian_ops.stores import private_folders
from mondrian_ops.stores.locations import (
    filesystem,
    is_local,
    is_s3,
    joined,
    local_path,
    name_of,
    shown,
)
from mondrian_ops.stores.regular_files import (
    arrow_file,
    open_checked,
    open_regular,
    special,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs as pa_fs

    from mondrian_ops.stores.hdfs import Hdfs

T = TypeVar("T")
R = TypeVar("R")

_AT_ONCE = 16  # requests to a store; Arrow opens up to 25 connections to an S3
_COPY_BYTES = 8 << 20
_READ_AHEAD_BYTES = 1 << 20
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES})
_S3_MISSING = (
    "AWS Error NO_SUCH_BUCKET",
    "AWS Error NO_SUCH_KEY",
    "AWS Error RESOURCE_NOT_FOUND",
    "not found. To create buckets",
)


# Errors of remote stores


@contextmanager
def store_errors(url: str) -> Iterator[None]:
    """Raise an error of S3, which has no number, as the OSError that its text describes.

    An error without a number that passes is one of Arrow about the file's content.
    """
    try:
        yield
    except OSError as error:
        raise _numbered(error, url) from None


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


def _numbered(error: OSError, url: str) -> OSError:
    if error.errno is not None:
        return error
    text = str(error)
    if "AWS Error ACCESS_DENIED" in text or "HTTP status 403" in text:
        return PermissionError(errno.EACCES, os.strerror(errno.EACCES), shown(url))
    if any(mark in text for mark in _S3_MISSING) or isinstance(error, FileNotFoundError):
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown(url))
    if "AWS Error" in text:
        return OSError(errno.EIO, text, shown(url))
    return error


# Listing


@dataclass(frozen=True)
class FileInfo:
    """A file or directory on a store.

    Attributes:
        url: where it is.
        is_directory: whether it is a directory.
        bytes: its size.
        stamp: a text that changes with its size or time of modification.
        modified: the time of its modification, in nanoseconds; a program may have set it.
        changed: when it was written last, in nanoseconds, by the clock of the store.
        identity: the same for all names of one local file (links, hard links); None where a store
            does not tell.
        is_link: whether the name is that of a symbolic link, if it was found in a directory.
        special: what it is if it is neither a regular file nor a directory, such as "a socket".
    """

    url: str
    is_directory: bool
    bytes: int
    stamp: str
    modified: int
    changed: int
    identity: tuple[int, int] | None = None
    is_link: bool = False
    special: str = ""

    @property
    def name(self) -> str:
        """The last name of its location."""
        return name_of(self.url)


def exists(path: str | Path) -> bool:
    """Whether a local path exists, if only as a broken link; raises an error of the machine."""
    try:
        os.lstat(path)
    except OSError as error:
        if error.errno in _NOT_THERE:
            return False
        raise
    except ValueError:  # not a path at all
        return False
    return True


def file_info(url: str) -> FileInfo | None:
    """The file or directory at a remote location; None if there is nothing."""
    import pyarrow.fs as pa_fs

    store, path = filesystem(url)
    with store_errors(url):
        info = store.get_file_info(path)
    return None if info.type == pa_fs.FileType.NotFound else _info_of(url, info)


def local_info(path: str, is_link: bool = False) -> FileInfo:
    """The file or directory at a local path, links followed; raises FileNotFoundError."""
    status = private_folders.status(path)
    # A program can set the time of modification (mtime), but not that of the last change (ctime).
    modified, changed = status.st_mtime_ns, status.st_ctime_ns
    stamp = f"{status.st_size}-{modified}-{changed}"
    is_directory = stat.S_ISDIR(status.st_mode)
    identity = (status.st_dev, status.st_ino) if status.st_ino else None
    return FileInfo(
        path,
        is_directory,
        status.st_size,
        stamp,
        modified,
        changed,
        identity,
        is_link,
        special(status.st_mode),
    )


def list_directory(url: str, hidden: bool = True) -> list[FileInfo]:
    """The content of a directory, sorted by name; raises FileNotFoundError if it is missing.

    Without ``hidden`` names that start with ``_`` or ``.`` are left out, as dataset readers do.
    """
    if is_local(url):
        path = str(Path(local_path(url)))
        with private_folders.scanned(path) as scanned:
            found = {item.name: item.is_symlink() for item in scanned}
        return [
            local_info(os.path.join(path, name), is_link)
            for name, is_link in sorted(found.items())
            if hidden or not is_hidden(name)
        ]
    import pyarrow.fs as pa_fs

    store, path = filesystem(url)
    with store_errors(url):
        infos = store.get_file_info(pa_fs.FileSelector(path))
    items = [_info_of(joined(url, info.base_name), info) for info in infos]
    items = [item for item in items if hidden or not is_hidden(item.name)]
    return sorted(items, key=lambda item: item.url)


def is_hidden(name: str) -> bool:
    """Whether dataset readers leave out a file or directory of this name."""
    return name.startswith(("_", "."))


def _info_of(url: str, info: pa_fs.FileInfo) -> FileInfo:
    import pyarrow.fs as pa_fs

    modified = info.mtime_ns or 0
    if is_s3(url):  # a listing may be more precise than the answer about one object
        modified = modified // 10**9 * 10**9
    is_directory = info.type == pa_fs.FileType.Directory
    stamp = f"{info.size}-{modified}"
    return FileInfo(url, is_directory, info.size or 0, stamp, modified, modified)


def names_in(directory: str) -> dict[str, bool]:
    """The names in a directory, each with whether it is a directory; raises FileNotFoundError."""
    if is_local(directory):
        with private_folders.scanned(local_path(directory)) as scanned:
            return {item.name: item.is_dir() for item in scanned}
    return {item.name: item.is_directory for item in list_directory(directory)}


def last_change(directory: str) -> datetime:
    """When a file in a directory changed last, at any depth; the epoch if nothing is known."""
    import pyarrow.fs as pa_fs

    store, path = filesystem(directory)
    with store_errors(directory):
        infos = store.get_file_info(pa_fs.FileSelector(path, recursive=True))
        infos.append(store.get_file_info(path))
    latest = max((info.mtime_ns or 0 for info in infos), default=0)
    return datetime.fromtimestamp(max(latest, 0) / 10**9, UTC)


# Reading


def open_file(url: str) -> pa.NativeFile:
    """A file to read at any offset; raises as :func:`open_stream` does."""
    if is_local(url):
        return arrow_file(open_checked(local_path(url)))
    store, path = filesystem(url)
    with store_errors(url):
        return store.open_input_file(path)


def open_stream(url: str) -> IO[bytes]:
    """A file to read from its start; raises FileNotFoundError, PermissionError.

    Raises StorageError for a local one that is no regular file.
    """
    if is_local(url):
        return open_regular(local_path(url))
    store, path = filesystem(url)
    with store_errors(url):
        stream: Any = store.open_input_stream(path, compression=None, buffer_size=_READ_AHEAD_BYTES)
    return stream  # type: ignore[no-any-return]


def read_file(url: str) -> bytes:
    """The content of a file; raises FileNotFoundError."""
    with store_errors(url), open_stream(url) as file:
        return bytes(file.read())


# Writing


def write_file(url: str, content: bytes, grows_in: str | None = None) -> None:
    """Write a file as a whole or not at all, replacing one that exists.

    ``grows_in``: as for :class:`NewFile`. Raises FileNotFoundError if its directory is missing (S3
    has no directories).
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
    """A :class:`NewFile` to write, committed when the block ends, abandoned if that fails."""
    file = NewFile(url, grows_in)
    try:
        yield file
        file.commit(durable, replace)
    except BaseException:
        file.abandon()
        raise


class NewFile:
    """A file that is being written; it appears under its name only with :meth:`commit`.

    A local file grows beside its place, or in the directory ``grows_in`` of the same file system,
    under a hidden name of its own: a stale attempt may still write when its retry does. A remote
    file is gathered in a nameless temporary file, which vanishes with this process.

    Attributes:
        sink: what to write to.
    """

    def __init__(self, url: str, grows_in: str | None = None) -> None:
        import pyarrow as pa

        self._url = url
        if is_local(url):
            path = Path(local_path(url))
            directory = path.parent if grows_in is None else Path(local_path(grows_in))
            self._temporary = directory / f".{path.name}.{uuid.uuid4().hex[:8]}.tmp"
            made = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            self.sink = arrow_file(private_folders.open_handle(str(self._temporary), made), "wb")
        else:
            self._gathered = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the sink
            self.sink = pa.PythonFile(self._gathered, "w")

    @contextmanager
    def written(self) -> Iterator[Any]:
        """What was written so far, a file to read before it is committed."""
        self.sink.flush()
        if is_local(self._url):
            with arrow_file(open_checked(str(self._temporary))) as file:
                yield file
        else:
            yield self._gathered

    def commit(self, durable: bool = False, replace: bool = True) -> None:
        """Put the file under its name.

        ``durable``: flush a local file to disk first. Without ``replace`` a local file that has the
        name already stays and this one is dropped, if the file system has hard links.
        """
        if is_local(self._url):
            self.sink.close()
            if durable:
                sync(self._temporary)
            if replace or not _linked(self._temporary, Path(local_path(self._url))):
                private_folders.move(str(self._temporary), local_path(self._url))
        else:
            self.sink.flush()
            _upload(self._url, self._gathered)
            self.sink.close()

    def abandon(self) -> None:
        """Drop the file and what was written of it."""
        with suppress(OSError):
            self.sink.close()
        if is_local(self._url):
            remove_file(str(self._temporary))


def _linked(temporary: Path, path: Path) -> bool:
    """Move a file to ``path`` unless that exists; False where the file system has no hard links."""
    try:
        with suppress(FileExistsError):
            private_folders.link(str(temporary), str(path))
    except OSError as error:
        if error.errno in _NO_LINKS:
            return False
        raise
    private_folders.remove(str(temporary))
    return True


def _upload(url: str, content: IO[bytes]) -> None:
    store, path = filesystem(url)
    if not is_s3(url):
        hdfs_client(url).upload(path, content)
        return
    content.seek(0)
    with store_errors(url):
        sink = store.open_output_stream(path)
        try:
            shutil.copyfileobj(content, sink, _COPY_BYTES)
        except BaseException:  # Arrow cannot abort an upload: complete it, then delete it
            try:
                sink.close()
            finally:
                store.delete_file(path)
            raise
        sink.close()


def sync(path: Path) -> None:
    """Flush a local file or directory to disk."""
    handle = private_folders.open_handle(str(path), os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# Directories


def make_private(url: str) -> None:
    """Make a directory that only this user may read, and the directories above it.

    S3 has no such permission: whoever may read the bucket may read the directory.

    Raises FileExistsError, PermissionError, NotADirectoryError.
    """
    if is_local(url):
        private_folders.make_private(local_path(url))
    elif is_s3(url):
        store, key = filesystem(url)
        with store_errors(url):
            store.create_dir(key)
    else:
        hdfs_client(url).mkdir(filesystem(url)[1], permission="700")


def make_directory(url: str) -> None:
    """Make a directory in one that is there; raises FileExistsError, FileNotFoundError."""
    if is_local(url):
        private_folders.make(local_path(url))
        return
    store, path = filesystem(url)
    with store_errors(url):
        store.create_dir(path, recursive=False)


def remove_tree(url: str) -> None:
    """Remove a directory; it is no error if it is missing or something vanishes meanwhile.

    Files that a stale process adds meanwhile, such as an abandoned Spark task, are removed too.
    """
    if is_local(url):
        private_folders.remove_tree(local_path(url))
        return
    store, path = filesystem(url)
    with suppress(FileNotFoundError), store_errors(url):
        store.delete_dir(path)


def remove_file(url: str) -> None:
    """Remove a file; a missing one is no error."""
    if is_local(url):
        with suppress(FileNotFoundError):
            private_folders.remove(local_path(url))
        return
    store, path = filesystem(url)
    with suppress(FileNotFoundError), store_errors(url):
        store.delete_file(path)


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


def hdfs_client(url: str) -> Hdfs:
    """The client behind the file system of an HDFS location."""
    client: Hdfs = filesystem(url)[0].handler.fs
    return client
