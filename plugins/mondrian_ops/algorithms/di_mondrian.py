"""DI-Mondrian: Mondrian that cuts at several points of an attribute at once.

Inspired by F. Ashkouti, K. Khamforoosh and A. Sheikhahmadi, DI-Mondrian: Distributed improved
Mondrian for satisfaction of the L-diversity privacy model using Apache Spark (Information Sciences
546, 2021), of which this knows the abstract only. The attribute is chosen by the coefficient of
variation of its values and by what a cut gains, the points are chosen anew in every node. What the
abstract leaves open is defined in docs/algorithms.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.algorithms.mondrian import CodedRows, Splitter
from mondrian_ops.core import kernels
from mondrian_ops.core.generalization import Classes

__all__ = ["MultiwayCut"]

_POLICY = kernels.Policy(kernels.MEDIAN, 0, 0)  # of the memory that nodes are worked on with


@dataclass(frozen=True)
class MultiwayCut:
    """Cuts at up to ``cut_points`` points of one attribute at once.

    At several only where the parts have ``room`` times k rows on average: further down, every cut
    of an attribute is one less of the others, and what it leaves is published.
    """

    cut_points: int
    room: int = 16

    tree_order: ClassVar[bool] = True  # of a hierarchy's leaves; see mondrian.Cut

    def classes(self, coded: CodedRows) -> Classes:
        """The equivalence classes of the rows; no valid cut is left in any of them."""
        return Classes(*self._grown(coded))

    def splitter(self, coded: CodedRows, index: NDArray[np.int32]) -> Splitter:
        """What cuts single nodes of the tree, views of ``index``."""
        rows = _placed(coded)
        work, parts = coded.work(_POLICY), self._parts_work(coded)

        def split(start: int, stop: int) -> tuple[int, list[int]]:
            a, count = kernels.parts_of(rows, index, start, stop, coded.criteria, work, parts)
            return int(a), parts.point[:count].tolist()

        return split

    def _grown(self, coded: CodedRows) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """A permuted index (rows,) and where in it each class starts.

        Small nodes are cut in blocks of their own, as the other policies do.
        """
        rows, criteria = _placed(coded), coded.criteria
        index = np.arange(coded.count, dtype=np.int32)
        marks = np.zeros(coded.count, np.uint8)
        work, parts = coded.work(_POLICY), self._parts_work(coded)
        kernels.cut_into_parts(rows, index, kernels.BLOCK, criteria, work, parts, marks)
        block_work = coded.work(_POLICY, kernels.BLOCK)
        for start, stop in pairwise([*np.flatnonzero(marks).tolist(), coded.count]):
            if not 2 * criteria.k <= stop - start <= kernels.BLOCK:
                continue
            block = kernels.block_of(rows, index, start, stop, work)
            inner = np.arange(stop - start, dtype=np.int32)
            kernels.cut_into_parts(block, inner, 0, criteria, block_work, parts, marks[start:stop])
            index[start:stop] = index[start:stop][inner]
        return index, np.flatnonzero(marks)

    def _parts_work(self, coded: CodedRows) -> kernels.PartsWork:
        codes = int(coded.rows.sensitive.max(initial=0)) + 1
        codes = max(codes, int(coded.criteria.codes.max(initial=1)))
        return kernels.new_parts_work(
            coded.count, coded.criteria.k, self.cut_points, self.room, codes
        )


def _placed(coded: CodedRows) -> kernels.Rows:
    """The rows with places, from 0 to 1, for the ends of every code: see kernels.multiway."""
    rows = coded.rows
    low, high = np.zeros_like(rows.low), np.zeros_like(rows.high)
    for a, encoded in enumerate(coded.encoded):
        present = slice(rows.first[a] + 1, rows.first[a + 1])
        if encoded.kind == kernels.INTERVAL:
            low[present] = (rows.low[present] - encoded.origin) / rows.span[a]
            high[present] = (rows.high[present] - encoded.origin) / rows.span[a]
        else:
            low[present] = high[present] = np.arange(encoded.size - 1) / max(1, encoded.size - 2)
    span = np.where(rows.kind == kernels.INTERVAL, 1.0, rows.span)
    return rows._replace(low=low, high=high, span=span)
