"""Columns in the types that a job names, and texts that a job says are missing values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa

from mondrian_ops.data import named_types
from mondrian_ops.data.encoding import combined, value_type
from mondrian_ops.errors import JobError
from mondrian_ops.job.source_options import Csv
from mondrian_ops.tables import csv_files


def in_types(
    table: pa.Table, types: Mapping[str, str] | None = None, csv: Csv | None = None
) -> pa.Table:
    """A table with its columns in the types that a job names, and missing texts missing.

    Other names than those of its columns are ignored here. Raises as :func:`open_table` does.
    """
    csv, types = csv or Csv(), types or {}
    for at, name in enumerate(table.column_names):
        if csv.missing and may_be_text(table[name].type):
            chunks = [without_missing(chunk, csv.missing) for chunk in table[name].chunks]
            table = table.set_column(at, name, pa.chunked_array(chunks, table[name].type))
        kind = types.get(name)
        if kind is not None and not named_types.is_already(table[name].type, kind):
            column, tried = combined(table[name]), named_types.Declared(kind, csv.decimal)
            with cast_errors("the table", name, kind, column.type, 0):
                tried.add(column)
                column = in_type(column, kind, tried.type, csv)
            table = table.set_column(at, name, column)
    return table


def may_be_text(type_: pa.DataType) -> bool:
    """Whether values of a type, or of its dictionary, are texts."""
    return named_types.is_text(value_type(type_))


def without_missing(column: pa.Array, missing: Sequence[str]) -> pa.Array:
    """A column in which texts that stand for a missing value are missing."""
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        values = without_missing(column.dictionary, missing)
        if values.null_count == column.dictionary.null_count:
            return column
        indices = pc.if_else(pc.is_valid(values.take(column.indices)), column.indices, None)
        return pa.DictionaryArray.from_arrays(indices, column.dictionary)
    if not named_types.is_text(column.type):
        return column
    is_missing = pc.is_in(column, value_set=pa.array(missing, column.type))
    return pc.if_else(is_missing, pa.scalar(None, column.type), column)


def in_type(column: pa.Array, kind: str, type_: pa.DataType, csv: Csv) -> pa.Array:
    """A column in the type that a job names ``kind``; as it is, if it is of it or a dictionary."""
    if column.type.equals(type_) or value_type(column.type).equals(type_):
        return column
    return named_types.cast(column, kind, type_, csv.decimal)


@contextmanager
def cast_errors(
    where: str, name: str, kind: str, type_: pa.DataType, first_row: int | None = None
) -> Iterator[None]:
    """Raise InputError for a value, or a whole column, that has no exact counterpart of a type."""
    try:
        yield
    except named_types.CastError as error:
        row = "" if first_row is None else f", row {first_row + error.at + 1}"
        raise csv_files.no_value(where + row, name, kind) from None
    except named_types.MixedTimesError:
        raise csv_files.mixed_times(where, name) from None
    except named_types.NoCastError:
        raise JobError(
            f"types.{name}: {where} holds the column as {type_}, whose values have no exact "
            f"{kind}; remove this type, or write the column as text"
        ) from None
