"""Running whole processes: how long they took, and how much memory the largest of them held."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Run:
    """One finished process: wall-clock seconds and the peak of resident memory, in MiB.

    The memory is that of the process or of the largest child it waited for.
    """

    seconds: float
    peak_mib: float


class ProcessError(Exception):
    """A measured process did not exit with status 0."""


def process(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Run:
    """Run `command` to its end; raises ProcessError with what it said on standard error."""
    start = time.perf_counter()
    child = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, **python_path(), **(environment or {})},
        cwd=ROOT,
    )
    assert child.stderr is not None
    said = child.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    child.stderr.close()
    if child.returncode:
        raise ProcessError(f"{' '.join(command[:4])} … exit {child.returncode}: {said[-2000:]}")
    return Run(seconds, usage.ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024))


def python(*arguments: str) -> list[str]:
    """A command of this interpreter."""
    return [sys.executable, *arguments]


def python_path() -> dict[str, str]:
    paths = [str(ROOT / "plugins"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def alternate(contenders: Mapping[str, Callable[[], Run]], rounds: int) -> dict[str, Run]:
    """Run all in turn, `rounds` times: median seconds and highest peak of each."""
    runs: dict[str, list[Run]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            runs[name].append(contender())
    return {
        name: Run(statistics.median(r.seconds for r in found), max(r.peak_mib for r in found))
        for name, found in runs.items()
    }


def median_seconds(work: Callable[[], Any], rounds: int) -> float:
    """Median wall-clock seconds of calling `work`."""
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else "?"),
        "memory": f"{memory:.0f} GiB",
        "processor": _processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load before": f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "?",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown"
