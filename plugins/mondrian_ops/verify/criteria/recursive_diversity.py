"""Recursive (c, l)-diversity of a release as written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Self

import numpy as np

from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.job.job import Job
from mondrian_ops.verify.criteria.base import Diversity, Measure
from mondrian_ops.verify.spread import SensitiveCount


class RecursiveDiversity(Diversity):
    """The greatest l with r1 < c (r_l + ... + r_m), 0 if there is none.

    (Machanavajjhala et al. 2006, definition 4.2)
    """

    @classmethod
    def of(
        cls, job: Job, column: str, hierarchies: Mapping[str, Hierarchy], of_rows: bool
    ) -> Self | None:
        return cls(column, job, of_rows) if job.diversity == "recursive" else None

    def diversity(self, sensitive: SensitiveCount, sizes: Measure) -> Measure:
        c = self.job.c or math.nan
        order = np.lexsort((-sensitive.counts, sensitive.classes))
        classes, counts = sensitive.classes[order], sensitive.counts[order]
        first = np.searchsorted(classes, classes)  # the most frequent value of the class of each
        before = np.cumsum(counts) - counts
        tails = sizes[classes] - (before - before[first])  # r_l + ... + r_m at the l-th
        enough = counts[first] < c * tails
        # Tails only fall, so the number of valid l is the greatest one.
        return np.bincount(classes, weights=enough, minlength=len(sizes)).astype(np.int64)

    def __str__(self) -> str:
        return f"recursive (c, l)-diversity of {self.column}, c = {self.job.c:g}, {self._level}"
