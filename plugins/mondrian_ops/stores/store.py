"""What the rest asks of a store, and which store a location is on.

A store is a subclass of :class:`Store`, found by the scheme of a URL: in :data:`_OURS`, or as an
entry point of the group ``mondrian_ops.stores`` whose name is the scheme. Most remote stores are
subclasses of :class:`mondrian_ops.stores.remote.RemoteStore`, which does by Arrow's file system all
that is asked here. A plain path, without a scheme, is on the local store.
"""

from __future__ import annotations

import posixpath
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import lru_cache
from pkgutil import resolve_name
from typing import IO, TYPE_CHECKING, Any, ClassVar

from mondrian_ops.added import Group
from mondrian_ops.errors import InputError, StorageError
from mondrian_ops.late_methods import dataclass

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs as pa_fs

GROUP = "mondrian_ops.stores"
"""The group of the entry points by which other packages add stores."""

URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/]*)(.*)", re.DOTALL)
WAITING = ".mondrian_waiting"
"""The name of the directories with rows that wait for a night of a series."""
_WAITING_BELOW = re.compile(rf"(/{re.escape(WAITING)}/)(.*)", re.DOTALL)
_DIGEST = re.compile(r"[0-9a-f]{8,}")

_ADDED = Group(GROUP, "store", InputError, "://")
_OURS = {
    "file": "mondrian_ops.stores.local:LocalStore",
    "hdfs": "mondrian_ops.stores.hdfs:HdfsStore",
    "webhdfs": "mondrian_ops.stores.hdfs:HdfsStore",
    "swebhdfs": "mondrian_ops.stores.hdfs:HdfsStore",
    "s3": "mondrian_ops.stores.s3:S3Store",
    "gs": "mondrian_ops.stores.gcs:GcsStore",
    "abfs": "mondrian_ops.stores.azure:AzureStore",
    "abfss": "mondrian_ops.stores.azure:AzureStore",
}

CATALOGS = {"iceberg": "mondrian_ops.tables.iceberg:IcebergTable"}
"""The schemes of catalogs, which know the files of their tables, and what opens a table there."""


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
        is_link: whether the name is that of a symbolic link.
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
        return posixpath.basename(store_of(self.url).parts(self.url)[1])


class NewFile(ABC):
    """A file that is being written; it appears under its name only with :meth:`commit`.

    Attributes:
        sink: what to write to.
    """

    sink: pa.NativeFile

    @abstractmethod
    def written(self) -> AbstractContextManager[Any]:
        """What was written so far, a file to read before it is committed."""

    @abstractmethod
    def commit(self, durable: bool = False, replace: bool = True) -> None:
        """Put the file under its name.

        ``durable``: flush a local file to disk first. Without ``replace`` a local file that has the
        name already stays and this one is dropped, if the file system has hard links.
        """

    @abstractmethod
    def abandon(self) -> None:
        """Drop the file and what was written of it."""


