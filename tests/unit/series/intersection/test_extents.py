"""Losses by the bounds of codes, against the definition."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_ops.cut.native.mondrian import INTERVAL, SET, TREE, Rows
from mondrian_ops.series.intersection.extents import Extents

SIZE = 13


def rows_of(kind: int) -> tuple[Rows, np.ndarray]:
    generator = np.random.default_rng(0)
    low = np.concatenate([[0.0], np.cumsum(generator.random(SIZE - 1)) - 5])
    step = np.concatenate([[1.0], generator.random(SIZE - 2), [0.0]])
    if kind == SET:
        step = np.minimum(1.0, np.arange(SIZE) / (SIZE - 2))
    codes = np.arange(SIZE, dtype=np.uint8)[None]
    table = Rows(
        codes,
        np.zeros((0, SIZE), np.int32),
        np.array([kind]),
        np.array([0, SIZE]),
        low,
        low + 0.1,
        step,
        np.array([7.0]),
        np.ones(1),
        np.array([SIZE - 1.0]),
    )
    return table, step


def defined(kind: int, table: Rows, low: int, high: int) -> float:
    if low == 0:
        return float(high > 0)
    if kind == INTERVAL:
        return float(table.high[high] - table.low[low]) / 7.0
    if low == high:
        return 0.0
    return max(table.step[low:high]) if kind == TREE else min(1.0, (high - low) / (SIZE - 2))


@pytest.mark.parametrize("kind", [INTERVAL, TREE, SET])
def test_a_width_is_what_a_class_between_two_codes_loses(kind: int) -> None:
    table, _ = rows_of(kind)
    extents = Extents(table)
    pairs = np.array([(a, b) for a in range(SIZE) for b in range(a, SIZE)])
    widths = extents.width(pairs[:, :1], pairs[:, 1:], np.full(len(pairs), SIZE))
    assert widths.tolist() == pytest.approx(
        [defined(kind, table, *pair) for pair in pairs.tolist()]
    )


@pytest.mark.parametrize("kind", [INTERVAL, TREE, SET])
def test_places_ascend_with_codes_and_missing_values_are_far_away(kind: int) -> None:
    table, _ = rows_of(kind)
    places = Extents(table).places[:, 0]
    assert (np.diff(places) > 0).all()
    assert places[0] == -2
    assert places[1] >= 0


def test_a_set_of_few_rows_loses_no_more_than_their_number_of_values() -> None:
    extents = Extents(rows_of(SET)[0])
    low, high = np.array([[1], [1], [0]]), np.array([[12], [12], [12]])
    assert extents.width(low, high, np.array([1, 3, 3])).tolist() == [0.0, 2 / (SIZE - 2), 1.0]


def test_the_line_is_the_attribute_of_intervals() -> None:
    assert Extents(rows_of(INTERVAL)[0]).line == 0
    assert Extents(rows_of(SET)[0]).line is None
