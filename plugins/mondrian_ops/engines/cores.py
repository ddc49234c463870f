"""How many cores this process may use."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["available_cores"]

_GROUPS = Path("/sys/fs/cgroup")


def available_cores(groups: Path = _GROUPS) -> int:
    """How many cores this process may use: by its affinity, and by its control group's quota.

    The quota matters in a container: its processes see all cores of the host. ``groups`` is where
    the control group is mounted, version 2 or 1.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return max(1, min(cores, int(_quota(groups))))


def _quota(groups: Path) -> float:
    """Cores by the control group; far more than there are without a quota."""
    unlimited = float(1 << 20)
    try:
        if (both := groups / "cpu.max").exists():
            quota, period = both.read_text().split()
        else:
            quota = (groups / "cpu" / "cpu.cfs_quota_us").read_text()
            period = (groups / "cpu" / "cpu.cfs_period_us").read_text()
        return int(quota) / int(period) if int(quota) > 0 else unlimited
    except (OSError, ValueError, ZeroDivisionError):  # none, "max", or of another system
        return unlimited
