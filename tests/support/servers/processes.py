"""Starting, watching and stopping the processes that a server is made of."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from local_airflow import family, kill_all

START_S = 240
_STOP_S = 15


class ServerError(Exception):
    """A server did not start or answer; the message ends with what it logged last."""


class Process:
    """One process of a server, with a log of its own; whatever it starts ends with it.

    :param command: the program and its arguments.
    :param log: where its output goes.
    :param settings: environment variables beside those of the tests.
    :param user: who runs it, where that is not us.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        settings: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> None:
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [*command],
                env={**os.environ, **(settings or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=user,
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until it serves; raises ServerError if it ends before, or takes too long."""

        def served() -> bool:
            if not self.running:
                raise ServerError(f"{self.log.stem} ended by itself{self._last_lines()}")
            return condition()

        try:
            wait_until(served)
        except TimeoutError:
            raise ServerError(
                f"{self.log.stem} did not serve in {START_S} s{self._last_lines()}"
            ) from None

    def stop(self) -> None:
        """End it and its children: asked first, then killed."""
        started = family(self.pid)
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        kill_all(started)
        self._process.wait()

    def kill(self) -> None:
        """End it and its children as a power cut would: SIGKILL, nothing is told to anyone."""
        kill_all(family(self.pid))
        self._process.wait()

    def _last_lines(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-15:]
        return "\n".join([f"; see {self.log}", *lines])


def answers(port: int) -> bool:
    """Whether something listens at a loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until(condition: Callable[[], bool], timeout: float = START_S) -> None:
    """Wait until a condition holds; raises TimeoutError."""
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {timeout:.0f} s")
        time.sleep(0.1)
