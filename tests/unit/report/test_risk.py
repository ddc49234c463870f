"""Risks in a population, against a simulation of it."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_ops.report.document import Risk
from mondrian_ops.report.risk import RiskBefore, risks_beside
from mondrian_ops.report.sections import _before


def test_without_a_sample_or_a_fraction_there_is_nothing_beside() -> None:
    assert risks_beside([(5, 2)], 5, None, None) == {}
    assert risks_beside([], 5, None, 0.1) == {}


def test_rows_by_people_before_and_after() -> None:
    before = {"unique": 0.5, "average": 0.6, "rows_by_people": [[1, 1.0]]}
    risks = risks_beside([(5, 2), (12, 1)], 5, before, None)
    assert risks == {"before": before, "rows_by_people": [[5, 10 / 22], [10, 12 / 22]]}
    of_persons = risks_beside([(5, 2, 40), (12, 1, 60)], 5, before, None)
    assert of_persons["rows_by_people"] == [[5, 0.4], [10, 0.6]]


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (RiskBefore(unique=0.25, average=0.5), "Before, 25.0 % of the rows were the only one"),
        (RiskBefore(), "with their values before is not shown: these, or the others, are of fewer"),
    ],
)
def test_the_risk_before_in_words(before: RiskBefore, words: str) -> None:
    assert words in _before(Risk(prosecutor_max=0.2, prosecutor_avg=0.1, before=before))


@pytest.mark.parametrize("size", [1, 2, 5, 20])
@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.5])
def test_the_estimate_is_the_mean_of_a_simulated_population(size: int, fraction: float) -> None:
    """Each person is in the data with the chance ``fraction``."""
    draw = np.random.default_rng(1)
    population = size + draw.negative_binomial(size, fraction, 200_000)
    expected = float(np.mean(1 / population))
    found = risks_beside([(size, 3)], 2, None, fraction)
    # The approximation for three and more is from below, and the closer the larger the class.
    assert found["population_max"] == pytest.approx(expected, rel=0.02 if size <= 2 else 0.2)
    assert found["k_map"] == max(1, int(1 / found["population_max"] + 1e-9))


@pytest.mark.parametrize("rest", [1e-16, 1e-12, 1e-9, 1e-5, 0.00999, 0.01001])
def test_a_class_of_two_in_nearly_the_whole_population(rest: float) -> None:
    found = risks_beside([(2, 3)], 2, None, 1 - rest)
    assert found["population_max"] == pytest.approx(0.5 - rest / 3, abs=rest**2 + 1e-11)
    assert (found["population_max"] <= 0.5, found["k_map"]) == (True, 2)


def test_a_whole_population_has_the_risk_of_the_data() -> None:
    found = risks_beside([(5, 2), (10, 1)], 5, None, 1.0)
    assert found == {"k_map": 5, "population_max": 0.2, "population_avg": 0.15}
