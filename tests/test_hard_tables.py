"""Every kind of hard table through whole runs of every algorithm; see `hard_tables`."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hard_tables import CANARY, WAYS, attempt, covers, people

ROWS = 60
INT64 = 2**63
INF, NAN = math.inf, math.nan


def cycled(values: Sequence[Any], type_: pa.DataType | None = None) -> pa.Array:
    return pa.array([values[at % len(values)] for at in range(ROWS)], type_)


def cast(values: Sequence[int | None], ticks: pa.DataType, type_: pa.DataType) -> pa.Array:
    return cycled(values, ticks).cast(type_)


def not_utf8() -> pa.Array:
    texts = cycled([b"\xff\xfe", CANARY.encode()])
    return pa.Array.from_buffers(pa.string(), ROWS, texts.buffers())


def dictionary(places: int, values: Sequence[Any]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(
        pa.array(np.arange(ROWS) % places, pa.int32()), pa.array(values)
    )


_MOMENTS = [
    dt.datetime(2024, 3, 31, 0, 30, tzinfo=dt.UTC),
    dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC),  # an hour later by the clock of Rome: two
    None,
    dt.datetime(1850, 1, 1, tzinfo=dt.UTC),
]

# Column x, by what is hard about it

INTERVALS: dict[str, pa.Array] = {
    "NaN, zeros of both signs, missing": cycled([1.5, NAN, None, -0.0, 0.0, 3.25], pa.float64()),
    "large floats": cycled([8e307, -8e307, 5e-324, NAN, None], pa.float64()),
    "float32": cycled([1.5, NAN, None, -0.0, 3e38, -3e38], pa.float32()),
    "float16": pa.array(np.array([1.5, NAN, -0.0, 0.0, 65504] * 12, np.float16)),
    "int64 extremes": cycled([-INT64, INT64 - 1, 0, -1, 1, None], pa.int64()),
    "int64 that floats take for one": cycled([INT64 - at for at in range(1, 9)], pa.int64()),
    "uint64 extremes": cycled([2**64 - 1, 2**64 - 2, 0, 1, INT64], pa.uint64()),
    "int8 extremes": cycled([-128, 127, 0], pa.int8()),
    "decimal": cycled(
        [Decimal("-9" * 1 + "9" * 34 + ".25"), None, Decimal("0.00"), Decimal("9" * 35 + ".99")],
        pa.decimal128(38, 2),
    ),
    "decimal256": cycled([Decimal(10) ** 70, -(Decimal(10) ** 70), None], pa.decimal256(76, 2)),
    "a time zone": cycled(_MOMENTS, pa.timestamp("us", "Europe/Rome")),
    "an offset": cast([0, 86400, 10**9, None], pa.int64(), pa.timestamp("ms", "+05:30")),
    "nanoseconds": cast([INT64 - 1, -INT64 + 10**9, None], pa.int64(), pa.timestamp("ns")),
    "far years": cast(
        [253_402_300_799_999, -62_167_219_200_000, 5], pa.int64(), pa.timestamp("ms")
    ),
    "far days": cast([2_932_896, -719_528, None], pa.int32(), pa.date32()),
    "time of day": cast([0, 86_399 * 10**9 + 5, None], pa.int64(), pa.time64("ns")),
    "missing integers": pa.nulls(ROWS, pa.int64()),
    "nothing but NaN": cycled([NAN], pa.float64()),
    "one number": cycled([5]),
    "all numbers different": pa.array(range(ROWS)),
    "a dictionary of floats": dictionary(4, [1.5, NAN, -0.0, 0.0]),
    "a dictionary of int64": cycled([-INT64, INT64 - 1, 0, None], pa.int64()).dictionary_encode(),
}

TEXTS: dict[str, pa.Array] = {
    "missing text": pa.nulls(ROWS, pa.string()),
    "no type at all": pa.nulls(ROWS),
    "a dictionary of nothing": pa.nulls(ROWS, pa.dictionary(pa.int32(), pa.string())),
    "one text": cycled(["same"]),
    "all texts different": pa.array([f"v{at}" for at in range(ROWS)]),
    "characters that end texts": cycled(["a\0b", "a", "", "a\0", None, "a\nb", "a\rb"]),
    "characters that combine": cycled(["é", "e\u0301", "💥", "\u202e", "\ufeff", "\ud7ff"]),
    "texts that look like numbers": cycled(
        ["1", "01", "1.0", "nan", "NULL", "None", "*", "[1, 2]"]
    ),
    "long texts": cycled(["x" * 20_000, "y" * 20_000, "x" * 19_999 + "y"]),
    "large_string": cycled(["a", "b", None], pa.large_string()),
    "a huge dictionary": dictionary(7, [f"v{at}" for at in range(100_000)]),
    "a dictionary with a value twice": dictionary(4, ["a", "a", "b", "c"]),
    "booleans": cycled([True, False, None]),
}

REFUSED: dict[str, tuple[pa.Array, tuple[str, ...]]] = {
    "infinite": (cycled([1.0, INF, -INF, NAN]), ("'x'", "2 infinite", "make them missing")),
    "a span beyond floats": (cycled([1e308, -1e308, 0.0]), ("'x'", "too far apart")),
    "lists": (cycled([[1], [2, 3], None]), ("'x'", "flatten")),
    "structs": (cycled([{"a": 1, "b": CANARY}, None]), ("'x'", "flatten")),
    "maps": (cycled([[("a", 1)], None], pa.map_(pa.string(), pa.int64())), ("'x'", "flatten")),
    "bytes": (cycled([CANARY.encode(), b"\xff", None]), ("'x'", "make it text")),
    "bytes of one length": (cycled([b"ab", b"cd"], pa.binary(2)), ("'x'", "make it text")),
    "a uuid": (
        pa.ExtensionArray.from_storage(pa.uuid(), cycled([b"0" * 16, b"1" * 16], pa.binary(16))),
        ("'x'", "make it text"),
    ),
    "durations": (cast([0, 5, INT64 - 1], pa.int64(), pa.duration("ns")), ("'x'", "a number")),
    "narrow decimals": (cycled([Decimal("1.5"), None], pa.decimal32(5, 2)), ("decimal128",)),
    "an unknown time zone": (
        cast([0, 86400], pa.int64(), pa.timestamp("ms", "Mars/Phobos")),
        ("'x'", "Mars/Phobos", "convert the column to UTC"),
    ),
    "moments beyond the calendar": (
        cast([INT64 - 1, 5], pa.int64(), pa.timestamp("us")),
        ("'x'", "make them missing"),
    ),
    "the first moment of all": (
        cast([-INT64 + 1, 5], pa.int64(), pa.timestamp("ns")),
        ("'x'", "make them missing"),
    ),
    "days beyond the calendar": (
        cast([2_932_897, 5], pa.int32(), pa.date32()),
        ("'x'", "make them missing"),
    ),
    "a time of day after midnight": (
        cast([90_000, 5], pa.int32(), pa.time32("s")),
        ("'x'", "make them missing"),
    ),
    "text that is not UTF-8": (not_utf8(), ("'x'", "UTF-8")),
}


def write(here: Path, table: pa.Table) -> None:
    here.mkdir(exist_ok=True)
    (here / "in").mkdir()
    pq.write_table(table, here / "in" / "people.parquet", row_group_size=17)


CASES = [*INTERVALS, *TEXTS]
ROLES: dict[str, dict[str, Any]] = {
    **{f"as it is, {name}": way for name, way in WAYS.items()},
    "set": {"quasi_identifiers": ["x=set", "age"], **WAYS["gain"]},
    "prefix": {"quasi_identifiers": ["x=prefix", "age"], **WAYS["di_mondrian"]},
    "sensitive": {"quasi_identifiers": ["age"], "sensitive": ["x"], "l": None, "t": 0.9},
}


def some_of_each() -> list[Any]:
    """Every case in some roles, every role in some cases; the others take longer."""
    return [
        pytest.param(case, role, marks=[] if (i + 3 * j) % 8 == 0 else [pytest.mark.soak])
        for i, case in enumerate(CASES)
        for j, role in enumerate(ROLES)
    ]


@pytest.mark.parametrize(("case", "role"), some_of_each())
def test_a_hard_column_is_released(tmp_path, case, role):
    write(tmp_path, people(ROWS, x=(INTERVALS | TEXTS)[case]))
    release = attempt(tmp_path, ROWS, **ROLES[role])
    assert not isinstance(release, str), release
    if case in INTERVALS and role.startswith("as it is") and "algorithm" not in ROLES[role]:
        covers(release, pq.read_table(tmp_path / "in"))


@pytest.mark.parametrize("case", REFUSED)
def test_a_column_that_no_algorithm_can_take(tmp_path, case):
    column, words = REFUSED[case]
    write(tmp_path, people(ROWS, x=column))
    for name in ("gain", "samarati"):
        error = attempt(tmp_path, ROWS, **WAYS[name])
        assert isinstance(error, str), name
        assert all(word in error for word in words), error
    assert not isinstance(attempt(tmp_path, ROWS, quasi_identifiers=["age"]), str)
