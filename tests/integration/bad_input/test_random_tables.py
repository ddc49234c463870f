"""Tables of hard columns under random jobs: a release that verifies, or a clear error."""

from __future__ import annotations

import math
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hard_tables import CANARY, WAYS, attempt
from hypothesis_profiles import examples

INT64 = 2**63
_MOMENTS = [None, -62_135_596_800, -(2**31), 0, 1, 1_711_848_600, 253_402_300_799]
_DECIMALS = [None, *map(Decimal, ("-99999999.99", "0.00", "0.01", "99999999.99"))]
_FLOATS = [None, math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324, 1e308, -1e308, 0.1]
_TEXTS = [None, "", "*", "a", "a\0", "é", "e\u0301", "[1, 2]", "💥", "x" * 300]
_NUMBERS = ("", "=interval", "=set", "=prefix", "=grid:7", "=ladder:2/10")
_OTHERS = ("", "=set", "=prefix", "=interval")

# Types, values that are hard about them, and ways to generalize them.
KINDS: list[tuple[pa.DataType, list[Any], tuple[str, ...]]] = [
    (pa.int64(), [None, -INT64, INT64 - 1, -1, 0, 1, 7], _NUMBERS),
    (pa.uint64(), [None, 0, 1, 2**64 - 1, INT64], _NUMBERS),
    (pa.int8(), [None, -128, 0, 127], _NUMBERS),
    (pa.float64(), _FLOATS, _NUMBERS),
    (pa.float64(), [None, math.nan, -0.0, 0.0, 0.1, 0.2, 0.30000000000000004], _NUMBERS),
    (pa.float32(), [None, math.nan, -0.0, 0.1, 3e38, -3e38], _NUMBERS),
    (pa.decimal128(10, 2), _DECIMALS, _NUMBERS),
    (pa.decimal256(60, 2), _DECIMALS, _NUMBERS),
    (pa.timestamp("s", "Europe/Rome"), _MOMENTS, _OTHERS),
    (pa.timestamp("us"), [None, 0, 1, -1, INT64 - 1], _OTHERS),
    (pa.timestamp("ns", "UTC"), [None, 0, 1, INT64 - 1, -INT64 + 1], _OTHERS),
    (pa.date32(), [None, 0, 1, 2_932_896, -719_528, 2_932_897], _OTHERS),
    (pa.time64("ns"), [None, 0, 1, 86_399 * 10**9], _OTHERS),
    (pa.string(), _TEXTS, _OTHERS),
    (pa.large_string(), _TEXTS, _OTHERS),
    (pa.dictionary(pa.int32(), pa.string()), _TEXTS, _OTHERS),
    (pa.bool_(), [None, True, False], _OTHERS),
    (pa.null(), [None], _OTHERS),
    (pa.binary(), [None, b"", b"\xff"], _OTHERS),
    (pa.list_(pa.int8()), [None, [], [1]], _OTHERS),
]
NAMES = ["x", "a b", 'q"uote', "é", "select", "x_min", "a.b", "💥", "__index_level_0__"]


def _column(type_: pa.DataType, values: list[Any]) -> pa.Array:
    if pa.types.is_temporal(type_):
        ticks = pa.int32() if type_.bit_width == 32 else pa.int64()
        return pa.array(values, ticks).cast(type_)
    if pa.types.is_dictionary(type_):
        return pa.array(values, type_.value_type).dictionary_encode()
    return pa.array(values, type_)


@st.composite
def tables_and_jobs(draw) -> tuple[pa.Table, dict[str, Any], int]:
    rows = draw(st.sampled_from([1, 2, 7, 30, 60]))
    columns: dict[str, pa.Array] = {"name": pa.array([f"{CANARY} {at}" for at in range(rows)])}
    asked = []
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)):
        type_, values, ways = draw(st.sampled_from(KINDS))
        some = draw(st.lists(st.sampled_from(values), min_size=1, max_size=rows))
        columns[name] = _column(type_, [some[at % len(some)] for at in range(rows)])
        asked.append(name + draw(st.sampled_from(ways)))
    illnesses = draw(st.integers(1, 4))
    columns["illness"] = pa.array([f"{CANARY} {at % illnesses}" for at in range(rows)])
    columns["row"] = pa.array(range(rows))
    way = dict(draw(st.sampled_from(list(WAYS.values()))))
    keys = {
        **way,
        "quasi_identifiers": asked,
        "k": draw(st.sampled_from([2, 3, 5])),
        "l": draw(st.sampled_from([None, 2])),
        "unlisted": "publish",
        "partitioning": {
            "strategy": draw(st.sampled_from(["multidimensional", "quantile"])),
            "fragments": draw(st.integers(1, 5)),
            "sample": draw(st.sampled_from([1.0, 0.2])),
            "min_sample": draw(st.sampled_from([0, 5])),
        },
    }
    if "algorithm" not in way:
        keys["retrieval"] = draw(st.sampled_from(["scatter", "pushdown", "auto"]))
    return pa.table(columns), keys, draw(st.sampled_from([4, 17, 100]))


def _holds(case: tuple[pa.Table, dict[str, Any], int]) -> None:
    table, keys, group = case
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        (here / "in").mkdir()
        half = table.num_rows // 2
        for part, rows in enumerate((table[:half], table[half:])):
            pq.write_table(rows, here / "in" / f"{part}.parquet", row_group_size=group)
        attempt(here, table.num_rows, **keys)


@examples(60)
@given(tables_and_jobs())
def test_a_table_is_released_or_refused(case):
    _holds(case)


@pytest.mark.soak
@settings(max_examples=5000, derandomize=False)
@given(tables_and_jobs())
def test_many_tables_are_released_or_refused(case):
    _holds(case)
