"""Recursive (c, l)-diversity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from mondrian_ops.cut.criteria.base import Diversity
from mondrian_ops.cut.native import class_criteria
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.job.job import Job
from mondrian_ops.late_methods import dataclass


@dataclass(frozen=True)
class RecursiveDiversity(Diversity):
    """r1 < c (r_l + ... + r_m) (Machanavajjhala et al. 2006, definition 4.2)."""

    ratio: float

    kind = class_criteria.RECURSIVE

    @classmethod
    def of(cls, job: Job, column: str, hierarchies: Mapping[str, Hierarchy]) -> Self | None:
        if job.l is None or job.diversity != "recursive":
            return None
        ratio = float(job.c or 0)
        return cls(column, job.l, ratio, missing_counts=job.missing_sensitive == "value")

    @property
    def c(self) -> float:
        return self.ratio

    def __str__(self) -> str:
        return (
            f"recursive (c, l)-diversity of {self.column}, c = {self.ratio:g}, l = {self.level:g}"
            f"{self._missing}"
        )
