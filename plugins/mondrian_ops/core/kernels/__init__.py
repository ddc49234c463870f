"""Numba kernels: the few loops that run over every row.

They see codes only. A decision of theirs uses the counts, the order and the positions of the codes
present in a node, never how densely a column is coded, so a fragment cut alone and the same rows
cut inside the whole dataset come out the same (design, invariant 5). All release the GIL, and are
compiled once and cached on disk.
"""

from mondrian_ops.core.kernels.classes import (
    distinct_per_class,
    extents,
    route_rows,
    shuffle_classes,
)
from mondrian_ops.core.kernels.counting import grouped, recounted
from mondrian_ops.core.kernels.criteria import group_holds
from mondrian_ops.core.kernels.greedy import partition_rows
from mondrian_ops.core.kernels.groups import groups_hold
from mondrian_ops.core.kernels.grower import BLOCK, block_of, cut_down, cut_of, grow, total_loss
from mondrian_ops.core.kernels.model import (
    BALANCED,
    DISTINCT,
    ENTROPY,
    GAIN,
    INTERVAL,
    MEDIAN,
    NO_ROWS,
    RECURSIVE,
    RELAXED,
    SET,
    T_EQUAL,
    T_ORDERED,
    T_TREE,
    TREE,
    WIDEST_GAIN,
    Criteria,
    Policy,
    Rows,
    Work,
    new_work,
)
from mondrian_ops.core.kernels.multiway import (
    PartsWork,
    cut_into_parts,
    new_parts_work,
    parts_of,
)
from mondrian_ops.core.kernels.topping import arrange

__all__ = [
    "BALANCED",
    "BLOCK",
    "DISTINCT",
    "ENTROPY",
    "GAIN",
    "INTERVAL",
    "MEDIAN",
    "NO_ROWS",
    "RECURSIVE",
    "RELAXED",
    "SET",
    "TREE",
    "T_EQUAL",
    "T_ORDERED",
    "T_TREE",
    "WIDEST_GAIN",
    "Criteria",
    "PartsWork",
    "Policy",
    "Rows",
    "Work",
    "arrange",
    "block_of",
    "cut_down",
    "cut_into_parts",
    "cut_of",
    "distinct_per_class",
    "extents",
    "group_holds",
    "grouped",
    "groups_hold",
    "grow",
    "new_parts_work",
    "new_work",
    "partition_rows",
    "parts_of",
    "recounted",
    "route_rows",
    "shuffle_classes",
    "total_loss",
]
