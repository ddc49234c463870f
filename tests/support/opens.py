"""How often the files of a folder are opened, by whatever code, as Linux tells (inotify)."""

from __future__ import annotations

import ctypes
import os
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ACCESS, _CLOSE, _OPEN, _OVERFLOW = 0x1, 0x18, 0x20, 0x4000
_HEAD = struct.Struct("iIII")


@contextmanager
def opens_in(folder: Path) -> Iterator[Counter[str]]:
    """By name, how often each file in a folder is opened within the block; told when it ends.

    Reads and closes are watched too: Linux joins events that are alike and follow each other.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.inotify_init1(os.O_NONBLOCK)
    assert handle >= 0, os.strerror(ctypes.get_errno())
    opens: Counter[str] = Counter()
    try:
        watched = libc.inotify_add_watch(handle, os.fsencode(folder), _OPEN | _ACCESS | _CLOSE)
        assert watched >= 0, os.strerror(ctypes.get_errno())
        yield opens
        for mask, name in _events(handle):
            assert not mask & _OVERFLOW, "more events than Linux keeps"
            if mask & _OPEN and name:
                opens[name] += 1
    finally:
        os.close(handle)


def _events(handle: int) -> Iterator[tuple[int, str]]:
    while True:
        try:
            content = os.read(handle, 1 << 16)
        except BlockingIOError:
            return
        at = 0
        while at < len(content):
            _, mask, _, length = _HEAD.unpack_from(content, at)
            at += _HEAD.size
            yield mask, content[at : at + length].rstrip(b"\0").decode()
            at += length
