"""What the phases of a run cost, on the clock and of processors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

Costs = Mapping[str, Mapping[str, float]]
"""By phase ``{"seconds", "cpu_s"}``: seconds of the clock, and of processors."""


class Phases:
    """Takes the time of phases that follow one another, each of which may come repeatedly.

    ``cpu`` is the clock of processors: of this process by default, with all of its threads. Where
    several threads have phases at a time, each has a clock of its own, :func:`time.thread_time`.
    """

    def __init__(self, cpu: Callable[[], float] = time.process_time) -> None:
        self._cpu = cpu
        self._costs: dict[str, tuple[float, float]] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Take the time of a block, which has no other phase in it."""
        clock, cpu = time.perf_counter(), self._cpu()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - clock, self._cpu() - cpu)

    def add(self, name: str, seconds: float, cpu_s: float) -> None:
        """Add to the costs of a phase."""
        before = self._costs.get(name, (0.0, 0.0))
        self._costs[name] = before[0] + seconds, before[1] + cpu_s

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
        for name, cost in part.items():
            total.add(name, cost["seconds"], cost["cpu_s"])
    return total.costs()
