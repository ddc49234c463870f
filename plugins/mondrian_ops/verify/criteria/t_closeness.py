"""t-closeness of a release as written: the distance of each class from the whole release.

The definitions of N. Li, T. Li and S. Venkatasubramanian (ICDE 2007), for the independent check.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.errors import PrivacyError
from mondrian_ops.job.job import Job
from mondrian_ops.late_methods import dataclass
from mondrian_ops.verify.criteria.base import IN_ROWS, ColumnCriterion, Measure
from mondrian_ops.verify.figures import ClassCounts
from mondrian_ops.verify.spread import SensitiveCount
from mondrian_ops.verify.values import as_read

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TCloseness(ColumnCriterion):
    """Distance of a class's distribution from that of the release; a missing value is a value."""

    hierarchy: Hierarchy | None = None

    key = "t"
    at_most = True

    @classmethod
    def of(
        cls, job: Job, column: str, hierarchies: Mapping[str, Hierarchy], of_rows: bool
    ) -> Self | None:
        if job.t is None:
            return None
        # Fragments do not know how many persons of the whole have a value: so it counts rows.
        return cls(column, job, job.entity_id is not None, hierarchies.get(column))

    @property
    def level(self) -> float | None:  # type: ignore[override]
        return self.job.t

    def measure(self, classes: ClassCounts) -> Measure:
        sensitive, sizes = self.counted(classes), classes.class_sizes
        match self.job.t_distance:
            case "equal":
                return _equal(sensitive, sensitive.codes, sensitive.totals, sizes)
            case "ordered":
                return _ordered(sensitive, sizes)
        if self.hierarchy is None:
            raise PrivacyError(
                f"t-closeness of {self.column!r}: its hierarchy is needed for the hierarchical "
                "distance"
            )
        return _hierarchical(self.column, sensitive, sizes, self.hierarchy)

    def __str__(self) -> str:
        counted = IN_ROWS if self.of_rows else ""
        title = f"t-closeness of {self.column}, t = {self.job.t:g}, {self.job.t_distance} distance"
        return title + counted


def _equal(sensitive: SensitiveCount, codes: Measure, totals: Measure, sizes: Measure) -> Floats:
    """Half the sum of differences of shares (section 5.2, equal distance).

    ``codes`` (pairs,) may stand for those of the values, and ``totals`` are their counts in the
    whole release. The counts of a pair of class and code that occurs more than once add up.
    """
    whole = totals / totals.sum()
    values = len(whole)
    pairs, of_pair = np.unique(sensitive.classes * values + codes, return_inverse=True)
    in_class, code = pairs // values, pairs % values
    share = np.bincount(of_pair, weights=sensitive.counts) / sizes[in_class]
    present = np.bincount(in_class, weights=np.abs(share - whole[code]), minlength=len(sizes))
    covered = np.bincount(in_class, weights=whole[code], minlength=len(sizes))
    return (present + (1 - covered)) / 2  # a value that a class lacks differs by its whole share


def _ordered(sensitive: SensitiveCount, sizes: Measure) -> Floats:
    """Earth mover's distance over the order of the values (section 5.2, ordered distance).

    The mean over all values but one of |P - Q|, the cumulative shares of class and release. In a
    class, P is constant from one present value to the next, while Q rises: the sum over such a
    stretch follows from the prefix sums of Q and the place where Q passes P.
    """
    rank, ranks = _ranks(sensitive)
    if ranks == 1:
        return np.zeros(len(sizes))
    order = np.lexsort((rank[sensitive.codes], sensitive.classes))
    classes, counts = sensitive.classes[order], sensitive.counts[order]
    start = rank[sensitive.codes][order]
    _, first = np.unique(classes, return_index=True)
    stop = np.roll(start, -1)
    stop[first - 1] = ranks  # the last pair of each class precedes the first of the next
    cumulated = np.cumsum(counts)
    p = (cumulated - (cumulated[first] - counts[first])[classes]) / sizes[classes]
    totals = np.bincount(rank, weights=sensitive.totals)  # values of no row add nothing
    q = np.cumsum(totals) / sensitive.totals.sum()
    sums = np.concatenate([[0.0], np.cumsum(q)])
    passed = np.clip(np.searchsorted(q, p), start, stop)
    below = p * (passed - start) - (sums[passed] - sums[start])
    above = (sums[stop] - sums[passed]) - p * (stop - passed)
    stretches = np.bincount(classes, weights=below + above, minlength=len(sizes))
    distance: Floats = (stretches + sums[start[first]]) / (ranks - 1)
    return distance


def _ranks(sensitive: SensitiveCount) -> tuple[NDArray[np.int64], int]:
    """(codes,) the rank of each value that occurs, the missing one first; the number of ranks."""
    by_value = pc.sort_indices(sensitive.values).to_numpy().astype(np.int64)
    ascending = np.concatenate([[0], by_value + 1])
    ascending = ascending[sensitive.totals[ascending] > 0]
    rank = np.zeros(len(sensitive.totals), np.int64)
    rank[ascending] = np.arange(len(ascending))
    return rank, len(ascending)


def _hierarchical(
    name: str, sensitive: SensitiveCount, sizes: Measure, hierarchy: Hierarchy
) -> Floats:
    """Earth mover's distance over a tree (section 5.3), the missing value a child of the root.

    Two values whose lowest common ancestor is ``r`` of ``H`` levels up are ``r / H`` apart. In
    such a tree the distance is the mean, over the levels below the root, of the equal distance
    between the distributions generalized to that level.
    """
    leaf_of = {as_read(leaf): number for number, leaf in enumerate(hierarchy.leaves)}
    values = [str(value) for value in sensitive.values.to_pylist()]
    occurring = zip(values, sensitive.totals[1:].tolist(), strict=True)
    unknown = sum(value not in leaf_of for value, times in occurring if times)
    if unknown:
        raise PrivacyError(
            f"t-closeness of {name!r}: {unknown} of its values are not leaves of "
            f"{hierarchy.name}; add them to the file"
        )
    missing = len(leaf_of)
    of_code = np.array([missing, *(leaf_of.get(value, missing) for value in values)])
    levels = _levels(hierarchy)
    total = np.zeros(len(sizes))
    for nodes in levels:
        node_of = np.append(nodes, len(hierarchy.parent))[of_code]
        in_nodes = np.bincount(node_of, weights=sensitive.totals)
        total += _equal(sensitive, node_of[sensitive.codes], in_nodes, sizes)
    distance: Floats = total / len(levels)
    return distance


def _levels(hierarchy: Hierarchy) -> NDArray[np.int64]:
    """(height, leaves) the node above each leaf on each level below the root, the lowest first.

    They are climbed from the parents, for the criteria use the levels that the hierarchy brings. A
    leaf stands for itself on the levels below it.
    """
    parent = hierarchy.parent.astype(np.int64)
    climbed = [np.arange(len(hierarchy.leaves))]
    while (parent[climbed[-1]] >= 0).any():
        above = parent[climbed[-1]]
        climbed.append(np.where(above < 0, climbed[-1], above))
    nodes = np.stack(climbed)
    steps = np.count_nonzero(nodes[1:] != nodes[:-1], axis=0)  # from each leaf to the root
    height = len(nodes) - 1
    up = np.arange(height)[:, np.newaxis] - (height - steps)
    return np.take_along_axis(nodes, np.maximum(up, 0), axis=0)
