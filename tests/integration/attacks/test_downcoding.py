"""Downcoding: what is generalized no further than it must be can be undone in part.

A. Cohen, "Attacks on Deidentification's Defenses", USENIX Security 2022, section 4: a minimal
generalization tells that nothing narrower would have done. So a tight interval tells that somebody
has each of its ends, and a node of a hierarchy that its class spans two of its children.
"""

from __future__ import annotations

import pytest

from adversary import ALGORITHMS, QUASI, Release, branch, population, released
from tiers import one_in

AGES = population()["age"].to_pylist()
COUNTRIES = population()["country"].to_pylist()


def ends(release: Release) -> tuple[float, float]:
    """How often "somebody in this class is just as old as the interval begins" is right.

    And how often it would be if ages had been drawn from those of all people within the interval.
    """
    right, chance, claims = 0, 0.0, 0
    for (age, *_), rows in release.classes().items():
        if not age.startswith("["):
            continue
        low, high = (int(each) for each in age[1:-1].split(", "))
        within = [each for each in AGES if low <= each < high + age.endswith("]")]
        claims += 1
        right += low in {AGES[row["row"]] for row in rows}
        chance += 1 - (1 - within.count(low) / len(within)) ** len(rows)
    return right / claims, chance / claims


@pytest.mark.parametrize("keys", one_in(2, ALGORITHMS[:2]), ids=["median", "gain"])
def test_tight_intervals_tell_their_ends_and_a_grid_does_not(tmp_path, keys):
    right, chance = ends(released(tmp_path / "tight", population(), **keys))
    assert right == 1.0
    assert chance < 0.8
    on_grid = ["age=grid:10@10", *QUASI[1:2], "zip=prefix", "country=hierarchy:countries.csv"]
    right, chance = ends(
        released(tmp_path / "grid", population(), **{**keys, "quasi_identifiers": on_grid})
    )
    assert abs(right - chance) < 0.1


def spanning(release: Release) -> float:
    """How often "this class spans two children of the region that is published" is right."""
    found = []
    for (_, country), rows in release.classes(("sex", "country")).items():
        real = {COUNTRIES[row["row"]] for row in rows}
        if country not in {None, "*"} | real:
            found.append(len({branch(each, country) for each in real}) > 1)
    return sum(found) / len(found)


def test_regions_tell_that_no_smaller_one_would_do_where_each_class_has_its_own(tmp_path):
    """Not stopped by any setting of these algorithms, but by those that recode whole columns."""
    known = {"k": 10, "quasi_identifiers": ["sex", "country=hierarchy:countries.csv"]}
    by_class = released(tmp_path / "by class", population(), **{**ALGORITHMS[0], **known})
    by_column = released(tmp_path / "by column", population(), **{**ALGORITHMS[4], **known})
    assert spanning(by_class) == 1.0
    assert spanning(by_column) < 0.9
