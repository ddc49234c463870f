"""Privacy criteria, worked out on Counters by the formulas of their papers."""

from __future__ import annotations

import math
from collections import Counter

import brute_force
from drawn_jobs import DIAGNOSES
from mondrian_ops.cut.criteria import (
    CutCriterion,
    DistinctDiversity,
    EntropyDiversity,
    RecursiveDiversity,
    SpreadDiversity,
    TCloseness,
)


def satisfied(criterion: CutCriterion, part: Counter, whole: Counter) -> bool:
    """Whether some rows satisfy a criterion; both count values, None is the missing one.

    The hierarchical distance is that over `DIAGNOSES`. Near a value is the next one of the whole.
    """
    values = brute_force.present(part) if criterion.skips_missing else part
    match criterion:
        case DistinctDiversity(level=level):
            return len(values) >= level
        case EntropyDiversity(level=level):
            return brute_force.entropy(values) >= math.log(level) - 1e-9
        case RecursiveDiversity(level=level, ratio=c):
            return bool(values) and brute_force.recursive(values, c, int(level))
        case SpreadDiversity(level=level):
            return brute_force.is_spread(_placed(values, whole), level, _next_is_near)
        case TCloseness(distance="equal"):
            distance = brute_force.closeness_equal(part, whole)
        case TCloseness(distance="ordered"):
            distance = brute_force.closeness_ordered(part, whole)
        case _:
            distance = brute_force.closeness_tree(part, whole, DIAGNOSES, 3)
    return distance <= criterion.level + 1e-9


def _placed(values: Counter, whole: Counter) -> Counter:
    """The values by their places among those of the whole."""
    place = {value: at for at, value in enumerate(sorted(v for v in whole if v is not None))}
    return Counter({place.get(value): rows for value, rows in values.items()})


def _next_is_near(low: int, high: int) -> bool:
    return high - low <= 1
