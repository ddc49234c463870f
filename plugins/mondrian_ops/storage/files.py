"""Single files and directories on any store: written whole, made private, removed."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from mondrian_ops.core import limits
from mondrian_ops.core.errors import MondrianOpsError
from mondrian_ops.storage.locations import filesystem, is_local, is_s3, local_path
from mondrian_ops.storage.remote import entries, open_stream, store_errors

if TYPE_CHECKING:
    import pyarrow as pa

    from mondrian_ops.storage.hdfs import Hdfs

__all__ = [
    "NewFile",
    "content_within",
    "hdfs_client",
    "is_there",
    "make_private",
    "names_in",
    "new_file",
    "read_file",
    "remove_file",
    "remove_tree",
    "sync",
    "write_file",
]

_COPY_BYTES = 8 << 20
_REMOVALS = 5  # of one directory, where somebody goes on writing into it
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES})


def write_file(url: str, content: bytes, grows_in: str | None = None) -> None:
    """Write a file as a whole or not at all; one that is there is replaced.

    ``grows_in``: as for :class:`NewFile`. Raises FileNotFoundError where its directory is missing
    (S3 knows no directories).
    """
    with new_file(url, grows_in=grows_in) as sink:
        sink.write(content)


def read_file(url: str) -> bytes:
    """The content of a file; raises FileNotFoundError where there is none."""
    if is_local(url):
        return Path(local_path(url)).read_bytes()
    with store_errors(url), open_stream(url) as file:
        return bytes(file.read())


def content_within(path: str, limit: str, name: str, error: type[MondrianOpsError]) -> bytes:
    """The bytes of a local file, which are no more than a ``limit``.

    Raises ``error``, which says ``name``, where they are more, and OSError where it is unreadable.
    """
    most = limits.limit(limit)
    with Path(path).open("rb") as file:
        content = file.read(most + 1)
        if len(content) <= most:
            return content
        size = limits.size_text(max(len(content), os.fstat(file.fileno()).st_size))
    raise error(limits.exceeded(limit, f"{name}: has {size}", "make it smaller"))


@contextmanager
def new_file(
    url: str, durable: bool = False, grows_in: str | None = None, replace: bool = True
) -> Iterator[pa.NativeFile]:
    """A file to write, which appears when the block ends, and not if it ends with an error."""
    file = NewFile(url, grows_in)
    try:
        yield file.sink
        file.commit(durable, replace)
    except BaseException:
        file.abandon()
        raise


class NewFile:
    """A file while it is written; nobody sees it under its name before :meth:`commit`.

    On the local file system it grows beside its place, under a hidden name of its own: an attempt
    that was given up for dead may still write beside its retry. ``grows_in`` is another place for
    it, on the same file system. For a remote store it is gathered
    in a temporary file that has no name, and so is gone whatever happens to this process.

    Attributes:
        sink: what to write to.
    """

    def __init__(self, url: str, grows_in: str | None = None) -> None:
        import pyarrow as pa

        self._url = url
        if is_local(url):
            path = Path(local_path(url))
            place = path.parent if grows_in is None else Path(local_path(grows_in))
            self._temporary = place / f".{path.name}.{uuid.uuid4().hex[:8]}.tmp"
            self.sink = pa.OSFile(str(self._temporary), "wb")
        else:
            self._gathered = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the sink
            self.sink = pa.PythonFile(self._gathered, "w")

    def commit(self, durable: bool = False, replace: bool = True) -> None:
        """Put it under its name; ``durable``: where there is a disk here, once it is on it.

        Without ``replace``, a file that has the name already stays and this one goes: on the local
        file system, if it knows hard links.
        """
        if is_local(self._url):
            self.sink.close()
            if durable:
                sync(self._temporary)
            if replace or not _linked(self._temporary, local_path(self._url)):
                self._temporary.replace(local_path(self._url))
        else:
            self.sink.flush()
            _upload(self._url, self._gathered)
            self.sink.close()

    def abandon(self) -> None:
        """Leave nothing of it."""
        with suppress(OSError):
            self.sink.close()
        if is_local(self._url):
            self._temporary.unlink(missing_ok=True)


def _linked(temporary: Path, place: str) -> bool:
    """Give a file a name that no other has, and only that; False where nothing can be linked."""
    try:
        with suppress(FileExistsError):
            os.link(temporary, place)
    except OSError as error:
        if error.errno in _NO_LINKS:
            return False
        raise
    temporary.unlink()
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
        except BaseException:  # to give it up, Arrow can only complete it
            try:
                sink.close()
            finally:
                store.delete_file(path)
            raise
        sink.close()


def is_there(path: str | Path) -> bool:
    """Whether something has a local path, be it a broken link.

    An error of the machine passes, and is not taken for an answer.
    """
    try:
        os.lstat(path)
    except OSError as error:
        if error.errno in _NOT_THERE:
            return False
        raise
    except ValueError:  # no path at all
        return False
    return True


def names_in(directory: str) -> dict[str, bool]:
    """What a directory holds, and whether that is a directory; raises FileNotFoundError."""
    if is_local(directory):
        with os.scandir(local_path(directory)) as found:
            return {each.name: each.is_dir() for each in found}
    return {each.name: each.is_directory for each in entries(directory)}


def make_private(url: str) -> None:
    """Make a directory that only this user may look into, and those above it.

    S3 has no such thing: there, who may read the bucket may read it.

    Raises FileExistsError, PermissionError, NotADirectoryError.
    """
    if is_local(url):
        path = Path(local_path(url))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700)
        path.chmod(0o700)  # whatever the umask
    elif is_s3(url):
        store, key = filesystem(url)
        with store_errors(url):
            store.create_dir(key)
    else:
        hdfs_client(url).mkdir(filesystem(url)[1], permission="700")


def remove_tree(url: str) -> None:
    """Remove a directory; whatever is missing, or goes missing meanwhile, is no error.

    Nor is what somebody who is late puts there meanwhile, as a task of Spark that was given up.
    """
    if is_local(url):
        _remove_local_tree(local_path(url))
        return
    store, path = filesystem(url)
    with suppress(FileNotFoundError), store_errors(url):
        store.delete_dir(path)


def remove_file(url: str) -> None:
    """Remove a file; one that is missing is no error."""
    if is_local(url):
        Path(local_path(url)).unlink(missing_ok=True)
        return
    store, path = filesystem(url)
    with suppress(FileNotFoundError), store_errors(url):
        store.delete_file(path)


def _remove_local_tree(path: str) -> None:
    for again in reversed(range(_REMOVALS)):
        try:
            shutil.rmtree(path, onerror=_tolerate)
            return
        except OSError as error:
            if error.errno != errno.ENOTEMPTY or not again:
                raise


def _tolerate(_function: object, _path: str, error: tuple[Any, BaseException, Any]) -> None:
    if not isinstance(error[1], FileNotFoundError | NotADirectoryError):
        raise error[1]


def sync(path: Path) -> None:
    """Flush a local file or directory to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def hdfs_client(url: str) -> Hdfs:
    """The client behind the file system of an HDFS location."""
    client: Hdfs = filesystem(url)[0].handler.fs
    return client
