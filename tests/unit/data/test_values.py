"""Values as text and as JSON, and the last one before an edge."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.data import values

VALUES = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.bool_(): st.booleans(),
    pa.float64(): st.floats(allow_nan=False),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.decimal128(38, 3): st.decimals(-(10**30), 10**30, places=3),
    pa.decimal256(70, 0): st.integers(-(10**69), 10**69).map(Decimal),
    pa.string(): st.text(),
    pa.date32(): st.dates(),
    pa.timestamp("s"): st.datetimes().map(lambda moment: moment.replace(microsecond=0)),
    pa.timestamp("us"): st.datetimes(),
    pa.timestamp("ms", "Europe/Berlin"): st.datetimes(
        datetime(1800, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)
    ).map(lambda moment: moment.replace(microsecond=0)),
    pa.time64("us"): st.times(),
    pa.time32("s"): st.times().map(lambda moment: moment.replace(microsecond=0)),
}


@pytest.mark.parametrize("type_", VALUES, ids=str)
@examples(50)
@given(st.data())
def test_a_value_returns_from_json_as_it_was(type_, data):
    value = pa.scalar(data.draw(VALUES[type_]), type_)
    written = json.loads(json.dumps(values.json_value(value), allow_nan=False))
    assert values.read_value(written, type_) == value
    assert values.writable(value)


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (pa.string(), ""),
        (pa.bool_(), "true or false"),
        (pa.int8(), "70"),
        (pa.float32(), "1.5, and 70 for 70.0"),
        (pa.decimal128(5, 2), "1.50"),
        (pa.decimal256(76, 40), "1.5" + "0" * 39),
        (pa.decimal128(2, 2), "0.50"),
        (pa.decimal128(1, 0), "1"),
        (pa.decimal128(5, -2), "1E+2"),
        (pa.date32(), "2024-05-01"),
        (pa.date64(), "2024-05-01"),
        (pa.timestamp("us"), "2024-05-01 13:30:00.000000"),
        (pa.timestamp("s", "Europe/Berlin"), "2024-05-01 15:30:00+0200"),
        (pa.time32("s"), "13:30:00"),
        (pa.duration("s"), ""),
        (pa.dictionary(pa.int8(), pa.bool_()), "true or false"),
    ],
)
def test_an_example_is_written_as_values_of_the_type_are(type_, text):
    assert values.example_text(type_) == text


def test_an_example_of_a_column_that_writes_whole_numbers_with_a_point_does_so():
    assert values.example_text(pa.float64(), pointed=True) == "1.5, and 70.0 for 70"


def test_the_examples_of_truth_and_numbers_are_what_is_written_for_values():
    for array in (pa.array([True, False]), pa.array([70], pa.int8()), pa.array([1.5, 70.0])):
        for text in values.text_of(array).to_pylist():
            assert text in values.example_text(array.type)


def test_a_moment_whose_zone_was_seconds_from_utc_returns_as_it_was():
    """Berlin was 53 minutes and 28 seconds ahead until 1893, which the text of an offset drops."""
    type_ = pa.timestamp("ms", "Europe/Berlin")
    before, after = (pa.scalar(datetime(year, 1, 1, tzinfo=UTC), type_) for year in (1893, 1894))
    assert values.json_value(before) == "1893-01-01 00:00:00.000Z"
    assert values.json_value(after) == "1894-01-01 01:00:00.000+0100"
    for moment in (before, after):
        assert values.read_value(values.json_value(moment), type_) == moment


def test_json_keeps_numbers_and_has_the_text_of_what_it_cannot_hold():
    plain = [5, 2**64, True, 0.5, "ä", float("inf"), Decimal("1.50")]
    types = [pa.int8(), pa.decimal128(30, 0), pa.bool_(), pa.float64(), pa.string(), pa.float32()]
    scalars = map(pa.scalar, plain, [*types, pa.decimal128(5, 2)])
    written = [json.dumps(values.json_value(each), ensure_ascii=False) for each in scalars]
    assert written == ["5", f'"{2**64}"', "true", "0.5", '"ä"', '"inf"', '"1.50"']


def test_what_is_no_value_of_its_type_is_refused():
    for text, type_ in [("ä", pa.int64()), ("2025-02-30", pa.date32()), ("25:00", pa.time32("s"))]:
        with pytest.raises(pa.ArrowInvalid):
            values.read_value(text, type_)


@pytest.mark.parametrize(
    ("ticks", "type_", "expected"),
    [
        (2_932_896, pa.date32(), True),  # 9999-12-31
        (2_932_897, pa.date32(), False),
        (253_402_300_799, pa.timestamp("s"), True),
        (253_402_300_800, pa.timestamp("s"), False),
        (-62_167_219_201, pa.timestamp("s"), False),  # before the year 0
        (2**63 - 1, pa.timestamp("ns"), True),
    ],
)
def test_dates_and_moments_are_writable_within_years_of_four_digits(ticks, type_, expected):
    ticks = pa.scalar(ticks, pa.int32() if type_ == pa.date32() else pa.int64())
    assert values.writable(ticks.cast(type_)) == expected


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (pa.array(["ä", None, ""]), ["ä", None, ""]),
        (pa.array([True, None]), ["true", None]),
        (pa.array([0.1, 5e-324, None]), ["0.1", "5e-324", None]),
        (pa.array([0.1], pa.float32()), ["0.1"]),
        (pa.array([np.float16(0.1)], pa.float16()), ["0.099975586"]),
        (pa.array([Decimal("1.50")], pa.decimal128(5, 2)), ["1.50"]),
        (pa.array([date(1, 1, 1), None]), ["0001-01-01", None]),
        (pa.array([time(1, 2)], pa.time32("s")), ["01:02:00"]),
        (pa.array(["b", None]).dictionary_encode(), ["b", None]),
        (pa.array([], pa.int8()), []),
    ],
)
def test_text_is_as_published_and_missing_stays_missing(column, texts):
    found = values.text_of(column)
    assert found.type == pa.string()
    assert found.to_pylist() == texts


EDGES = {
    pa.int64(): (st.floats(-1e15, 1e15), Fraction(1)),
    pa.uint8(): (st.floats(1, 255), Fraction(1)),
    pa.decimal128(20, 2): (st.floats(-1e9, 1e9), Fraction(1, 100)),
    pa.decimal256(60, 0): (st.floats(-1e30, 1e30), Fraction(1)),
}


@pytest.mark.parametrize("type_", EDGES, ids=str)
@examples(100)
@given(st.data())
def test_the_last_number_below_an_edge_is_less_than_a_unit_away(type_, data):
    edges, unit = EDGES[type_]
    edge = data.draw(edges | edges.map(round))
    below = Fraction(values.greatest_below(float(edge), type_))
    assert below < Fraction(edge) <= below + unit
    assert below % unit == 0


@pytest.mark.parametrize(("type_", "width"), [(pa.float32(), 32), (pa.float64(), 64)], ids=str)
@examples(100)
@given(st.data())
def test_the_last_float_below_an_edge_is_its_neighbour(type_, width, data):
    edge = data.draw(st.floats(-(2.0**99), 2.0**99, width=width))
    below = values.greatest_below(edge, type_)
    assert below < edge
    assert np.nextafter(pa.scalar(below, type_).as_py(), edge, dtype=f"f{width // 8}") == edge


@examples(100)
@given(st.floats(-1e300, 1e300))
def test_the_last_float32_below_an_edge_that_float32_does_not_hold(edge):
    below = values.greatest_below(edge, pa.float32())
    with np.errstate(over="ignore"):
        following = float(np.nextafter(np.float32(below), np.float32(np.inf)))
    assert below < edge <= following


@pytest.mark.parametrize(
    ("edge", "type_", "below"),
    [
        (0.0, pa.date32(), "1969-12-31"),
        (-719_162.0, pa.date64(), "0000-12-31"),
        (1.0, pa.timestamp("s"), "1970-01-01 23:59:59"),
        (0.0, pa.timestamp("ms"), "1969-12-31 23:59:59.999"),
        (1.0, pa.timestamp("ns", "UTC"), "1970-01-01 23:59:59.999999999Z"),
        (1.0, pa.dictionary(pa.int8(), pa.date32()), "1970-01-01"),
    ],
)
def test_the_last_day_or_moment_before_a_day(edge, type_, below):
    assert values.greatest_below(edge, type_) == below


def test_edges_of_days_are_dates_and_others_stay_numbers():
    edges = np.array([-1.0, 0.0, 20_000.0])
    days = [date(1969, 12, 31), date(1970, 1, 1), date(2024, 10, 4)]
    for type_ in (pa.date64(), pa.timestamp("us"), pa.dictionary(pa.int8(), pa.date32())):
        assert values.date_or_number(edges, type_).to_pylist() == days
    for type_ in (pa.int8(), pa.decimal128(5, 2), pa.dictionary(pa.int8(), pa.float32())):
        assert values.date_or_number(edges, type_).to_pylist() == edges.tolist()
