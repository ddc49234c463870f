"""Entropy l-diversity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from mondrian_ops.cut.criteria.base import Diversity
from mondrian_ops.cut.native import class_criteria
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.job.job import Job
from mondrian_ops.late_methods import dataclass


@dataclass(frozen=True)
class EntropyDiversity(Diversity):
    """Entropy of at least log(l) (Machanavajjhala et al. 2006, definition 4.1)."""

    kind = class_criteria.ENTROPY

    @classmethod
    def of(cls, job: Job, column: str, hierarchies: Mapping[str, Hierarchy]) -> Self | None:
        if job.l is None or job.diversity != "entropy":
            return None
        return cls(column, job.l, missing_counts=job.missing_sensitive == "value")

    def __str__(self) -> str:
        return f"entropy l-diversity of {self.column}, l = {self.level:g}{self._missing}"
