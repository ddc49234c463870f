"""A task of Airflow that is suspended with its supervisor, as on a machine that sleeps for a while.

A task that stops alone is not given up: its supervisor goes on telling Airflow that it is there.
"""

from __future__ import annotations

from pathlib import Path

import psutil

from servers.processes import wait_until

_LOOKS = 10
_WAITING = frozenset("SZ")


class Suspended:
    """The process of a task that has stopped at a point, and its supervisor, which is stopped."""

    def __init__(self, pid: int) -> None:
        self._task = psutil.Process(pid)
        self._supervisor = self._task.parent()
        wait_until(lambda: self._task.status() == psutil.STATUS_STOPPED)
        self._supervisor.suspend()

    def go_on(self) -> None:
        """Let the task do all it can with nobody to end it; then its supervisor, who does."""
        assert self._task.status() == psutil.STATUS_STOPPED
        self._task.resume()
        self._wait_until_through()
        self._supervisor.resume()
        wait_until(lambda: not self._task.is_running())

    def _wait_until_through(self) -> None:
        """Until it has ended, or waits for its supervisor: it sleeps at each of several looks."""
        looks = 0

        def through() -> bool:
            nonlocal looks
            looks = looks + 1 if self._threads() <= _WAITING else 0
            return looks == _LOOKS

        wait_until(through)

    def _threads(self) -> set[str]:
        """What its threads do, by the letters of proc(5)."""
        stats = Path(f"/proc/{self._task.pid}/task").glob("*/stat")
        return {each.read_text().rpartition(")")[2].split()[0] for each in stats}
