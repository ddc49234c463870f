"""Which columns, pairs and triples of columns single out rows: rows that alone have their values.

A row may be single by a set of columns and by none of its subsets: a minimal sample unique (M. J.
Elliot, A. Manning and R. Ford, "A computational algorithm for handling the special uniques
problem", Int. J. Uncertainty, Fuzziness and Knowledge-Based Systems 10, 2002; its algorithm is
SUDA). The fewer columns it takes, the easier a person is found. Distinction and separation of a set
are those of R. Motwani and Y. Xu ("Efficient algorithms for masking and finding quasi-identifiers",
VLDB 2007).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.inspection.columns import Column, separation
from mondrian_ops.late_methods import dataclass
from mondrian_ops.verify.native.equal_rows import group_keys

MOST_COLUMNS, MOST_TOGETHER = 12, 3
MOST_ROWS = 200_000
_BITS = 21  # of a code, so that three fit into 64

Rows = NDArray[np.bool_]


@dataclass(frozen=True)
class Combination:
    """What some columns together tell of rows: ``single`` and ``minimal`` are shares of the rows.

    ``single``: those that alone have their values; ``minimal``: those of them that no fewer of the
    columns single out.
    """

    columns: tuple[str, ...]
    single: float
    minimal: float
    distinction: float
    separation: float


@dataclass(frozen=True)
class UniqueRows:
    """The combinations of some columns, and by column the share of rows that it helps to find.

    ``involved``: rows that are single by a minimal set which the column is in.
    """

    rows: int = 0
    combinations: Sequence[Combination] = ()
    involved: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: Sequence[Column]) -> UniqueRows:
        """Count columns of the same rows, all sets of up to three."""
        if not columns or not columns[0].rows:
            return cls()
        rows = columns[0].rows
        codes = {each.name: each.codes.astype(np.uint64) for each in columns}
        single: dict[tuple[str, ...], Rows] = {(): np.zeros(rows, np.bool_)}
        involved = {name: np.zeros(rows, np.bool_) for name in codes}
        found = []
        for names in _sets(list(codes)):
            alone, counts = _counted([codes[name] for name in names])
            by_fewer = [single[fewer] for fewer in combinations(names, len(names) - 1)]
            minimal = alone & ~np.logical_or.reduce(by_fewer)
            single[names] = alone
            for name in names:
                involved[name] |= minimal
            shares = float(alone.mean()), float(minimal.mean()), len(counts) / rows
            found.append(Combination(names, *shares, separation(counts)))
        return cls(rows, found, {name: float(each.mean()) for name, each in involved.items()})


def _sets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """All sets of so many columns, smaller ones first."""
    for size in range(1, MOST_TOGETHER + 1):
        yield from combinations(names, size)


def _counted(codes: Sequence[NDArray[np.uint64]]) -> tuple[Rows, NDArray[np.int64]]:
    """Whether each row alone has its codes, and the rows of each combination of codes."""
    keys = codes[0].copy()
    for column in codes[1:]:
        keys <<= np.uint64(_BITS)
        keys |= column
    order, starts = group_keys(keys)
    counts = np.diff(starts, append=len(keys)).astype(np.int64)
    alone = np.zeros(len(keys), np.bool_)
    alone[order[starts[counts == 1]]] = True
    return alone, counts
