"""Scales of columns, and their open ends."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mondrian_ops.errors import JobError
from mondrian_ops.generalize.cells import Grid
from mondrian_ops.generalize.lines import (
    LINEAR,
    notes_on_ends,
    open_ends,
    scale_of,
    with_open_ends,
)
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
    assert ends_of(common, k=200, top="5 %", bottom="5 %") == (None, None)
    assert ends_of(common, k=5, top="5 %", bottom="5 %") == (None, 0.1)
    assert ends_of(common, top="5 %", bottom="3") == (None, None)


def test_a_share_leaves_out_a_value_that_most_have() -> None:
    """99 % have no gains. Those of the others are alike with a top, or nobody's if they are few."""
    gains = pa.array([*range(-5010, -5000), *[0] * 980, *range(5001, 5011)])
    bottom, top = ends_of(gains, top="1 %", bottom="1 %", k=5)
    assert 0 < top <= 5001
    assert -5001 <= bottom < 0
    assert ends_of(gains.slice(10), top="1 %", k=100_000) == (None, None)
    only_zeros = pa.array([0] * 1000)
    assert ends_of(only_zeros, top="1 %", bottom="1 %") == (None, None)


def test_k_of_the_rows_with_a_value_lie_beyond_a_share() -> None:
    half = pa.array([None] * 500 + [*range(500)], pa.int64())
    _, top = ends_of(half, top="1 %", k=500)  # 10,000 rows, 5,000 of them with a value
    assert np.count_nonzero(np.arange(500) >= top) >= 50


@pytest.mark.parametrize(
    ("options", "noted"),
    [
        ({"top": "1 %", "bottom": "1 %"}, []),
        ({"top": "900"}, []),
        (
            {"top": "0.01"},
            ["top 0.01 publishes more than half of the rows with values alike; a sh"],
        ),
        ({"top": "1 %", "k": 1000}, ["top 1 % publishes 10 % of the rows with values alike; a va"]),
    ],
)
def test_a_note_tells_an_end_that_publishes_many_rows_alike(
    options: dict[str, Any], noted: list[str]
) -> None:
    k = options.pop("k", 5)
    quasi = QuasiIdentifier("q", **options)
    ends = open_ends(quasi, NUMBERS.type, NUMBERS, 10_000, k)
    notes = [*notes_on_ends(quasi, ends, NUMBERS)]
    assert len(notes) == len(noted)
    for note, start in zip(notes, noted, strict=True):
        assert note.startswith(f"column 'q': {start}")


def test_a_note_tells_that_a_share_has_no_end() -> None:
    zeros = pa.array([0] * 1000)
    (note,) = notes_on_ends(QuasiIdentifier("q", top="1 %"), (None, None), zeros)
    assert "top 1 % has no effect, as most rows have one value" in note


def test_a_note_counts_the_rows_of_the_cell_that_an_end_opens() -> None:
    quasi, ends = QuasiIdentifier("q", top="900"), (None, pa.scalar(900))
    assert [*notes_on_ends(quasi, ends, NUMBERS, Grid(100, 0))] == []
    (note,) = notes_on_ends(quasi, ends, NUMBERS, Grid(5000, 0))
    assert "publishes more than half" in note


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
