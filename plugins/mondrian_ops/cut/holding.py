"""Which classes of a night are published, and which rows wait for the next one.

The idea is CASTLE's bounded delay (Cao, Carminati, Ferrari and Tan: CASTLE: Continuously
Anonymizing Data Streams, IEEE TDSC 8(3), 2011), in nights instead of tuples: rows are cut into
classes with all that wait, classes of little loss are published, the others wait, and no row waits
for more than so many nights.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.generalize.attributes import Classes, Published
from mondrian_ops.late_methods import dataclass


class Divided(NamedTuple):
    """What becomes of the rows of a night.

    ``published`` (classes,) bool: the classes that are published. ``waiting`` (rows,) bool: the
    rows that wait. A row of a class that is not published and that does not wait is suppressed.
    """

    published: NDArray[np.bool_]
    waiting: NDArray[np.bool_]


@dataclass(frozen=True)
class Holding:
    """When rows wait.

    ``above``: the loss (mean NCP of a row's quasi-identifiers) of a class that waits; None: none
    does. ``overdue_since``: rows of nights up to this number may not wait any more. They are left
    out if ``suppress``; if not, their classes are published at any loss. ``unmatched_wait``: rows
    that no class may take wait too (:mod:`mondrian_ops.series.intersection.invariance`).
    """

    above: float | None
    overdue_since: int
    suppress: bool
    unmatched_wait: bool = True

    def overdue(self, nights: pa.ChunkedArray) -> NDArray[np.bool_]:
        """(rows,): which rows of these nights of origin may not wait any more."""
        return np.asarray(nights.to_numpy() <= self.overdue_since)

    def divide(
        self,
        classes: Classes,
        published: Iterable[Published],
        nights: pa.ChunkedArray,
        unmatched: NDArray[np.bool_] | None = None,
    ) -> Divided:
        """What becomes of each row; ``nights`` (rows,) are those in which the rows first came.

        ``unmatched``: (rows,) rows that are in no class.
        """
        count, overdue = len(classes.starts), self.overdue(nights)
        if unmatched is None:
            unmatched = np.zeros(len(overdue), np.bool_)
        if self.above is None:
            waiting = unmatched & ~overdue & self.unmatched_wait
            return Divided(np.ones(count, np.bool_), waiting)
        chosen = np.mean([each.ncp for each in published], axis=0) <= self.above
        if not self.suppress:
            chosen |= np.logical_or.reduceat(overdue[classes.index], classes.starts)
        waiting = ~overdue & (~unmatched | self.unmatched_wait)
        waiting[classes.index[np.repeat(chosen, classes.sizes)]] = False
        return Divided(chosen, waiting)
