"""What a privacy criterion is while rows are cut into classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.cut.native import class_criteria
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.data.sensitive_domain import SensitiveDomain
from mondrian_ops.job.job import Job
from mondrian_ops.late_methods import dataclass

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Tables(NamedTuple):
    """What the kernels need to know of the values of a column, by code; empty if nothing."""

    share: NDArray[np.float64] = np.zeros(0)
    parent: NDArray[np.int32] = np.zeros(0, np.int32)
    height: NDArray[np.float64] = np.zeros(0)
    near_end: NDArray[np.int32] = np.zeros(0, np.int32)


@dataclass(frozen=True)
class CutCriterion(ABC):
    """A requirement on the values of one sensitive column within every class.

    The kernels know it by its ``kind`` and check each cut by it.
    """

    column: str
    level: float  # l, or t

    kind: ClassVar[int]

    @classmethod
    def of(cls, job: Job, column: str, hierarchies: Mapping[str, Hierarchy]) -> Self | None:
        """The criterion that ``job`` asks for of a sensitive column; None if it asks for none.

        ``hierarchies`` by sensitive column.
        """
        return None

    @property
    def c(self) -> float:
        """The c of recursive (c, l)-diversity; 0 for the others."""
        return 0.0

    @property
    def min_class_size(self) -> int:
        """The minimum number of rows of a class that satisfies the criterion."""
        return 1

    @property
    def skips_missing(self) -> bool:
        """Whether rows without a value are left out."""
        return False

    def tables(self, domain: SensitiveDomain) -> Tables:
        """What the kernels need to know of the values."""
        return Tables()

    def asked(self, domain: SensitiveDomain) -> class_criteria.Asked | None:
        """What the kernels ask about classes, if they do not know the criterion."""
        return None

    def holds(self, counts: Ints, domain: SensitiveDomain) -> Bools:
        """(classes,) which classes satisfy it; ``counts``: (classes, codes) of ``domain``."""
        criteria = kernel([self], 1, [domain])
        each = (class_criteria.satisfies(of_class, criteria, 0) for of_class in counts)
        return np.fromiter(each, np.bool_, len(counts))

    @abstractmethod
    def __str__(self) -> str:
        """The criterion and its numbers, for reports and errors."""

    def unattainable(self, domain: SensitiveDomain) -> str:
        """Why no class satisfies it, in words with the remedy; empty where nothing is known."""
        return ""


@dataclass(frozen=True)
class Diversity(CutCriterion):
    """l-diversity, of the rows of a class that have a value.

    Rows without one neither help nor harm, and a class of such rows alone is not diverse. With
    ``missing_counts`` the missing value counts as one value. In both cases a union of classes that
    satisfy the criterion satisfies it: its rows with a value are those of the classes, for which
    the papers' proofs hold.
    """

    missing_counts: bool = field(default=False, kw_only=True)

    @property
    def min_class_size(self) -> int:
        """That of l different values."""
        return int(np.ceil(self.level - 1e-9))

    @property
    def skips_missing(self) -> bool:
        return not self.missing_counts

    @property
    def _missing(self) -> str:
        return ", missing values counted as one" if self.missing_counts else ""


def kernel(
    criteria: Sequence[CutCriterion], k: int, domains: Sequence[SensitiveDomain]
) -> class_criteria.Criteria:
    """The criteria for the kernels, with the minimum size ``k``; ``domains`` of all columns."""
    column_of = {domain.name: column for column, domain in enumerate(domains)}
    columns = [column_of[criterion.column] for criterion in criteria]
    domain_of = [domains[column] for column in columns]
    each = list(zip(criteria, domain_of, strict=True))
    tables = [criterion.tables(domain) for criterion, domain in each]
    shares = [table.share for table in tables]
    parents, near = [table.parent for table in tables], [table.near_end for table in tables]
    uncounted = [criterion.skips_missing and domain.missing for criterion, domain in each]
    return class_criteria.Criteria(
        k=k,
        kind=np.array([criterion.kind for criterion in criteria], np.int64),
        column=np.array(columns, np.int64),
        level=np.array([criterion.level for criterion in criteria], np.float64),
        c=np.array([criterion.c for criterion in criteria], np.float64),
        codes=np.array([len(domain.counts) for domain in domain_of], np.int64),
        uncounted=np.array(uncounted, np.int64),
        share=_joined(shares, np.float64),
        share_first=_starts(shares),
        parent=_joined(parents, np.int32),
        height=_joined([table.height for table in tables], np.float64),
        parent_first=_starts(parents),
        near_end=_joined(near, np.int32),
        near_first=_starts(near),
        asked=[criterion.asked(domain) for criterion, domain in each],
    )


def _joined(arrays: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *arrays]).astype(dtype)


def _starts(arrays: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    return np.cumsum([0, *map(len, arrays)], dtype=np.int64)
