"""l-diversity by intervals of a width, of a release as written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np

from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.job.job import Job
from mondrian_ops.job.widths import widths_of
from mondrian_ops.verify import spread
from mondrian_ops.verify.criteria.base import Diversity, Measure
from mondrian_ops.verify.spread import SensitiveCount


class SpreadDiversity(Diversity):
    """How often the rows of the fullest interval of a width go into all; 0 where there are none.

    It is the m of (epsilon, m)-anonymity (Li, Tao and Xiao, SIGMOD 2008), for intervals that may
    begin anywhere.
    """

    @classmethod
    def of(
        cls, job: Job, column: str, hierarchies: Mapping[str, Hierarchy], of_rows: bool
    ) -> Self | None:
        return cls(column, job, of_rows) if column in job.l_width else None

    def diversity(self, sensitive: SensitiveCount, sizes: Measure) -> Measure:
        width = widths_of(self.job.l_width)[self.column]
        rows = spread.fullest(sensitive, len(sizes), self.column, width)
        return sizes / np.maximum(rows, 1)

    def __str__(self) -> str:
        width = widths_of(self.job.l_width)[self.column]
        return f"l-diversity of {self.column} by intervals of {width.text}, {self._level}"