class Place:
    """What the URLs of a scheme say, before anything is asked of the place itself.

    A URL is a scheme, an authority and a path; a subclass says otherwise.
    """

    max_name_bytes: ClassVar[int] = 255
    """The longest name in a path; that of HDFS and of Linux's file systems."""
    max_path_bytes: ClassVar[int] = 4095
    """The longest path."""
    has_buckets: ClassVar[bool] = False
    """Whether URLs name buckets, whose case tells; that of the name of a host does not."""
    publication: ClassVar[str] = ""
    """``module:Class`` of the :class:`mondrian_ops.publish.publication.Publication` there.

    Empty where nothing can be published.
    """

    def parts(self, url: str) -> tuple[str, str]:
        """The scheme and authority of a URL (empty on the local store), and its path.

        The path is without double or trailing slashes.
        """
        match = URL.match(url)
        assert match is not None  # noqa: S101 - a URL led here
        return f"{match[1].lower()}://{match[2]}", posixpath.normpath("/" + match[3].lstrip("/"))

    def joined(self, url: str, *names: str) -> str:
        """The location with these names below another location."""
        base, path = self.parts(url)
        return "/".join([base + path.rstrip("/"), *names])

    def absolute(self, url: str) -> str:
        """The location as a process with another working directory finds it."""
        return url

    def real(self, url: str) -> str:
        """The location in its one spelling, with symbolic links followed."""
        return "".join(self.parts(url))

    def split_authority(self, authority: str) -> tuple[str, str]:
        """The Airflow connection (or empty) and the rest of what follows the scheme."""
        connection, _, rest = authority.rpartition("@")
        return connection, rest

    def servers(self, base: str) -> set[str]:
        """The servers, or the bucket; URLs with one in common are on the same store.

        Never with the connection: who has another one must not pass for another store.
        """
        scheme, _, authority = base.partition("://")
        rest = self.split_authority(authority)[1]
        return {f"{scheme}://{rest if self.has_buckets else rest.lower()}"}

    def known_as(self, base: str) -> set[str]:
        """All that the servers may be called, as far as this process knows; raises nothing."""
        return self.servers(base)

    def lineage_name(self, url: str) -> tuple[str, str]:
        """Namespace and name of a dataset, by OpenLineage's rules."""
        base, path = self.parts(url)
        scheme, _, authority = base.partition("://")
        return f"{scheme}://{self.split_authority(authority)[1]}", path.lstrip("/")


class Store(Place, ABC):
    """Where bytes lie. One object serves all locations of its schemes.

    A missing file or directory raises FileNotFoundError, a forbidden one PermissionError, and
    everything that a retry may cure another OSError.
    """

    name: ClassVar[str]
    """What it is called in the options of connections, such as ``s3``."""
    has_round_trips: ClassVar[bool] = True
    """Whether each read is a request that waits for a server: few large ones, several at once."""

    # Arrow

    @abstractmethod
    def arrow(self, url: str) -> tuple[pa_fs.FileSystem, str]:
        """Arrow's file system of a location, and the path there."""

    @abstractmethod
    def errors(self, url: str) -> AbstractContextManager[None]:
        """Raise errors that a library describes by a text alone as the OSErrors that they are."""

    # Listing

    @abstractmethod
    def info(self, url: str) -> FileInfo | None:
        """The file or directory of a name; None if there is nothing.

        Links are followed; raises FileNotFoundError for one that leads nowhere.
        """

    def exists(self, url: str) -> bool:
        """Whether a name exists, if only as a broken link."""
        return self.info(url) is not None

    @abstractmethod
    def list_directory(self, url: str, hidden: bool = True) -> list[FileInfo]:
        """The content of a directory, sorted by name."""

    @abstractmethod
    def contents(self, url: str) -> tuple[list[str], list[FileInfo]]:
        """All names in a directory, and what of it is not hidden."""

    @abstractmethod
    def names(self, url: str) -> dict[str, bool]:
        """The names in a directory, each with whether it is a directory."""

    @abstractmethod
    def directories(self, url: str) -> list[str]:
        """The names of the directories in a directory; links are left out."""

    @abstractmethod
    def matches(self, pattern: str) -> Iterator[FileInfo]:
        """The files and directories that match a pattern, without hidden ones."""

    def linked_directories(self, url: str) -> Iterator[str]:
        """Where links to directories lead, in a directory or what a pattern matches."""
        yield from ()

    # Reading

    @abstractmethod
    def open(self, url: str) -> pa.NativeFile:
        """A file to read at any offset."""

    @abstractmethod
    def stream(self, url: str) -> IO[bytes]:
        """A file to read from its start."""

    @abstractmethod
    def open_data(self, url: str, in_memory: int = 0) -> pa.NativeFile:
        """A file of a source to read at any offset; a local one of so few bytes is in memory.

        Raises InputError if it is no regular file, JobError if it lies where jobs may not read.
        """

    @abstractmethod
    def stream_data(
        self, url: str, compression: str | None = None, buffer_bytes: int = 1 << 20
    ) -> pa.NativeFile:
        """A file of a source to read from its start, unpacked; raises as :meth:`open_data`."""

    @abstractmethod
    def arrow_source(self, url: str) -> Any:
        """A whole file for Arrow to read, mapped into memory where that can be."""

    # Writing

    @abstractmethod
    def new_file(self, url: str, grows_in: str | None = None) -> NewFile:
        """A file that appears whole or not at all; a local one grows in ``grows_in``."""

    @abstractmethod
    def make_directory(self, url: str) -> None:
        """Make a directory in one that is there; raises FileExistsError."""

    @abstractmethod
    def make_private(self, url: str) -> None:
        """Make a directory that only this user may read, and the directories above it."""

    @abstractmethod
    def keep_private(self, url: str) -> None:
        """Let only this user enter a directory that is there; a store without owners does nothing.

        Raises StorageError if it is a link or another user's.
        """

    @abstractmethod
    def keep_file(self, url: str, above: int) -> None:
        """Let only this user read a file, and flush the names of it and of folders above it."""

    def is_anothers(self, url: str) -> bool:
        """Whether a private directory is another user's; a remote store checks that itself."""
        return False

    @abstractmethod
    def remove_tree(self, url: str) -> None:
        """Remove a directory; it is no error if it is missing."""

    @abstractmethod
    def remove_file(self, url: str) -> None:
        """Remove a file; a missing one is no error."""

    def copy(self, source: str, target: str) -> None:
        """Copy a file within the store in one step, replacing one that exists.

        Only publications by copies need it.
        """
        raise StorageError(
            f"output: the store {self.name} copies no files, which its publication needs; "
            f"give {type(self).__name__} the method copy"
        )

    def move(self, source: str, target: str) -> bool:
        """Rename in one step, replacing what a rename replaces; False where nothing can be."""
        return False

    # Locks

    def hold(self, url: str) -> int | None:
        """Lock a directory for this process; None where there are no locks. Close it to end."""
        return None

    def is_held(self, url: str) -> bool:
        """Whether a living process holds a directory."""
        return False


