"""Which values are near one another, in codes: against the definition, and against the check's."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.data.near_values import check_width, is_measurable, is_of_time, near_ends
from mondrian_ops.errors import JobError
from mondrian_ops.job.widths import as_width
from mondrian_ops.verify.spread import SensitiveCount, narrow


def ends(values, width, missing=False, type_=None) -> list[int]:
    return near_ends(pa.array(values, type_), as_width(width), missing).tolist()


def test_numbers_by_their_difference_or_by_a_share():
    assert ends([1, 5, 6, 11, 30], "5") == [2, 2, 3, 3, 4]
    assert ends([0, 1, 89, 90, 100], "10 %") == [0, 1, 3, 4, 4]
    assert ends([-100, -90, -89, 0], "10 %") == [1, 2, 2, 3]
    assert ends([], "5") == []


def test_the_missing_value_is_near_none():
    assert ends([1, 2, 9], "5", missing=True) == [0, 2, 2, 3]


def test_rounding_counts_as_near():
    assert ends([0.1, 0.4], "0.3") == [1, 1]
    assert ends([Decimal("0.10"), Decimal("0.40")], "0.3") == [1, 1]
    assert ends([2**60, 2**60 + 1], "0.5", type_=pa.int64()) == [1, 1]  # one float64


def test_nothing_is_near_what_is_infinite():
    values = [-math.inf, -1.0, 0.0, 1.0, math.inf]
    assert ends(values, "10 %") == [0, 1, 2, 3, 4]
    assert ends(values, "1") == [0, 2, 3, 3, 4]


@pytest.mark.parametrize(
    ("type_", "day"),
    [
        (pa.date32(), dt.date(2024, 1, 1)),
        (pa.date64(), dt.date(2024, 1, 1)),
        *((pa.timestamp(unit), dt.datetime(2024, 1, 1)) for unit in ("s", "ms", "us", "ns")),
    ],
)
def test_dates_and_moments_by_days(type_, day):
    values = [day + dt.timedelta(days) for days in (0, 29, 30, 31, 90)]
    assert ends(values, "30 days", type_=type_) == [2, 3, 3, 3, 4]


def test_times_of_day_by_hours():
    values = [dt.time(8), dt.time(9), dt.time(9, 1)]
    for type_ in (pa.time32("s"), pa.time64("us")):
        assert ends(values, "1 hour", type_=type_) == [1, 2, 2]


NUMBERS = st.integers(-200, 200)


@examples(200)
@given(st.sets(NUMBERS), st.sampled_from(["1", "7", "0.5", "5 %", "10 %", "50 %", "99 %"]))
def test_near_is_what_the_definition_says(numbers, text):
    values, width = sorted(numbers), as_width(text)
    amount = Fraction(text.split()[0]) / (100 if width.unit == "share" else 1)
    found = ends(values, text, type_=pa.int64())
    for at, value in enumerate(values):
        near = [
            other - value
            <= (amount * max(abs(value), abs(other)) if width.unit == "share" else amount)
            for other in values[at:]
        ]
        assert found[at] == at + sum(near) - 1
        assert near == sorted(near, reverse=True)


@examples(300)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2),
    st.sampled_from(["0.3", "1", "1000", "0.001 %", "10 %", "33.3 %"]),
)
def test_the_check_never_takes_more_for_near(pair, text):
    """Or it would find fault with what was cut because of a rounded number."""
    low, high = sorted(pair)
    if low == high:
        return
    of = SensitiveCount(
        pa.array([low, high]), np.array([0, 0]), np.array([1, 2]), np.ones(2, np.int64), np.ones(3)
    )
    if narrow(of, 1, "s", as_width(text)).all():
        assert ends([low, high], text)[0] == 1


@pytest.mark.parametrize(
    ("type_", "width", "error"),
    [
        (pa.string(), "5", "the column is string, whose values have no width"),
        (pa.bool_(), "5", "the column is bool, whose"),
        (pa.dictionary(pa.int8(), pa.string()), "5", "the column is string, whose"),
        (pa.date32(), "10 %", "10 % is no span of time, and the column is date32"),
        (pa.timestamp("us"), "5", "5 is no span of time"),
        (pa.int64(), "5 days", "5 days is a span of time, and the column is int64"),
    ],
)
def test_a_width_that_values_do_not_have_is_refused(type_, width, error):
    with pytest.raises(JobError, match=rf"^l_width\.s: {error}"):
        check_width("s", type_, as_width(width))


def test_which_types_have_widths():
    of_time = (pa.date32(), pa.date64(), pa.timestamp("ns"), pa.time32("s"),
               pa.dictionary(pa.int8(), pa.date32()))  # fmt: skip
    numbers = (pa.int8(), pa.float32(), pa.decimal128(5, 2), pa.dictionary(pa.int8(), pa.int64()))
    for type_ in of_time:
        check_width("s", type_, as_width("1 hour"))
    for type_ in numbers:
        check_width("s", type_, as_width("5 %"))
        check_width("s", type_, as_width("5"))
    assert all(map(is_measurable, (*of_time, *numbers)))
    assert [is_of_time(type_) for type_ in (*of_time, *numbers)] == [True] * 5 + [False] * 4
    assert not any(map(is_measurable, (pa.string(), pa.bool_(), pa.binary(), pa.null())))
