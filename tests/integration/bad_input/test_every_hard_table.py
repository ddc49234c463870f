"""Every kind of hard table through whole runs of every algorithm; see `hard_tables`."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hard_tables import CANARY, WAYS, attempt, covers, people
from source_samples import write_declared
from tiers import in_soak, one_here

ROWS = 60
INT64 = 2**63
INF, NAN = math.inf, math.nan


def cycled(values: Sequence[Any], type_: pa.DataType | None = None) -> pa.Array:
    return pa.array([values[at % len(values)] for at in range(ROWS)], type_)


def cast(values: Sequence[int | None], ticks: pa.DataType, type_: pa.DataType) -> pa.Array:
    return cycled(values, ticks).cast(type_)


class Declared(NamedTuple):
    """A column for whose type a file declares another one."""

    values: pa.Array
    kind: pa.DataType


def not_utf8() -> pa.Array:
    texts = cycled([b"\xff\xfe", CANARY.encode()])
    return pa.Array.from_buffers(pa.string(), ROWS, texts.buffers())


def dictionary(places: int, values: Sequence[Any]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(
        pa.array(np.arange(ROWS) % places, pa.int32()), pa.array(values)
    )


MONTHS = pa.array(pd.period_range("2024-01", periods=ROWS, freq="M"))
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
    "narrow decimals": cycled([Decimal("1.5"), None, Decimal("-2.25")], pa.decimal32(5, 2)),
    "decimals of 64 bits": cycled([Decimal("1.5"), None, Decimal(10) ** 15], pa.decimal64(18, 2)),
    "a dictionary of int64": cycled([-INT64, INT64 - 1, 0, None], pa.int64()).dictionary_encode(),
}

TEXTS: dict[str, pa.Array | Declared] = {
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
    "long texts": cycled(["x" * 4_000, "y" * 4_000, "x" * 3_999 + "y"]),
    "large_string": cycled(["a", "b", None], pa.large_string()),
    "views of text": Declared(cycled(["a", "b", None, "c", "", "ab"]), pa.string_view()),
    "JSON": Declared(cycled(['{"a": 1}', "[]", None]), pa.json_()),
    "a huge dictionary": dictionary(7, [f"v{at}" for at in range(100_000)]),
    "a dictionary with a value twice": dictionary(4, ["a", "a", "b", "c"]),
    "booleans": cycled([True, False, None]),
}

REFUSED: dict[str, tuple[pa.Array | Declared, tuple[str, ...]]] = {
    "infinite": (cycled([1.0, INF, -INF, NAN]), ("'x'", "2 infinite", "make them missing")),
    "a span beyond floats": (cycled([1e308, -1e308, 0.0]), ("'x'", "so far apart")),
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
    "bytes by views": (Declared(cycled([b"a", b"b"]), pa.binary_view()), ("'x'", "make it text")),
    "months of pandas": (MONTHS, ("'x'", "pandas.period", "make it")),
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


def write(here: Path, table: pa.Table, x: pa.DataType | None = None) -> None:
    """Write the source of a job; its column x declares the type ``x``."""
    here.mkdir(exist_ok=True)
    (here / "in").mkdir()
    declared = {} if x is None else {"x": x}
    write_declared(here / "in" / "people.parquet", table, declared, row_group_size=17)


def write_people(here: Path, column: pa.Array | Declared) -> None:
    """Write people with this column x."""
    values, kind = column if isinstance(column, Declared) else (column, None)
    write(here, people(ROWS, x=values), kind)


CASES = [*INTERVALS, *TEXTS]
ROLES: dict[str, dict[str, Any]] = {
    **{f"as it is, {name}": way for name, way in WAYS.items()},
    "set": {"quasi_identifiers": ["x=set", "age"], **WAYS["gain"]},
    "prefix": {"quasi_identifiers": ["x=prefix", "age"], **WAYS["di_mondrian"]},
    "sensitive": {"quasi_identifiers": ["age"], "sensitive": ["x"], "l": None, "t": 0.9},
}


def some_of_each() -> list[Any]:
    """Every case in one role, every role in some cases; the others take longer."""
    return [
        pytest.param(case, role, marks=[] if (i + 3 * j) % len(ROLES) == 1 else [pytest.mark.soak])
        for i, case in enumerate(CASES)
        for j, role in enumerate(ROLES)
    ]


@pytest.mark.parametrize(("case", "role"), one_here(some_of_each(), of=2))
def test_a_hard_column_is_released(tmp_path, case, role):
    write_people(tmp_path, (INTERVALS | TEXTS)[case])
    release = attempt(tmp_path, ROWS, **ROLES[role])
    assert not isinstance(release, str), release
    if case in INTERVALS and role.startswith("as it is") and "algorithm" not in ROLES[role]:
        covers(release, pq.read_table(tmp_path / "in"))


@pytest.mark.parametrize("case", REFUSED)
def test_a_column_that_no_algorithm_can_take(tmp_path, case):
    column, words = REFUSED[case]
    write_people(tmp_path, column)
    for name in ("gain", "samarati"):
        error = attempt(tmp_path, ROWS, **WAYS[name])
        assert isinstance(error, str), name
        assert all(word in error for word in words), error
    assert not isinstance(attempt(tmp_path, ROWS, quasi_identifiers=["age"]), str)


@pytest.mark.parametrize(
    ("type_", "retrieval"),
    [
        *((pa.float64(), "scatter"), (pa.float32(), "pushdown"), (pa.float16(), "scatter")),
        *in_soak([(pa.float64(), "pushdown"), (pa.float32(), "scatter")]),
        *in_soak([(pa.float16(), "pushdown")]),
    ],
    ids=str,
)
def test_infinite_values_of_a_set_tell_fragments_apart(tmp_path, type_, retrieval):
    """A fragment's condition names one of them, and JSON has none."""
    write(tmp_path, people(ROWS, x=cycled([INF, -INF], type_)))
    fragments = {"fragments": 2, "sample": 1.0, "min_sample": 0}
    release = attempt(
        tmp_path,
        ROWS,
        quasi_identifiers=["x=set"],
        cut="median",
        partitioning=fragments,
        retrieval=retrieval,
    )
    assert {*release["x"].to_pylist()} == {"inf", "-inf"}
    report = json.loads((tmp_path / "out" / "_report.json").read_text("utf-8"))
    assert len(report["fragments"]) == 2


