"""Showing how far a run is: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from rich.progress import TaskID

_LOG_EVERY_S = 5.0


class Progress(Protocol):
    """Called with the phase, the units of work done in it, and how many there are."""

    def __call__(self, phase: str, done: int, total: int) -> None: ...


class Display(AbstractContextManager["Display"]):
    """Shows nothing; the others inherit from it."""

    def __call__(self, phase: str, done: int, total: int) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Clear the terminal for something else; nothing is shown from here on."""


class Lines(Display):
    """A line when a phase starts and ends, and every few seconds between."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._started = time.monotonic()
        self._phase = ""
        self._said = 0.0
        self._ended = False

    def __call__(self, phase: str, done: int, total: int) -> None:
        now = time.monotonic()
        begins, ends = phase != self._phase, done >= total
        if begins:
            self._phase, self._ended = phase, False
        if self._ended or not (begins or ends or now - self._said >= _LOG_EVERY_S):
            return
        self._said, self._ended = now, ends
        elapsed = now - self._started
        self._stream.write(f"{elapsed:8.1f} s  {phase.replace('_', ' ')}: {done:,} of {total:,}\n")
        self._stream.flush()


class Bars(Display):
    """A bar per phase, by rich, gone when the run ends."""

    def __init__(self, stream: TextIO) -> None:
        from rich import progress
        from rich.console import Console

        self._bars = progress.Progress(
            progress.TextColumn("{task.description:<20}", markup=False),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            console=Console(file=stream),
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Bars:
        self._bars.start()
        return self

    def __call__(self, phase: str, done: int, total: int) -> None:
        if phase not in self._tasks:
            self._tasks[phase] = self._bars.add_task(phase.replace("_", " "), total=total)
        self._bars.update(self._tasks[phase], completed=done, total=total)

    def stop(self) -> None:
        self._bars.stop()


def display(stream: TextIO, quiet: bool = False) -> Display:
    """Bars where `stream` is a terminal, lines where it is not, nothing when `quiet`."""
    if quiet:
        return Display()
    return Bars(stream) if stream.isatty() else Lines(stream)
