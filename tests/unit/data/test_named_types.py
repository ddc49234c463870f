"""The type that fits the texts of a column, and exact casts to one that a job names."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops.data.named_types import (
    CastError,
    Declared,
    Guess,
    MixedTimesError,
    NoCastError,
    cast,
)
from mondrian_ops.data.values import text_of

DIGITS = st.text("0123456789", min_size=1, max_size=20)
NUMBERS = st.builds(
    lambda sign, whole, rest, power: sign + whole + rest + power,
    st.sampled_from(["", "", "-", "+"]),
    DIGITS,
    st.one_of(st.just(""), st.just(".0"), DIGITS.map(".{}".format)),
    st.sampled_from(["", "", "", "e5", "E-3"]),
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False).map(str)
TEXTS = st.one_of(
    NUMBERS,
    FLOATS,
    st.integers(-(2**64), 2**64).map(str),
    st.decimals(-(10**6), 10**6, places=2).map(str),
    st.sampled_from(["true", "True", "2024-01-31", "2024-02-30", "nan", "inf", "-0", "1e999"]),
    st.text(max_size=5),
)


def guess(texts, decimal="."):
    """The type of texts that come in two batches."""
    found = Guess(decimal)
    half = len(texts) // 2
    for part in (texts[:half], texts[half:]):
        found.add(pa.array(part, pa.string()))
    return found


@given(st.one_of(st.lists(each, min_size=1) for each in (TEXTS, NUMBERS, FLOATS)))
def test_the_text_of_a_value_is_the_text_that_was_read(texts):
    found = guess(texts)
    if found.name == "timestamp":  # a moment may be written in several ways
        return
    values = pa.array(texts, pa.string()).cast(found.type)
    assert text_of(values, pointed=found.name == "float").to_pylist() == texts


@given(st.lists(st.decimals(-(10**6), 10**6, places=3).map("{:f}".format), min_size=1))
def test_numbers_with_as_many_decimals_are_numbers(texts):
    found = guess(texts)
    assert found.name in ("number", "float", "decimal") or any(
        t.startswith("-0.000") for t in texts
    )


@pytest.mark.parametrize(
    ("texts", "name"),
    [
        (["70", "71.5"], "number"),
        (["70.0", "71.25"], "float"),
        (["70.0", "71.5"], "float"),
        (["12.50", "3.00"], "decimal"),
        (["12.50", "3.0"], "text"),
        (["3", "3.0"], "text"),
        (["1", "99999999999"], "integer"),
        (["1.5", "99999999999"], "text"),
        ([], "text"),
    ],
)
def test_numbers_by_how_they_are_written(texts, name):
    assert guess(texts).name == name


@pytest.mark.parametrize(
    ("texts", "name"),
    [
        (["70", "71,5"], "number"),
        (["12,50", "3,00"], "decimal"),
        (["1,5", "1.5"], "text"),
        (["1.500,00"], "text"),
    ],
)
def test_numbers_with_decimal_commas(texts, name):
    assert guess(texts, ",").name == name


def test_what_looks_like_a_number_is_noticed():
    assert guess(["007", "+5", "1E5", "2,5"]).numberlike
    assert not guess(["007", "V70.0"]).numberlike


@pytest.mark.parametrize(
    ("name", "texts", "values"),
    [
        ("text", [" 7", "x"], [" 7", "x"]),
        ("integer", ["007", "+5", " 12.0 ", "-3"], [7, 5, 12, -3]),
        ("number", ["1E5", ".5", "5.", "07"], [100000.0, 0.5, 5.0, 7.0]),
        ("decimal", ["250.1", "+3.10", "2"], [Decimal("250.1"), Decimal("3.1"), Decimal(2)]),
        ("boolean", ["TRUE", "False"], [True, False]),
        ("date", ["2024-01-31", "2024-02-29T00:00:00.000"],
         [datetime.date(2024, 1, 31), datetime.date(2024, 2, 29)]),
    ],
)  # fmt: skip
def test_a_named_type_takes_all_that_means_a_value_of_it(name, texts, values):
    column = pa.array([*texts, None])
    declared = Declared(name)
    declared.add(column)
    assert cast(column, name, declared.type).to_pylist() == [*values, None]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("integer", "1.5"),
        ("integer", "61\u00a0"),
        ("integer", "99999999999999999999"),
        ("number", "1e999"),
        ("number", "nan"),
        ("number", "1,5"),
        ("decimal", "1e3"),
        ("boolean", "1"),
        ("date", "2024-02-30"),
        ("date", "2024-01-31 10:00"),
        ("timestamp", "31.01.2024"),
    ],
)
def test_a_text_that_is_no_value_of_a_type_is_found(name, text):
    good = {"boolean": "true", "date": "2024-01-01", "timestamp": "2024-01-01"}.get(name, "1")
    with pytest.raises(CastError) as caught:
        Declared(name).add(pa.array([good, None, good, text, good]))
    assert caught.value.at == 3


@pytest.mark.parametrize(
    ("name", "column", "values"),
    [
        ("text", pa.array([7, None]), ["7", None]),
        ("text", pa.array([7.0, 1.5]), ["7", "1.5"]),
        ("text", pa.array([Decimal("1.50")]), ["1.50"]),
        ("integer", pa.array([7.0]), [7]),
        ("number", pa.array([7]), [7.0]),
        ("decimal", pa.array([2**63 - 1]), [Decimal(2**63 - 1)]),
        ("date", pa.array([datetime.datetime(2024, 1, 31)]), [datetime.date(2024, 1, 31)]),
        ("date", pa.array(["2024-01-31"]).dictionary_encode(), [datetime.date(2024, 1, 31)]),
        ("decimal", pa.array(["250.10", "2"]).dictionary_encode(), [Decimal("250.1"), Decimal(2)]),
        (
            "timestamp",
            pa.array(["2024-01-31 10:00Z"]).dictionary_encode(),
            [datetime.datetime(2024, 1, 31, 10, tzinfo=datetime.UTC)],
        ),
        ("integer", pa.array([7.0]).cast(pa.float16()), [7]),
    ],
)
def test_values_change_their_type_where_none_is_changed(name, column, values):
    declared = Declared(name)
    declared.add(column)
    assert cast(column, name, declared.type).to_pylist() == values


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("integer", pa.array([7.5])),
        ("number", pa.array([2**53 + 1])),
        ("date", pa.array([datetime.datetime(2024, 1, 31, 10)])),
    ],
)
def test_a_value_that_would_change_is_found(name, column):
    with pytest.raises(CastError):
        Declared(name).add(column)


ZONES = ["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "-03:30", "UTC"]


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
@pytest.mark.parametrize("zone", ZONES)
def test_a_date_is_a_midnight_by_the_clock_of_the_column_s_zone(zone, unit):
    """Also in summer, and where UTC has another day."""
    days = [
        datetime.date(2024, 1, 31),
        None,
        datetime.date(2024, 7, 1),
        datetime.date(1969, 12, 31),
    ]
    clock = pa.array(days, pa.date32()).cast(pa.timestamp(unit))
    if zone == "-03:30":  # Arrow finds the moments of named zones only
        column = pc.add(clock, pa.scalar(12600, pa.duration("s")).cast(pa.duration(unit)))
        column = column.cast(pa.timestamp(unit, zone))
    else:
        column = pc.assume_timezone(clock, zone)
    declared = Declared("date")
    declared.add(column)
    assert cast(column, "date", declared.type).to_pylist() == days
    if zone != "UTC":
        midnight_in_utc = clock.cast(pa.timestamp(unit, zone))
        with pytest.raises(CastError) as caught:
            Declared("date").add(midnight_in_utc)
        assert caught.value.at == 0


def test_types_without_an_exact_counterpart_and_mixed_times_are_refused():
    with pytest.raises(NoCastError):
        Declared("date").add(pa.array([7]))
    with pytest.raises(NoCastError):
        Declared("text").add(pa.array([[7]]))
    with pytest.raises(MixedTimesError):
        Declared("timestamp").add(pa.array(["2024-01-31 10:00", "2024-01-31 10:00Z"]))
