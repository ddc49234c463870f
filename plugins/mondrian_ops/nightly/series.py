"""Which datasets of a landing folder are released as series: their job files say so."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from mondrian_ops import series, stores
from mondrian_ops.errors import MondrianOpsError


class SeriesOfJobs:
    """The series of the datasets whose job files are in the folder ``jobs``."""

    def __init__(self, jobs: Path) -> None:
        self._jobs = jobs

    def has(self, dataset: str) -> bool:
        """Whether a dataset is released as a series; its own tasks tell of a job that is wrong."""
        try:
            job = stores.read_job(str(self._jobs / f"{dataset}.yaml"))
        except MondrianOpsError:
            return False
        return job.get("series") is not None  # {} is a series, with all defaults

    def held(self, outputs: Collection[str]) -> Mapping[str, str]:
        """Those of some outputs whose nights are over without a release, each with its time."""
        return series.held(outputs)
