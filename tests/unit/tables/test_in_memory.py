"""Whatever exports Arrow goes in and the same kind comes out, and that is what was checked."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

from ill_people import JOB, ROWS, people
from mondrian_ops import anonymize
from mondrian_ops.engines import fragment
from mondrian_ops.errors import InputError, JobError, PrivacyError
from mondrian_ops.tables import callers_table
from mondrian_ops.tables.in_memory import ArrowTable, PolarsFrame

UUIDS = pa.array([bytes([at]) * 16 for at in range(ROWS)], pa.binary(16))
TEXTS = pa.array(["flu", None] * (ROWS // 2))
VIEWS = TEXTS.cast(pa.string_view())


class Exporter:
    """Something that nobody knows but that it exports Arrow."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


class BatchExporter:
    """The same, of one batch."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self._table.combine_chunks().to_batches()[0].__arrow_c_array__(requested_schema)


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(zip(*table.select(["ill", "row"]).to_pydict().values(), strict=True))


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda table: table, pa.Table),
        (lambda table: table.to_batches()[0], pa.RecordBatch),
        (lambda table: table.to_reader(), pa.RecordBatchReader),
        (pl.DataFrame, pl.DataFrame),
        (lambda table: pl.DataFrame(table).lazy(), pl.LazyFrame),
        (lambda table: duckdb.connect().from_arrow(table), duckdb.DuckDBPyRelation),
        (Exporter, pa.Table),
    ],
)
def test_the_kind_that_goes_in_comes_out(make, kind):
    released, report = anonymize(make(people()), {**JOB, "l": 2, "sensitive": ["ill"]})
    assert isinstance(released, kind)
    if kind is pl.LazyFrame:
        released = released.collect()
    read = pa.table(released) if kind is not pa.RecordBatchReader else released.read_all()
    assert read.column_names == ["age", "ill", "row"]
    assert rows_of(read) == rows_of(people())
    assert report["achieved"] == {"k": 3, "l": 2}


def test_what_exports_one_batch_is_a_table_too():
    released, _ = anonymize(BatchExporter(people()), JOB)
    assert rows_of(released) == rows_of(people())


@pytest.mark.parametrize(
    ("table", "remedy"),
    [
        ({"age": [1] * ROWS}, "a dict; pass a pandas, polars or pyarrow table"),
        (None, "a NoneType"),
        (pa.dataset.dataset(people()), "Dataset.*: here to_table"),
        (people()["age"], "ChunkedArray, cannot be read as Arrow"),
        (pl.Series([1]), "Series, cannot be read as Arrow"),
    ],
)
def test_what_is_no_table_is_refused(table, remedy):
    with pytest.raises(InputError, match=remedy):
        anonymize(table, JOB)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pl.LazyFrame({"age": ["secret"]}).cast(pl.Int64),
        lambda: relation("CAST(if(row = 3, 'secret', '1') AS INTEGER) AS x")[1],
    ],
)
def test_the_error_of_a_query_quotes_no_value(make):
    with pytest.raises(InputError, match=r"cannot be computed \(\w+\); run its query") as error:
        anonymize(make(), JOB)
    assert "secret" not in str(error.value)


def encoded(column: Any) -> pa.Table:
    return people().append_column("x", column)


@pytest.mark.parametrize(
    ("column", "returned"),
    [
        (VIEWS, pa.string()),
        (TEXTS.dictionary_encode(), pa.string()),
        (pa.RunEndEncodedArray.from_arrays(pa.array([5, ROWS]), ["a", None]), pa.string()),
        (pa.RunEndEncodedArray.from_arrays(pa.array([5, ROWS]), VIEWS[:2]), pa.string()),
        (pa.DictionaryArray.from_arrays([0, None] * 12, VIEWS[:1]), pa.string()),
        (pa.DictionaryArray.from_arrays([0, 1] * 12, [1.5, None]), pa.float64()),
        (
            pa.DictionaryArray.from_arrays([0, None] * 12, [{"a": "b"}]),
            pa.struct([("a", pa.string())]),
        ),
        (pa.array([["a"], None] * 12, pa.list_(pa.string_view())), pa.list_(pa.string())),
        (
            pa.array([["a", "b"], None, [], ["c"]] * 6, pa.list_view(pa.string_view())),
            pa.large_list(pa.string()),
        ),
        (
            pa.array([{"a": "b"}, None] * 12, pa.struct([("a", pa.string_view())])),
            pa.struct([("a", pa.string())]),
        ),
        (
            pa.array([["a"], None] * 12, pa.list_(pa.dictionary(pa.int8(), pa.string()))),
            pa.list_(pa.string()),
        ),
        (pa.array([b"a", b"b"] * 12, pa.binary_view()), pa.binary()),
        (pa.ExtensionArray.from_storage(pa.uuid(), UUIDS), pa.uuid()),
        (
            pa.StructArray.from_arrays([pa.ExtensionArray.from_storage(pa.uuid(), UUIDS)], ["u"]),
            pa.struct([("u", pa.uuid())]),
        ),
        (pa.array([1, None] * 12, pa.decimal32(5, 2)), pa.decimal32(5, 2)),
        (pa.array([1, None] * 12, pa.duration("s")), pa.duration("s")),
        (pa.array([1, None] * 12, pa.timestamp("ns", "Europe/Berlin")), None),
        (pa.array([[1.5, float("nan")], None] * 12), None),
        (pa.array([float("nan"), None, 1.5] * 8), None),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_encodings_are_read_and_values_keep_their_type(column, returned):
    table = encoded(column)
    released, _ = anonymize(table, JOB)
    assert released.schema.field("x").type == (returned or column.type)
    in_order = released.sort_by("row")["x"]
    assert repr(in_order.to_pylist()) == repr(column.to_pylist())
    assert table["x"].type == column.type


@pytest.mark.parametrize(
    "column",
    [
        pa.RunEndEncodedArray.from_arrays(pa.array([12, ROWS]), VIEWS[:2]),
        pa.DictionaryArray.from_arrays([0, 1] * 12, VIEWS[:2]),
        pa.DictionaryArray.from_arrays(
            pa.array([0, 1] * 12, pa.uint64()), pa.array([1, 2], pa.decimal64(9, 1))
        ),
        pa.array([1, None] * 12, pa.decimal64(9, 1)),
    ],
)
def test_encoded_quasi_identifiers_are_generalized_as_plain_ones(column):
    plain, _ = anonymize(encoded(callers_table.plain(pa.chunked_array([column]))), WITH_X)
    released, _ = anonymize(encoded(column), WITH_X)
    assert sorted(map(str, released["x"].to_pylist())) == sorted(map(str, plain["x"].to_pylist()))
    assert released.schema.field("x").type == pa.string()


WITH_X = {**JOB, "quasi_identifiers": ["age", "x"], "unlisted": "drop"}


@pytest.mark.parametrize(
    ("column", "keys", "error", "text"),
    [
        (
            pa.array([{"a": ["b"]}] * ROWS, pa.struct([("a", pa.list_view(pa.string()))])),
            {},
            InputError,
            "column 'x' of type struct<a: list_view",
        ),
        (
            pa.array([(1, 2, 3)] * ROWS, pa.month_day_nano_interval()),
            {"sensitive": ["x"]},
            JobError,
            "sensitive: values of column 'x' of type month_day_nano_interval cannot be counted",
        ),
        (
            pa.array([(1, 2, 3)] * ROWS, pa.month_day_nano_interval()),
            {"entity_id": "x"},
            JobError,
            "entity_id: values of column 'x'",
        ),
    ],
)
def test_what_arrow_cannot_handle_is_refused_by_name(column, keys, error, text):
    with pytest.raises(error, match=text):
        anonymize(encoded(column), {**JOB, **keys})
    assert anonymize(encoded(column), {**JOB, "unlisted": "drop"})[1]["rows"]["published"] == ROWS


POLARS = {
    "category": pl.Series(["x", "y"] * 12, dtype=pl.Categorical),
    "enum": pl.Series(["x", None] * 12, dtype=pl.Enum(["z", "y", "x"])),
    "big": pl.Series([2**53, 2**53 + 1] * 12),
    "when": pl.Series([0, None] * 12).cast(pl.Datetime("us", "Europe/Berlin")),
    "time": pl.Series([0, 1] * 12).cast(pl.Time),
    "lists": pl.Series([["x"], None] * 12),
    "array": pl.Series([[1, 2]] * ROWS, dtype=pl.Array(pl.Int64, 2)),
    "decimal": pl.Series([Decimal("1.50")] * ROWS, dtype=pl.Decimal(5, 2)),
    "nan": pl.Series([float("nan"), None] * 12),
}


def test_polars_columns_keep_their_types_and_values():
    frame = pl.DataFrame(people()).with_columns(**POLARS)
    before = frame.clone()
    released, report = anonymize(frame, {**JOB, "l": 2, "sensitive": ["big", "category"]})
    assert frame.equals(before)
    assert report["achieved"]["l"] == 2
    assert released.schema["age"] == pl.String
    raw = [name for name in frame.columns if name != "age"]
    assert released.select(raw).sort("row").equals(frame.select(raw).sort("row"))
    bounds, _ = anonymize(frame, {**JOB, "interval_style": "bounds"})
    assert bounds.schema["age_min"] == bounds.schema["age_max"] == pl.Int16
    assert bounds.schema["enum"] == frame.schema["enum"]


@pytest.mark.parametrize(
    "column", [pl.lit(1, dtype=pl.Int128), pl.Series([object()] * ROWS, dtype=pl.Object)]
)
def test_polars_types_that_arrow_lacks_are_refused_by_name_unless_they_are_dropped(column):
    frame = pl.DataFrame(people()).with_columns(x=column)
    with pytest.raises(InputError, match=r"column 'x' of type (Int128|Object)"):
        anonymize(frame, JOB)
    assert anonymize(frame, {**JOB, "unlisted": "drop"})[0].columns == ["age"]


def relation(more: str) -> tuple[Any, Any]:
    connection = duckdb.connect()
    return connection, connection.from_arrow(people()).project(f"row // 3 AS age, {more}")


def test_a_relation_belongs_to_its_connection_and_keeps_duckdb_types():
    connection, source = relation(
        "row, 'a'::ENUM('b', 'a') AS e, uuid() AS u, '[1]'::JSON AS j, "
        '[row] AS "l\'"";--", row::HUGEINT AS h, TIMESTAMP_NS \'2024-01-01\' AS t'
    )
    released, _ = anonymize(source, JOB)
    assert released.columns == source.columns
    assert released.types[1:] == source.types[1:]
    joined = "SELECT count(*) FROM released JOIN source USING (row, h, t)"
    assert connection.sql(joined).fetchall() == [(ROWS,)]
    assert (
        connection.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall() == []
    )


def test_what_duckdb_cannot_take_back_is_refused():
    _, bits = relation("'101'::BIT AS b")
    with pytest.raises(PrivacyError, match="column 'b' has other values once it is a column of a"):
        anonymize(bits, JOB)
    connection, source = relation("row")
    connection.execute("SET python_enable_replacements = false")
    with pytest.raises(InputError, match=r"pass relation\.to_arrow_table\(\)"):
        anonymize(source, JOB)
    assert anonymize(source.to_arrow_table(), JOB)[0].num_rows == ROWS


def lossy(monkeypatch: pytest.MonkeyPatch, kind: type, change: Any) -> None:
    """The conversion of the release to the caller's kind loses something."""
    made = kind.returned
    monkeypatch.setattr(kind, "returned", lambda *args: change(made(*args)))


