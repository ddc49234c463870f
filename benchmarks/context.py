"""What the parts share: options, a scratch directory, generated data, and short ways to run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measure import HERE, Checkout, Run, process, python
from benchmarks.tables import verdict

MILLION = 1_000_000

CARDS = tuple(f"{kind}{card}" for card in range(1, 6) for kind in "sr")


@dataclass
class Context:
    """One invocation of the benchmarks."""

    scratch: Path
    rows: int
    sizes: tuple[int, ...]
    adult_sizes: tuple[int, ...]
    rounds: int
    seeds: int
    data: Path | None
    load_sizes: tuple[int, ...]
    check_sizes: tuple[int, ...]
    billion_sizes: tuple[int, ...]
    load_runs: tuple[str, ...]  # all of them if none is named
    load_minutes: float
    people: int
    nights: int
    parts: tuple[int, ...]
    beside: Checkout | None
    say: Callable[[str], None]
    _hands: dict[int, Path] = field(default_factory=dict)

    @property
    def allowed(self) -> dict[str, str]:
        """Settings of an Airflow whose jobs work in the scratch directory."""
        options = ("ALLOWED_INPUTS", "ALLOWED_OUTPUTS")
        return {f"AIRFLOW__MONDRIAN_OPS__{name}": str(self.scratch) for name in options}

    def hands(self, rows: int) -> Path:
        """A Parquet file of that many synthetic hands, made once."""
        if rows not in self._hands:
            path = self.scratch / f"poker-{rows}.parquet"
            command = ["-m", "mondrian_ops", "generate", "poker", "--rows", str(rows)]
            process(python(*command, "--seed", "1", "--output", str(path)))
            self._hands[rows] = path
        return self._hands[rows]

    def job(self, rows: int, **changes: Any) -> dict[str, Any]:
        """The job of the paper's experiments on that many hands: k = 5, l = 2."""
        described: dict[str, Any] = {
            "input": str(self.hands(rows)),
            "output": str(self.scratch / "release"),
            "k": 5,
            "l": 2,
            "quasi_identifiers": list(CARDS),
            "sensitive": ["hand"],
            "replace": "any",  # whatever was measured before
        }
        return described | changes

    def job_file(
        self, job: dict[str, Any], beside: Path | None = None, checkout: Checkout = HERE
    ) -> Path:
        """A job as a file for a checkout; what lies in `beside` (hierarchies) lies next to it."""
        folder = self.scratch / "job"
        folder.mkdir(exist_ok=True)
        for file in beside.iterdir() if beside else ():
            shutil.copy(file, folder)
        path = folder / "job.json"
        path.write_text(json.dumps(checkout.understood(job)), encoding="utf-8")
        return path

    def report(self, job: dict[str, Any], beside: Path | None = None) -> dict[str, Any]:
        """Run a job in this process; its report. Its hierarchies lie in `beside`."""
        from mondrian_ops import pipeline

        report: dict[str, Any] = pipeline.run(pipeline.load_job(self.job_file(job, beside)))
        return report

    def verdict(self, met: bool) -> str:
        """Whether a requirement is met; the figures are for a million rows and no other number."""
        return verdict(met) if self.rows == MILLION else ""

    def run(
        self, job: dict[str, Any], beside: Path | None = None, checkout: Checkout = HERE
    ) -> Run:
        """Run a job as a process of its own, onto a place where no release stands."""
        shutil.rmtree(job["output"], ignore_errors=True)
        path = self.job_file(job, beside, checkout)
        return checkout.process("-m", "mondrian_ops", "run", str(path), "--quiet")
