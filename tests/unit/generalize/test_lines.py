"""Scales of columns, and their open ends."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mondrian_ops.errors import JobError
from mondrian_ops.generalize.lines import LINEAR, open_ends, scale_of, with_open_ends
from mondrian_ops.job.quasi_identifier import QuasiIdentifier

NUMBERS = pa.array(np.arange(1001))


def ends_of(values: pa.Array, k: int = 5, **options: Any) -> tuple[Any, Any]:
    quasi = QuasiIdentifier("q", **options)
    bottom, top = open_ends(quasi, values.type, values, 10_000, k)
    return bottom and bottom.as_py(), top and top.as_py()


def test_ends_are_values_of_the_columns_type() -> None:
    assert ends_of(NUMBERS) == (None, None)
    assert ends_of(NUMBERS, top="200", bottom="10") == (10, 200)
    assert ends_of(NUMBERS, top="199.5", bottom="10.5") == (10, 200)
    assert ends_of(NUMBERS.cast(pa.float64()), top="199.5") == (None, 199.5)
    days = pa.array([dt.date(2020, 1, 1), dt.date(2024, 1, 1)])
    assert ends_of(days, top="2023-05-01") == (None, dt.date(2023, 5, 1))


def test_numbers_are_read_however_they_are_written() -> None:
    for text in ("1E2", "1e2", "100.0"):
        assert ends_of(NUMBERS, top=text) == (None, 100)
    large = 2**62 + 1
    assert ends_of(pa.array([0, 2**62]), top=f"{large}.0") == (None, large)


def test_moments_are_read_in_the_zone_of_their_column() -> None:
    rome = dt.timezone(dt.timedelta(hours=1))
    moments = pa.array([0, 1], pa.timestamp("s", "Europe/Rome"))
    midnight = dt.datetime(2000, 1, 1, tzinfo=rome)
    for text in ("2000-01-01", "2000-01-01 00:00:00", "1999-12-31T23:00:00Z"):
        assert ends_of(moments, top=text) == (None, midnight)
    _, skipped = ends_of(moments, top="2021-03-28 02:30:00")  # by the change to summer time
    assert skipped.astimezone(dt.UTC) == dt.datetime(2021, 3, 28, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e400"])
@pytest.mark.parametrize("type_", [pa.float64(), pa.float16(), pa.int64(), pa.decimal128(25, 2)])
def test_an_end_is_finite(type_: pa.DataType, text: str) -> None:
    with pytest.raises(JobError, match="is no value of this type"):
        ends_of(pa.array([0, 1]).cast(type_), top=text)


@pytest.mark.parametrize("text", ["many", "2020-01-01"])
def test_an_end_of_another_type_is_refused(text: str) -> None:
    with pytest.raises(
        JobError, match=r"column 'q' of type int64: top .* is no value of this type"
    ):
        ends_of(NUMBERS, top=text)
    with pytest.raises(JobError, match="bottom must be below top"):
        ends_of(NUMBERS, top="10", bottom="10")


def test_a_share_is_a_round_value_with_k_rows_beyond_it() -> None:
    prices = pa.array(np.arange(1001) * 1.00123)
    bottom, top = ends_of(prices, top="1 %", bottom="1 %")
    assert bottom not in prices.to_pylist()
    assert top not in prices.to_pylist()
    assert 9 <= np.count_nonzero(prices.to_numpy() <= bottom) <= 12
    assert 9 <= np.count_nonzero(prices.to_numpy() >= top) <= 12
    _, top = ends_of(prices, k=500, top="1 %")  # 5 % of the rows
    assert np.count_nonzero(prices.to_numpy() >= top) >= 50


def test_shares_of_a_column_with_one_common_value_leave_it_closed() -> None:
    common = pa.array([0.0] * 990 + [float(each) for each in range(1, 12)])
    assert ends_of(common, top="5 %", bottom="5 %") == (None, None)
    assert ends_of(common, top="5 %", bottom="3") == (None, None)


def test_values_beyond_the_ends_have_one_code() -> None:
    values = pa.array([1, 3, 5, 7, 9])
    codes = np.array([0, 1, 2, 3, 4, 5, 5], np.uint8)
    found, kept = with_open_ends(codes, values, pa.scalar(4), pa.scalar(7))
    assert kept.to_pylist() == [4, 5, 7]
    assert found.tolist() == [0, 1, 1, 2, 3, 3, 3]
    found, kept = with_open_ends(codes, values, pa.scalar(0), pa.scalar(8))
    assert (kept.to_pylist(), found.tolist()) == ([1, 3, 5, 7, 8], [0, 1, 2, 3, 4, 5, 5])
    found, kept = with_open_ends(codes, values, None, pa.scalar(10))
    assert kept is values
    found, kept = with_open_ends(codes, values, pa.scalar(20), None)
    assert (kept.to_pylist(), found.tolist()) == ([20], [0, 1, 1, 1, 1, 1, 1])
    found, kept = with_open_ends(codes, values, None, pa.scalar(-1))
    assert (kept.to_pylist(), found.tolist()) == ([-1], [0, 1, 1, 1, 1, 1, 1])
    none = values[:0]
    assert with_open_ends(codes[:1], none, pa.scalar(4), pa.scalar(7))[1] is none


def test_scales_keep_the_order_and_change_the_widths() -> None:
    line = np.array([-100.0, 0.0, 1.0, 10.0, 1000.0])
    assert LINEAR.of(line) is line
    logs = scale_of(QuasiIdentifier("q", scale="log"), NUMBERS).of(line)
    assert np.all(np.diff(logs) > 0)
    assert logs[4] - logs[3] < 5 < logs[4]
    skewed = pa.array(np.sort(np.random.default_rng(1).lognormal(0, 2, 1001)))
    ranks = scale_of(QuasiIdentifier("q", scale="rank"), skewed).of(skewed.to_numpy())
    assert np.all(np.diff(ranks) >= 0)
    assert abs(ranks[500] - 0.5) < 0.001
    half_zero = pa.array([0.0] * 500 + [*np.linspace(1, 9, 500)])
    zero, nine = scale_of(QuasiIdentifier("q", scale="rank"), half_zero).of(np.array([0.0, 9.0]))
    assert (round(zero, 3), round(nine, 3)) == (0.25, 1.0)
