"""Show the progress of a run: bars on a terminal, plain lines in a log."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from rich.progress import TaskID

_WRITE_EVERY_S = 5.0


class Progress(Protocol):
    """Called with the phase, the units of work done in it, and how many there are."""

    def __call__(self, phase: str, done: int, total: int) -> None: ...


class Display(AbstractContextManager["Display"]):
    """Shows nothing; the displays below inherit from it."""

    def __call__(self, phase: str, done: int, total: int) -> None:
        return None

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Clear the terminal, and show nothing from here on."""


class Lines(Display):
    """Writes a line when a phase starts and ends, and every few seconds between."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._written = 0.0
        self._state = ("", False)

    def __call__(self, phase: str, done: int, total: int) -> None:
        now, has_ended = time.monotonic(), done >= total
        is_due = not has_ended and now - self._written >= _WRITE_EVERY_S
        if self._state == (phase, has_ended) and not is_due:
            return
        self._written, self._state = now, (phase, has_ended)
        self._write(f"{phase.replace('_', ' ')}: {done:,} of {total:,}")


class Bars(Display):
    """Draws a bar per phase, which disappears when the run ends."""

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
    """Nothing if ``quiet``, bars on a terminal, elsewhere lines with the time since now."""
    if quiet:
        return Display()
    if stream.isatty():
        return Bars(stream)
    started = time.monotonic()

    def write(line: str) -> None:
        stream.write(f"{time.monotonic() - started:8.1f} s  {line}\n")
        stream.flush()

    return Lines(write)
