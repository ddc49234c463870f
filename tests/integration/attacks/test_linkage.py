"""Linkage: who a row belongs to, by what a public register says of everybody.

L. Sweeney, "k-anonymity: a model for protecting privacy", IJUFKS 10(5), 2002, section 1: with the
register of voters, ZIP code, birth date and sex name most people in a release without names.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from adversary import ALGORITHMS, QUASI, Release, candidates, name_of, population, released
from shared_data import shared_data
from tiers import in_soak, one_here, one_in

K = 5
VOTERS = population().select(["row", *QUASI]).to_pylist()


def linked(release: Release, voters=VOTERS, quasi=QUASI) -> tuple[int, float]:
    """Persons whose row a guess among those that fit finds, and the best chance of any guess."""
    generator = np.random.default_rng(0)
    found, best = 0, 0.0
    for person, rows in zip(voters, candidates(release, voters, quasi), strict=True):
        if rows:  # none where a row was suppressed
            found += rows[generator.integers(len(rows))]["row"] == person["row"]
            best = max(best, 1 / len(rows))
    return found, best


def test_dropping_names_alone_leaves_most_people_to_be_found(tmp_path):
    plain = [{**person, "age": str(person["age"])} for person in VOTERS]
    nameless = Release(tmp_path, plain, ["a"] * len(plain), {})
    found, best = linked(nameless)
    assert best == 1.0
    assert found > 0.8 * len(VOTERS)


@pytest.mark.parametrize(
    "keys", one_here([*ALGORITHMS[::2], *in_soak(ALGORITHMS[1::2])]), ids=name_of
)
def test_the_register_finds_nobody_more_often_than_once_in_k(tmp_path, keys):
    release = released(tmp_path, population(), k=K, **keys)
    found, best = linked(release)
    assert best <= 1 / K
    expected = len(VOTERS) / K
    assert found <= expected + 4 * math.sqrt(expected)
    assert best <= release.report["risk"]["prosecutor_max"]


def test_nobody_of_adult_is_found_more_often_either(tmp_path):
    quasi = ("age", "sex", "race", "marital-status", "education-num")
    table = csv.read_csv(shared_data("adult/adult_uci.csv"))[:2000]
    table = table.select(quasi).append_column("row", pa.array(range(2000)))
    table = table.append_column("name", pa.array(["somebody"] * 2000))
    voters = table.to_pylist()
    texts = [{name: str(value) for name, value in row.items()} for row in voters]
    nameless = Release(
        tmp_path,
        [{**t, "row": v["row"]} for t, v in zip(texts, voters, strict=True)],
        ["a"] * 2000,
        {},
    )
    assert linked(nameless, voters, quasi)[0] > 0.3 * 2000
    found, best = linked(
        released(tmp_path, table, k=K, quasi_identifiers=list(quasi), cut="gain"), voters, quasi
    )
    assert best <= 1 / K
    assert found <= 400 + 4 * math.sqrt(400)


PARTITIONED = {"fragments": 4, "min_sample": 0, "sample": 0.3}


def smallest_in_a_file(release: Release) -> int:
    """The fewest rows published alike in one file: its fragment's condition is in the report."""
    rows = zip(release.files, release.rows, strict=True)
    return min(Counter((file, *(row[name] for name in QUASI)) for file, row in rows).values())


@pytest.mark.parametrize(
    "keys", one_here([*ALGORITHMS[1::2], *in_soak(ALGORITHMS[::2])]), ids=name_of
)
def test_knowing_the_fragment_of_a_person_does_not_help(tmp_path, keys):
    release = released(tmp_path, population(), k=K, partitioning=PARTITIONED, **keys)
    assert smallest_in_a_file(release) >= K
    assert "several files" not in release.report["limits"]


@pytest.mark.parametrize("keys", one_in(2, ALGORITHMS[4:]), ids=name_of)
def test_where_columns_are_recoded_files_that_may_not_be_larger_tell_more(tmp_path, keys):
    """Classes are counted over the whole release then; the report says so."""
    partitioning = {**PARTITIONED, "max_rows": 700}
    release = released(tmp_path, population(), k=K, partitioning=partitioning, **keys)
    assert smallest_in_a_file(release) < K
    assert "several files" in release.report["limits"]
