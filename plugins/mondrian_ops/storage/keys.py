"""A secret key that lies beside what is hashed with it: made once, whole, and never replaced."""

from __future__ import annotations

import errno
import os
import uuid
from contextlib import suppress
from pathlib import Path

from mondrian_ops.storage.files import write_file
from mondrian_ops.storage.locations import is_local, local_path

__all__ = ["KEY_BYTES", "make_key"]

KEY_BYTES = 32

_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS})


def make_key(url: str, mode: int = 0o600) -> None:
    """Write a new random key, unless there is one.

    On a remote store the last of several that write one at once stays (S3 knows no other way), so
    who made a key reads it back.

    :param mode: of the file, where it is local.

    Raises FileNotFoundError where the directory is missing.
    """
    key = os.urandom(KEY_BYTES)
    if not is_local(url):
        write_file(url, key)
        return
    place = Path(local_path(url))
    temporary = place.with_name(f".{place.name}.{uuid.uuid4().hex}.tmp")
    try:
        _create(temporary, key, mode)
        with suppress(FileExistsError):
            _link(temporary, place, key, mode)
    finally:
        temporary.unlink(missing_ok=True)


def _create(path: Path, key: bytes, mode: int) -> None:
    """Write a key; raises FileExistsError where something is."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(key)
        os.fchmod(file.fileno(), mode)  # whatever the umask


def _link(temporary: Path, place: Path, key: bytes, mode: int) -> None:
    """Let the key appear whole, or where there are no links, at least never in place of another."""
    try:
        os.link(temporary, place)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _create(place, key, mode)