def scheme_of(url: str) -> str:
    """The scheme of a URL in small letters; ``file`` for a plain path."""
    match = URL.match(url)
    return "file" if match is None else match[1].lower()


def store_of(url: str) -> Store:
    """The store of a location; raises InputError for a scheme that no store has."""
    store = find_store(scheme_of(url))
    if store is None:
        remote = ", ".join(f"{scheme}://" for scheme in schemes() if scheme != "file")
        raise InputError(
            f"{shown(url)}: the scheme {url.partition('://')[0]!r} is not available; give a local "
            f"path, or a URL that starts with file://, {remote}"
        )
    return store


def find_store(scheme: str) -> Store | None:
    """The store of a scheme; None where no store has it.

    Raises InputError where the package that adds it is wrong.
    """
    return _store(scheme.lower())


def schemes() -> list[str]:
    """The schemes of all stores."""
    return [*_OURS, *(name for name in _ADDED.names() if name not in _OURS)]


def shown(url: str) -> str:
    """The location as errors and logs name it: without the connection.

    What tells the series of rows that wait, or an attempt at a night, is left out, too: whoever
    knows it knows where the next night will look for a file.
    """
    url = _WAITING_BELOW.sub(lambda found: found[1] + _DIGEST.sub("…", found[2]), url)
    match = URL.match(url)
    if match is None:
        return url
    try:
        store = find_store(match[1])
    except InputError:  # it names the package that is wrong, wherever the store is used
        store = None
    authority = match[2].rpartition("@")[2] if store is None else store.split_authority(match[2])[1]
    return f"{match[1]}://{authority}{match[3]}"


@lru_cache(maxsize=64)
def _store(scheme: str) -> Store | None:
    if scheme in _OURS:
        return _of_class(resolve_name(_OURS[scheme]))
    entry = _ADDED.entry(scheme)
    if entry is None:
        return None
    kind: type[Store] = _ADDED.loaded(entry, Store)
    return _of_class(kind)


@lru_cache(maxsize=64)
def _of_class(kind: type[Store]) -> Store:
    return kind()
