"""Tables as their callers have them: read as Arrow, and given back as the same kind.

Of pandas, polars and DuckDB only the one that the caller has imported is used.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from mondrian_ops import tables
from mondrian_ops.data.column_types import (
    declared_fields,
    nested,
    plain_type,
    without_dictionaries,
)
from mondrian_ops.errors import InputError
from mondrian_ops.tables.callers_table import (
    ROW,
    CallersTable,
    is_list_view,
    plain,
    readable,
    refuse_duplicates,
    unreadable,
)

_KINDS = (
    "a pandas, polars or pyarrow table, a DuckDB relation, or anything that exports Arrow "
    "(__arrow_c_stream__)"
)


def callers_table(table: Any, named: Collection[str]) -> CallersTable:
    """The table, whatever its kind; ``named``: the columns that the job names.

    Raises InputError where it is no table, or two columns have one name.
    """
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    kind: CallersTable
    if pandas is not None and isinstance(table, pandas.DataFrame):
        from mondrian_ops.tables.pandas_frames import PandasFrame

        kind = PandasFrame(table, named)
    elif polars is not None and isinstance(table, polars.DataFrame | polars.LazyFrame):
        kind = PolarsFrame(table)
    else:
        kind = _arrow_table(table, named)
    if ROW in kind.names:
        raise InputError(f"column {ROW!r} has a reserved name; rename it")
    return kind


def _arrow_table(table: Any, named: Collection[str]) -> CallersTable:
    if isinstance(table, pa.Table):
        return ArrowTable(table, named)
    if isinstance(table, pa.RecordBatch):
        return ArrowBatch(pa.Table.from_batches([table]), named)
    duckdb = sys.modules.get("duckdb")
    is_relation = duckdb is not None and isinstance(table, duckdb.DuckDBPyRelation)
    read: pa.Table | None = None
    try:
        if hasattr(table, "__arrow_c_stream__"):
            read = pa.RecordBatchReader.from_stream(table).read_all()
        elif hasattr(table, "__arrow_c_array__"):
            read = pa.Table.from_batches([pa.record_batch(table)])
    except MemoryError:
        raise
    except (pa.ArrowException, TypeError, ValueError):
        raise InputError(
            f"the table, a {_type_name(table)}, cannot be read as Arrow: it is no table, or a "
            "column has a type that pyarrow does not know; convert that column to text, a number "
            "or a date"
        ) from None
    except Exception as error:
        raise _no_result(table, error) from None
    if read is None:
        raise InputError(f"the table is a {_type_name(table)}; pass {_KINDS}{_remedy(table)}")
    if is_relation:
        return DuckRelation(table, read)
    return (ArrowReader if isinstance(table, pa.RecordBatchReader) else ArrowTable)(read, named)


def _type_name(table: Any) -> str:
    return f"{type(table).__module__}.{type(table).__qualname__}".removeprefix("builtins.")


def _no_result(table: Any, error: Exception) -> InputError:
    """The error about a query that fails; its own text may quote a value."""
    return InputError(
        f"the table, a {_type_name(table)}, cannot be computed ({type(error).__name__}); run its "
        "query alone to see why"
    )


def _remedy(table: Any) -> str:
    for method in ("to_table", "to_frame", "to_arrow", "toArrow", "to_pandas", "read"):
        if callable(getattr(type(table), method, None)):
            return f": here {method}() makes one"
    return ""


class ArrowTable(CallersTable):
    """A pyarrow.Table, and whatever exports Arrow: a pyarrow.Table comes back.

    Text, lists and numbers come back plain: a dictionary may hold values that are in no row.
    """

    kind = "pyarrow.Table"

    def __init__(self, table: pa.Table, named: Collection[str]) -> None:
        refuse_duplicates(table.column_names)
        index = tables.index_columns(table.schema)
        self.names, self.index = tables.without_index(table.column_names, index, named)
        self.rows = table.num_rows
        self.declared = pa.schema(declared_fields(table.select(self.names).schema))
        self._table = table

    def column(self, name: str) -> pa.ChunkedArray:
        column = self._table[name]
        with readable(name, column.type):
            return plain(column)

    def returned(self, released: pa.Table, raw: Collection[str], numbers: Any) -> Any:
        columns = []
        for name, column in zip(released.column_names, released.columns, strict=True):
            column = without_dictionaries(column)
            kind = _own_type(self._table.schema.field(name).type) if name in raw else column.type
            columns.append(column if kind == column.type else column.cast(kind))
        return self._made(pa.table(columns, names=released.column_names), raw)

    def read_back(self, returned: Any, schema: pa.Schema) -> pa.Table:
        columns = zip(returned.columns, schema, strict=True)
        return pa.table([plain(column).cast(field.type) for column, field in columns], schema)

    def _made(self, table: pa.Table, raw: Collection[str]) -> Any:
        return table


class ArrowBatch(ArrowTable):
    """A pyarrow.RecordBatch."""

    kind = "pyarrow.RecordBatch"

    def read_back(self, returned: Any, schema: pa.Schema) -> pa.Table:
        return super().read_back(pa.Table.from_batches([returned]), schema)

    def _made(self, table: pa.Table, raw: Collection[str]) -> Any:
        batches = table.combine_chunks().to_batches()
        if len(batches) > 1:
            raise InputError(
                "the release has more text than one record batch can hold; pass a pyarrow.Table"
            )
        return batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)


class ArrowReader(ArrowTable):
    """A pyarrow.RecordBatchReader, which is read to its end: a reader of the release comes back."""

    kind = "pyarrow.RecordBatchReader"

    def hand_out(self, released: pa.Table, raw: Collection[str]) -> tuple[Any, pa.Table]:
        returned, read = super().hand_out(released, raw)  # a table: a reader can be read only once
        return returned.to_reader(), read


class DuckRelation(ArrowTable):
    """A DuckDB relation: one on the release comes back, of the same connection."""

    kind = "DuckDB relation"

    def __init__(self, relation: Any, table: pa.Table) -> None:
        super().__init__(table, ())
        self._relation = relation

    def _made(self, table: pa.Table, raw: Collection[str]) -> Any:
        import duckdb  # it is there: the caller's relation is its

        types = dict(zip(self._relation.columns, map(str, self._relation.types), strict=True))
        try:
            made = _queried(self._relation, table, {})
            now = dict(zip(made.columns, map(str, made.types), strict=True))
            lost = {name: types[name] for name in raw if now[name] != types[name]}
            return _queried(self._relation, table, lost) if lost else made
        except duckdb.Error:
            raise InputError(
                "the release cannot be made a DuckDB relation, perhaps because the connection has "
                "python_enable_replacements off; pass relation.to_arrow_table()"
            ) from None

    def read_back(self, returned: Any, schema: pa.Schema) -> pa.Table:
        return super().read_back(pa.RecordBatchReader.from_stream(returned).read_all(), schema)


def _queried(relation: Any, release: pa.Table, types: Mapping[str, str]) -> Any:
    """The release as a relation, some of its columns cast to DuckDB's types."""
    columns = []
    for name in release.column_names:
        quoted = '"' + name.replace('"', '""') + '"'
        columns.append(f"CAST({quoted} AS {types[name]}) AS {quoted}" if name in types else quoted)
    selected = f"SELECT {', '.join(columns)} FROM release"  # noqa: S608 - quoted, or DuckDB's
    return relation.query("mondrian_ops_source", selected)  # it finds this function's argument


