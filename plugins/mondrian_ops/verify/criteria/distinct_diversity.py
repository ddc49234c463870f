"""Distinct l-diversity of a release as written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np

from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.job.job import Job
from mondrian_ops.verify.criteria.base import Diversity, Measure
from mondrian_ops.verify.spread import SensitiveCount


class DistinctDiversity(Diversity):
    """Distinct values (Machanavajjhala et al. 2006, section 4.1)."""

    @classmethod
    def of(
        cls, job: Job, column: str, hierarchies: Mapping[str, Hierarchy], of_rows: bool
    ) -> Self | None:
        return cls(column, job, of_rows) if job.diversity == "distinct" else None

    def diversity(self, sensitive: SensitiveCount, sizes: Measure) -> Measure:
        return np.bincount(sensitive.classes, minlength=len(sizes))

    def __str__(self) -> str:
        return f"distinct l-diversity of {self.column}, {self._level}"
