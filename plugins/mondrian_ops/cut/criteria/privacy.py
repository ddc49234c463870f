"""What a job requires of each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.cut.criteria.base import CutCriterion, kernel
from mondrian_ops.cut.criteria.counted import CountedCriterion
from mondrian_ops.cut.criteria.distinct_diversity import DistinctDiversity
from mondrian_ops.cut.criteria.entropy_diversity import EntropyDiversity
from mondrian_ops.cut.criteria.k_anonymity import DistinctPersons, KAnonymity
from mondrian_ops.cut.criteria.recursive_diversity import RecursiveDiversity
from mondrian_ops.cut.criteria.spread_diversity import SpreadDiversity
from mondrian_ops.cut.criteria.t_closeness import TCloseness
from mondrian_ops.cut.native import class_criteria
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.data.sensitive_domain import SensitiveDomain
from mondrian_ops.job.job import Job
from mondrian_ops.late_methods import dataclass

KNOWN: tuple[type[CutCriterion], ...] = (
    SpreadDiversity,
    EntropyDiversity,
    RecursiveDiversity,
    DistinctDiversity,
    TCloseness,
)
"""The criteria on sensitive columns that the kernels know, in the order of reports."""


@dataclass(frozen=True)
class Privacy:
    """What a job requires of each class: k rows or persons, and criteria on sensitive columns."""

    k: KAnonymity
    criteria: tuple[CutCriterion, ...]
    persons: DistinctPersons | None = None

    @classmethod
    def of(cls, job: Job, hierarchies: Mapping[str, Hierarchy]) -> Privacy:
        """The criteria of ``job``; ``hierarchies`` by sensitive column, for the tree distance."""
        asked = (
            criterion.of(job, column, hierarchies)
            for column in job.sensitive
            for criterion in KNOWN
        )
        persons = None if job.entity_id is None else DistinctPersons(job.entity_id, job.k)
        criteria: list[CutCriterion] = [each for each in asked if each is not None]
        for column in job.sensitive:
            criteria += [CountedCriterion.by(each, column) for each in job.criteria.values()]
        return cls(KAnonymity(job.k), tuple(criteria), persons)

    @property
    def min_class_size(self) -> int:
        """The minimum number of rows of a class that satisfies all criteria."""
        return max([self.k.k, *(criterion.min_class_size for criterion in self.criteria)])

    def remedy_for_missing(self, domains: Sequence[SensitiveDomain]) -> str:
        """The end of an error text where rows without a sensitive value may be the cause."""
        skipping = {criterion.column for criterion in self.criteria if criterion.skips_missing}
        rows = [
            f"{domain.counts[0]} of column {domain.name!r}"
            for domain in domains
            if domain.name in skipping and domain.missing
        ]
        if not rows:
            return ""
        return (
            f"; values that are missing, empty or blank ({', '.join(rows)}) do not count towards "
            "l: fill them in, or set missing_sensitive: value"
        )

    def describe(self) -> list[str]:
        """One line per criterion, for reports."""
        return [str(self.persons or self.k), *map(str, self.criteria)]

    def holds(
        self,
        rows: int,
        counts: Sequence[NDArray[np.int64]],
        domains: Sequence[SensitiveDomain],
    ) -> bool:
        """Whether a class of ``rows`` rows satisfies all criteria but the one on persons.

        ``counts``: one (codes,) array per sensitive column. `planning.LeafCounts` counts persons.
        """
        if rows < self.min_class_size:
            return False
        of_column = {domain.name: each for domain, each in zip(domains, counts, strict=False)}
        domain_of = {domain.name: domain for domain in domains}
        return all(
            criterion.holds(of_column[criterion.column][None], domain_of[criterion.column])[0]
            for criterion in self.criteria
        )

    def kernel(self, domains: Sequence[SensitiveDomain]) -> class_criteria.Criteria:
        """The criteria for the kernels.

        ``domains`` in the columns' order, persons last. The domain of persons may be that of the
        rows at hand: only equality of codes matters.
        """
        criteria = [*self.criteria, *([] if self.persons is None else [self.persons])]
        criteria.sort(key=lambda each: each.kind == class_criteria.ASKED)  # what is slow comes last
        return kernel(criteria, self.min_class_size, domains)
