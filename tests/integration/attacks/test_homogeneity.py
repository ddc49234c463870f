"""Homogeneity and background knowledge: a class gives away what all of its rows have.

A. Machanavajjhala, D. Kifer, J. Gehrke and M. Venkitasubramaniam, "l-diversity: privacy beyond
k-anonymity", TKDD 1(1), 2007, section 2.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adversary import ALGORITHMS, QUASI, Release, name_of, population, released
from brute_force import alike
from mondrian_ops import anonymize, pipeline
from mondrian_ops.job.job import Job
from mondrian_ops.stores import load_job
from tiers import in_soak, one_here

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


@pytest.mark.parametrize(
    "keys", one_here([*ALGORITHMS[::2], *in_soak(ALGORITHMS[1::2])]), ids=name_of
)
def test_l_diversity_leaves_no_class_of_one_diagnosis(tmp_path, keys):
    keys = {**keys, "k": K, "sensitive": ["diagnosis"]}
    assert told(released(tmp_path / "with l", population(), l=2, **keys)) == 0


@pytest.mark.parametrize(
    "keys", [ALGORITHMS[0], *in_soak([ALGORITHMS[1], ALGORITHMS[4]])], ids=name_of
)
def test_k_anonymity_alone_gives_diagnoses_away(tmp_path, keys):
    keys = {**keys, "k": K, "sensitive": ["diagnosis"]}
    release = released(tmp_path, population(), **keys)
    assert told(release) > 0
    assert release.report["achieved"]["l"] == 1


@pytest.mark.parametrize("keys", [ALGORITHMS[0], *in_soak(ALGORITHMS[1:4])], ids=name_of)
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


@pytest.mark.parametrize(
    ("keys", "of_nothing"),
    [
        *one_here(product(ALGORITHMS[1::2], [0.3])),
        *in_soak([*product(ALGORITHMS, [0]), *product(ALGORITHMS[::2], [0.3])]),
    ],
    ids=lambda each: name_of(each) if isinstance(each, dict) else f"missing {each}",
)
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


# One number in disguise: written in several ways, or with the rounding of a computation


def in_disguise(kind: str) -> pa.Table:
    """People whose neighbours have one number, each written as it comes."""
    random = np.random.default_rng(4)
    table = population().select(["name", *QUASI, "row"])
    written: list[str | float] = []
    for person in table.select(["age", "sex"]).to_pylist():
        number = 1 + 2 * ((person["age"] or 0) > 45) + (person["sex"] == "female")
        ways: list[str | float] = [0.1 * number, number / 10, 0.1 + number / 10 - 0.1]
        if kind == "text":
            ways = [f"{number}", f"{number}.0", f"0{number}", f"+{number}", f"{number}e0"]
        written.append(ways[random.integers(len(ways))])
    return table.append_column("scale", pa.array(written))


def numbers_seen_through(release: Release) -> float:
    """The share of persons whose number is read off their class."""
    certain = 0
    for rows in release.classes().values():
        if len({round(float(row["scale"]), 9) for row in rows}) == 1:
            certain += len(rows)
    return certain / len(release.rows)


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        *one_here(product(ALGORITHMS[::4], ["text"])),
        *product(ALGORITHMS[3:4], ["float"]),
        *in_soak(product(ALGORITHMS[1:4], ["text"])),
        *in_soak(product(ALGORITHMS[:3], ["float"])),
        *in_soak([(ALGORITHMS[5], "text"), (ALGORITHMS[4], "float"), (ALGORITHMS[5], "float")]),
    ],
    ids=lambda each: name_of(each) if isinstance(each, dict) else each,
)
def test_a_number_in_disguise_is_one_number(tmp_path, keys, kind):
    table = in_disguise(kind)
    release = released(tmp_path, table, l=2, **{**keys, "k": K, "sensitive": ["scale"]})
    assert numbers_seen_through(release) == 0
    source = dict(zip(table["row"].to_pylist(), table["scale"].to_pylist(), strict=True))
    assert all(source[row["row"]] == row["scale"] for row in release.rows)  # published as it is


def test_codes_of_a_hierarchy_are_values_of_their_own(tmp_path):
    """Two diagnoses of a list that has both, though a number would be the same."""
    (tmp_path / "codes.csv").write_text("250.1;250;*\n250.10;250;*\n401.9;401;*\n")
    table = pa.table({"age": [30, 30, 60, 60], "code": ["250.1", "250.10", "250.10", "401.9"]})
    asked = {"k": 2, "l": 2, "quasi_identifiers": ["age"], "sensitive": ["code"]}
    tree = {"t": 1, "t_distance": "hierarchical", "sensitive_hierarchy": {"code": "codes.csv"}}
    classes = []
    for keys in ({}, tree):
        job = replace(
            Job.from_dict({**asked, **keys}, paths_required=False), base_dir=str(tmp_path)
        )
        classes.append(anonymize(table, job)[1]["equivalence_classes"])
    assert classes == [1, 2]
