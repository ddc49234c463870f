"""Rank encoding: order, the missing code, every form a column can have."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.data.encoding import (
    as_array,
    code_dtype,
    encode_known,
    encode_ranks,
    indexed,
    positions,
)
from mondrian_ops.errors import InputError

COLUMNS = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float64(): st.floats(allow_nan=True, allow_infinity=True),
    pa.float32(): st.floats(width=32),
    pa.string(): st.text(max_size=4),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    pa.decimal128(12, 3): st.decimals(-1000, 1000, places=3),
}


@st.composite
def columns(draw):
    kind = draw(st.sampled_from(list(COLUMNS)))
    return kind, draw(st.lists(st.none() | COLUMNS[kind], max_size=30))


def is_missing(value) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


@examples(200)
@given(columns())
def test_codes_are_the_ranks_of_the_values_and_zero_is_missing(column):
    kind, values = column
    codes, distinct = encode_ranks(as_array(pa.array(values, kind)))
    expected = sorted({value for value in values if not is_missing(value)})
    assert distinct.to_pylist() == expected
    assert codes.dtype == code_dtype(len(expected) + 1)
    decoded = [None if code == 0 else expected[code - 1] for code in codes.tolist()]
    assert decoded == [None if is_missing(value) else value for value in values]


@examples(100)
@given(columns(), st.data())
def test_known_codes_are_positions_in_the_domain(column, data):
    kind, values = column
    present = list(dict.fromkeys(value for value in values if not is_missing(value)))
    domain = data.draw(st.lists(st.sampled_from(present), unique=True) if present else st.just([]))
    codes, unknown = encode_known(indexed(pa.array(values, kind)), as_array(pa.array(domain, kind)))
    assert codes.tolist() == [domain.index(value) + 1 if value in domain else 0 for value in values]
    assert unknown == sum(not is_missing(value) and value not in domain for value in values)


DICTIONARIES = [
    pa.DictionaryArray.from_arrays(
        pa.array([0, 2, None, 1, 0], pa.uint8()), pa.array(["b", None, "b", "in no row"])
    ),
    pa.DictionaryArray.from_arrays(pa.array([5, 0], pa.int8()), pa.array(list("abcdef"))),
    pa.DictionaryArray.from_arrays(
        pa.array([*range(128), None], pa.int8()), pa.array(list(map(str, range(128))))
    ),
    pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, 3], pa.int64()), pa.array([-0.0, 0.0, math.nan, 1.5])
    ),
]
EDGES = [
    pa.array([-128, 127, None], pa.int8()),
    pa.array([2**63 - 1, 2**63 - 2]),
    pa.array([-(2**63), 2**63 - 1]),
    pa.array([-(2**63), 1 - 2**63]),
    pa.array([2**64 - 1, 2**64 - 2], pa.uint64()),
    pa.array([0, 4095]),
    pa.array([0, 4096, None]),
    pa.array([None, None]),
    pa.array([None, None], pa.int16()),
    pa.array([b"a", None]),
]


def check_index(column):
    found, plain = indexed(column), as_array(column)
    assert found.values[-1].as_py() is None
    assert found.values.take(pa.array(found.indices)).equals(plain)
    counts = Counter()
    for value, rows in zip(*(each.to_pylist() for each in found.counted()), strict=True):
        assert rows > 0
        counts[value] += rows
    assert counts == Counter(plain.to_pylist())


@examples(200)
@given(columns(), st.booleans(), st.integers(0, 30), st.integers(0, 30))
def test_an_index_gives_the_column_again(column, is_dictionary, start, rows):
    kind, values = column
    array = pa.array(values, kind)
    check_index((array.dictionary_encode() if is_dictionary else array).slice(start, rows))


@pytest.mark.parametrize("column", [*DICTIONARIES, *EDGES], ids=lambda column: str(column.type))
def test_an_index_of_any_dictionary_and_of_numbers_at_the_edges(column):
    check_index(column)
    check_index(pa.chunked_array([column, column[1:]]))
    check_index(column[:0])


def test_what_is_done_to_values_reaches_every_row():
    found = indexed(pa.array([17, None, 18, 17])).mapped(lambda values: values.cast(pa.string()))
    assert found.values.take(pa.array(found.indices)).to_pylist() == ["17", None, "18", "17"]


@pytest.mark.parametrize(
    ("size", "dtype"),
    [(1, np.uint8), (256, np.uint8), (257, np.uint16), (65536, np.uint16), (65537, np.uint32)],
)
def test_the_narrowest_dtype_that_holds_the_codes(size, dtype):
    assert code_dtype(size) == dtype


def test_more_values_than_codes_are_refused():
    with pytest.raises(InputError, match="distinct values"):
        code_dtype(2**32 + 1)


def test_all_forms_of_a_column_are_one():
    plain = pa.array(["b", None, "a", "b"])
    chunks = pa.chunked_array([plain[:1], plain[1:1], plain[1:]])
    dictionaries = pa.chunked_array([plain[:2].dictionary_encode(), plain[2:].dictionary_encode()])
    for form in (plain, chunks, plain.dictionary_encode(), dictionaries):
        assert as_array(form).equals(plain)


def test_zero_has_one_sign_and_nan_is_missing():
    array = as_array(pa.array([-0.0, 0.0, math.nan, None]))
    assert array.null_count == 2
    assert math.copysign(1.0, array[0].as_py()) == 1.0
    codes, distinct = encode_ranks(array)
    assert codes.tolist() == [1, 1, 0, 0]
    assert len(distinct) == 1


def test_half_precision_is_widened():
    assert as_array(pa.array([1.5, None], pa.float16())).type == pa.float32()


def test_an_empty_column():
    assert len(as_array(pa.chunked_array([], pa.string()))) == 0
    codes, distinct = encode_ranks(pa.array([], pa.int64()))
    assert len(codes) == len(distinct) == 0


@pytest.mark.parametrize(
    ("values", "line"),
    [
        (pa.array([-3, 4]), [-3.0, 4.0]),
        (pa.array([Decimal("-1.25"), Decimal("2.00")]), [-1.25, 2.0]),
        (pa.array([dt.date(1969, 12, 31), dt.date(1970, 1, 3)]), [-1.0, 2.0]),
        (pa.array([dt.datetime(1970, 1, 1, 0, 0, 1)], pa.timestamp("ms")), [1000.0]),
        (pa.array([dt.time(0, 0, 2)], pa.time32("s")), [2.0]),
    ],
)
def test_positions_on_a_line(values, line):
    assert positions(values, "age").tolist() == line


def test_infinite_values_have_no_position():
    with pytest.raises(InputError, match="'age': 2 infinite"):
        positions(pa.array([-math.inf, 7.0, math.inf]), "age")


@pytest.mark.parametrize("rows", [3, 60])
def test_known_values_are_found_whichever_of_the_two_is_longer(rows):
    """Few values are looked up by a table of theirs, many by one of the domain."""
    texts = pa.array([f"v{at}" for at in range(20)])
    drawn = [[*texts.to_pylist(), None, "unknown"][at * 7 % 22] for at in range(rows)]
    codes, unknown = encode_known(indexed(pa.array(drawn, pa.string())), texts)
    expected = [0 if each in (None, "unknown") else int(each[1:]) + 1 for each in drawn]
    assert codes.tolist() == expected
    assert unknown == drawn.count("unknown")
    assert codes.dtype == np.uint8
