"""Publication on the local file system, in one step.

Everything of the new release is flushed to disk before the step that makes it visible: a rename
onto nothing, or the atomic exchange of two directories (``renameat2`` with ``RENAME_EXCHANGE``).
Killed before this step, a process leaves the old release in place; killed after it, the new one,
and the old one's files in the hidden working directory, to be removed. If the file system cannot
exchange, one rename moves the old release aside and another puts the new one in its place; after a
kill between the two, the next :meth:`LocalPublication.recover` puts the old release back.

A publication holds a lock (``flock``) on the directory that contains the output. The end of the
process releases it, even a kill.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path

from mondrian_ops.errors import StorageError
from mondrian_ops.publish import manifest
from mondrian_ops.publish.publication import Progress, Publication, aside_of
from mondrian_ops.stores import private_folders
from mondrian_ops.stores.files import names_in, remove_tree
from mondrian_ops.stores.local import exists, sync
from mondrian_ops.stores.locations import is_hidden
from mondrian_ops.stores.private_folders import Entry
from mondrian_ops.stores.shared_folders import Folder

LOCK_TIMEOUT_S = 30.0
"""How long to wait for another process that publishes into the same directory."""

_POLL_S = 0.02

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_NO_LOCKS = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOLCK, errno.EBADF})
_NO_EXCHANGE = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM})


def _lock(directory: int, target: str) -> None:
    """Take a lock that closing ``directory`` releases."""
    until = time.monotonic() + LOCK_TIMEOUT_S
    while True:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                raise TimeoutError(
                    f"output: another process has been publishing beside {target} for "
                    f"{LOCK_TIMEOUT_S:.0f} seconds; check whether it still runs, then run again"
                ) from None
            time.sleep(_POLL_S)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            return


class LocalPublication(Publication):
    """By a rename, or the exchange of two directories."""

    @contextmanager
    def lock(self, target: str) -> Iterator[None]:
        """A lock on the directory of ``target``; a file system without locks gets none."""
        try:
            directory = os.open(Path(target).parent, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:  # missing or forbidden: the publication will report it
            yield
            return
        try:
            _lock(directory, target)
            yield
        finally:
            os.close(directory)

    def recover(self, target: str, token: str = "") -> None:
        """Put back a release that an unfinished publication moved aside.

        It is removed if another one took its place, and stays where something else is there. What
        is no release, or a link, was not moved aside by a publication, and stays.
        """
        above, name = os.path.split(target)
        aside = aside_of(name)
        with (
            suppress(FileNotFoundError, NotADirectoryError),
            private_folders.shared(above) as folder,
        ):
            if not _may_be_release(_names(folder, aside)):
                return
            if _is_free(folder, name):
                folder.rename(aside, folder, name)
            elif manifest.NAME in (_names(folder, name) or ()):
                folder.remove_own(aside)

    def refuse_unwritable(self, target: str) -> None:
        ancestor = Path(target).parent
        while not exists(ancestor):
            ancestor = ancestor.parent
        if not ancestor.is_dir() or not os.access(ancestor, os.W_OK | os.X_OK):
            raise StorageError(
                f"output: {ancestor} is not a directory this process may write to; "
                "choose another `output`, or grant the permission"
            )

    def place(self, staging: str, target: str, token: str, progress: Progress) -> None:
        new, old = Path(staging), Path(target)
        for name in names_in(staging):
            if name.startswith("_"):  # a part was flushed before it had its name
                sync(new / name)
        sync(new)
        _swap(staging, target)
        sync(old.parent)
        remove_tree(staging)  # which holds the old release now, if there was one


def _names(folder: Folder, name: str) -> list[str] | None:
    """The names in a directory; None if there is none, if it is a link, or another user's."""
    try:
        with folder.inner(name) as directory, directory.scanned() as entries:
            return [each.name for each in entries]
    except (FileNotFoundError, PermissionError, StorageError):
        return None


def _may_be_release(names: list[str] | None) -> bool:
    """Whether it is a directory of a release, of which a part may be removed already."""
    return names is not None and all(
        is_hidden(name) or fnmatchcase(name, manifest.PART_PATTERN) for name in names
    )


def _is_free(folder: Folder, name: str) -> bool:
    """Whether there is nothing, or an empty directory, which a rename of another replaces.

    Raises StorageError if there is a link: those in the output's path are followed before.
    """
    try:
        with folder.inner(name) as directory, directory.scanned() as entries:
            return next(entries, None) is None
    except FileNotFoundError:
        return True


def _swap(staging: str, target: str) -> None:
    above, name = os.path.split(target)
    try:
        with private_folders.entry(staging) as new, private_folders.shared(above) as folder:
            old = Entry(folder, name)
            if _is_free(folder, name):
                new.rename(old)
            elif not _exchange(new, old):
                _step_aside(new, old)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EBUSY):
            raise
        raise StorageError(
            f"output: {target} is a mount point, or on a different file system from its parent "
            "directory, so it cannot be replaced in one step; choose a directory below it"
        ) from None


def _exchange(one: Entry, other: Entry) -> bool:
    """Exchange two directories atomically; False if the system or file system cannot."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    places: list[int | bytes] = []
    for each in (one, other):
        places += [_AT_FDCWD if each.at is None else each.at, os.fsencode(each.name)]
    if renameat2(*places, _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NO_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), other.name)


def _step_aside(staging: Entry, target: Entry) -> None:
    aside = target._replace(name=aside_of(target.name))
    try:
        target.rename(aside)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        raise _in_the_way(aside) from None
    try:
        staging.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    aside.remove_tree()


def _in_the_way(aside: Entry) -> StorageError:
    above = "" if aside.folder is None else aside.folder.path
    return StorageError(
        f"output: {above}/{aside.name} is in the way of the release that is to be replaced; find "
        "out who made it, and remove it"
    )
