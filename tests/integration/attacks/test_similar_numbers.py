"""Proximity: the incomes of a class differ, and lie so close together that each is known.

J. Li, Y. Tao and X. Xiao, "Preservation of proximity privacy in publishing numerical sensitive
data", SIGMOD 2008, section 1.
"""

from __future__ import annotations

from datetime import date, timedelta
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from adversary import ALGORITHMS, Release, name_of, population, released
from mondrian_ops import pipeline
from mondrian_ops.report import render_text
from mondrian_ops.stores import load_job
from tiers import in_soak, one_here

L, K = 5, 10


@cache
def earners() -> pa.Table:
    """People whose incomes, of 10,000 to 200,000, follow from their age, to some per cent."""
    random = np.random.default_rng(5)
    people = population().select(["name", "age", "sex", "zip", "country", "row"])
    ages = people["age"].fill_null(40).to_numpy().astype(float)
    place = (ages - ages.min()) / (ages.max() - ages.min())
    incomes = 10_000 * np.exp(3 * place + random.normal(0, 0.02, len(ages)))
    days = [date(2020, 1, 1) + timedelta(int(900 * at + random.integers(20))) for at in place]
    return people.append_column("income", pa.array(incomes.round(2))).append_column(
        "hired", pa.array(days)
    )


def classes_of(release: Release, column: str) -> list[list]:
    quasi = release.report["columns"]["quasi_identifiers"]
    return [[row[column] for row in rows] for rows in release.classes(quasi).values()]


def narrow(release: Release) -> float:
    """The share of people whose income is known to 10 % to who knows their class."""
    alike = [len(v) for v in classes_of(release, "income") if min(v) >= 0.9 * max(v)]
    return sum(alike) / len(release.rows)


def best_guess(values: list, within) -> float:
    """The share of a class for which the best guess of an interval is right."""
    return max(sum(within(low, v) for v in values if v >= low) for low in values) / len(values)


def within_a_tenth(low: float, high: float) -> bool:
    return high - low <= 0.1 * high * (1 + 1e-12)


@pytest.mark.parametrize(
    "keys",
    one_here(
        [
            {"l": L},
            {"l": L, "diversity": "entropy"},
            {"l": L, "diversity": "recursive", "c": 3},
            {"l": L, "t": 0.5, "t_distance": "ordered"},
        ]
    ),
    ids=str,
)
def test_no_diversity_keeps_similar_incomes_apart(tmp_path, keys):
    keys = {"k": 5, "quasi_identifiers": ["age", "sex"], "sensitive": ["income"], **keys}
    release = released(tmp_path, earners(), **keys)
    assert narrow(release) > 0.5
    said = release.report["sensitive"]["income"]
    assert said == {"width": "10 %", "narrow": pytest.approx(narrow(release))}
    shown = " ".join(render_text(release.report, 120).split())
    assert f"another: {100 * narrow(release):.1f} % of the people are in classes whose" in shown


@pytest.mark.parametrize(
    "keys", one_here([*ALGORITHMS[1::2], *in_soak(ALGORITHMS[::2])]), ids=name_of
)
def test_with_a_width_a_guess_is_right_once_in_l(tmp_path, keys):
    keys = {**keys, "k": K, "sensitive": ["income", "hired"], "l": L}
    widths = {"income": "10 %", "hired": "30 days"}
    release = released(tmp_path, earners(), l_width=widths, **keys)
    assert narrow(release) == 0
    for values in classes_of(release, "income"):
        assert best_guess(values, within_a_tenth) <= 1 / L + 1e-9
    for values in classes_of(release, "hired"):
        month = timedelta(30)
        assert best_guess(values, lambda low, high, month=month: high - low <= month) <= 1 / L
    assert release.report["achieved"]["l"] >= L
    assert [each["narrow"] for each in release.report["sensitive"].values()] == [0, 0]


def test_a_release_without_it_is_found_out(tmp_path):
    """`verify` measures the published values, whoever made the files."""
    release = released(tmp_path, earners(), k=5, l=L, sensitive=["income"])
    job = {
        "k": 5,
        "l": L,
        "l_width": {"income": "10 %"},
        "quasi_identifiers": ["age", "sex", "zip", "country"],
        "sensitive": ["income"],
        "unlisted": "publish",
        "input": "people.parquet",
        "output": "out",
    }
    verdict = pipeline.verify(load_job(job), str(release.directory))
    assert not verdict["passed"]
    (failure,) = verdict["failures"]
    assert failure.startswith("l-diversity of income by intervals of 10 %, l = 5: ")
    assert verdict["achieved"]["l"] == 1
