"""Local files that somebody names, opened only if they are regular files.

To open a named pipe or a socket waits for another process, maybe forever, and to open a device may
change it. So each is refused before it is opened, and looked at again once it is open: between the
two a name may become another's. Whoever reads the file reads by the descriptor that was looked at.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import IO, TYPE_CHECKING

from mondrian_ops.errors import InputError, MondrianOpsError, StorageError
from mondrian_ops.job import limits
from mondrian_ops.stores import private_folders
from mondrian_ops.stores.access_policy import check_opened, current_policy
from mondrian_ops.stores.shared_folders import by_handle, place_of

if TYPE_CHECKING:
    import pyarrow as pa

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def special(mode: int) -> str:
    """What a file is that is neither regular nor a directory; empty if it is one of the two."""
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return ""
    return _KINDS.get(stat.S_IFMT(mode), "a special file")


def refuse_special(
    path: str, mode: int | None = None, error: type[MondrianOpsError] = StorageError, name: str = ""
) -> None:
    """Raise ``error``, which calls the file ``name`` or by its path, if it is a special file.

    ``mode``: what is known of it already. Raises OSError if it is missing.
    """
    kind = special(private_folders.status(path).st_mode if mode is None else mode)
    if kind:
        raise error(
            f"{name or path}: is {kind}, not a regular file, and is not opened; remove it, or give "
            "a file in its place"
        )


def open_regular(
    path: str, error: type[MondrianOpsError] = StorageError, name: str = ""
) -> IO[bytes]:
    """A local file to read from its start; raises as :func:`refuse_special` does."""
    return os.fdopen(open_checked(path, error, name), "rb")


def open_data(path: str) -> int:
    """A descriptor of a local data file, which lies where jobs may read.

    Raises InputError if it is a special file, JobError if it is a link that leads elsewhere, and
    OSError.
    """
    handle = open_checked(path, InputError)
    try:
        if current_policy() is not None:
            check_opened(path, place_of(handle, path))
    except BaseException:
        os.close(handle)
        raise
    return handle


def open_checked(path: str, error: type[MondrianOpsError] = StorageError, name: str = "") -> int:
    """A descriptor of a local file to read; raises as :func:`refuse_special` does."""
    with private_folders.entry(path) as one:
        refuse_special(path, one.status().st_mode, error, name)
        # Without waiting: the name may have become that of a pipe.
        handle = one.open(os.O_RDONLY | os.O_NONBLOCK)
    try:
        mode = os.fstat(handle).st_mode
        refuse_special(path, mode, error, name)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    except BaseException:
        os.close(handle)
        raise
    return handle


def arrow_file(handle: int, mode: str = "rb") -> pa.NativeFile:
    """An opened file as Arrow reads or writes it; ``handle`` is closed."""
    import pyarrow as pa

    try:
        return pa.OSFile(by_handle(handle), mode)
    finally:
        os.close(handle)


def mapped(path: str) -> pa.MemoryMappedFile:
    """A local file, mapped into memory."""
    import pyarrow as pa

    handle = open_checked(path)
    try:
        return pa.memory_map(by_handle(handle))
    finally:
        os.close(handle)


def content_within(path: str, limit: str, name: str, error: type[MondrianOpsError]) -> bytes:
    """The content of a local file that is no larger than a ``limit``.

    Raises ``error``, which names the file as ``name``, if it is larger or no regular file; OSError
    if it is unreadable.
    """
    most = limits.limit(limit)
    with open_regular(path, error, name) as file:
        content = file.read(most + 1)
        if len(content) <= most:
            return content
        size = limits.size_text(max(len(content), os.fstat(file.fileno()).st_size))
    raise error(limits.exceeded(limit, f"{name}: has {size}", "make it smaller"))
