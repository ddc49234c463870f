"""Entropy l-diversity of a release as written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np

from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.job.job import Job
from mondrian_ops.verify.criteria.base import Diversity, Measure
from mondrian_ops.verify.spread import SensitiveCount


class EntropyDiversity(Diversity):
    """exp of the entropy of the values (Machanavajjhala et al. 2006, definition 4.1)."""

    @classmethod
    def of(
        cls, job: Job, column: str, hierarchies: Mapping[str, Hierarchy], of_rows: bool
    ) -> Self | None:
        return cls(column, job, of_rows) if job.diversity == "entropy" else None

    def diversity(self, sensitive: SensitiveCount, sizes: Measure) -> Measure:
        # In one order, or the last digits would depend on how the classes were divided.
        order = np.lexsort((sensitive.counts, sensitive.classes))
        classes = sensitive.classes[order]
        shares = sensitive.counts[order] / sizes[classes]
        terms = -shares * np.log(shares)
        entropy = np.bincount(classes, weights=terms, minlength=len(sizes))
        return np.where(sizes > 0, np.exp(entropy), 0.0)

    def __str__(self) -> str:
        return f"entropy l-diversity of {self.column}, {self._level}"
