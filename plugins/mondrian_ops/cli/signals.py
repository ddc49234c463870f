"""SIGINT and SIGTERM, while a command runs."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ctypes

    from mondrian_ops.progress import Progress


class Terminated(BaseException):
    """Raised by SIGTERM, so that working files are removed on the way out."""


class Signals:
    """Turns SIGINT and SIGTERM into exceptions, so that working files are removed on the way out.

    During a run they stop the kernels, those to come as well, and are raised between its steps: an
    exception that is raised while C code calls Python back would be lost. A second signal is raised
    at once.
    """

    def __init__(self) -> None:
        self._watched = False
        self._flag: ctypes.c_int | None = None  # stops the kernels of a run
        self._received: type[BaseException] | None = None

    def _stop(self, number: int, frame: FrameType | None) -> None:
        is_first = self._received is None
        self._received = KeyboardInterrupt if number == signal.SIGINT else Terminated
        if not (self._watched and is_first):
            raise self._received
        if self._flag is not None:
            self._flag.value = 1

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Raise an exception for each signal until the block ends."""
        self._watched, self._received = False, None
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, self._stop) for number in numbers]
        try:
            yield
        except BaseException:
            if self._received is not None:  # the error is what it caused
                raise self._received from None
            raise
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)
            if self._flag is not None:
                self._adopt(None)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Raise them at any point of the block, such as while it waits for an answer."""
        watched, self._watched = self._watched, False
        if self._received is not None:
            raise self._received
        try:
            yield
        finally:
            self._watched = watched

    def watched(self, progress: Progress) -> Progress:
        """``progress``, which from now on also raises a signal that came since its last call."""
        import ctypes

        self._adopt(ctypes.c_int())
        self._watched = True

        def step(phase: str, done: int, total: int) -> None:
            if self._received is not None:
                raise self._received
            progress(phase, done, total)

        return step

    def _adopt(self, flag: ctypes.c_int | None) -> None:
        from mondrian_ops.native import library

        self._flag = flag
        library.adopt(flag)


SIGNALS = Signals()