@pytest.mark.parametrize(
    ("kind", "make", "change"),
    [
        (ArrowTable, lambda table: table, lambda made: made.set_column(2, "row", made["ill"])),
        (ArrowTable, lambda table: table, lambda made: made.drop_columns(["row"])),
        (ArrowTable, lambda table: table, lambda made: made.slice(1)),
        (
            ArrowTable,
            lambda table: table,
            lambda made: made.set_column(1, "ill", pa.array(["flu"] * ROWS)),
        ),
        (PolarsFrame, pl.DataFrame, lambda made: made.with_columns(age=pl.lit("[0, 7]"))),
        (PolarsFrame, pl.DataFrame, lambda made: made.reverse()),
    ],
)
def test_a_conversion_that_loses_a_value_is_noticed(monkeypatch, kind, make, change):
    lossy(monkeypatch, kind, change)
    with pytest.raises(PrivacyError, match="the release is refused: "):
        anonymize(make(people()), JOB)


def test_classes_are_counted_in_what_is_returned(monkeypatch):
    """Even where nobody compared them with the rows that were read."""
    monkeypatch.setattr(callers_table, "_refuse_change", lambda *_: None)
    monkeypatch.setattr(fragment, "truth_of", lambda *_: lambda _read: {"age": 0})
    lossy(monkeypatch, PolarsFrame, lambda made: made.with_columns(ill=pl.lit("flu")))
    with pytest.raises(PrivacyError, match=r"l = 2") as caught:
        anonymize(pl.DataFrame(people()), {**JOB, "l": 2, "sensitive": ["ill"]})
    assert caught.value.report["achieved"]["l"] == 1


