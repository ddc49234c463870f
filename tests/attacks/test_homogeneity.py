"""Homogeneity and background knowledge: a class gives away what all of its rows have.

A. Machanavajjhala, D. Kifer, J. Gehrke and M. Venkitasubramaniam, "l-diversity: privacy beyond
k-anonymity", TKDD 1(1), 2007, section 2.
"""

from __future__ import annotations

from collections import Counter

import pytest

from adversary import ALGORITHMS, Release, name_of, population, released

K = 2


def told(release: Release, ruled_out: int = 0) -> float:
    """The share of persons whose diagnosis is certain to who knows their class.

    And who can rule out, of the others' diagnoses, the ``ruled_out`` most frequent ones.
    """
    certain = 0
    for rows in release.classes().values():
        counts = Counter(row["diagnosis"] for row in rows)
        for own, number in counts.items():
            others = len(counts) - 1
            certain += number if others <= ruled_out and own is not None else 0
    return certain / len(release.rows)


@pytest.mark.parametrize("keys", ALGORITHMS, ids=name_of)
def test_l_diversity_leaves_no_class_of_one_diagnosis(tmp_path, keys):
    keys = {**keys, "k": K, "sensitive": ["diagnosis"]}
    assert told(released(tmp_path / "with l", population(), l=2, **keys)) == 0


@pytest.mark.parametrize("keys", [*ALGORITHMS[:2], ALGORITHMS[4]], ids=name_of)
def test_k_anonymity_alone_gives_diagnoses_away(tmp_path, keys):
    keys = {**keys, "k": K, "sensitive": ["diagnosis"]}
    release = released(tmp_path, population(), **keys)
    assert told(release) > 0
    assert release.report["achieved"]["l"] == 1


@pytest.mark.parametrize("keys", ALGORITHMS[:4], ids=name_of)
def test_who_can_rule_out_one_diagnosis_needs_a_larger_l(tmp_path, keys):
    keys = {**keys, "k": K, "sensitive": ["diagnosis"]}
    assert told(released(tmp_path / "2", population(), l=2, **keys), ruled_out=1) > 0.05
    assert told(released(tmp_path / "3", population(), l=3, **keys), ruled_out=1) == 0
