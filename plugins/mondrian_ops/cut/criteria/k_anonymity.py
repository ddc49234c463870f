"""k-anonymity, of rows and of persons."""

from __future__ import annotations

from dataclasses import field

from mondrian_ops.cut.criteria.distinct_diversity import DistinctDiversity
from mondrian_ops.late_methods import dataclass


@dataclass(frozen=True)
class KAnonymity:
    """Every combination of quasi-identifiers is shared by at least k rows (Samarati 2001)."""

    k: int

    def __str__(self) -> str:
        return f"k-anonymity, k = {self.k}"


@dataclass(frozen=True)
class DistinctPersons(DistinctDiversity):
    """Rows of at least k persons, each of whom may have several.

    (X, Y)-anonymity, where X is the quasi-identifier and Y the person (Wang and Fung 2006), and the
    k of multirelational k-anonymity (Nergiz, Clifton and Nergiz 2007). It is the distinct diversity
    of the ``entity_id``; all rows without a value count as one person.
    """

    missing_counts: bool = field(default=True, kw_only=True)

    def __str__(self) -> str:
        return f"k-anonymity, k = {self.level:g} persons by {self.column}"
