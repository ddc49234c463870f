"""Open, rename and delete in folders in which other users can write: /tmp, shared outputs.

Whoever may write in a folder can put a link, or a directory of their own, under any name in it:
also between a check and the use of what was checked. So a :class:`Folder` is opened once and judged
by its descriptor, and everything in it goes by that descriptor (``dir_fd``), never by a path again.
No link below it is followed.

Imports nothing but the errors: a Spark executor uses it before it has unpacked the package.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from mondrian_ops.errors import StorageError

_AS_PLACE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
"""To open a folder that this user may enter, but perhaps not list."""
_ATTEMPTS = 5  # to remove a directory that another process goes on writing into

_owners: dict[int, int] = {}  # by file system, the owner that it gives to this user's files


class Folder:
    """An opened folder, closed at the end of a ``with`` block.

    Its methods take the names of entries and raise OSError as the functions of :mod:`os` do;
    StorageError where an entry is a link that would be followed.

    Attributes:
        handle: its descriptor, for ``dir_fd``.
        path: how it was reached.
    """

    def __init__(self, path: str, shown: Callable[[str], str] = str) -> None:
        """``shown``: how errors name a path."""
        self.path = path
        self.handle = os.open(path or ".", _AS_PLACE)
        self._shown = shown

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its descriptor."""
        os.close(self.handle)

    def enter(self, name: str) -> None:
        """Go on to a folder in it, as :meth:`own` does."""
        inner = self.own(name)
        self.close()
        self.path, self.handle = inner.path, inner.handle

    def own(self, name: str) -> Folder:
        """A folder in it that is this user's; raises StorageError as :meth:`inner`, or if not."""
        folder = self.inner(name)
        try:
            self._refuse_foreign(name, os.fstat(folder.handle))
        except BaseException:
            folder.close()
            raise
        return folder

    def has_own(self, name: str) -> bool:
        """Whether a folder in it is this user's; raises StorageError as :meth:`inner`."""
        with self.inner(name) as folder:
            return self._is_own(os.fstat(folder.handle))

    def inner(self, name: str) -> Folder:
        """A folder in it; raises StorageError if there is a link, or something else."""
        try:
            handle = os.open(name, _AS_PLACE | os.O_NOFOLLOW, dir_fd=self.handle)
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            raise StorageError(
                f"{self._named(name)}: is {self._kind(name)}, where a folder of this package is "
                "expected; find out who made it, and remove it"
            ) from None
        folder = object.__new__(Folder)
        folder.path, folder.handle = os.path.join(self.path, name), handle
        folder._shown = self._shown
        return folder

    def _refuse_foreign(self, name: str, status: os.stat_result) -> None:
        if not self._is_own(status):
            raise StorageError(
                f"{self._named(name)}: belongs to another user, so what this package keeps there "
                "would not be private; find out who made it, and remove it"
            )

    def _named(self, name: str) -> str:
        return self._shown(os.path.join(self.path, name))

    def _kind(self, name: str) -> str:
        with suppress(FileNotFoundError):
            if stat.S_ISLNK(self.status(name).st_mode):
                return "a link"
        return "no directory"

    def _is_own(self, status: os.stat_result) -> bool:
        """Whether an entry is this user's.

        A file system that maps users (NFS that squashes them) gives this user's files another
        owner: that of a file which is made here to see.
        """
        if status.st_uid == os.geteuid():
            return True
        if status.st_dev not in _owners:
            name = f".mondrian_ops-{secrets.token_hex(8)}"
            try:
                handle = self.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            except OSError:
                return False
            made = os.fstat(handle)
            os.close(handle)
            self.remove(name)
            _owners[made.st_dev] = made.st_uid
        return status.st_uid == _owners.get(status.st_dev)

    def has(self, name: str) -> bool:
        """Whether there is an entry, if only a broken link."""
        try:
            self.status(name)
        except FileNotFoundError:
            return False
        return True

    def status(self, name: str) -> os.stat_result:
        """What an entry is, if only a link."""
        return os.stat(name, dir_fd=self.handle, follow_symlinks=False)

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """A descriptor of a file or folder."""
        flags |= os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(name, flags, mode, dir_fd=self.handle)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise StorageError(
                f"{self._named(name)}: is a link, which is not followed; find out who "
                "made it, and remove it"
            ) from None

    @contextmanager
    def scanned(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        """The entries of the folder, as :func:`os.scandir` gives them."""
        handle = self.open(".", os.O_RDONLY)
        try:
            with os.scandir(handle) as entries:
                yield entries
        finally:
            os.close(handle)

    def make_private(self, name: str) -> None:
        """Make a folder that only this user may enter, whatever the umask."""
        os.mkdir(name, 0o700, dir_fd=self.handle)
        self.keep_private(name)

    def keep_private(self, name: str) -> None:
        """Let only this user read a file, or enter a folder, that is there.

        Raises StorageError if it is a link or another user's.
        """
        handle = self.open(name, os.O_RDONLY | os.O_NONBLOCK)
        try:
            status = os.fstat(handle)
            self._refuse_foreign(name, status)
            os.fchmod(handle, 0o700 if stat.S_ISDIR(status.st_mode) else 0o600)
        finally:
            os.close(handle)

    def rename(self, name: str, to: Folder, new: str) -> None:
        """Move an entry, if only a link, to a folder, replacing what a rename replaces."""
        os.rename(name, new, src_dir_fd=self.handle, dst_dir_fd=to.handle)

    def remove(self, name: str) -> None:
        """Remove a file, or a link itself; a missing one is no error."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.handle)

    def remove_tree(self, name: str) -> None:
        """Remove an entry with all that is in it; a missing one is no error.

        Files that another process adds meanwhile are removed, too.
        """
        for attempts_left in reversed(range(_ATTEMPTS)):
            try:
                if not stat.S_ISDIR(self.status(name).st_mode):
                    self.remove(name)
                else:
                    shutil.rmtree(name, onerror=_tolerate_missing, dir_fd=self.handle)
                return
            except FileNotFoundError:
                return
            except OSError as error:
                if error.errno != errno.ENOTEMPTY or not attempts_left:
                    raise

    def remove_own(self, name: str) -> None:
        """Remove a folder of this user with all that is in it; a missing one is no error.

        Raises StorageError as :meth:`own` does.
        """
        for attempts_left in reversed(range(_ATTEMPTS)):
            try:
                with self.own(name) as folder:  # what is emptied is what was judged
                    with folder.scanned() as entries:
                        names = [each.name for each in entries]
                    for each in names:
                        folder.remove_tree(each)
                os.rmdir(name, dir_fd=self.handle)
                return
            except (FileNotFoundError, NotADirectoryError):
                return  # the name has become another's meanwhile
            except OSError as error:
                if error.errno != errno.ENOTEMPTY or not attempts_left:
                    raise


def _tolerate_missing(_function: object, _path: str, error: tuple[Any, BaseException, Any]) -> None:
    if not isinstance(error[1], FileNotFoundError | NotADirectoryError):
        raise error[1]


def by_handle(handle: int) -> str:
    """A path that leads to an opened file, whatever has its name by now."""
    return f"/dev/fd/{handle}"


def place_of(handle: int, path: str) -> str:
    """Where an opened file or folder really lies, links followed.

    ``path`` is how it was reached: other systems than Linux tell by that only.
    """
    return os.readlink(by_handle(handle)) if sys.platform == "linux" else os.path.realpath(path)
