"""What remote stores have in common: all that Arrow's file systems do, over a network.

A subclass says how its URLs lead to a file system of Arrow (:meth:`RemoteStore.options`,
:meth:`RemoteStore.connect`) and which errors, which Arrow tells by a text alone, mean what.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import re
import shutil
import tempfile
import uuid
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any, ClassVar

from mondrian_ops.errors import InputError
from mondrian_ops.stores import store_access
from mondrian_ops.stores.locations import (
    before_wildcard,
    has_wildcard,
    is_hidden,
    name_of,
    parent_of,
    shown,
)
from mondrian_ops.stores.store import FileInfo, NewFile, Store, find_store, schemes

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs as pa_fs

_COPY_BYTES = 8 << 20
_READ_AHEAD_BYTES = 1 << 20


class RemoteStore(Store):
    """A store behind one of Arrow's file systems."""

    default_connection: ClassVar[str] = ""
    """The Airflow connection that is used where a URL names none, if there is one."""
    forbidden_marks: ClassVar[tuple[str, ...]] = ()
    """Texts by which Arrow's errors without a number say that access is denied."""
    missing_marks: ClassVar[tuple[str, ...]] = ()
    """The same where something is missing."""
    error_marks: ClassVar[tuple[str, ...]] = ()
    """The same for the other errors of the store; what has none of them is of a file's content."""
    makes_buckets: ClassVar[bool] = False
    """Whether Arrow makes a bucket that is missing with a directory in it, which nobody wants."""
    stamp_ns: ClassVar[int] = 1
    """What a listing and the answer about one file agree on of a time, in nanoseconds."""

    @abstractmethod
    def options(self, base: str) -> Mapping[str, Any]:
        """By the connection that the URL names, the default one, or the environment.

        Raises InputError where none of them tells how to reach the store.
        """

    def from_connection(self, connection: Any) -> Mapping[str, Any]:
        """The options that the fields of an Airflow connection give."""
        raise InputError(
            f"connection {connection.conn_id!r}: the store {self.name} takes none; leave it out of "
            "the URL"
        )

    @abstractmethod
    def connect(self, options: Mapping[str, Any]) -> pa_fs.FileSystem:
        """The file system that is reached with :meth:`options`."""

    def path_in(self, base: str, path: str) -> str:
        """The path in Arrow's file system; where buckets are its first level, behind the bucket."""
        return path

    def arrow(self, url: str) -> tuple[pa_fs.FileSystem, str]:
        base, path = self.parts(url)
        return store_access.connected(base), self.path_in(base, path).rstrip("/") or "/"

    # Errors

    @contextmanager
    def errors(self, url: str) -> Iterator[None]:
        """An error without a number that passes is one of Arrow about the file's content."""
        try:
            yield
        except OSError as error:
            raise self._numbered(error, url) from None

    def _numbered(self, error: OSError, url: str) -> OSError:
        if error.errno is not None:
            return error
        text = str(error)
        if any(mark in text for mark in self.forbidden_marks):
            return PermissionError(errno.EACCES, os.strerror(errno.EACCES), shown(url))
        is_missing = any(mark in text for mark in self.missing_marks)
        if is_missing or isinstance(error, FileNotFoundError):
            return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown(url))
        if any(mark in text for mark in self.error_marks):
            return OSError(errno.EIO, text, shown(url))
        return error

    # Listing

    def info(self, url: str) -> FileInfo | None:
        import pyarrow.fs as pa_fs

        store, path = self.arrow(url)
        with self.errors(url):
            info = store.get_file_info(path)
        return None if info.type == pa_fs.FileType.NotFound else self._info_of(url, info)

    def list_directory(self, url: str, hidden: bool = True) -> list[FileInfo]:
        store, path = self.arrow(url)
        with self.errors(url):
            infos = self.listed(store, path)
        items = [self._info_of(self.joined(url, info.base_name), info) for info in infos]
        items = [item for item in items if hidden or not is_hidden(item.name)]
        return sorted(items, key=lambda item: item.url)

    def listed(self, store: pa_fs.FileSystem, path: str) -> list[pa_fs.FileInfo]:
        """What Arrow says of all that a directory holds."""
        import pyarrow.fs as pa_fs

        infos: list[pa_fs.FileInfo] = store.get_file_info(pa_fs.FileSelector(path))
        return infos

    def _info_of(self, url: str, info: pa_fs.FileInfo) -> FileInfo:
        import pyarrow.fs as pa_fs

        modified = (info.mtime_ns or 0) // self.stamp_ns * self.stamp_ns
        is_directory = info.type == pa_fs.FileType.Directory
        stamp = f"{info.size}-{modified}"
        return FileInfo(url, is_directory, info.size or 0, stamp, modified, modified)

    def contents(self, url: str) -> tuple[list[str], list[FileInfo]]:
        items = self.list_directory(url)
        return [item.name for item in items], [item for item in items if not is_hidden(item.name)]

    def names(self, url: str) -> dict[str, bool]:
        return {item.name: item.is_directory for item in self.list_directory(url)}

    def directories(self, url: str) -> list[str]:
        return [item.name for item in self.list_directory(url) if item.is_directory]

    def matches(self, pattern: str) -> Iterator[FileInfo]:
        """By the rules of the local store."""
        root = self.info(before_wildcard(pattern))
        if root is not None and root.is_directory:
            names = pattern.removeprefix(root.url).lstrip("/").split("/")
            yield from (item for item in self._below(root, names) if not is_hidden(item.name))

    def _below(self, directory: FileInfo, names: list[str]) -> Iterator[FileInfo]:
        """What is below a directory and has names that match ``names`` one by one."""
        name, rest = names[0], names[1:]
        if name == "**":
            if rest:
                yield from self._below(directory, rest)
            for item in self._visible(directory):
                if not rest:
                    yield item
                if item.is_directory:
                    yield from self._below(item, names)
            return
        for item in self._inside(directory, name):
            if not rest:
                yield item
            elif item.is_directory:
                yield from self._below(item, rest)

    def _inside(self, directory: FileInfo, name: str) -> list[FileInfo]:
        if has_wildcard(name):
            visible = self._visible(directory)
            return [item for item in visible if fnmatch.fnmatchcase(item.name, name)]
        item = self.info(self.joined(directory.url, name))
        return [item] if item else []

    def _visible(self, directory: FileInfo) -> list[FileInfo]:
        return [
            item for item in self.list_directory(directory.url) if not item.name.startswith(".")
        ]

    # Reading

    def open(self, url: str) -> pa.NativeFile:
        store, path = self.arrow(url)
        with self.errors(url):
            return store.open_input_file(path)

    def stream(self, url: str) -> IO[bytes]:
        stream: Any = self.stream_data(url)
        return stream  # type: ignore[no-any-return]

    def open_data(self, url: str, in_memory: int = 0) -> pa.NativeFile:
        return self.open(url)

    def stream_data(
        self, url: str, compression: str | None = None, buffer_bytes: int = _READ_AHEAD_BYTES
    ) -> pa.NativeFile:
        store, path = self.arrow(url)
        with self.errors(url):
            return store.open_input_stream(path, compression=compression, buffer_size=buffer_bytes)

    def arrow_source(self, url: str) -> Any:
        import pyarrow as pa

        with self.errors(url), self.stream(url) as file:
            return pa.py_buffer(file.read())

    # Writing

    def new_file(self, url: str, grows_in: str | None = None) -> NewFile:
        return _GatheredFile(self, url)

    def upload(self, url: str, content: IO[bytes]) -> None:
        """Write a file as a whole or not at all; ``content`` is seekable."""
        store, path = self.arrow(url)
        content.seek(0)
        with self.errors(url):
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

    def unfinished(self, url: str) -> str:
        """A hidden name beside a file's own, under which a store can write it at first.

        :func:`is_unfinished` knows it where a killed process left it.
        """
        return self.joined(parent_of(url), f".{name_of(url)}.{uuid.uuid4().hex[:8]}.tmp")

    def copy(self, source: str, target: str) -> None:
        store, path = self.arrow(source)
        with self.errors(source):
            store.copy_file(path, self.arrow(target)[1])

    def make_directory(self, url: str) -> None:
        store, path = self.arrow(url)
        with self.errors(url):
            store.create_dir(path, recursive=False)

    def make_private(self, url: str) -> None:
        """Object stores have no such permission: whoever may read a bucket may read all of it."""
        store, path = self.arrow(url)
        if self.makes_buckets and self.info("/".join([*url.split("/")[:3], ""])) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown(url))
        with self.errors(url):
            store.create_dir(path)

    def keep_private(self, url: str) -> None:
        """Do nothing: object stores have no owners."""

    def keep_file(self, url: str, above: int) -> None:
        """Do nothing: whoever may read a bucket may read it, and a server keeps its names."""

    def remove_tree(self, url: str) -> None:
        store, path = self.arrow(url)
        with suppress(FileNotFoundError), self.errors(url):
            store.delete_dir(path)

    def remove_file(self, url: str) -> None:
        store, path = self.arrow(url)
        with suppress(FileNotFoundError), self.errors(url):
            store.delete_file(path)


