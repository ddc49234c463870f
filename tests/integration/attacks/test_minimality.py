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

import pyarrow as pa
import pytest

from mondrian_ops import anonymize

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


@pytest.mark.parametrize("way", WAYS)
def test_what_was_not_cut_for_the_sake_of_l_gives_itself_away(way):
    """l = 2 is to keep anybody from being more than half sure; a larger k stops it here."""
    assert belief(k=2, l=2, **WAYS[way]) == 1
    assert belief(k=3, l=2, **WAYS[way]) == Fraction(2, 6)


def test_where_l_changes_nothing_neither_does_the_table():
    assert published((0, 3), k=2, l=2, **WAYS["mondrian"]) == sorted(TOWNS)
