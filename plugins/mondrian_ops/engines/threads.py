"""Threads of this process, and the number of cores they may use."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

__all__ = ["available_cores", "in_threads"]

T = TypeVar("T")
R = TypeVar("R")

_GROUPS = Path("/sys/fs/cgroup")


def available_cores(groups: Path = _GROUPS) -> int:
    """The number of cores that this process may use, by its affinity and its control group's quota.

    The quota matters in a container, whose processes see all cores of the host. ``groups`` is the
    path where the control group is mounted, version 2 or 1.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return max(1, min(cores, int(_quota(groups))))


def in_threads(
    work: Callable[[T], R], items: Iterable[T], at_once: int | None = None
) -> Iterator[R]:
    """``work`` on every item, as many at once as there are cores; results in the items' order.

    The kernels and Arrow release the GIL. Only a few results wait for the consumer, so the number
    of items does not affect memory. The first exception cancels the rest.
    """
    at_once = at_once or available_cores()
    running: deque[Future[R]] = deque()
    with ThreadPoolExecutor(at_once) as pool:
        try:
            for item in items:
                running.append(pool.submit(work, item))
                if len(running) > at_once:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _quota(groups: Path) -> float:
    """Cores by the control group; without a quota, more than any machine has."""
    unlimited = float(1 << 20)
    try:
        if (both := groups / "cpu.max").exists():
            quota, period = both.read_text().split()
        else:
            quota = (groups / "cpu" / "cpu.cfs_quota_us").read_text()
            period = (groups / "cpu" / "cpu.cfs_period_us").read_text()
        return int(quota) / int(period) if int(quota) > 0 else unlimited
    except (OSError, ValueError, ZeroDivisionError):  # no quota, "max", or another system
        return unlimited
