"""Local files that somebody names, opened only if they are regular files.

To open a named pipe or a socket waits for another process, maybe forever, and to open a device may
change it. So each is refused before it is opened, and looked at again once it is open: between the
two a name may become another's.
"""

from __future__ import annotations

import os
import stat
from typing import IO

from mondrian_ops.core import resource_limits
from mondrian_ops.core.errors import MondrianOpsError, StorageError

__all__ = ["content_within", "open_regular", "refuse_special", "special"]

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
    kind = special(os.stat(path).st_mode if mode is None else mode)
    if kind:
        raise error(
            f"{name or path}: is {kind}, not a regular file, and is not opened; remove it, or give "
            "a file in its place"
        )


def open_regular(
    path: str, error: type[MondrianOpsError] = StorageError, name: str = ""
) -> IO[bytes]:
    """A local file to read from its start; raises as :func:`refuse_special` does."""
    refuse_special(path, None, error, name)
    file = open(path, "rb", opener=_at_once)  # noqa: SIM115 - the caller closes it
    try:
        refuse_special(path, os.fstat(file.fileno()).st_mode, error, name)
    except BaseException:
        file.close()
        raise
    return file


def content_within(path: str, limit: str, name: str, error: type[MondrianOpsError]) -> bytes:
    """The content of a local file that is no larger than a ``limit``.

    Raises ``error``, which names the file as ``name``, if it is larger or no regular file; OSError
    if it is unreadable.
    """
    most = resource_limits.limit(limit)
    with open_regular(path, error, name) as file:
        content = file.read(most + 1)
        if len(content) <= most:
            return content
        size = resource_limits.size_text(max(len(content), os.fstat(file.fileno()).st_size))
    raise error(resource_limits.exceeded(limit, f"{name}: has {size}", "make it smaller"))


def _at_once(path: str, flags: int) -> int:
    """Open a file without waiting: the name may have become that of a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)
