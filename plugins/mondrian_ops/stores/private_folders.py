"""Private folders in shared ones: a run's working files, and the rows that wait in a series.

They lie beside an output, where other users may be able to write. So a local path that leads into
one is followed name by name from there on: no link is followed, each folder must be this user's,
and it must really lie where jobs may write (:mod:`~mondrian_ops.stores.shared_folders`). The
functions take any local path; if no name in it is that of a private folder, they do as those of
:mod:`os`.

Errors name a path as logs may show it: without the names that select a series.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

from mondrian_ops.stores.access_policy import check_place
from mondrian_ops.stores.locations import WAITING, shown
from mondrian_ops.stores.shared_folders import Folder, place_of

_MARK = ".mondrian_"  # in every private name: most paths need no further look
_WORK = re.compile(r"\..+\.mondrian_ops-[0-9a-f]{12}", re.DOTALL)


class Entry(NamedTuple):
    """A name in an opened folder; without a folder, a whole path."""

    folder: Folder | None
    name: str

    @property
    def at(self) -> int | None:
        """For ``dir_fd``."""
        return None if self.folder is None else self.folder.handle

    def status(self) -> os.stat_result:
        """What it is; a link is followed only where nothing is private."""
        return os.stat(self.name) if self.folder is None else self.folder.status(self.name)

    def open(self, flags: int) -> int:
        """A descriptor of the file; one that is made has the mode that the umask leaves."""
        if self.folder is None:
            return os.open(self.name, flags | os.O_CLOEXEC, 0o666)
        return self.folder.open(self.name, flags)

    def rename(self, other: Entry) -> None:
        """Move it, replacing what a rename replaces."""
        os.rename(self.name, other.name, src_dir_fd=self.at, dst_dir_fd=other.at)

    def remove_tree(self) -> None:
        """Remove it with all that is in it; if it is a private folder, only this user's."""
        if self.folder is None:
            above, name = os.path.split(os.path.normpath(self.name))
            with Folder(above, shown) as folder:
                folder.remove_tree(name)
        elif _is_private(self.name):
            self.folder.remove_own(self.name)
        else:
            self.folder.remove_tree(self.name)


def is_work_name(name: str) -> bool:
    """Whether a run's working files may have a directory of this name."""
    return _WORK.fullmatch(name) is not None


def _is_private(name: str) -> bool:
    return name == WAITING or is_work_name(name)


def _names(path: str) -> tuple[str, ...]:
    root = ("/",) if path.startswith("/") else ()
    return (*root, *(name for name in path.split("/") if name not in ("", ".")))


def _first_private(parts: tuple[str, ...]) -> int | None:
    return next((at for at, name in enumerate(parts) if _is_private(name)), None)


@contextmanager
def shared(path: str) -> Iterator[Folder]:
    """A folder in which others may write, opened.

    Raises JobError where jobs may not write in it; FileNotFoundError, NotADirectoryError.
    """
    with Folder(path, shown) as folder:
        check_place(place_of(folder.handle, path or "."))
        yield folder


def entry(path: str) -> AbstractContextManager[Entry]:
    """What a local path names; in an opened folder if a name in the path is a private one."""
    if _MARK in path:
        parts = _names(path)
        first = _first_private(parts)
        if first is not None:
            return _followed(path, parts, first)
    return nullcontext(Entry(None, path))


@contextmanager
def _followed(path: str, parts: tuple[str, ...], first: int) -> Iterator[Entry]:
    """What a path names; from the name at ``first`` on it is followed name by name."""
    try:
        with shared(os.path.join("", *parts[:first])) as folder:
            for name in parts[first:-1]:
                folder.enter(name)
            yield Entry(folder, parts[-1])
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, shown(path)) from None


@contextmanager
def _placed(path: str) -> Iterator[tuple[Folder, str]]:
    """The opened folder in which a local path lies, private or not, and the name in it."""
    with entry(path) as (folder, name):
        if folder is not None:
            yield folder, name
            return
    above, name = os.path.split(os.path.normpath(path))
    with Folder(above, shown) as folder:
        yield folder, name


def is_own(path: str) -> bool:
    """Whether a private directory is this user's; raises StorageError if it is none, or a link."""
    with entry(path) as (folder, name):
        return folder is None or folder.has_own(name)


def status(path: str) -> os.stat_result:
    """What is at a path; a link is followed only where nothing is private."""
    with entry(path) as one:
        return one.status()


def open_handle(path: str, flags: int) -> int:
    """A descriptor of a file; one that is made has the mode that the umask leaves.

    With ``O_DIRECTORY``, of a directory.
    """
    with entry(path) as one:
        if one.folder is None or not flags & os.O_DIRECTORY:
            return one.open(flags)
        with one.folder.own(one.name) as directory:
            return directory.open(".", flags)


@contextmanager
def scanned(path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
    """The entries of a directory, as :func:`os.scandir` gives them."""
    with entry(path) as (folder, name):
        if folder is None:
            with os.scandir(path) as entries:
                yield entries
        else:
            with folder.own(name) as directory, directory.scanned() as entries:
                yield entries


def make(path: str) -> None:
    """Make a directory; raises FileExistsError, FileNotFoundError."""
    with entry(path) as one:
        os.mkdir(one.name, dir_fd=one.at)


def make_private(path: str) -> None:
    """Make a directory that only this user may enter, and the directories above it.

    Raises FileExistsError, NotADirectoryError, PermissionError.
    """
    _make_missing(os.path.dirname(os.path.normpath(path)))
    with _placed(path) as (folder, name):
        folder.make_private(name)


def _make_missing(path: str) -> None:
    if _first_private(_names(path)) is None:
        Path(path).mkdir(parents=True, exist_ok=True)
    elif not _is_private(os.path.basename(path)):
        _make_missing(os.path.dirname(path))
        with suppress(FileExistsError):
            make(path)


def keep_private(path: str) -> None:
    """Let only this user read a file, or enter a directory, that is there.

    Raises StorageError if it is a link or another user's.
    """
    with _placed(path) as (folder, name):
        folder.keep_private(name)


def move(source: str, target: str) -> None:
    """Rename a file or directory, replacing what a rename replaces."""
    with entry(source) as one, entry(target) as other:
        os.replace(one.name, other.name, src_dir_fd=one.at, dst_dir_fd=other.at)


def link(source: str, target: str) -> None:
    """Give a file another name; raises FileExistsError."""
    with entry(source) as one, entry(target) as other:
        os.link(one.name, other.name, src_dir_fd=one.at, dst_dir_fd=other.at)


def remove(path: str) -> None:
    """Remove a file, or a link itself; raises FileNotFoundError."""
    with entry(path) as one:
        os.unlink(one.name, dir_fd=one.at)


def remove_tree(path: str) -> None:
    """Remove a directory with all that is in it; a missing one is no error.

    Raises StorageError if it is a private one and a link, or another user's.
    """
    with suppress(FileNotFoundError, NotADirectoryError), entry(path) as one:
        one.remove_tree()
