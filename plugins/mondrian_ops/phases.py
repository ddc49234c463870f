"""What the phases of a run cost, on the clock and of processors."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

Costs = Mapping[str, Mapping[str, float]]
"""By phase ``{"seconds", "cpu_s"}``: seconds of the clock, and of processors."""


class Phases:
    """Measures phases that follow one another, or lie in one another, in one thread.

    ``cpu`` is the clock of processors: by default that of this process, with all its threads. Where
    several threads have phases at a time, each takes its own, :func:`time.thread_time`.
    """

    def __init__(self, cpu: Callable[[], float] = time.process_time) -> None:
        self._cpu = cpu
        self._costs: dict[str, list[float]] = {}
        self._inner: list[list[float]] = []  # of each phase that goes on, the costs of others in it

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Measure a block; another phase within it is no part of this one."""
        self.add(name, 0, 0)
        clock, cpu = time.perf_counter(), self._cpu()
        self._inner.append([0, 0])
        try:
            yield
        finally:
            seconds, cpu_s = time.perf_counter() - clock, self._cpu() - cpu
            of_others = self._inner.pop()
            self.add(name, seconds - of_others[0], cpu_s - of_others[1])
            for outer in self._inner[-1:]:
                outer[:] = outer[0] + seconds, outer[1] + cpu_s

    def laps(self) -> Callable[[str], None]:
        """What is called at the end of each phase of several in a row, with its name."""
        before = time.perf_counter(), self._cpu()

        def end(name: str) -> None:
            nonlocal before
            now = time.perf_counter(), self._cpu()
            self.add(name, now[0] - before[0], now[1] - before[1])
            before = now

        return end

    def add(self, name: str, seconds: float, cpu_s: float) -> None:
        """Add to the costs of a phase."""
        cost = self._costs.setdefault(name, [0, 0])
        cost[:] = cost[0] + seconds, cost[1] + cpu_s

    def take(self, costs: Costs) -> None:
        """Add the costs of phases that something else has measured."""
        for name, cost in costs.items():
            self.add(name, cost["seconds"], cost["cpu_s"])

    def costs(self) -> dict[str, dict[str, float]]:
        """What each phase has cost, in the order in which they began."""
        return {
            name: {"seconds": round(seconds, 4), "cpu_s": round(cpu_s, 4)}
            for name, (seconds, cpu_s) in self._costs.items()
        }


def added(parts: Iterable[Costs]) -> dict[str, dict[str, float]]:
    """The costs of several parts of a run together."""
    total = Phases()
    for part in parts:
        total.take(part)
    return total.costs()


def since_start() -> float:
    """Seconds since this process began; those of its processors where the system does not say."""
    try:
        after_name = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        began = int(after_name[19]) / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - began
    except (OSError, AttributeError):
        return time.process_time()
