"""A tree with polynomials: what it predicts for rows that it has not seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mondrian_ops.verify.model_tree import Coded, bins_of, predictions

ROWS = 2000
Floats = NDArray[np.float64]


def coded(values: Any, is_numeric: bool = True) -> Coded:
    values = np.asarray(values)
    ranks = np.unique(values, return_inverse=True)[1] + 1
    if not is_numeric:
        return Coded(ranks, ranks.astype(float), False)
    numbers = values.astype(float)
    return Coded(np.where(np.isnan(numbers), 0, ranks), numbers, True)


def errors(known: list[Coded], target: Floats) -> Floats:
    """Of the second half, learned from the first one."""
    learned = np.arange(len(target)) < len(target) // 2
    return np.abs(predictions(known, target, learned, ~learned) - target[~learned])


def test_a_polynomial_is_found_as_it_is() -> None:
    one, other = np.random.default_rng(0).normal(size=(2, ROWS))
    target = 3 + one - 2 * other + one * other + other**2
    assert errors([coded(one), coded(other)], target).max() < 1e-5


def test_a_quotient_is_found_nearly() -> None:
    random = np.random.default_rng(0)
    height, weight = random.normal(170, 10, ROWS), random.normal(75, 14, ROWS)
    target = weight / (height / 100) ** 2
    assert np.median(errors([coded(height), coded(weight)], target)) < 0.01 * target.std()


def test_what_holds_in_most_rows_is_found_there_exactly() -> None:
    random = np.random.default_rng(0)
    age = random.integers(18, 90, ROWS)
    target = np.where(random.random(ROWS) < 0.8, age, random.integers(18, 90, ROWS)).astype(float)
    assert np.mean(errors([coded(age)], target) < 1e-3) > 0.75


def test_text_is_put_in_the_order_of_what_it_predicts() -> None:
    random = np.random.default_rng(0)
    state = random.integers(0, 12, ROWS)
    level = random.permutation(12)[state].astype(float)
    names = coded([f"state{each:02}" for each in state], is_numeric=False)
    assert np.mean(errors([names], level) < 0.1) > 0.95


def test_independent_columns_predict_no_better_than_the_mean() -> None:
    random = np.random.default_rng(0)
    target = random.normal(size=ROWS)
    known = [coded(random.normal(size=ROWS)) for _ in range(5)]
    assert np.mean(errors(known, target) ** 2) > 0.95


def test_missing_and_constant_columns_do_no_harm() -> None:
    random = np.random.default_rng(0)
    one = random.normal(size=ROWS)
    gaps = np.where(random.random(ROWS) < 0.3, np.nan, one)
    empty = Coded(np.zeros(ROWS, np.int64), np.full(ROWS, np.nan), True)
    found = errors([coded(gaps), empty, coded(np.full(ROWS, 7.0))], 2 * one)
    assert np.isfinite(found).all()
    assert np.mean(found < 1e-3) > 0.6


@pytest.mark.parametrize("rows", [2, 5, 40])
def test_few_rows_with_more_columns_than_rows(rows: int) -> None:
    random = np.random.default_rng(0)
    known = [coded(random.normal(size=rows)) for _ in range(30)]
    assert np.isfinite(errors(known, random.normal(size=rows))).all()


@pytest.mark.parametrize("size", [1e-300, 1e-9, 1e9, 1e150, 1e300])
def test_numbers_of_any_size(size: float) -> None:
    one = np.random.default_rng(0).normal(size=ROWS)
    assert np.median(errors([coded(one * size)], one * size)) < 1e-6 * size


def test_bins_are_quantiles_and_0_is_the_missing_value() -> None:
    numbers = np.array([5.0, np.nan, 1.0, 2.0, 3.0, 4.0])
    bins = bins_of(numbers, 5)
    assert bins[1] == 0
    assert list(bins[[2, 3, 4, 5, 0]]) == sorted(bins[[2, 3, 4, 5, 0]])
    assert bins_of(np.full(3, np.nan), 4).tolist() == [0, 0, 0]
    many = bins_of(np.random.default_rng(0).normal(size=10_000), 10)
    assert np.bincount(many)[1:].min() > 900
