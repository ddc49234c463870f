"""What reports say of the use of a release, against the release and its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mondrian_ops import anonymize, read_release
from mondrian_ops.errors import PrivacyError
from mondrian_ops.job.job import Job
from mondrian_ops.pipeline import run

ROWS = 2000


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    draw = np.random.default_rng(3)
    age, weight = draw.integers(18, 80, ROWS), draw.normal(75, 12, ROWS).round(1)
    ill = draw.random(ROWS) < 1 / (1 + np.exp(-(age - 50) / 8))
    return pd.DataFrame(
        {
            "age": age,
            "weight": weight,
            "town": draw.choice(["Bern", "Bonn", "Genf", "Köln"], ROWS),
            "ill": np.where(ill, "yes", "no"),
        }
    )


def a_job(**options: Any) -> dict[str, Any]:
    job = {"k": 10, "quasi_identifiers": ["age", "weight", "town"], "sensitive": ["ill"]}
    return job | options


@pytest.fixture
def source(people: pd.DataFrame, tmp_path: Path) -> dict[str, str]:
    people.to_parquet(tmp_path / "people.parquet")
    return {"input": str(tmp_path / "people.parquet"), "output": str(tmp_path / "release")}


def test_figures_are_those_of_the_release(people: pd.DataFrame, source: dict[str, str]) -> None:
    report = run(Job.from_dict(a_job(**source, partitioning={"fragments": 4})))
    use, released = report["use"], read_release(source["output"], "midpoint")
    assert use["rows"] == ROWS
    assert 0 < use["query_error"]["median"] < 0.2
    (change,) = use["correlations"]
    assert change["before"] == pytest.approx(people["age"].corr(people["weight"]), abs=1e-3)
    assert change["after"] == pytest.approx(released["age"].corr(released["weight"]), abs=1e-3)
    shares = read_release(source["output"], "weights").filter(like="town=").mean()
    raw = people["town"].value_counts(normalize=True)
    raw.index = "town=" + raw.index
    assert use["distance"]["town"] == pytest.approx((shares - raw).abs().sum() / 2, abs=1e-3)


def test_in_memory_and_from_files_agree(people: pd.DataFrame, source: dict[str, str]) -> None:
    options = {"cut": "median", "partitioning": {"fragments": 1}}
    from_files = run(Job.from_dict(a_job(**source, **options)))["use"]
    _, report = anonymize(people, a_job(**options))
    assert report["use"]["distance"] == from_files["distance"]
    assert report["use"]["correlations"] == from_files["correlations"]


@pytest.mark.parametrize("style", [{"interval_style": "bounds"}, {"algorithm": "samarati"}])
def test_any_form_of_release_is_measured(people: pd.DataFrame, style: dict[str, Any]) -> None:
    _, report = anonymize(people, a_job(**style, quasi_identifiers=["age", "town"]))
    assert report["use"]["query_error"]["queries"] > 100
    assert set(report["use"]["distance"]) == {"age", "town"}


def test_more_privacy_costs_use(people: pd.DataFrame) -> None:
    errors = []
    for k in (2, 200):
        _, report = anonymize(people, a_job(k=k, cut="median"))
        errors.append(report["use"]["query_error"]["median"])
    assert errors[0] < errors[1] / 2


def test_model_of_a_release_is_tested_on_raw_rows(people: pd.DataFrame) -> None:
    _, report = anonymize(people, a_job(k=5, target="ill"))
    model = report["use"]["model"]
    assert (model["target"], model["measure"], model["rows"]) == ("ill", "AUC", ROWS // 3)
    assert 0.8 < model["released"] <= model["raw"] + 0.02 < 1
    shuffled = people.assign(ill=np.random.default_rng(0).permutation(people["ill"]))
    _, report = anonymize(shuffled, a_job(k=5, target="ill"))
    assert abs(report["use"]["model"]["released"] - 0.5) < 0.1


def test_limit_on_the_error_of_counts(people: pd.DataFrame) -> None:
    with pytest.raises(PrivacyError, match="max_query_error: the median error of random counts"):
        anonymize(people, a_job(k=200, max_query_error=0.01))


def test_the_risk_before_is_that_of_the_raw_columns(
    people: pd.DataFrame, source: dict[str, str]
) -> None:
    job = a_job(**source, partitioning={"fragments": 4}, sampling_fraction=0.1)
    risk = run(Job.from_dict(job))["risk"]
    columns = ["age", "weight", "town"]
    alike = people.groupby(columns)["ill"].transform("size")
    assert risk["before"]["unique"] == pytest.approx((alike == 1).mean())
    assert risk["before"]["average"] == pytest.approx((1 / alike).mean(), abs=5e-5)
    assert risk["before"]["average"] > 5 * risk["prosecutor_avg"]
    assert all(least >= 10 for least, _ in risk["rows_by_people"])
    assert 80 < risk["k_map"] <= 100
    assert risk["population_max"] < risk["prosecutor_max"] / 5


def test_the_rows_of_one_person_are_not_shown_as_unique() -> None:
    """Nobody else is like the twelve rows of person 0."""
    age = np.concatenate([np.arange(100, 112), np.repeat([20, 30, 40], 100)])
    who = np.concatenate([np.zeros(12, int), np.arange(1, 301)])
    people = pd.DataFrame({"who": who, "age": age})
    job = {"k": 5, "quasi_identifiers": ["age"], "entity_id": "who", "max_suppressed": 0.1}
    _, report = anonymize(people, job)
    before = {"unique": None, "average": None, "rows_by_people": [[1, 1.0]]}
    assert report["risk"]["before"] == before
