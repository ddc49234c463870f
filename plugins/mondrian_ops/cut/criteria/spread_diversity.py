"""l-diversity of numbers and dates, whose values are similar within a width."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.cut.criteria.base import Diversity, Tables
from mondrian_ops.cut.native import class_criteria
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.data.sensitive_domain import SensitiveDomain
from mondrian_ops.job.job import Job
from mondrian_ops.job.widths import Width, widths_of
from mondrian_ops.late_methods import dataclass


@dataclass(frozen=True)
class SpreadDiversity(Diversity):
    """At most 1/l of the rows have values that lie within a width of one another.

    (epsilon, m)-anonymity (Li, Tao and Xiao, SIGMOD 2008, definition 2) bounds the rows around each
    row's value; a union of two classes that satisfy it need not. This bounds the rows within each
    interval of the width, wherever it begins. So a union satisfies it, it follows from
    (epsilon, m)-anonymity with epsilon = width and m = l, and from it follows the one with half of
    that epsilon. The fullest interval begins at some value, and l intervals are needed to cover a
    class, so it has l values each of which is further than the width from the others.
    """

    width: Width

    kind = class_criteria.NEAR

    @classmethod
    def of(cls, job: Job, column: str, hierarchies: Mapping[str, Hierarchy]) -> Self | None:
        width = widths_of(job.l_width).get(column)
        if job.l is None or width is None:
            return None
        return cls(column, job.l, width, missing_counts=job.missing_sensitive == "value")

    def __str__(self) -> str:
        return (
            f"l-diversity of {self.column} by intervals of {self.width.text}, l = {self.level:g}"
            f"{self._missing}"
        )

    def tables(self, domain: SensitiveDomain) -> Tables:
        return Tables(near_end=_near_end(domain))

    def unattainable(self, domain: SensitiveDomain) -> str:
        share, width = self.fullest(domain), self.width.text
        if share * self.level <= 1 + 1e-12:
            return ""
        alike = (
            f"l_width: {share:.1%} of all rows have values of {self.column!r} within {width} of "
            "one another"
        )
        if share > 0.5:
            return f"{alike}, so no l can hold; set a smaller width"
        return (
            f"{alike}, and no class may have more than 1/{self.level:g}; lower l to "
            f"{int(1 / share + 1e-9)}, or set a smaller width"
        )

    def fullest(self, domain: SensitiveDomain) -> float:
        """The share of all rows that the fullest interval has, of those that count."""
        first = int(self.skips_missing and domain.missing)
        counts, near_end = domain.counts[first:], _near_end(domain)[first:] - first
        before = np.concatenate([[0], np.cumsum(counts)])
        rows = before[near_end + 1] - before[:-1]
        return float(rows.max(initial=0) / max(1, before[-1]))


def _near_end(domain: SensitiveDomain) -> NDArray[np.int32]:
    if domain.near_end is None:
        raise ValueError(f"the width of {domain.name!r} is not known")
    return domain.near_end
