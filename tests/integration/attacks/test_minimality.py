"""Minimality: why was this not cut further?

R. C.-W. Wong, A. W.-C. Fu, K. Wang and J. Pei, "Minimality attack in privacy preserving data
publishing", VLDB 2007, section 3. The attacker knows everybody's quasi-identifiers, the published
table and the algorithm, and so which secrets would have led to that very table: all are tried, by
the algorithm itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import comb

import pyarrow as pa
import pytest

from mondrian_ops import anonymize
from tiers import in_soak, one_here

TOWNS = ["Aa", "Aa", "Zz", "Zz", "Zz", "Zz"]
WAYS = {
    "mondrian": {"quasi_identifiers": ["town"]},
    "samarati": {"quasi_identifiers": ["town"], "algorithm": "samarati"},
    "tds": {"quasi_identifiers": ["town"], "algorithm": "tds"},
}


def published(ill: Sequence[int], **keys: object) -> list[str]:
    """What is published of the towns when these two people have the disease, the others none of
    one kind."""
    diseases = ["HIV" if at in ill else f"other {at}" for at in range(len(TOWNS))]
    table = pa.table({"town": TOWNS, "disease": diseases})
    released, _ = anonymize(table, {"sensitive": ["disease"], **keys})
    return sorted(released["town"].to_pylist())


def belief(**keys: object) -> Fraction:
    """How sure the attacker is of somebody in the smaller town, when both there have it."""
    seen = published((0, 1), **keys)
    worlds = [ill for ill in combinations(range(len(TOWNS)), 2) if published(ill, **keys) == seen]
    return Fraction(sum(0 in ill for ill in worlds), len(worlds))


@pytest.mark.parametrize("way", one_here(["mondrian", "tds", *in_soak(["samarati"])]))
def test_what_was_not_cut_for_the_sake_of_l_gives_itself_away(way):
    """l = 2 is to keep anybody from being more than half sure; k above the town's size stops it."""
    assert belief(k=2, l=2, **WAYS[way]) == 1
    assert belief(k=3, l=2, **WAYS[way]) == Fraction(2, 6)


def belief_in_a_town_of(k: int, **keys: object) -> Fraction:
    """The same in a town of ``k`` people, all ill, beside one of twice as many, all well.

    How many of the ill are in which town is all that the algorithm can see.
    """

    def towns(ill_there: int) -> list[str]:
        ill = [*range(ill_there), *range(k, 2 * k - ill_there)]
        diseases = ["HIV" if at in ill else f"other {at}" for at in range(3 * k)]
        table = pa.table({"town": ["Aa"] * k + ["Zz"] * 2 * k, "disease": diseases})
        released, _ = anonymize(table, {"sensitive": ["disease"], "k": k, "l": 2, **keys})
        return sorted(released["town"].to_pylist())

    seen = towns(k)
    worlds = {ill: comb(k, ill) * comb(2 * k, k - ill)
              for ill in range(k + 1) if towns(ill) == seen}  # fmt: skip
    return Fraction(sum(ill * count for ill, count in worlds.items()), k * sum(worlds.values()))


@pytest.mark.parametrize(
    ("way", "k"),
    [
        *one_here([("mondrian", 10), ("samarati", 2), ("tds", 5)]),
        *in_soak([("mondrian", 2), ("mondrian", 5), ("samarati", 5), ("samarati", 10)]),
        *in_soak([("tds", 2), ("tds", 10)]),
    ],
)
def test_no_k_stops_it_where_a_town_has_k_people(way, k):
    """A larger k helps where it keeps the town from being cut off, whoever is ill."""
    assert belief_in_a_town_of(k, **WAYS[way]) == 1


def test_where_l_changes_nothing_neither_does_the_table():
    assert published((0, 3), k=2, l=2, **WAYS["mondrian"]) == sorted(TOWNS)
