"""The number of cores that this process may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath

_GROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def available_cores(groups: Path = _GROUPS, own: Path = _OWN) -> int:
    """The number of cores that this process may use, by its affinity and its control groups' quota.

    The quota matters in a container, whose processes see all cores of the host. ``groups`` is the
    path where the control groups are mounted, version 2 or 1; ``own`` lists those of this process.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return max(1, min([cores, *map(int, _quotas(groups, own))]))


@lru_cache(maxsize=2)  # of this process it stays
def _quotas(groups: Path, own: Path) -> list[float]:
    return [quota for group in _own_groups(groups, own) if (quota := _quota(group))]


def _own_groups(groups: Path, own: Path) -> Iterator[Path]:
    """The control groups of this process that may have a quota, and those that they lie in.

    A container may show its own group as the root of ``groups``, so the root is always among them.
    """
    yield groups
    yield groups / "cpu"
    try:
        lines = own.read_text().splitlines()
    except OSError:  # another system
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        mounted = groups / controllers
        of_group = PurePosixPath(path.lstrip("/"))
        yield from (mounted / each for each in (of_group, *of_group.parents))


def _quota(group: Path) -> float | None:
    """Cores by a control group; None without a quota."""
    try:
        if (both := group / "cpu.max").exists():
            quota, period = both.read_text().split()
        else:
            quota = (group / "cpu.cfs_quota_us").read_text()
            period = (group / "cpu.cfs_period_us").read_text()
        return int(quota) / int(period) if int(quota) > 0 else None
    except (OSError, ValueError, ZeroDivisionError):  # no quota, "max", or another system
        return None
