"""Homogeneity and background knowledge: a class gives away what all of its rows have.

A. Machanavajjhala, D. Kifer, J. Gehrke and M. Venkitasubramaniam, "l-diversity: privacy beyond
k-anonymity", TKDD 1(1), 2007, section 2.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adversary import ALGORITHMS, QUASI, Release, name_of, population, released
from brute_force import alike
from mondrian_ops import pipeline
from mondrian_ops.storage import load_job

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


# One diagnosis in disguise: spelled in several ways, or beside no diagnosis

ILLS = ("fl\u00e9au", "grippe confirm\u00e9e", "h\u00e9mophilie", "flutter")
NOTHING = (None, "", " ", "\u00a0\t", "\u200b")


def spellings(ill: str) -> list[str]:
    """What a reader takes for one and the same."""
    full_width = "".join(chr(ord(c) + 0xFEE0) if "a" <= c <= "z" else c for c in ill)
    in_between = f"{ill[:2]}\u200b{ill[2:]}"
    decomposed = unicodedata.normalize("NFD", ill)
    around = [f"{ill} ", f"\t{ill}", f"{ill}\u00a0", f"\ufeff{ill}", ill.replace(" ", "\u2003 ")]
    return [ill, decomposed, full_width, in_between, ill.replace("fl", "\ufb02"), *around]


@cache
def disguised(of_nothing: float) -> pa.Table:
    """People whose neighbours have one diagnosis, each spelled as it comes; some have none."""
    random = np.random.default_rng(3)
    table = population().select(["name", *QUASI, "row"])
    written = []
    for person in table.select(["age", "sex"]).to_pylist():
        ways = spellings(ILLS[2 * ((person["age"] or 0) > 45) + (person["sex"] == "female")])
        ways = list(NOTHING) if random.random() < of_nothing else ways
        written.append(ways[random.integers(len(ways))])
    return table.append_column("diagnosis", pa.array(written, pa.string()))


def seen_through(release: Release) -> float:
    """The share of persons whose diagnosis is read off their class, where they have one."""
    certain = 0
    for rows in release.classes().values():
        ills = [alike(row["diagnosis"]) for row in rows]
        if len({*ills} - {None}) == 1:
            certain += sum(ill is not None for ill in ills)
    return certain / len(release.rows)


@pytest.mark.parametrize("of_nothing", [0, 0.3], ids=["spelled", "spelled or missing"])
@pytest.mark.parametrize("keys", ALGORITHMS, ids=name_of)
def test_a_diagnosis_in_disguise_is_one_diagnosis(tmp_path, keys, of_nothing):
    table = disguised(of_nothing)
    release = released(tmp_path, table, l=2, **{**keys, "k": K, "sensitive": ["diagnosis"]})
    assert seen_through(release) == 0
    assert release.report["achieved"]["l"] >= 2
    source = dict(zip(table["row"].to_pylist(), table["diagnosis"].to_pylist(), strict=True))
    assert all(source[row["row"]] == row["diagnosis"] for row in release.rows)


@pytest.mark.parametrize(
    "keys",
    [{"diversity": "entropy"}, {"diversity": "recursive", "c": 4}],
    ids=["entropy", "(c, l)"],
)
def test_nor_is_it_diverse_in_other_ways(tmp_path, keys):
    keys = {**ALGORITHMS[1], **keys, "k": K, "l": 2, "sensitive": ["diagnosis"]}
    assert seen_through(released(tmp_path, disguised(0.3), **keys)) == 0


def test_who_counts_missing_diagnoses_gives_others_away(tmp_path):
    keys = {**ALGORITHMS[1], "k": K, "l": 2, "sensitive": ["diagnosis"]}
    counted = {**keys, "missing_sensitive": "value"}
    release = released(tmp_path, disguised(0.3), **counted)
    assert seen_through(release) > 0.1
    assert "missing values counted as one" in release.report["verification"]["checked"][1]


@pytest.mark.parametrize(
    ("diagnoses", "passes"),
    [
        (["flu", "flu ", "\ufb02u", "", None], False),
        (["fl\u00fc", "flu\u0308", "\u200bfl\u00fc", " ", None], False),
        ([None, "", " ", "\t", "\u00a0"], False),
        (["flu", "cold", "", " flu", "cold\u00a0"], True),
    ],
)
def test_the_check_of_a_release_is_not_deceived(tmp_path, diagnoses, passes):
    """Neither the one before publication nor that of a release made elsewhere."""
    ages = [30] * 5 + [60] * 5
    table = pa.table({"age": ages, "diagnosis": pa.array(diagnoses * 2, pa.string())})
    asked = {"k": K, "quasi_identifiers": ["age"], "sensitive": ["diagnosis"]}
    pq.write_table(table, tmp_path / "people.parquet")
    paths = {"input": str(tmp_path / "people.parquet"), "output": str(tmp_path / "release")}
    pipeline.run(load_job({**asked, **paths}))
    for keys in ({}, {"diversity": "entropy"}, {"diversity": "recursive", "c": 5}):
        job = load_job({**asked, **paths, **keys, "l": 2})
        assert pipeline.verify(job, str(tmp_path / "release"))["passed"] is passes
