"""Differencing: two releases of drops that share people, each of them diverse by itself.

J.-W. Byun, Y. Sohn, E. Bertino and N. Li, "Secure anonymization for incremental datasets", SDM
2006, and X. Xiao and Y. Tao, "m-invariance: towards privacy preserving re-publication of dynamic
datasets", SIGMOD 2007: who is in both has one of the values that both of their classes hold.
"""

from __future__ import annotations

import pytest

from adversary import ALGORITHMS, QUASI, Release, candidates, population, released
from mondrian_ops.core.errors import PrivacyError

KEYS = {**ALGORITHMS[1], "k": 3, "l": 2, "sensitive": ["diagnosis"]}
BOTH = population().slice(400, 1200).select([*QUASI, "row", "diagnosis"]).to_pylist()


def named(*releases: Release) -> int:
    """Persons of whom one diagnosis is left, by the releases that they are known to be in."""
    left = [
        [{row["diagnosis"] for row in rows} for rows in candidates(release, BOTH)]
        for release in releases
    ]
    found = 0
    for person, *values in zip(BOTH, *left, strict=True):
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
