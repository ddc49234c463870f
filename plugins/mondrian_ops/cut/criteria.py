"""Privacy criteria: what every equivalence class of a release must satisfy.

One class per criterion, each citing its paper. A criterion knows the minimum number of rows per
class, its numbers for the kernels, and its text for reports. `native` decides whether a class
satisfies the criteria while cutting, and `verification`, by code of its own, once more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.cut.native import class_criteria
from mondrian_ops.cut.native.class_criteria import satisfies
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.data.sensitive_domain import SensitiveDomain
from mondrian_ops.job.job import Job
from mondrian_ops.job.widths import Width, widths_of


@dataclass(frozen=True)
class KAnonymity:
    """Every combination of quasi-identifiers is shared by at least k rows (Samarati 2001)."""

    k: int

    def __str__(self) -> str:
        return f"k-anonymity, k = {self.k}"


@dataclass(frozen=True)
class Criterion:
    """A requirement on the values of one sensitive column within every class.

    With ``missing_counts`` the missing value counts as one value. Without it, l-diversity is
    required of the rows of a class that have a value: rows without one neither help nor harm, and a
    class of such rows alone is not diverse. In both cases a union of classes that satisfy the
    criterion satisfies it: its rows with a value are those of the classes, for which the papers'
    proofs hold.
    """

    column: str
    level: float  # l, or t
    missing_counts: bool = field(default=False, kw_only=True)

    kind: ClassVar[int]

    @property
    def c(self) -> float:
        """The c of recursive (c, l)-diversity; 0 for the others."""
        return 0.0

    @property
    def min_class_size(self) -> int:
        """The minimum number of rows of a class that satisfies the criterion: l different ones."""
        return int(np.ceil(self.level - 1e-9))

    @property
    def skips_missing(self) -> bool:
        """Whether rows without a value are left out."""
        return not self.missing_counts

    @property
    def _missing(self) -> str:
        return ", missing values counted as one" if self.missing_counts else ""


@dataclass(frozen=True)
class DistinctDiversity(Criterion):
    """At least l distinct sensitive values (Machanavajjhala et al. 2006, section 4.1)."""

    kind = class_criteria.DISTINCT

    def __str__(self) -> str:
        return f"distinct l-diversity of {self.column}, l = {self.level:g}{self._missing}"


@dataclass(frozen=True)
class DistinctPersons(DistinctDiversity):
    """Rows of at least k persons, each of whom may have several.

    (X, Y)-anonymity, where X is the quasi-identifier and Y the person (Wang and Fung 2006), and the
    k of multirelational k-anonymity (Nergiz, Clifton and Nergiz 2007). It is the distinct diversity
    of the ``entity_id``; all rows without a value count as one person.
    """

    @property
    def skips_missing(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"k-anonymity, k = {self.level:g} persons by {self.column}"


@dataclass(frozen=True)
class EntropyDiversity(Criterion):
    """Entropy of at least log(l) (Machanavajjhala et al. 2006, definition 4.1)."""

    kind = class_criteria.ENTROPY

    def __str__(self) -> str:
        return f"entropy l-diversity of {self.column}, l = {self.level:g}{self._missing}"


@dataclass(frozen=True)
class RecursiveDiversity(Criterion):
    """r1 < c (r_l + ... + r_m) (Machanavajjhala et al. 2006, definition 4.2)."""

    ratio: float

    kind = class_criteria.RECURSIVE

    @property
    def c(self) -> float:
        return self.ratio

    def __str__(self) -> str:
        return (
            f"recursive (c, l)-diversity of {self.column}, c = {self.ratio:g}, l = {self.level:g}"
            f"{self._missing}"
        )


@dataclass(frozen=True)
class SpreadDiversity(Criterion):
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

    def __str__(self) -> str:
        return (
            f"l-diversity of {self.column} by intervals of {self.width.text}, l = {self.level:g}"
            f"{self._missing}"
        )

    def fullest(self, domain: SensitiveDomain) -> float:
        """The share of all rows that the fullest interval has, of those that count."""
        first = int(self.skips_missing and domain.missing)
        counts, near_end = domain.counts[first:], _near_end(domain)[first:] - first
        before = np.concatenate([[0], np.cumsum(counts)])
        rows = before[near_end + 1] - before[:-1]
        return float(rows.max(initial=0) / max(1, before[-1]))


@dataclass(frozen=True)
class TCloseness(Criterion):
    """Distribution within t of the whole dataset's (Li, Li and Venkatasubramanian 2007).

    The distance is the variational one (``equal``), or the earth mover's over the order of the
    values (``ordered``) or over a hierarchy (``hierarchical``); sections 5.1 to 5.3. The missing
    value counts like any other: a class that has more of it than others discloses something, too.
    """

    distance: str
    hierarchy: Hierarchy | None = None

    @property
    def min_class_size(self) -> int:
        return 1

    @property
    def skips_missing(self) -> bool:
        return False

    @property
    def kind(self) -> int:  # type: ignore[override]
        return {
            "equal": class_criteria.T_EQUAL,
            "ordered": class_criteria.T_ORDERED,
            "hierarchical": class_criteria.T_TREE,
        }[self.distance]

    def __str__(self) -> str:
        return f"t-closeness of {self.column}, t = {self.level:g}, {self.distance} distance"


@dataclass(frozen=True)
class Privacy:
    """What a job requires of each class: k rows or persons, and criteria on sensitive columns."""

    k: KAnonymity
    criteria: tuple[Criterion, ...]
    persons: DistinctPersons | None = None

    @classmethod
    def of(cls, job: Job, hierarchies: Mapping[str, Hierarchy]) -> Privacy:
        """The criteria of ``job``; ``hierarchies`` by sensitive column, for the tree distance."""
        criteria: list[Criterion] = []
        widths = widths_of(job.l_width)
        for column in job.sensitive:
            if job.l is not None:
                criteria += _diversities(column, job.l, job, widths.get(column))
            if job.t is not None:
                tree = hierarchies.get(column)
                criteria.append(TCloseness(column, job.t, job.t_distance, tree))
        persons = None if job.entity_id is None else DistinctPersons(job.entity_id, job.k)
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
        criteria = replace(self, persons=None).kernel(domains)
        return all(
            satisfies(counts[column], criteria, j) for j, column in enumerate(criteria.column)
        )

    def kernel(self, domains: Sequence[SensitiveDomain]) -> class_criteria.Criteria:
        """The criteria for the kernels; ``domains`` in the columns' order, persons last.

        The domain of persons may be that of the rows at hand: only equality of codes matters.
        """
        criteria = [*self.criteria, *([self.persons] if self.persons is not None else [])]
        column_of = {domain.name: column for column, domain in enumerate(domains)}
        columns = [column_of[criterion.column] for criterion in criteria]
        domain_of = [domains[column] for column in columns]
        shares = [np.zeros(0)] * len(criteria)
        trees = [(np.zeros(0, np.int32), np.zeros(0))] * len(criteria)
        near = [
            _near_end(domain) if isinstance(criterion, SpreadDiversity) else np.zeros(0, np.int32)
            for criterion, domain in zip(criteria, domain_of, strict=True)
        ]
        for j, (criterion, domain) in enumerate(zip(criteria, domain_of, strict=True)):
            if isinstance(criterion, TCloseness):
                shares[j] = domain.counts / max(1, domain.counts.sum())
                if criterion.hierarchy is not None:
                    trees[j] = _tree(criterion.hierarchy, domain)
        return class_criteria.Criteria(
            k=self.min_class_size,
            kind=np.array([criterion.kind for criterion in criteria], np.int64),
            column=np.array(columns, np.int64),
            level=np.array([criterion.level for criterion in criteria], np.float64),
            c=np.array([criterion.c for criterion in criteria], np.float64),
            codes=np.array([len(domain.counts) for domain in domain_of], np.int64),
            uncounted=np.array(
                [
                    criterion.skips_missing and domain.missing
                    for criterion, domain in zip(criteria, domain_of, strict=True)
                ],
                np.int64,
            ),
            share=_joined(shares, np.float64),
            share_first=_starts(shares),
            parent=_joined([parent for parent, _ in trees], np.int32),
            height=_joined([height for _, height in trees], np.float64),
            parent_first=_starts([parent for parent, _ in trees]),
            near_end=_joined(near, np.int32),
            near_first=_starts(near),
        )


def _diversities(column: str, level: float, job: Job, width: Width | None) -> list[Criterion]:
    """The l-diversity of a column. With a width, the values are spread, which implies distinct."""
    counts = job.missing_sensitive == "value"
    criteria: list[Criterion] = []
    if width is not None:
        criteria.append(SpreadDiversity(column, level, width, missing_counts=counts))
    if job.diversity == "entropy":
        criteria.append(EntropyDiversity(column, level, missing_counts=counts))
    elif job.diversity == "recursive":
        ratio = float(job.c or 0)
        criteria.append(RecursiveDiversity(column, level, ratio, missing_counts=counts))
    elif width is None:
        criteria.append(DistinctDiversity(column, level, missing_counts=counts))
    return criteria


def _near_end(domain: SensitiveDomain) -> NDArray[np.int32]:
    if domain.near_end is None:
        raise ValueError(f"the width of {domain.name!r} is not known")
    return domain.near_end


def _tree(
    hierarchy: Hierarchy, domain: SensitiveDomain
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Parents and relative heights of a sensitive hierarchy, nodes after all their children.

    The first nodes are the codes of ``domain`` (its values are the hierarchy's leaves); a missing
    value is one more leaf right under the root.
    """
    height = np.zeros(len(hierarchy.parent), np.int64)
    for level, nodes in enumerate(hierarchy.ancestors):
        np.maximum.at(height, nodes, level)
    inner = np.arange(len(hierarchy.leaves), len(hierarchy.parent))
    inner = inner[np.argsort(height[inner], kind="stable")]
    shift = int(domain.missing)
    order = np.concatenate([np.arange(len(hierarchy.leaves)), inner])
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) + shift
    parent = hierarchy.parent[order]
    placed = np.where(parent >= 0, place[parent], -1)
    heights = height[order] / max(1, height.max())
    if shift:
        placed = np.concatenate([[place[order[-1]]], placed])
        heights = np.concatenate([[0.0], heights])
    return placed.astype(np.int32), heights.astype(np.float64)


def _joined(arrays: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *arrays]).astype(dtype)


def _starts(arrays: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    return np.cumsum([0, *map(len, arrays)], dtype=np.int64)