def test_rows_are_compared_with_what_is_returned(monkeypatch):
    monkeypatch.setattr(callers_table, "_refuse_change", lambda *_: None)
    lossy(monkeypatch, PolarsFrame, lambda made: made.with_columns(pl.col("row").reverse()))
    with pytest.raises(PrivacyError, match="not true to the source: column 'row'"):
        anonymize(pl.DataFrame(people()), JOB)


def test_a_reserved_name_is_refused():
    table = people().append_column(callers_table.ROW, people()["row"])
    with pytest.raises(InputError, match="'mondrian_ops_row' has a reserved name"):
        anonymize(table, JOB)


def test_text_beyond_what_a_column_can_hold_is_refused(monkeypatch):
    monkeypatch.setattr(callers_table, "_MOST_BYTES", 10)
    with pytest.raises(InputError, match=r"column 'ill': has more than 2 GiB.*run the job"):
        anonymize(people(), JOB)


def test_arrow_needs_neither_pandas_nor_polars_nor_duckdb():
    program = """
import sys
from mondrian_ops.lean_imports import import_lean
import_lean()
import pyarrow as pa
from mondrian_ops import anonymize
table = pa.table({"age": [1, 1, 2, 2], "x": [1, 2, 3, 4]})
anonymize(table, {"k": 2, "quasi_identifiers": ["age"], "unlisted": "publish"})
assert not {"pandas", "polars", "duckdb"} & sys.modules.keys()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_arrays_name_columns():
    released, _ = anonymize(people(), {**JOB, "quasi_identifiers": np.array(["age"])})
    assert released.num_rows == ROWS