def is_unfinished(name: str, of: str) -> bool:
    """Whether :meth:`RemoteStore.unfinished` gives a name for a file called ``of``."""
    return re.fullmatch(rf"\.{re.escape(of)}\.[0-9a-f]{{8}}\.tmp", name) is not None


def remote_store(name: str) -> RemoteStore:
    """The remote store of a name; raises KeyError if there is none."""
    for scheme in schemes():
        with suppress(InputError):  # another package is wrong: whoever uses its store is told
            store = find_store(scheme)
            if isinstance(store, RemoteStore) and store.name == name:
                return store
    raise KeyError(name)


class _GatheredFile(NewFile):
    """It is gathered in a nameless temporary file, which vanishes with this process."""

    def __init__(self, store: RemoteStore, url: str) -> None:
        import pyarrow as pa

        self._store, self._url = store, url
        self._gathered = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the sink
        self.sink = pa.PythonFile(self._gathered, "w")

    @contextmanager
    def written(self) -> Iterator[Any]:
        self.sink.flush()
        yield self._gathered

    def commit(self, durable: bool = False, replace: bool = True) -> None:
        self.sink.flush()
        self._store.upload(self._url, self._gathered)
        self.sink.close()

    def abandon(self) -> None:
        with suppress(OSError):
            self.sink.close()
