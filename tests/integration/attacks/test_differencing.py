"""Differencing: two releases of drops that share people, each of them diverse by itself.

J.-W. Byun, Y. Sohn, E. Bertino and N. Li, "Secure anonymization for incremental datasets", SDM
2006, and X. Xiao and Y. Tao, "m-invariance: towards privacy preserving re-publication of dynamic
datasets", SIGMOD 2007: who is in both has one of the values that both of their classes hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from adversary import ALGORITHMS, QUASI, Release, candidates, population, released
from mondrian_ops.errors import PrivacyError

KEYS = {**ALGORITHMS[1], "k": 3, "l": 2, "sensitive": ["diagnosis"]}
PEOPLE = population().select([*QUASI, "row", "diagnosis"]).to_pylist()
BOTH = population().slice(400, 1200).select([*QUASI, "row", "diagnosis"]).to_pylist()


def named(*releases: Release, persons: Sequence[Mapping[str, Any]] = BOTH) -> int:
    """Persons of whom one diagnosis is left, by the releases that they are known to be in."""
    left = [
        [{row["diagnosis"] for row in rows} for rows in candidates(release, persons)]
        for release in releases
    ]
    found = 0
    for person, *values in zip(persons, *left, strict=True):
        common = set.intersection(*values)
        assert person["diagnosis"] in common
        found += len(common) == 1
    return found


def test_two_diverse_releases_of_overlapping_drops_name_diagnoses(tmp_path):
    first = released(tmp_path / "first", population().slice(0, 1600), **KEYS)
    second = released(tmp_path / "second", population().slice(400, 1600), **KEYS)
    assert named(first) == named(second) == 0
    assert named(first, second) > 0.02 * len(BOTH)


def test_a_job_that_refuses_overlaps_leaves_one_release(tmp_path):
    keys = {**KEYS, "overlap": "refuse"}
    released(tmp_path / "first", population().slice(0, 1000), **keys)
    with pytest.raises(PrivacyError, match="of its people are in the release"):
        released(tmp_path / "second", population().slice(400, 1000), **keys)
    assert not (tmp_path / "second/release").exists()


def test_nor_may_the_same_people_be_cut_in_two_ways(tmp_path):
    """Two releases of one drop, for two readers who put them together."""
    releases = [
        released(tmp_path / cut, population(), **{**KEYS, "cut": cut}) for cut in ("gain", "median")
    ]
    assert [named(each, persons=PEOPLE) for each in releases] == [0, 0]
    assert named(*releases, persons=PEOPLE) > 0.03 * len(PEOPLE)
    keys = {**KEYS, "overlap": "refuse"}
    released(tmp_path / "listed", population(), **keys)
    with pytest.raises(PrivacyError, match="the same drop was released as"):
        released(tmp_path / "again", population(), **{**keys, "cut": "median"})
