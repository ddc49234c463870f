"""Combinatorial refinement: what the choice of the cuts tells, to who knows nobody at all.

S. Chhillar, M. K. Righi, R. E. Sutter and E. M. Kornaropoulos, "Exposing privacy risks in
anonymizing clinical data: combinatorial refinement attacks on k-anonymity without auxiliary
information", 2025, against local recoding. The attacker has a release, and the program. Of all
sources that its labels allow only those are left from which the program makes that very release:
here all are tried, by the program itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from heapq import heappop, heappush
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from mondrian_ops import anonymize
from tiers import in_soak, one_here

PEOPLE, AGES, K = 5, 4, 2
SOURCES = [ages for ages in combinations_with_replacement(range(AGES), PEOPLE) if len({*ages}) > 1]
INTERVAL, GRID, LADDER = (
    {"quasi_identifiers": [f"age{way}"]} for way in ("", "=grid:2", "=ladder:2/4")
)
WAYS: Mapping[str, Mapping[str, Any]] = {
    "median": {**INTERVAL, "cut": "median"},
    "gain": {**INTERVAL, "cut": "gain"},
    "grid": {**GRID, "cut": "gain"},
    "ladder": {**LADDER, "cut": "gain"},
    "samarati": {**LADDER, "algorithm": "samarati"},
    "tds": {**LADDER, "algorithm": "tds"},
}


def ends(label: str) -> tuple[int, int]:
    """The least and the greatest age that a label stands for."""
    if label == "*":
        return 0, AGES
    low, _, high = label.strip("[)]").partition(", ")
    return int(low), int(high or low) - label.endswith(")")


def allows(labels: tuple[str, ...], ages: tuple[int, ...]) -> bool:
    """Whether each age can be given a label of its own that stands for it."""
    waiting, open_until = sorted(map(ends, labels)), list[int]()
    for age in ages:
        while waiting and waiting[0][0] <= age:
            heappush(open_until, waiting.pop(0)[1])
        if not open_until or heappop(open_until) < age:
            return False
    return True


class Left(NamedTuple):
    """Of all sources: how many are left, on average; and the share that is found exactly."""

    by_labels: float
    by_program: float
    found: float


@cache
def left(way: str) -> Left:
    sources = defaultdict(list)
    for ages in SOURCES:
        released, _ = anonymize(pa.table({"age": ages}), {"k": K, **WAYS[way]})
        sources[tuple(sorted(released["age"].cast(pa.string()).to_pylist()))].append(ages)
    by_labels = by_program = found = 0
    for labels, same in sources.items():
        allowed = [ages for ages in SOURCES if allows(labels, ages)]
        assert {*same} <= {*allowed}
        by_labels += len(same) * len(allowed)
        by_program += len(same) ** 2
        found += len(same) == 1 < len(allowed)
    whole = len(SOURCES)
    return Left(by_labels / whole, by_program / whole, found / whole)


@pytest.mark.parametrize(
    "way", one_here(["gain", "median", "grid", "samarati", *in_soak(["ladder", "tds"])])
)
def test_the_program_tells_more_than_its_labels(way: str) -> None:
    """Nothing stops it: of the sources that the labels allow, a part is left."""
    assert left(way).by_program < 0.75 * left(way).by_labels


@pytest.mark.parametrize("way", ["median", "gain"])
def test_tight_intervals_often_tell_the_very_source(way: str) -> None:
    assert left(way).found > 0.2


@pytest.mark.parametrize("way", one_here(["grid", "samarati"]))
def test_wider_cells_and_one_recoding_for_all_leave_more_sources(way: str) -> None:
    assert left(way).found < 0.02
    assert left(way).by_program > 3 * max(left(each).by_program for each in ("median", "gain"))
