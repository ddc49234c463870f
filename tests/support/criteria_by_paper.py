"""Privacy criteria, worked out on Counters by the formulas of their papers."""

from __future__ import annotations

import math
from collections import Counter

import brute_force
from drawn_jobs import DIAGNOSES
from mondrian_ops.core.criteria import (
    Criterion,
    DistinctDiversity,
    EntropyDiversity,
    RecursiveDiversity,
    TCloseness,
)

__all__ = ["satisfied"]


def satisfied(criterion: Criterion, part: Counter, whole: Counter) -> bool:
    """Whether some rows satisfy a criterion; both count values, None is the missing one.

    The hierarchical distance is that over `DIAGNOSES`.
    """
    values = part if criterion.missing_counts else brute_force.present(part)
    match criterion:
        case DistinctDiversity(level=level):
            return len(values) >= level
        case EntropyDiversity(level=level):
            return brute_force.entropy(values) >= math.log(level) - 1e-9
        case RecursiveDiversity(level=level, ratio=c):
            return bool(values) and brute_force.recursive(values, c, int(level))
        case TCloseness(distance="equal"):
            distance = brute_force.closeness_equal(part, whole)
        case TCloseness(distance="ordered"):
            distance = brute_force.closeness_ordered(part, whole)
        case _:
            distance = brute_force.closeness_tree(part, whole, DIAGNOSES, 3)
    return distance <= criterion.level + 1e-9