# Names, shapes and files

NAMES = [
    "a b", 'a"b', "a'b", "a`b", "é", "a.b", "a,b", "a=b", "select", "class", "None", "*", "💥",
    "a\nb", "a/b", "../x", "{{ x }}", "<script>", "%s", "x_min", "count", "values", "domain:x",
    "__index_level_0__", "\u202e", "a\0b", "A", "k", "-1", "x" * 5000,
]  # fmt: skip


@pytest.mark.parametrize(
    "names",
    [
        *one_here(map(pytest.param, zip(NAMES[::3], NAMES[1::3], NAMES[2::3], strict=True)), of=2),
        *(pytest.param((name, f"{name}2", f"{name}3"), marks=pytest.mark.soak) for name in NAMES),
    ],
    ids=lambda names: ascii(names)[:40],
)
def test_any_name_of_a_column(tmp_path, names):
    """Of two quasi-identifiers and a sensitive column."""
    way = list(WAYS.values())[NAMES.index(names[0]) % len(WAYS)]
    table = people(ROWS, x=cycled(["a", None, "b"]), z=pa.array(range(ROWS)))
    renamed = dict(zip(("x", "z", "illness"), names, strict=True))
    write(tmp_path, table.rename_columns([renamed.get(n, n) for n in table.column_names]))
    quasi = [{"name": name} for name in names[:2]]
    release = attempt(tmp_path, ROWS, quasi_identifiers=quasi, sensitive=[names[2]], **way)
    assert not isinstance(release, str), release


def _every_row_the_same(other: int = 5) -> pa.Table:
    """But for the age of the last one."""
    table = people(ROWS, x=cycled([1]))
    ages = pa.array([*[5] * (ROWS - 1), other])
    return table.set_column(table.column_names.index("age"), "age", ages)


SHAPES: dict[str, tuple[pa.Table, dict[str, Any]]] = {
    "every row but one the same": (_every_row_the_same(other=6), {}),
    "every row unique": (people(ROWS, x=pa.array([f"v{at}" for at in range(ROWS)])), {}),
    "a sample of one row": (
        people(ROWS, x=pa.array(range(ROWS))),
        {"partitioning": {"fragments": 8, "sample": 1e-9, "min_sample": 0}},
    ),
    "as many rows as k": (people(ROWS, x=pa.array(range(ROWS))), {"k": ROWS, "tds": {}}),
}


@pytest.mark.parametrize(
    ("case", "way"),
    [
        pytest.param(case, way, marks=[] if (i + j) % 3 == 0 else [pytest.mark.soak])
        for i, case in enumerate(SHAPES)
        for j, way in enumerate(WAYS)
    ],
)
def test_hard_shapes_of_a_table(tmp_path, case, way):
    table, keys = SHAPES[case]
    write(tmp_path, table)
    release = attempt(tmp_path, ROWS, **{**WAYS[way], **keys})
    assert not isinstance(release, str), release


@pytest.mark.parametrize("way", ["gain", "di_mondrian", "tds"])
def test_a_table_that_tells_nobody_apart_is_refused(tmp_path, way):
    write(tmp_path, _every_row_the_same())
    error = attempt(tmp_path, ROWS, **WAYS[way])
    assert isinstance(error, str)
    assert "has the same value in all rows" in error


@pytest.mark.parametrize("way", ["gain", "di_mondrian", "tds"])
def test_row_groups_and_files_without_rows(tmp_path, way):
    table = people(ROWS, x=cycled([1, 2, 3]))
    write(tmp_path, table[:0])
    with pq.ParquetWriter(tmp_path / "in" / "q.parquet", table.schema) as file:
        for rows in (table[:0], table[:20], table[:0], table[20:], table[:0]):
            file.write_table(rows)
    assert not isinstance(attempt(tmp_path, ROWS, **WAYS[way]), str)


