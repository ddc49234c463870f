"""Publication on the local file system, in one step.

Everything of the new release is flushed to disk before the step that makes it visible: a rename
onto nothing, or the atomic exchange of two directories (``renameat2`` with ``RENAME_EXCHANGE``).
Killed before this step, a process leaves the old release in place; killed after it, the new one,
and the old one's files in the hidden working directory, to be removed. If the file system cannot
exchange, one rename moves the old release aside and another puts the new one in its place; after a
kill between the two, the next :func:`recover` puts the old release back.

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
from contextlib import contextmanager
from pathlib import Path

from mondrian_ops.core.errors import StorageError
from mondrian_ops.storage import manifest
from mondrian_ops.storage.files import exists, remove_tree, sync

__all__ = ["place", "publication_lock", "recover", "refuse_unwritable"]

LOCK_TIMEOUT_S = 30.0
"""How long to wait for another process that publishes into the same directory."""

_POLL_S = 0.02

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_NO_LOCKS = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOLCK, errno.EBADF})
_NO_EXCHANGE = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM})


@contextmanager
def publication_lock(target: str) -> Iterator[None]:
    """Keep other processes from publishing into the directory of ``target``.

    A file system without locks gets none. Raises TimeoutError, which a retry may cure.
    """
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


def recover(target: str, _token: str = "") -> None:
    """Put back a release that an unfinished publication moved aside.

    It is removed if another one took its place, and stays where something else is there.
    """
    path = Path(target)
    aside = _aside(path)
    if not exists(aside):
        return
    if _is_free(path):
        aside.rename(path)
    elif exists(path / manifest.NAME):
        remove_tree(str(aside))


def refuse_unwritable(target: str) -> None:
    """Raise StorageError if this process cannot make the release."""
    ancestor = Path(target).parent
    while not exists(ancestor):
        ancestor = ancestor.parent
    if not ancestor.is_dir() or not os.access(ancestor, os.W_OK | os.X_OK):
        raise StorageError(
            f"output: {ancestor} is not a directory this process may write to; "
            "choose another `output`, or grant the permission"
        )


def place(staging: str, target: str, _token: str, _progress: object) -> None:
    """Make a complete ``staging`` the release at ``target``; the one it replaces is removed."""
    new, old = Path(staging), Path(target)
    for path in list(new.iterdir()):
        if path.name.startswith("_"):  # a part was flushed before it had its name
            sync(path)
    sync(new)
    _swap(new, old)
    sync(old.parent)
    remove_tree(staging)  # which holds the old release now, if there was one


def _is_free(path: Path) -> bool:
    """Whether there is nothing, or an empty directory, which a rename of another replaces."""
    return not exists(path) or (path.is_dir() and not any(path.iterdir()))


def _swap(staging: Path, target: Path) -> None:
    try:
        if _is_free(target):
            staging.rename(target)
        elif not _exchange(staging, target):
            _step_aside(staging, target)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EBUSY):
            raise
        raise StorageError(
            f"output: {target} is a mount point, or on a different file system from its parent "
            "directory, so it cannot be replaced in one step; choose a directory below it"
        ) from None


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two directories atomically; False if the system or file system cannot."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    arguments = (_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    if renameat2(*arguments) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NO_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), str(other))


def _step_aside(staging: Path, target: Path) -> None:
    aside = _aside(target)
    target.rename(aside)
    try:
        staging.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    remove_tree(str(aside))


def _aside(target: Path) -> Path:
    return target.with_name(f".{target.name}.mondrian_ops-previous")