class PolarsFrame(CallersTable):
    """A polars.DataFrame or LazyFrame; columns that are published as they are keep their types."""

    kind = "polars.DataFrame"
    by_rows = True

    def __init__(self, frame: Any) -> None:
        self._is_lazy = not hasattr(frame, "height")
        self._frame = _collected(frame) if self._is_lazy else frame
        self.names, self.index = list(self._frame.columns), []
        self.rows = self._frame.height

    def column(self, name: str) -> pa.ChunkedArray:
        kind = self._frame.schema[name]
        if str(kind) == "Object":
            raise unreadable(name, kind)
        with readable(name, kind):
            return plain(_arrow_of(self._frame.select(name))[name])

    def returned(self, released: pa.Table, raw: Collection[str], numbers: Any) -> Any:
        import polars

        columns = [
            self._frame[name].gather(numbers)
            if name in raw
            else polars.Series(name, without_dictionaries(column))
            for name, column in zip(released.column_names, released.columns, strict=True)
        ]
        return polars.DataFrame(columns)

    def read_back(self, returned: Any, schema: pa.Schema) -> pa.Table:
        columns = zip(_arrow_of(returned).columns, schema, strict=True)
        return pa.table([plain(column).cast(field.type) for column, field in columns], schema)

    def hand_out(self, released: pa.Table, raw: Collection[str]) -> tuple[Any, pa.Table]:
        returned, read = super().hand_out(released, raw)
        return (returned.lazy() if self._is_lazy else returned), read


def _collected(frame: Any) -> Any:
    try:
        return frame.collect()
    except MemoryError:
        raise
    except Exception as error:
        raise _no_result(frame, error) from None


def _own_type(kind: pa.DataType) -> pa.DataType:
    """The type in which columns of a type are returned: that of their values, not encoded."""
    if isinstance(kind, pa.BaseExtensionType) or pa.types.is_decimal(kind):
        return kind
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _own_type(kind.value_type)
    if is_list_view(kind):
        return pa.large_list(_own_field(kind.value_field))
    return nested(kind, _own_field) if pa.types.is_nested(kind) else plain_type(kind)


def _own_field(field: pa.Field) -> pa.Field:
    return field.with_type(_own_type(field.type))


def _arrow_of(frame: Any) -> pa.Table:
    return pa.RecordBatchReader.from_stream(frame).read_all()
