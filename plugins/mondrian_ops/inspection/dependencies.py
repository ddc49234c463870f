"""Which column follows from which: functional dependencies that hold in nearly all rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

import numpy as np

from mondrian_ops.inspection.columns import Column, pair_keys
from mondrian_ops.late_methods import dataclass
from mondrian_ops.verify.native.equal_rows import group_keys

NEARLY = 0.99
"""The share of rows in which a column has to follow from another."""

_MOST_DISTINCT = 0.5
"""From a column with more values by row anything follows."""


@dataclass(frozen=True)
class Dependency:
    """Column ``of`` follows from column ``by`` in a ``share`` of the rows.

    It is 1 - g3 of J. Kivinen and H. Mannila ("Approximate inference of functional dependencies
    from relations", Theoretical Computer Science 149, 1995): the rows that have the most frequent
    value of ``of`` among those of their value of ``by``.
    """

    by: str
    of: str
    share: float


def dependencies(columns: Sequence[Column]) -> Iterator[Dependency]:
    """The dependencies between columns of the same rows.

    A column in which nearly all rows have one value follows from nothing.
    """
    for by, of in permutations(columns, 2):
        if by.distinction > _MOST_DISTINCT or of.counts.max() >= NEARLY * of.rows:
            continue
        share = _share(by, of)
        if share >= NEARLY:
            yield Dependency(by.name, of.name, share)


def _share(by: Column, of: Column) -> float:
    keys = pair_keys(by, of)
    order, starts = group_keys(keys)
    counts = np.diff(starts, append=len(keys))
    most = np.zeros(len(by.counts), np.int64)
    np.maximum.at(most, by.codes[order[starts]], counts)
    return float(most.sum() / by.rows)