@pytest.mark.soak
@pytest.mark.parametrize("unlisted", ["publish", "drop"])
def test_ten_thousand_columns(tmp_path, unlisted):
    table = people(ROWS, x=cycled([1, 2, 3]))
    columns = dict(zip(table.column_names, table.columns, strict=True))
    columns |= {f"c{at}": cycled([at]) for at in range(10_000)}
    write(tmp_path, pa.table(columns))
    rows = ROWS if unlisted == "publish" else None
    release = attempt(tmp_path, rows, unlisted=unlisted)
    assert not isinstance(release, str), release
    assert release.num_columns == (10_005 if unlisted == "publish" else 3)


HEADER = "name,x,age,illness,row\n"


def csv_rows(x: str, end: str = "\n") -> str:
    return "".join(
        f"{CANARY} {at},{x},{at * 7 % 31},{CANARY} {at % 5},{at}{end}" for at in range(ROWS)
    )


CSV_RELEASED: dict[str, bytes] = {
    "quotes": (HEADER + csv_rows('"a ""b"",\nc"')).encode(),
    "a byte order mark": ("\ufeff" + HEADER + csv_rows("1")).encode(),
    "lines of Windows": (HEADER + csv_rows("1", "\r\n")).encode(),
    "lines of old": (HEADER.replace("\n", "\r") + csv_rows("1", "\r")).encode(),
    "mixed lines": (HEADER + csv_rows("1", "\r")[:400] + csv_rows("1")[400:]).encode(),
    "empty lines": (HEADER + csv_rows("1", "\n\n")).encode(),
    "NUL": (HEADER + csv_rows("a\0b")).encode(),
    "other ends of lines in values": (HEADER + csv_rows("a\x0bb\x0c\x85\u2028c")).encode(),
    "infinite, which is text": (HEADER + csv_rows("inf")).encode(),
    "UTF-16": (HEADER + csv_rows("1")).encode("utf-16"),
    "UTF-32": (HEADER + csv_rows("1")).encode("utf-32"),
    "another separator": (HEADER + csv_rows("1")).replace(",", "|").encode(),
    "a column without a name": (HEADER[:-1] + ",\n" + csv_rows("1", ",\n")).encode(),
    "a long value": (HEADER + csv_rows("1").replace(",1,", f",{'w' * 4000},", 1)).encode(),
}  # fmt: skip
CSV_REFUSED: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "a short row": (f"{HEADER}{csv_rows('1')}{CANARY},1\n".encode(), ("line 62", "2 values")),
    "a long row": (f"{HEADER}{CANARY},1,2,3,4,5,6\n".encode(), ("line 2", "7 values")),
    "Latin-1": ((HEADER + csv_rows("é")).encode("latin-1"), ("line 2", "UTF-8")),
    "UTF-16 without its mark": ((HEADER + csv_rows("1")).encode("utf-16-le"), ("people.csv",)),
    "a separator that is not certain": (
        (HEADER + csv_rows("1;2")).replace("age", "a;ge").encode(),
        ("csv.separator",),
    ),
    "Shift JIS": ((HEADER + csv_rows("日本")).encode("shift_jis"), ("line 2", "UTF-8")),
    "a value beyond the limits": (
        (HEADER + csv_rows("1").replace(",1,", f",{'w' * (17 << 20)},", 1)).encode(),
        ("csv_line",),
    ),
    "an open quote": (f'{HEADER}{csv_rows("1")}"{CANARY},1,2,3,4\n'.encode(), ("line 62",)),
    "a short row after a long value": (
        (HEADER + csv_rows("1").replace(",1,", f",{'w' * 200_000},", 1) + f"{CANARY},1\n").encode(),
        ("line 62", "2 values"),
    ),
    "a short row that is not UTF-8": (
        (HEADER + csv_rows("1")).encode() + b"\xf1,1\n",
        ("line 62", "UTF-8"),
    ),
    "an open quote in the header": (
        f'name,"x,age\n{csv_rows("1" * 5000)}'.encode(),
        ("first line",),
    ),
    "one long line": (b"w" * 200_000, ("check that the file is CSV",)),
    "no header": (csv_rows("1").encode(), ("header",)),
    "no rows": (HEADER.encode(), ("no rows",)),
    "nothing": (b"", ("first line is empty",)),
}


@pytest.mark.parametrize("case", CSV_RELEASED)
def test_hard_csv_files_are_released(tmp_path, case):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "people.csv").write_bytes(CSV_RELEASED[case])
    release = attempt(tmp_path, ROWS)
    assert not isinstance(release, str), release


@pytest.mark.parametrize("case", CSV_REFUSED)
def test_hard_csv_files_are_refused(tmp_path, case):
    content, words = CSV_REFUSED[case]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "people.csv").write_bytes(content)
    error = attempt(tmp_path)
    assert isinstance(error, str)
    assert all(word in error for word in words), error
