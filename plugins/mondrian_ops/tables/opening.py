"""Opens a table; inspects files for the columns, types and rows that they have together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mondrian_ops.data.column_types import plain_type
from mondrian_ops.data.named_types import Declared, is_already
from mondrian_ops.errors import InputError, JobError
from mondrian_ops.job.source_options import Csv
from mondrian_ops.stores.locations import name_of, shown
from mondrian_ops.stores.places import TABLES, opener_of
from mondrian_ops.tables import csv_files, parquet_files
from mondrian_ops.tables.batch_sizes import Unpacked
from mondrian_ops.tables.discovery import Format, data_file, data_files, file_format
from mondrian_ops.tables.files import FileTable
from mondrian_ops.tables.gathered_rows import GatheredRows
from mondrian_ops.tables.table import Table
from mondrian_ops.tables.typed_columns import cast_errors

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def open_table(
    url: str,
    named: Sequence[str] = (),
    others: bool = True,
    may_be_empty: bool = False,
    types: Mapping[str, str] | None = None,
    csv: Csv | None = None,
    known: Mapping[str, str] | None = None,
    gathered: GatheredRows | None = None,
) -> Table:
    """The table at a location: files, or what an entry point opens locations of this scheme with.

    Every file is inspected for schema, rows and size; a CSV file is read once for it.

    Args:
        url: a file, a directory or a glob, or a URL of a scheme of another kind of table.
        named: columns that the job names. A pandas index is part of the data if it is among them.
        others: whether other columns are ever read; if not, CSV's need no type.
        may_be_empty: whether a table without rows will do.
        types: by column, the type that the job names; other names are ignored here.
        csv: how the job says that CSV files are read, and which texts are missing values.
        known: by column, a type that CSV files had before, and keep where it fits.
        gathered: takes the rows, and becomes the source's ``copy``, if files are many and small.

    Raises:
        InputError: the source is missing, unreadable, empty, or of mixed formats or schemas (the
            file is named), or a CSV file has a ragged row, a quote that is never closed, or text
            that is not of its encoding (file and line are named).
        JobError: no file can have the path, or the access policy does not let jobs read there.
    """
    kind = kind_of(url)
    types, csv = types or {}, csv or Csv()
    try:
        table = (
            _opened(url, named, others, types, csv, known, gathered)
            if kind is None
            else _of_kind(kind, url, types, csv)
        )
    except BaseException:
        if gathered is not None:
            gathered.abandon()
        raise
    if table.rows == 0 and not may_be_empty:
        raise InputError(f"{shown(url)}: there are no rows; nothing can be anonymized")
    return table


def table_of_json(value: Mapping[str, Any]) -> Table:
    """The table of :meth:`Table.to_json`, of its kind.

    Raises InputError where the package that reads its scheme is missing, as on an executor.
    """
    kind = kind_of(value["url"])
    if kind is None and "files" not in value:
        scheme = value["url"].partition(":")[0]
        raise InputError(
            f"{shown(value['url'])}: no package that reads {scheme}:// is installed here; install "
            "it wherever tasks of a run work, on Spark's executors, too"
        )
    return (kind or FileTable).from_json(value)


def kind_of(url: str) -> type[Table] | None:
    """The class that opens the table at a location; None where files of a store are there.

    Raises InputError where the package that adds it is wrong.
    """
    entry = opener_of(url)
    return None if entry is None else _loaded(entry)


@cache
def _loaded(entry: EntryPoint) -> type[Table]:
    return TABLES.loaded(entry, Table)


def _of_kind(kind: type[Table], url: str, types: Mapping[str, str], csv: Csv) -> Table:
    """A table of another kind than files; it has types of its own."""
    for option, is_given in (("types", bool(types)), ("csv", csv != Csv())):
        if is_given:
            raise JobError(
                f"{option}: says how files are read, and {shown(url)} is none; remove {option}"
            )
    table = kind.open(url)
    for each in table.schema:
        if each.type != plain_type(each.type):
            raise InputError(
                f"{shown(url)}: {kind.__name__} gives column {each.name!r} the type {each.type}, "
                f"which is not plain; correct it to {plain_type(each.type)}"
            )
    return replace(table, read_as={"format": url.partition(":")[0].lower(), **table.read_as})


def _opened(
    url: str,
    named: Sequence[str],
    others: bool,
    types: Mapping[str, str],
    csv: Csv,
    known: Mapping[str, str] | None,
    gathered: GatheredRows | None,
) -> FileTable:
    """Files as one table; see :func:`open_table`."""
    entries = data_files(url)
    files = [file.url for file in entries]
    kind, size = _one_format(files), sum(file.bytes for file in entries)
    needed = None if others else named
    if gathered is not None and not gathered.suit(entries):
        gathered = None
    at_once = gathered is not None and kind == "parquet" and not types
    found: dict[str, Any] = {"csv": csv}
    declared: list[pa.Field] = []
    if kind == "parquet":
        footers = None
        if gathered is not None and at_once:
            unpacked = Unpacked(url, size, may_be_encoded=False)  # they come in common types
            footers = parquet_files.footers_and_rows(
                files,
                partial(_columns_of, named=named, chosen=gathered.columns),
                partial(gathered.add, unpacked=unpacked),
            )
        read, groups, index, declared = parquet_files.inspect(files, footers)
        schema = read
    else:
        inspected = csv_files.inspect(files, needed, csv, types, known)
        schema, read, groups = inspected.schema, inspected.read, inspected.rows
        index = parquet_files.index_columns(schema)
        found["types"] = inspected.types
        found["dialects"] = tuple(inspected.dialects)
        found["empty"] = inspected.empty
    data, left_out = parquet_files.without_index(schema.names, index, named)
    schema = pa.schema([schema.field(name) for name in data])
    found["stored"] = pa.schema([read.field(name) for name in data])
    stamps = [file.stamp for file in entries]
    kept = pa.schema([each for each in declared if each.name in data])
    source = FileTable(
        url=url,
        files=files,
        format=kind,
        schema=schema,
        bytes=size,
        sizes=groups,
        stamps=stamps,
        index=tuple(left_out),
        declared=kept,
        **found,
    )
    if kind == "parquet":
        wanted = {name: each for name, each in types.items() if name in data}
        if needed is not None:
            wanted = {name: each for name, each in wanted.items() if name in needed}
        source = _typed(source, wanted)
    read_as = _read_as(source, () if kind == "parquet" else inspected.numberlike)
    source = replace(source, read_as=read_as)
    if gathered is not None and source.rows:
        source = _with_copy(source, gathered, at_once)
    return source


def _columns_of(
    schema: pa.Schema, named: Sequence[str], chosen: Callable[[list[str]], list[str]]
) -> list[str]:
    """Those of a file's columns to copy, given which of the data's are chosen."""
    index = parquet_files.index_columns(schema)
    return chosen(parquet_files.without_index(schema.names, index, named)[0])


def _with_copy(source: FileTable, gathered: GatheredRows, is_complete: bool) -> FileTable:
    """A source with the rows that are gathered, or the rest of them, as its copy."""
    names = gathered.columns(source.schema.names)
    if is_complete:
        source.refuse_change()
    else:
        unpacked = Unpacked(source.url, source.bytes)
        for batch in source.batches(names):
            gathered.add(source.url, batch, unpacked)
    gathered.close()
    copy = replace(
        source,
        url=gathered.path,
        files=[gathered.path],
        format="parquet",
        csv=Csv(),
        dialects=(),
        sizes=[tuple(gathered.groups)],
        stamps=[data_file(gathered.path).stamp],
        stored=pa.schema([source.schema.field(name) for name in names]),
    )
    return replace(source, copy=copy)


def _typed(source: FileTable, types: Mapping[str, str]) -> FileTable:
    """A Parquet source with the columns of ``types`` in these types, each value tried.

    Raises InputError where a value has no exact counterpart; file and row are named.
    """
    tried = {
        name: Declared(kind, source.csv.decimal)
        for name, kind in types.items()
        if not is_already(source.schema.field(name).type, kind)
    }
    for at, path in enumerate(source.files if tried else ()):
        row = 0
        for batch in source.batches(list(tried), parts=[at]):
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                with cast_errors(shown(path), name, tried[name].name, column.type, row):
                    tried[name].add(column)
            row += batch.num_rows
    schema = pa.schema(
        [
            pa.field(each.name, tried[each.name].type) if each.name in tried else each
            for each in source.schema
        ]
    )
    declared = pa.schema([each for each in source.declared if each.name not in tried])
    return replace(source, schema=schema, declared=declared, types=dict(types))


def _read_as(source: FileTable, numberlike: Sequence[str]) -> dict[str, Any]:
    """How a source is read, for its report."""
    csv, dialects = source.csv, source.dialects
    of_csv = {
        "separators": sorted({each.separator for each in dialects}),
        "encodings": sorted({each.encoding for each in dialects}),
        "decimal": csv.decimal,
        "numberlike": list(numberlike),
    }
    return {
        "format": source.format,
        "files": len(source.files),
        "types": dict(source.types),
        "missing": list(csv.missing),
        **(of_csv if dialects else {}),
    }


def _one_format(files: list[str]) -> Format:
    first = file_format(files[0])
    for path in files[1:]:
        if file_format(path) != first:
            raise InputError(
                f"{shown(path)}: not {first} like {name_of(files[0])}; "
                "give files of one format, or a glob that takes only one"
            )
    return first
