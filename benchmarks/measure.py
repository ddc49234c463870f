"""Running whole processes: how long they took, and how much memory the largest of them held."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[1]
_USAGE = Path(__file__).with_name("usage.py")
_MEASURED = ("plugins", "benchmarks/*.py", "requirements.txt", "requirements-dev.txt")
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Run:
    """One finished process: wall-clock seconds, the peak of resident memory in MiB, CPU seconds.

    The memory is that of the process or of the largest child it waited for. ``written_mib``: what
    it wrote to disk, files without a name among it (Linux).
    """

    seconds: float
    peak_mib: float
    cpu_s: float = 0.0
    written_mib: float = 0.0


class ProcessError(Exception):
    """A measured process did not exit with status 0."""


@dataclass(frozen=True)
class Checkout:
    """A checkout of this project whose `.venv` was made: this one, or another that is compared."""

    root: Path

    @property
    def name(self) -> str:
        """The commit, as short as it is told apart."""
        command = ["git", "-C", str(self.root), "rev-parse", "--short", "HEAD"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def differs(self, commit: str) -> bool:
        """Whether what is measured is not that of a commit, or nobody knows that commit here."""
        command = ["git", "-C", str(self.root), "diff", "--quiet", commit, "--", *_MEASURED]
        return subprocess.run(command, capture_output=True, check=False).returncode != 0

    @property
    def _python(self) -> str:
        return sys.executable if self.root == ROOT else str(self.root / ".venv" / "bin" / "python")

    @property
    def _path(self) -> str:
        return os.pathsep.join([str(self.root / "plugins"), str(self.root)])

    def understood(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """The job, which may replace any release; older checkouts know no such key."""
        if self.root == ROOT:
            return {"replace": "any", **job}
        return {key: value for key, value in job.items() if key != "replace"}

    def process(self, *arguments: str) -> Run:
        """Run its Python to the end, as :func:`process` does."""
        return process([self._python, *arguments], {"PYTHONPATH": self._path})

    def output(self, *arguments: str) -> str:
        """What its Python prints."""
        done = subprocess.run(
            [self._python, *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": self._path},
            check=False,
        )
        if done.returncode:
            raise ProcessError(f"{' '.join(arguments[:2])} … exit: {done.stderr[-2000:]}")
        return done.stdout


HERE = Checkout(ROOT)


def process(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Run:
    """Run `command` to its end; raises ProcessError with what it said on standard error."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(_USAGE), *command],
        capture_output=True,
        env={**os.environ, **python_path(), **(environment or {})},
        cwd=ROOT,
        check=False,
    )
    if done.returncode:
        errors = done.stderr.decode(errors="replace")[-2000:]
        raise ProcessError(f"{' '.join(command[:4])} … exit {done.returncode}: {errors}")
    seconds, cpu_s, peak_mib, written_mib = json.loads(done.stdout)
    return Run(seconds, peak_mib, cpu_s, written_mib)


def python(*arguments: str) -> list[str]:
    """A command of this interpreter."""
    return [sys.executable, *arguments]


def python_path() -> dict[str, str]:
    paths = [str(ROOT / "plugins"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def alternate(contenders: Mapping[str, Callable[[], Run]], rounds: int) -> dict[str, Run]:
    """Run all in turn, `rounds` times: median seconds, wall and CPU, and highest peak of each."""
    runs: dict[str, list[Run]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            runs[name].append(contender())
    return {
        name: Run(
            statistics.median(run.seconds for run in done),
            max(run.peak_mib for run in done),
            statistics.median(run.cpu_s for run in done),
        )
        for name, done in runs.items()
    }


def timed(
    work: Callable[[], _Found], clock: Callable[[], float] = time.perf_counter
) -> tuple[_Found, float]:
    """What `work` returns, and the seconds it took by `clock`."""
    start = clock()
    found = work()
    return found, clock() - start


def median_seconds(work: Callable[[], Any], rounds: int) -> float:
    """Median wall-clock seconds of calling `work`."""
    return statistics.median(timed(work)[1] for _ in range(rounds))


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
