"""Corruption: who knows the diagnoses of some people of a class takes their rows away.

Y. Tao, X. Xiao, J. Li and D. Zhang, "On anti-corruption privacy preserving publication", ICDE 2008.
"""

from __future__ import annotations

from collections import Counter
from math import comb

import pytest

from adversary import ALGORITHMS, Release, population, released
from tiers import one_in

K = 5


def certain(release: Release, known: int) -> float:
    """The share of people whose diagnosis is certain to who knows so many others of the class.

    All choices of the others are equally likely. A diagnosis is certain if the rows that are left
    have one and the same; a missing one is none.
    """
    told = 0.0
    for rows in release.classes().values():
        counts = Counter(row["diagnosis"] for row in rows)
        for own, number in counts.items():
            rest = len(rows) - number  # these have to be among the known ones
            if own is not None and rest <= known <= len(rows) - 1:
                told += number * comb(number - 1, known - rest) / comb(len(rows) - 1, known)
    return told / len(release.rows)


@pytest.mark.parametrize("known", one_in(2, [1, 2]))
def test_one_more_l_for_each_person_who_is_known(tmp_path, known):
    keys = {**ALGORITHMS[1], "k": K, "sensitive": ["diagnosis"]}
    assert certain(released(tmp_path / "2", population(), l=2, **keys), 0) == 0
    assert certain(released(tmp_path / "few", population(), l=1 + known, **keys), known) > 0
    assert certain(released(tmp_path / "more", population(), l=2 + known, **keys), known) == 0
