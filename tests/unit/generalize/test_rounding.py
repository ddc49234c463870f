"""Round values between two others: the roundest there is, on grids that nest."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops.data.values import read_value
from mondrian_ops.generalize.rounding import Round, round_between


def between(low: Any, high: Any, type_: pa.DataType) -> Round | None:
    return round_between(*(read_value(value, type_) for value in (low, high)))


@pytest.mark.parametrize(
    ("low", "high", "type_", "expected"),
    [
        (38, 42, pa.int64(), (40, 30, 50)),
        (38, 39, pa.int64(), None),
        (38, 38, pa.int64(), None),
        (41, 49, pa.int64(), (42, 41, 43)),
        (99, 101, pa.int32(), (100, 0, 200)),
        (123_456_789, 123_499_999, pa.int64(), (123_460_000, 123_450_000, 123_470_000)),
        (95, 120, pa.int8(), (100, 0, None)),
        (-120, -99, pa.int8(), (-100, None, 0)),
        (125, 127, pa.int8(), (126, 125, 127)),
        (1.0, float("inf"), pa.float64(), None),
        (-5, 7, pa.int8(), (0, None, None)),
        (0, 5, pa.uint8(), (1, 0, 2)),
        (-5, 0, pa.int64(), (-4, -5, -3)),
        (2**63 + 5, 2**64 - 1, pa.uint64(), (10**19, 0, None)),
        (0.25, 0.7, pa.float64(), (0.3, 0.2, 0.4)),
        (0.3, 0.5, pa.float64(), (0.4, 0.3, 0.5)),
        (0.3, 0.4, pa.float64(), (0.31, 0.3, 0.32)),
        (0.1, 0.2, pa.float32(), (0.11, 0.1, 0.12)),
        (0.1, 0.21, pa.float32(), (0.2, 0.1, 0.3)),
        (1.0, float(np.nextafter(1, 2)), pa.float64(), None),
        (0.0, 5e-324, pa.float64(), None),
        (-1e-300, 1e300, pa.float64(), (0.0, None, None)),
        (1.6e308, 1.75e308, pa.float64(), (1.7e308, 1.6e308, None)),
        ("1.25", "1.31", pa.decimal128(5, 2), ("1.3", "1.2", "1.4")),
        ("1.25", "1.26", pa.decimal128(5, 2), None),
        ("985.25", "990.50", pa.decimal128(5, 2), ("990", "980", None)),
        ("-3.25", "1.00", pa.decimal256(50, 2), ("0", None, None)),
        ("a", "c", pa.string(), None),
        ("01:30:00", "03:30:00", pa.time32("s"), None),
    ],
)
def test_numbers(low, high, type_, expected):
    assert between(low, high, type_) == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ("1987-03-05", "2011-04-01", ("2000-01-01", "1900-01-01", "2100-01-01")),
        ("1987-03-05", "1991-04-01", ("1990-01-01", "1980-01-01", "2000-01-01")),
        ("1991-04-01", "1993-01-01", ("1992-01-01", "1991-01-01", "1993-01-01")),
        ("1991-04-01", "1991-05-02", ("1991-05-01", "1991-04-01", "1991-06-01")),
        ("1991-04-01", "1991-05-01", ("1991-04-02", "1991-04-01", "1991-04-03")),
        ("1968-12-31", "1969-01-01", None),
        ("0001-01-01", "0001-02-02", ("0001-02-01", "0001-01-01", "0001-03-01")),
        ("9999-11-30", "9999-12-02", ("9999-12-01", "9999-11-01", None)),
        ("0050-01-01", "0150-01-01", ("0100-01-01", None, "0200-01-01")),
    ],
)
@pytest.mark.parametrize("type_", [pa.date32(), pa.date64()])
def test_dates(low, high, expected, type_):
    assert between(low, high, type_) == expected


@pytest.mark.parametrize(
    ("low", "high", "type_", "expected"),
    [
        ("1991-04-01 07:00:00", "1991-04-02 01:00:00", pa.timestamp("s"), "1991-04-02 00:00:00"),
        ("1991-04-01 07:30:00", "1991-04-01 09:30:00", pa.timestamp("s"), "1991-04-01 08:00:00"),
        ("1961-04-01 07:30:30", "1961-04-01 07:32:30", pa.timestamp("s"), "1961-04-01 07:31:00"),
        (
            "1961-04-01 07:30:30.5",
            "1961-04-01 07:30:32.5",
            pa.timestamp("ms"),
            "1961-04-01 07:30:31.000",
        ),
        ("1961-04-01 07:30:30.5", "1961-04-01 07:30:31", pa.timestamp("us"), None),
        (
            "2019-01-01 00:00:00Z",
            "2021-01-01 00:00:00Z",
            pa.timestamp("ms", "UTC"),
            "2020-01-01 00:00:00.000Z",
        ),
    ],
)
def test_moments(low, high, type_, expected):
    result = between(low, high, type_)
    assert (result and result.value) == expected


@pytest.mark.parametrize(
    ("low", "high", "value", "has_low", "has_high"),
    [
        ("2258-06-01 00:00:00", "2261-06-01 00:00:00", "2260-01-01", True, False),
        ("2262-04-11 22:30:00", "2262-04-11 23:30:00", "2262-04-11 23:00:00", True, False),
        ("1677-09-21 00:30:00", "1677-09-21 01:30:00", "1677-09-21 01:00:00", False, True),
    ],
)
def test_a_step_may_lead_beyond_what_nanoseconds_hold(low, high, value, has_low, has_high):
    result = between(low, high, pa.timestamp("ns"))
    assert result is not None
    assert result.value.startswith(value)
    assert (result.low is not None, result.high is not None) == (has_low, has_high)


def test_a_step_leads_up_to_the_first_and_the_last_second():
    first = between("0001-01-01 00:00:00.5", "0001-01-01 00:00:01.5", pa.timestamp("ms"))
    assert first is not None
    assert first.low == "0001-01-01 00:00:00.000"
    last = between("9999-12-31 23:59:57.5", "9999-12-31 23:59:58.5", pa.timestamp("ms"))
    assert last is not None
    assert last.high == "9999-12-31 23:59:59.000"


@given(st.lists(st.integers(-500, 500), min_size=2, max_size=2, unique=True))
def test_the_roundest_of_whole_numbers(ends):
    low, high = sorted(ends)
    inside = range(low + 1, high)
    result = between(low, high, pa.int64())
    assert (result is None) == (not inside)
    if result is None:
        return
    steps = {value: step_of(value) for value in inside}
    roundest = [value for value in inside if steps[value] == max(steps.values())]
    assert result.value == roundest[0]
    if result.value:
        assert result == (
            result.value,
            *(result.value + by * steps[result.value] for by in (-1, 1)),
        )


def step_of(value: int) -> int:
    return max(10**power for power in range(5) if value % 10**power == 0)


NUMBERS = {
    pa.float64(): st.floats(-1e9, 1e9),
    pa.float32(): st.floats(-1e9, 1e9, width=32),
    pa.decimal128(12, 3): st.decimals(-(10**8), 10**8, places=3).map(str),
    pa.date32(): st.dates(date(1800, 1, 1), date(2200, 1, 1)).map(str),
    pa.timestamp("us"): st.datetimes(datetime(1800, 1, 1), datetime(2200, 1, 1)).map(str),
}


@pytest.mark.parametrize("type_", NUMBERS, ids=str)
@given(st.data())
def test_two_round_values_are_at_least_the_smaller_of_their_steps_apart(type_, data):
    """However they were found: what shown conditions of several plans rest upon."""
    values = NUMBERS[type_]
    result = []
    for _ in range(2):
        scalars = [read_value(data.draw(values), type_) for _ in range(2)]
        low, high = sorted(scalars, key=place)
        near = round_between(low, high) if place(low) < place(high) else None
        if near is not None:
            value, *ends = (v if v is None else place(read_value(v, type_)) for v in near)
            assert place(low) < value < place(high)
            result.append((value, *ends))
    if len(result) < 2:
        return
    (a, _, above), (b, below, _) = sorted(result, key=lambda near: near[0])
    if a != b:
        assert (above is not None and above <= b) or (below is not None and below >= a)


def place(scalar: pa.Scalar) -> Fraction:
    if pa.types.is_temporal(scalar.type):
        scalar = scalar.cast(pa.int32() if scalar.type.bit_width == 32 else pa.int64())
    return Fraction(scalar.as_py())
