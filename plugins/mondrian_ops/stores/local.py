"""The local file system: paths and ``file://`` URLs, with all that guards them.

What is private is followed name by name (:mod:`~mondrian_ops.stores.private_folders`), and what
somebody names is opened only if it is a regular file (:mod:`~mondrian_ops.stores.regular_files`).
"""

from __future__ import annotations

import errno
import fcntl
import glob
import os
import re
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from mondrian_ops.stores import private_folders
from mondrian_ops.stores.locations import is_hidden, local_path
from mondrian_ops.stores.regular_files import (
    arrow_file,
    mapped,
    open_checked,
    open_data,
    open_regular,
    special,
)
from mondrian_ops.stores.store import FileInfo, NewFile, Store

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs as pa_fs

_NOT_NORMAL = re.compile(r"//|/\Z|(?:\A|/)\.(?:/|\Z)")  # what a Path spells in another way
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES})


class LocalStore(Store):
    """The file system of this machine, which renames in one step and has locks."""

    name = "local"
    publication = "mondrian_ops.publish.local:LocalPublication"
    has_round_trips = False

    def parts(self, url: str) -> tuple[str, str]:
        return "", local_path(url)

    def joined(self, url: str, *names: str) -> str:
        path = os.path.join(local_path(url), *names)
        return str(Path(path)) if not path or _NOT_NORMAL.search(path) else path

    def absolute(self, url: str) -> str:
        return os.path.abspath(local_path(url))

    def real(self, url: str) -> str:
        return str(Path(local_path(url)).resolve())

    def lineage_name(self, url: str) -> tuple[str, str]:
        return "file", self.absolute(url)

    def arrow(self, url: str) -> tuple[pa_fs.FileSystem, str]:
        import pyarrow.fs as pa_fs

        return pa_fs.LocalFileSystem(), local_path(url)

    def errors(self, url: str) -> nullcontext[None]:
        return nullcontext()

    def info(self, url: str) -> FileInfo | None:
        path = local_path(url)
        if not (os.path.isdir(path) or exists(path)):
            return None
        return local_info(path, os.path.islink(path))

    def exists(self, url: str) -> bool:
        return exists(local_path(url))

    def list_directory(self, url: str, hidden: bool = True) -> list[FileInfo]:
        path, found = self._scanned(url)
        return _infos(path, found, hidden)

    def contents(self, url: str) -> tuple[list[str], list[FileInfo]]:
        path, found = self._scanned(url)
        return list(found), _infos(path, found, hidden=False)

    def _scanned(self, url: str) -> tuple[str, dict[str, bool]]:
        """The path of a directory, and the names in it, each with whether it is a link."""
        path = str(Path(local_path(url)))
        with private_folders.scanned(path) as scanned:
            return path, {item.name: item.is_symlink() for item in scanned}

    def names(self, url: str) -> dict[str, bool]:
        with private_folders.scanned(local_path(url)) as scanned:
            return {item.name: item.is_dir() for item in scanned}

    def directories(self, url: str) -> list[str]:
        with os.scandir(local_path(url)) as scanned:
            return sorted(item.name for item in scanned if item.is_dir(follow_symlinks=False))

    def matches(self, pattern: str) -> Iterator[FileInfo]:
        # Unlike pathlib's glob, this one skips names that start with a dot.
        for path in glob.iglob(local_path(pattern), recursive=True):
            # A directory's name may end in a slash, and the directory itself may match as "".
            path = str(Path(path))
            if not is_hidden(os.path.basename(path)):
                yield local_info(path, os.path.islink(path))

    def linked_directories(self, url: str) -> Iterator[str]:
        path = local_path(url)
        starts = [path] if exists(path) else glob.glob(path, recursive=True)
        for start in map(Path, starts):
            if start.is_symlink() and start.is_dir():
                yield str(start.resolve())
            yield from _links_below(start)

    def open(self, url: str) -> pa.NativeFile:
        return arrow_file(open_checked(local_path(url)))

    def stream(self, url: str) -> IO[bytes]:
        return open_regular(local_path(url))

    def open_data(self, url: str, in_memory: int = 0) -> pa.NativeFile:
        handle = open_data(local_path(url))
        if not in_memory:
            return arrow_file(handle)
        import pyarrow as pa

        try:
            size = os.fstat(handle).st_size
            content = os.read(handle, size + 1) if size <= in_memory else None
        except BaseException:
            os.close(handle)
            raise
        if content is None or len(content) != size:  # large, or changing in size
            return arrow_file(handle)
        os.close(handle)
        return pa.BufferReader(content)

    def stream_data(
        self, url: str, compression: str | None = None, buffer_bytes: int = 1 << 20
    ) -> pa.NativeFile:
        import pyarrow as pa

        file = arrow_file(open_data(local_path(url)))
        return file if compression is None else pa.CompressedInputStream(file, compression)

    def arrow_source(self, url: str) -> Any:
        return mapped(local_path(url))

    def new_file(self, url: str, grows_in: str | None = None) -> NewFile:
        return NewLocalFile(Path(local_path(url)), grows_in)

    def make_directory(self, url: str) -> None:
        private_folders.make(local_path(url))

    def make_private(self, url: str) -> None:
        private_folders.make_private(local_path(url))

    def keep_private(self, url: str) -> None:
        private_folders.keep_private(local_path(url))

    def keep_file(self, url: str, above: int) -> None:
        path = local_path(url)
        private_folders.keep_private(path)
        for folder in list(Path(path).parents)[:above]:
            sync(folder)

    def is_anothers(self, url: str) -> bool:
        return not private_folders.is_own(local_path(url))

    def remove_tree(self, url: str) -> None:
        private_folders.remove_tree(local_path(url))

    def remove_file(self, url: str) -> None:
        with suppress(FileNotFoundError):
            private_folders.remove(local_path(url))

    def move(self, source: str, target: str) -> bool:
        private_folders.move(local_path(source), local_path(target))
        return True

    def hold(self, url: str) -> int | None:
        handle = self._directory(url)
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return handle

    def is_held(self, url: str) -> bool:
        handle = self._directory(url)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            os.close(handle)
        return False

    def _directory(self, url: str) -> int:
        return private_folders.open_handle(local_path(url), os.O_RDONLY | os.O_DIRECTORY)


