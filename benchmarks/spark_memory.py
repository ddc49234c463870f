"""What the processes of a Spark cluster hold at most, by what they are."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

_EVERY_S = 1.0
# Master and workers, which hold little and do nothing, are left out.
_KINDS = (
    ("executor, JVM", "CoarseGrainedExecutorBackend"),
    ("executor, Python", "pyspark.daemon"),
    ("driver, JVM", "SparkConnectServer"),
)


def kind_of(command: Sequence[str]) -> str | None:
    """What a process is by its command; None if it is none of those to tell of."""
    line = " ".join(command)
    return next((kind for kind, mark in _KINDS if mark in line), None)


class Peaks:
    """Peak resident memory in MiB, by kind of process; looked at while watched.

    The kernel keeps the peak of each process, so that only what one takes in its last moments can
    go unseen.
    """

    def __init__(self) -> None:
        self.mib: dict[str, float] = {}

    @contextmanager
    def watched(self) -> Iterator[Peaks]:
        """Look at the processes that this one has started, and at theirs."""
        over = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(over,), daemon=True)
        watcher.start()
        try:
            yield self
        finally:
            over.set()
            watcher.join()

    def look(self) -> None:
        """Take note of what all hold now."""
        for process in psutil.Process().children(recursive=True):
            try:
                kind = kind_of(process.cmdline())
                if kind is not None:
                    self.mib[kind] = max(self.mib.get(kind, 0.0), peak_mib(process.pid))
            except (psutil.Error, OSError):
                continue  # it has ended

    def _watch(self, over: threading.Event) -> None:
        while not over.wait(_EVERY_S):
            self.look()


def peak_mib(pid: int) -> float:
    """The most that a process has held so far; what it holds now where the kernel does not tell."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return float(psutil.Process(pid).memory_info().rss) / 2**20
    for line in status.read_text("ascii", "replace").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0  # it has ended, and its parent has not noticed
