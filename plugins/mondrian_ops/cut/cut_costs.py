"""What cutting costs: the figures by which a time budget is spent.

``scripts/cut_costs.py`` measures and fits them; it prints what this machine has beside them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.late_methods import dataclass


@dataclass(frozen=True)
class CutCosts:
    """Costs of one core, in seconds, or in levels where a figure has no unit.

    A level is the cost of looking ahead once in nodes of 8 k rows, without groups.

    Attributes:
        greedy_s: of a value of a quasi-identifier, without looking ahead.
        level_s: of a row and two attributes; ``wide`` as much more for an attribute of many values,
            half of it for one of ``wide_values``.
        smaller: levels of looking ahead in smaller nodes, by their rows over k.
        groups: of groups of values in nodes of 8 k rows, at k = 1; falls as k grows, by the power
            ``groups_by_k``.
        candidates: part of ``groups``, by the candidates of each attribute.
        few_joined: of groups and pairs of joined classes in nodes of 6 k rows, where k is large.
        doubling: of nodes twice as large, at k = 1; falls by the power ``doubling_by_k``.
        many: how much longer large nodes take whose attributes have many values, half of it for
            ``many_values``.
        joined: by how many classes are joined, at k = 1 and if all information were lost.
        asked: how much longer all this takes where criteria of packages are asked in Python.
    """

    greedy_s: float
    level_s: float
    wide: float
    wide_values: float
    smaller: Mapping[int, float]
    groups: float
    groups_by_k: float
    candidates: Mapping[int, float]
    few_joined: float
    doubling: float
    doubling_by_k: float
    many: float
    many_values: float
    joined: Mapping[int, float]
    asked: float

    def level_seconds(self, distinct: NDArray[np.float64]) -> float:
        """Seconds per row of a level.

        For the cuts of each attribute, rows are cut by every attribute. The more ``distinct``
        values (attributes,) it has, the longer this takes, even beyond the number of rows of a
        small node.
        """
        widths = 1 + self.wide * distinct / (distinct + self.wide_values)
        return self.level_s * len(distinct) * float(np.sum(widths))

    def slower(self, distinct: NDArray[np.int64]) -> float:
        """The factor by which many ``distinct`` values slow down cutting nodes of all sizes."""
        return 1.0 + self.many * float(np.mean(distinct / (distinct + self.many_values)))


# Measured on poker hands (k = 5, 10, 20) and Adult (k = 5 to 100).
COSTS = CutCosts(
    greedy_s=2.5e-8,
    level_s=1.2e-8,
    wide=6,
    wide_values=100,
    smaller={4: 0.25, 5: 0.4, 6: 0.6, 8: 1.0},
    groups=12.0,
    groups_by_k=-0.45,
    candidates={1: 0.48, 2: 0.7, 3: 1.0},
    few_joined=2.9,
    doubling=2.9,
    doubling_by_k=-0.2,
    many=17.0,
    many_values=1000,
    joined={2: 120.0, 3: 300.0, 4: 850.0},
    asked=40.0,
)
