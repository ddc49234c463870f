"""Distinct l-diversity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from mondrian_ops.cut.criteria.base import Diversity
from mondrian_ops.cut.native import class_criteria
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.job.job import Job
from mondrian_ops.late_methods import dataclass


@dataclass(frozen=True)
class DistinctDiversity(Diversity):
    """At least l distinct sensitive values (Machanavajjhala et al. 2006, section 4.1)."""

    kind = class_criteria.DISTINCT

    @classmethod
    def of(cls, job: Job, column: str, hierarchies: Mapping[str, Hierarchy]) -> Self | None:
        if job.l is None or job.diversity != "distinct" or column in job.l_width:
            return None  # values that are spread by a width are distinct, too
        return cls(column, job.l, missing_counts=job.missing_sensitive == "value")

    def __str__(self) -> str:
        return f"distinct l-diversity of {self.column}, l = {self.level:g}{self._missing}"