class NewLocalFile(NewFile):
    """It grows beside its place, or in another directory of the same file system.

    Under a hidden name of its own: a stale attempt may still write when its retry does.

    Attributes: ``path`` (its place), ``temporary`` (where it grows), and those of every new file.
    """

    def __init__(self, path: Path, grows_in: str | None) -> None:
        self.path = path
        directory = path.parent if grows_in is None else Path(local_path(grows_in))
        self.temporary = directory / f".{path.name}.{uuid.uuid4().hex[:8]}.tmp"
        made = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        self.sink = arrow_file(private_folders.open_handle(str(self.temporary), made), "wb")

    @contextmanager
    def written(self) -> Iterator[Any]:
        self.sink.flush()
        with arrow_file(open_checked(str(self.temporary))) as file:
            yield file

    def commit(self, durable: bool = False, replace: bool = True) -> None:
        self.sink.close()
        if durable:
            sync(self.temporary)
        if replace or not _linked(self.temporary, self.path):
            private_folders.move(str(self.temporary), str(self.path))

    def abandon(self) -> None:
        with suppress(OSError):
            self.sink.close()
        with suppress(FileNotFoundError):
            private_folders.remove(str(self.temporary))


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


def sync(path: Path) -> None:
    """Flush a local file or directory to disk."""
    handle = private_folders.open_handle(str(path), os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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


def _infos(path: str, found: dict[str, bool], hidden: bool) -> list[FileInfo]:
    return [
        local_info(os.path.join(path, name), is_link)
        for name, is_link in sorted(found.items())
        if hidden or not is_hidden(name)
    ]


def _links_below(directory: Path, above: frozenset[Path] = frozenset()) -> Iterator[str]:
    real = directory.resolve()
    if real in above or not directory.is_dir():
        return
    with suppress(PermissionError, FileNotFoundError):  # reading the source will report it
        for path in directory.iterdir():
            if is_hidden(path.name) or not path.is_dir():
                continue
            if path.is_symlink():
                yield str(path.resolve())
            yield from _links_below(path, above | {real})
