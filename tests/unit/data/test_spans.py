"""Robust spans: extreme values widen no column, and notes name the column only."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

from mondrian_ops.data.spans import (
    POINTS,
    cut_width,
    extreme_values,
    quantiles_of,
    robust_ends,
)

AGES = np.clip(np.random.default_rng(0).normal(45, 16, 5000).round(), 17, 90).astype(np.int64)


def with_bad(value: int, rows: int) -> np.ndarray:
    ages = AGES.copy()
    ages[:rows] = value
    return ages


def ends_of(values: np.ndarray) -> list[float]:
    return robust_ends(quantiles_of(pa.array(values)), "age").to_pylist()


def test_quantiles_are_values_in_order_the_missing_ones_first() -> None:
    values = [3, None, 1, 2, None]
    assert quantiles_of(pa.array(values)).to_pylist() == [None, None, 1, 2, 3]
    many = quantiles_of(pa.chunked_array([AGES, AGES]))
    assert len(many) == POINTS
    assert many[0].as_py() == AGES.min()
    assert many[POINTS - 1].as_py() == AGES.max()
    middle = many[POINTS // 2].as_py()
    assert middle == int(np.median(AGES))
    assert not len(quantiles_of(pa.array([], pa.int64())))


def test_ends_are_the_first_and_the_last_percentile() -> None:
    assert ends_of(np.arange(1001.0)) == [10.0, 990.0]
    assert ends_of(np.array([1.0, 2.0, 3.0])) == [1.0, 3.0]


@pytest.mark.parametrize("bad", [9999, -9999, 10**15])
@pytest.mark.parametrize("rows", [1, 50, 60, 200])
def test_bad_values_do_not_move_the_ends_up_to_four_rows_of_a_hundred(bad: int, rows: int) -> None:
    low, high = ends_of(with_bad(bad, rows))
    clean = ends_of(AGES)
    assert abs(low - clean[0]) <= 1
    assert abs(high - clean[1]) <= 2


def test_where_nearly_all_have_one_value_the_others_decide() -> None:
    gains = np.zeros(5000)
    gains[:40] = np.linspace(1000, 3000, 40)
    gains[40] = 10**9
    low, high = ends_of(gains)
    assert low == 0
    assert 2000 < high <= 3000
    assert ends_of(np.full(50, 7.0)) == [7.0, 7.0]
    assert ends_of(np.array([])) == []


def test_only_a_stretched_range_is_replaced_in_cuts() -> None:
    assert cut_width(73.0, 57.0) == 73.0
    assert cut_width(9982.0, 57.0) == 57.0
    assert cut_width(5.0, 0.0) == 5.0


def note(values: pa.Array) -> str:
    present = values.drop_null()
    order = present.take(pa.array(np.argsort(np.asarray(present.to_pylist()))))
    return extreme_values("age", order, quantiles_of(values))


@pytest.mark.parametrize(
    ("value", "rows", "says"),
    [
        (9999, 1, "at most 0.2 % of the rows"),
        (9999, 40, "at most 1 % of the rows"),
        (9999, 150, "more than 1 % of the rows"),
        (-1, 1, "often stands for 'unknown'"),
        (-1, 100, "often stands for 'unknown'"),
    ],
)
def test_a_note_names_the_column_and_how_many_but_no_value(value, rows, says) -> None:
    bad = np.concatenate([AGES, np.full(rows, value)])
    noted = note(pa.array(bad))
    assert "'age'" in noted
    assert says in noted
    told = noted.replace("as 9999, -1 and 1900-01-01 often do", "")
    assert str(value) not in told
    assert str(AGES.max()) not in told


def test_moments_that_stand_for_unknown() -> None:
    days = [datetime.date(1950, 1, 1) + datetime.timedelta(days=int(d)) for d in range(0, 9000, 3)]
    assert note(pa.array(days)) == ""
    unknown = datetime.date(1900, 1, 1)
    assert "more than twice as wide" in note(pa.array([*days, unknown]))
    longer = [datetime.date(1950, 1, 1) + datetime.timedelta(days=d) for d in range(0, 26_000, 9)]
    assert "often stands for 'unknown'" in note(pa.array([*longer, unknown]))
    assert note(pa.array([*days, datetime.date(1949, 12, 1)])) == ""


def test_ordinary_columns_have_no_note() -> None:
    assert note(pa.array(AGES)) == ""
    assert note(pa.array([1, 2, None])) == ""
    assert note(pa.array([9] * 30)) == ""
    assert extreme_values("x", pa.array([], pa.int64()), pa.array([], pa.int64())) == ""
    grades = np.arange(100) % 10  # 0 to 9: the last is a usual code, but not apart
    assert note(pa.array(grades)) == ""
