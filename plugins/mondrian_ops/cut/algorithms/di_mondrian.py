"""DI-Mondrian: Mondrian that cuts at several points of an attribute at once.

Inspired by F. Ashkouti, K. Khamforoosh and A. Sheikhahmadi, DI-Mondrian: Distributed improved
Mondrian for satisfaction of the L-diversity privacy model using Apache Spark (Information Sciences
546, 2021); only its abstract was available. The coefficient of variation of an attribute's values
and the gain of its cut decide the attribute; the points are chosen in every node.
docs/algorithms.md defines what the abstract leaves open.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mondrian_ops.cut.algorithms.mondrian import CodedRows
from mondrian_ops.cut.native import mondrian
from mondrian_ops.generalize.attributes import Classes
from mondrian_ops.late_methods import dataclass


@dataclass(frozen=True)
class MultiwayPolicy:
    """Cuts at up to ``cut_points`` points of one attribute at once.

    It cuts at several points only where the parts have ``room`` times k rows on average: in smaller
    nodes, each cut of one attribute leaves fewer cuts for the others.
    """

    cut_points: int
    room: int = 16

    tree_order: ClassVar[bool] = True  # of a hierarchy's leaves; see mondrian.CutPolicy
    parts_equal_rows: ClassVar[bool] = False

    def classes(self, coded: CodedRows, cores: int = 1) -> Classes:
        """Cut rows until no valid cut is left; returns their equivalence classes."""
        return Classes(
            *mondrian.multiway_classes(_with_positions(coded), coded.criteria, self._multiway)
        )

    def tree(self, coded: CodedRows) -> mondrian.MultiwayTree:
        """The rows, to be cut node by node."""
        return mondrian.MultiwayTree(_with_positions(coded), coded.criteria, self._multiway)

    @property
    def _multiway(self) -> mondrian.Multiway:
        return mondrian.Multiway(self.cut_points, self.room)


def _with_positions(coded: CodedRows) -> mondrian.Rows:
    """The rows, with the position of each code, from 0 to 1, that `multiway_classes` needs."""
    rows = coded.rows
    low, high = np.zeros_like(rows.low), np.zeros_like(rows.high)
    for a, encoded in enumerate(coded.encoded):
        present = slice(rows.first[a] + 1, rows.first[a + 1])
        if encoded.kind == "interval":
            low[present] = (rows.low[present] - encoded.origin) / (encoded.span or 1.0)
            high[present] = (rows.high[present] - encoded.origin) / (encoded.span or 1.0)
        else:
            low[present] = high[present] = np.arange(encoded.size - 1) / max(1, encoded.size - 2)
    span = np.where(rows.kind == mondrian.INTERVAL, 1.0 / rows.most, rows.span)
    return rows._replace(low=low, high=high, span=span)
