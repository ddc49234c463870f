"""Faults at the points where a process reads, writes, renames or removes.

Installed in a process of its own, and only there: the functions through which the package reaches
the file system are wrapped, none of its own is changed. A point is the n-th call of an operation on
a kind of file (``write part 2``): names that differ from run to run are the same kind.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import re
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from mondrian_ops.publish import local
from mondrian_ops.stores.private_folders import Entry

KILLS = ("killed before", "killed after")
ERRORS = ("EIO", "ENOSPC", "reply lost")
STOPS = ("stopped", "stopped for long")
IN_TIME = "killed in time"
"""At no point: after so many seconds."""

_HANDLES = "/dev/fd/"
_WRITES = frozenset({"create", "write", "mkdir", "rename", "link", "fsync", "exchange"})
_NAMES = (
    (re.compile(r"part-[0-9a-f]{16}\.parquet"), "part"),
    (re.compile(r"persons-[0-9a-f]{64}\.arrow"), "persons"),
    (re.compile(r"\d+-\d*\.arrow"), "fragment"),
    (re.compile(r"\.[0-9a-f]{8}(\.tmp)?$"), ""),
    (re.compile(r"\.mondrian_ops-[0-9a-f]{12}$"), "work"),
    (re.compile(r"[0-9a-f]{32}"), "token"),
    (re.compile(r"^run-\w+$"), "run"),
)


@dataclass(frozen=True)
class Fault:
    """What happens at a point: a signal, or an error.

    ``killed after`` and ``ENOSPC`` let half of what is written through; ``reply lost`` does what
    was asked and then fails, as a file server may. What is ``stopped`` may go on later.
    """

    point: str
    kind: str


class Points:
    """Counts the calls on files below a folder, and strikes at one of them."""

    def __init__(self, folder: str, fault: Fault | None) -> None:
        self.passed: list[str] = []
        self.on_stop: Callable[[], None] = lambda: None
        self._folder = os.path.realpath(folder)
        self._fault = fault
        self._calls: Counter[str] = Counter()
        self._lock = RLock()
        self._inside = False

    def kind_of(self, path: Any) -> str | None:
        """The kind of a file below the folder; None for any other."""
        try:
            name = os.path.abspath(os.fsdecode(path))
        except TypeError:
            return None
        if os.path.commonpath([name, self._folder]) != self._folder:
            return None
        base = os.path.basename(name).lstrip(".") or "folder"
        for pattern, kind in _NAMES:
            base = pattern.sub(kind, base)
        return base

    def call(self, operation: str, path: Any, act: Callable[[], Any], half: Any = None) -> Any:
        """Do what is asked, unless the fault is here; ``half`` does half of it."""
        with self._lock:
            kind = None if self._inside else self.kind_of(path)
            if kind is None:
                return act()
            called = f"{operation} {kind}"
            self._calls[called] += 1
            point = f"{called} {self._calls[called]}"
            self.passed.append(point)
            fault = self.fault_at(point, path)
            if fault is None:
                return act()
            self._inside = True
            try:
                return self._strike(fault, act, half or act)
            finally:
                self._inside = False

    def fault_at(self, point: str, path: Any) -> str | None:
        """The kind of fault that strikes at a point; None for none."""
        if self._fault is None or point != self._fault.point:
            return None
        return self._fault.kind

    def _strike(self, kind: str, act: Callable[[], Any], half: Callable[[], Any]) -> Any:
        if kind == "killed before":
            os.kill(os.getpid(), signal.SIGKILL)
        if kind == "killed after":
            try:
                half()
            finally:
                os.kill(os.getpid(), signal.SIGKILL)
        if kind in STOPS:
            self.on_stop()
            os.kill(os.getpid(), signal.SIGSTOP)
            return act()
        if kind == "ENOSPC":
            if half is not act:
                half()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if kind == "reply lost":
            act()
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def faults_at(point: str) -> tuple[str, ...]:
    """The faults that make sense at a point."""
    operation = point.partition(" ")[0]
    if operation == "stat":  # changes nothing, and has a neighbour that does
        return ("EIO",)
    errors = ERRORS if operation in _WRITES else ("EIO",)
    return (*KILLS, *errors, *STOPS)


def install(points: Points, exchanges: bool = True) -> None:
    """Wrap, in this process, what the package reaches the file system through."""
    if not exchanges:
        local._exchange = lambda one, other: False
    _wrap_os(points)
    _wrap_open(points)
    pa.OSFile = lambda path, mode: _native(points, path, mode)
    pa.memory_map = _wrapped(points, "map", pa.memory_map)
    ds.dataset = _wrapped(points, "scan", ds.dataset)
    real_parquet = pq.ParquetFile

    def parquet_file(source: Any, **options: Any) -> Any:
        if isinstance(source, str) and points.kind_of(source) is not None:
            source = _native(points, source, "rb")
        return real_parquet(source, **options)

    pq.ParquetFile = parquet_file
    local._exchange = _wrapped(points, "exchange", local._exchange, which=1)
    local.LOCK_TIMEOUT_S = 0.0


def _wrapped(
    points: Points, operation: str, function: Callable[..., Any], which: int = 0
) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        directory = kwargs.get("dir_fd", kwargs.get("dst_dir_fd"))
        path = _resolved(args[which], directory)
        return points.call(operation, path, lambda: function(*args, **kwargs))

    return call


def _wrap_os(points: Points) -> None:
    """What removes, renames and reads at once; an open handle stands for its file."""
    operations = {
        "mkdir": ("mkdir", 0),
        "chmod": ("chmod", 0),
        "rename": ("rename", 1),
        "replace": ("rename", 1),
        "link": ("link", 1),
        "unlink": ("unlink", 0),
        "rmdir": ("rmdir", 0),
        "fsync": ("fsync", 0),
        "read": ("read", 0),
        "scandir": ("list", 0),
        "stat": ("stat", 0),
        "lstat": ("stat", 0),
    }
    for name, (operation, which) in operations.items():
        setattr(os, name, _wrapped(points, operation, getattr(os, name), which))


def _resolved(path: Any, directory: int | None = None) -> Any:
    if isinstance(path, Entry):
        path, directory = path.name, path.at
    if isinstance(path, int):
        return os.readlink(f"{_HANDLES}{path}")
    if isinstance(path, str) and path.startswith(_HANDLES):
        handle, _, rest = path.removeprefix(_HANDLES).partition("/")
        return os.path.join(os.readlink(_HANDLES + handle), rest)
    if directory is not None:
        return os.path.join(os.readlink(f"{_HANDLES}{directory}"), path)
    return path


def _wrap_open(points: Points) -> None:
    real = io.open

    def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        operation = "read" if mode.startswith("r") else "create"
        return points.call(operation, _resolved(file), lambda: real(file, mode, *args, **kwargs))

    io.open = builtins.open = opened


def _native(points: Points, path: str, mode: str) -> pa.NativeFile:
    operation = "open" if mode == "rb" else "create"
    named = _resolved(path)
    raw = points.call(operation, named, lambda: io.FileIO(path, mode))
    return pa.PythonFile(_File(points, named, raw), mode[0])


class _File(io.RawIOBase):
    """A file of which every single read and write is a point."""

    def __init__(self, points: Points, path: str, raw: io.FileIO) -> None:
        self._points, self._path, self._raw = points, path, raw

    def read(self, size: int = -1) -> bytes:
        return self._points.call("read", self._path, lambda: self._raw.read(size))

    def write(self, content: Any) -> int:
        content = bytes(content)
        return self._points.call(
            "write",
            self._path,
            lambda: self._raw.write(content),
            lambda: self._raw.write(content[: len(content) // 2]),
        )

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._raw.seek(offset, whence)

    def tell(self) -> int:
        return self._raw.tell()

    def readable(self) -> bool:
        return self._raw.readable()

    def writable(self) -> bool:
        return self._raw.writable()

    def seekable(self) -> bool:
        return True
