"""Parquet files of a source: their common schema, their rows, their batches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from mondrian_ops.data.column_types import declared_fields, plain_schema
from mondrian_ops.errors import InputError
from mondrian_ops.job import limits
from mondrian_ops.stores.documents import json_value
from mondrian_ops.stores.files import answers, input_errors
from mondrian_ops.stores.locations import name_of, shown
from mondrian_ops.stores.store import store_of
from mondrian_ops.tables.batch_sizes import BATCH_ROWS
from mondrian_ops.tables.parquet_pages import (
    SMALL_BYTES,
    DamagedPageError,
    File,
    is_encrypted,
    leaves_of,
    opened,
    rows_at_once,
)

if TYPE_CHECKING:
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    from mondrian_ops.cut.plan import Order, Plan

_Result = TypeVar("_Result")
_Footer = tuple[pa.Schema, tuple[int, ...]]
"""The columns of a file, as they are written, and the rows of its row groups."""

_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")
_ENCRYPTED = re.compile("decrypt|encrypted", re.IGNORECASE)
_SMALL_DICTIONARY_BYTES = 1 << 16
"""As written; little beside what a column of a row group has."""
_INT96 = {"coerce_int96_timestamp_unit": "us"}
"""Spark writes timestamps as INT96 by default; in nanoseconds, Arrow's default, those outside the
years 1677 to 2262 overflow."""


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Raise InputError, which names it, if a file is damaged, missing or unreadable.

    Errors of the machine (an I/O error, too many open files) pass: a retry may cure them.
    """
    try:
        with input_errors(path):
            yield
    except pa.ArrowNotImplementedError:
        raise InputError(
            f"{shown(path)}: has a type, codec or encoding of Parquet that this package cannot "
            "read, such as whole numbers of 128 bits; write that column as decimal128 or text"
        ) from None
    except DamagedPageError:
        raise InputError(_encrypted(path) if is_encrypted(path) else _damaged(path)) from None
    except pa.ArrowInvalid:
        raise InputError(_damaged(path)) from None
    except OSError as error:
        if error.errno is not None:
            raise
        is_known = _ENCRYPTED.search(str(error))
        raise InputError(_encrypted(path) if is_known else _damaged(path)) from None


def _encrypted(path: str) -> str:
    return (
        f"{shown(path)}: is encrypted, as a whole or some of its columns; give a decrypted copy, "
        "in a place that only this user reads"
    )


def _damaged(path: str) -> str:
    return (
        f"{shown(path)}: cannot be read as Parquet; the file is damaged, or of another format; "
        "write it again"
    )


@contextmanager
def parquet_file(path: str, **options: Any) -> Iterator[pq.ParquetFile]:
    """A Parquet file, opened; raises as :func:`readable` does."""
    with readable(path), opened(path) as stream:
        yield _file_in(stream, path, **options)


def _file_in(stream: pa.NativeFile, path: str, **options: Any) -> pq.ParquetFile:
    # Without pre-buffering, only the row group being decoded is in memory.
    return pq.ParquetFile(stream, pre_buffer=store_of(path).has_round_trips, **_INT96, **options)


class Inspected(NamedTuple):
    """What the footers of some files say.

    Attributes:
        schema: the columns that all files share, in plain types.
        groups: for each file the rows of its row groups.
        pandas_index: the columns that are a pandas index in any file.
        declared: the fields that all files declare in one type that is not plain.
    """

    schema: pa.Schema
    groups: list[tuple[int, ...]]
    pandas_index: set[str]
    declared: list[pa.Field]


def inspect(files: Sequence[str], footers: Iterator[_Footer] | None = None) -> Inspected:
    """What the files have; ``footers``: those of all files, else they alone are read.

    Raises:
        InputError: a file is unreadable, or its columns or types differ from the first file's.
    """
    footers = footers or _of_each(_footer, files)
    written, groups = next(footers)
    _refuse_duplicates(files[0], written)
    first = plain_schema(written)
    found = Inspected(first, [groups], index_columns(written), declared_fields(written))
    is_mixed = False
    for path, (schema, groups) in zip(files[1:], footers, strict=True):
        found.groups.append(groups)
        if schema.equals(written, check_metadata=True):
            continue
        found.pandas_index.update(index_columns(schema))
        plain = plain_schema(schema)
        if not plain.equals(first):
            _refuse_mixture(path, plain, files[0], first)
            is_mixed = True
        declared = {field.name: field for field in declared_fields(schema)}
        found.declared[:] = [
            field
            for field in found.declared
            if field.name in declared and field.equals(declared[field.name], check_metadata=True)
        ]
    return found._replace(schema=common(first)) if is_mixed else found


def _footer(path: str) -> _Footer:
    with parquet_file(path) as file:
        return _footer_of(path, file)


def _footer_of(path: str, file: File) -> _Footer:
    metadata = file.metadata
    if metadata.num_columns > limits.limit("columns"):
        met = f"{shown(path)}: has {metadata.num_columns:,} columns"
        raise InputError(limits.exceeded("columns", met, "leave out those that nobody needs"))
    groups = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    return file.schema_arrow, groups


def footers_and_rows(
    files: Sequence[str],
    columns: Callable[[pa.Schema], Sequence[str]],
    take: Callable[[str, pa.RecordBatch], None],
) -> Iterator[_Footer]:
    """For :func:`inspect`: the footer of each file; its rows go to ``take`` before the next one.

    So each file is opened once, and its columns are compared before its rows are read. ``columns``
    are those to read, given the columns of the first file.
    """
    # ParquetFile and a context manager for each file would take as long as reading a small one.
    # Arrow compares two schemas in a twentieth of that time. So schemas are compared once per file.
    store = store_of(files[0])
    target: pa.Schema | None = None
    latest: pa.Schema | None = None
    for path in files:
        try:
            with store.open_data(path, SMALL_BYTES) as stream:
                reader = pq.ParquetReader()
                reader.open(stream, pre_buffer=False, arrow_extensions_enabled=True, **_INT96)
                schema, groups = _footer_of(path, reader)
                is_new = latest is None or not schema.equals(latest, check_metadata=True)
                if is_new:
                    latest = schema
                yield latest, groups
                if target is None:
                    plain = common(plain_schema(schema))
                    target = pa.schema([plain.field(name) for name in columns(schema)])
                    names = tuple(target.names)
                if is_new:
                    leaves = leaves_of(reader, names)
                    read = [field for field in schema if field.name in names]
                    as_read = pa.schema(read, schema.metadata)
                    conforms = as_read.equals(target, check_metadata=True)
                batch_rows = rows_at_once(
                    path, None, names, None, BATCH_ROWS, stream, reader, leaves
                )
                is_large = not isinstance(stream, pa.BufferReader)  # threads would take longer
                for batch in reader.iter_batches(
                    batch_rows, range(len(groups)), leaves.places, use_threads=is_large
                ):
                    take(path, batch if conforms else conform(batch, target))
        except Exception:
            with readable(path):
                raise


def batches(
    path: str,
    schema: pa.Schema,
    columns: Sequence[str],
    keep: pc.Expression | None,
    batch_rows: int,
    row_groups: Sequence[int] | None,
    stamp: str,
    dictionaries: bool,
) -> Iterator[pa.RecordBatch]:
    """The rows of a file, or of some of its row groups, as ``columns`` with ``schema``'s types.

    ``keep``: only the rows for which it is true. ``stamp``: of the file's version, for caching.
    ``dictionaries``: leave text as dictionaries if those of the file are small; not together with
    ``keep``.
    """
    target = pa.schema([schema.field(name) for name in columns])
    with readable(path), opened(path) as stream:
        file = _file_in(stream, path)
        groups = None if row_groups is None else tuple(row_groups)
        filter_text = "" if keep is None else str(keep)  # which names the filter's columns
        read = tuple(name for name in schema.names if name in columns or name in filter_text)
        batch_rows = rows_at_once(path, stamp, read, groups, batch_rows, stream, file)
        chosen = range(file.num_row_groups) if groups is None else groups
        if keep is not None:
            raw = _filtered_rows(path, stream, file, read, columns, keep, batch_rows, chosen)
        else:
            encoded = _dictionary_columns(file.metadata, target) if dictionaries else []
            for name in encoded:
                at = target.get_field_index(name)
                target = target.set(at, pa.field(name, pa.dictionary(pa.int32(), pa.string())))
            if encoded:
                file = _file_in(stream, path, read_dictionary=encoded, metadata=file.metadata)
            raw = _all_rows(path, stream, file, columns, batch_rows, chosen)
        for batch in raw:
            yield conform(batch, target)


def _dictionary_columns(footer: pq.FileMetaData, schema: pa.Schema) -> list[str]:
    """The text columns for which the first row group of a file has a small dictionary.

    A large dictionary may cover the first rows only: writers abandon one that grows.
    """
    if not footer.num_row_groups:
        return []
    group = footer.row_group(0)
    columns = (group.column(at) for at in range(group.num_columns))
    small = {
        column.path_in_schema
        for column in columns
        if column.has_dictionary_page
        and column.data_page_offset - column.dictionary_page_offset < _SMALL_DICTIONARY_BYTES
    }
    return [
        field.name for field in schema if field.name in small and pa.types.is_string(field.type)
    ]


def _all_rows(
    path: str,
    stream: pa.NativeFile,
    file: pq.ParquetFile,
    columns: Sequence[str],
    batch_rows: int,
    row_groups: Sequence[int],
) -> Iterator[pa.RecordBatch]:
    is_small = isinstance(stream, pa.BufferReader)  # threads would take longer
    # A remote row group is fetched in few requests before it is decoded; one row group at a time,
    # so that only one is in memory.
    by_one = store_of(path).has_round_trips
    for groups in [[group] for group in row_groups] if by_one else [list(row_groups)]:
        yield from file.iter_batches(batch_rows, groups, list(columns), use_threads=not is_small)


def _filtered_rows(
    path: str,
    stream: pa.NativeFile,
    file: pq.ParquetFile,
    read: Sequence[str],
    columns: Sequence[str],
    keep: pc.Expression,
    batch_rows: int,
    row_groups: Sequence[int],
) -> Iterator[pa.RecordBatch]:
    """The rows for which ``keep`` is true; ``read``: ``columns``, and those that it names."""
    written = file.schema_arrow
    plain = plain_schema(written)
    is_small = isinstance(stream, pa.BufferReader)  # to plan a scan takes longer than to read it
    if not is_small:
        fragment = _dataset_fragment(stream).subset(row_group_ids=list(row_groups))
    # Arrow's reader cannot filter some types.
    if is_small or any(plain.field(name).type != written.field(name).type for name in read):
        if not is_small:
            row_groups = [group.id for group in _in_reach(fragment, keep).row_groups]
        target = pa.schema([plain.field(name) for name in read])
        for batch in _all_rows(path, stream, file, read, batch_rows, row_groups):
            yield conform(batch, target).filter(keep).select(list(columns))
        return
    scanner = fragment.scanner(
        columns=list(columns),
        filter=keep,
        batch_size=batch_rows,
        batch_readahead=4,
        fragment_readahead=1,
    )
    yield from scanner.to_batches()


def _dataset_fragment(stream: pa.NativeFile) -> ds.ParquetFileFragment:
    """An opened file as a reader that filters takes it."""
    import pyarrow.dataset as ds  # slow to import, and only pushdown needs it

    read_as = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(**_INT96))
    return read_as.make_fragment(stream)


def _in_reach(groups: ds.ParquetFileFragment, keep: pc.Expression) -> ds.ParquetFileFragment:
    """The row groups that statistics cannot exclude: all if Arrow cannot compare the type's."""
    try:
        return groups.subset(keep, schema=plain_schema(groups.physical_schema))
    except pa.ArrowNotImplementedError:
        return groups


def rows_in_reach(
    files: Sequence[str], plan: Plan, orders: Mapping[str, Order]
) -> Iterator[dict[int, int]]:
    """For each file and leaf, the rows of the row groups that statistics cannot exclude."""
    reaches, is_alone = plan.reaches(orders), len(files) == 1
    yield from _of_each(lambda path: _rows_in_reach(path, plan, reaches, is_alone), files)


def _rows_in_reach(
    path: str, plan: Plan, reaches: Mapping[int, pc.Expression | None], is_alone: bool
) -> dict[int, int]:
    def narrowed(groups: ds.ParquetFileFragment, node: int) -> ds.ParquetFileFragment | None:
        keep = reaches[node]
        left = groups if keep is None else _in_reach(groups, keep)
        return left if left.row_groups else None

    with readable(path), opened(path) as stream:
        if is_alone and _look_alike(file := _file_in(stream, path), plan.columns):
            return dict.fromkeys(range(plan.leaves), file.metadata.num_rows)
        whole = _dataset_fragment(stream)
        whole.ensure_complete_metadata()
        return {
            leaf: sum(group.num_rows for group in groups.row_groups)
            for leaf, groups in plan.descend(whole, narrowed).items()
        }


def _look_alike(file: pq.ParquetFile, columns: Collection[str]) -> bool:
    """Whether all row groups have the same statistics of some columns, as rows in no order have.

    Then statistics exclude all row groups or none, and none where a leaf has rows.
    """
    found = set()
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        chunks = map(group.column, leaves_of(file, columns).places)
        found.add(tuple(_statistics_of(chunk) for chunk in chunks))
    return len(found) < 2


def _statistics_of(chunk: pq.ColumnChunkMetaData) -> tuple[Any, ...]:
    """By what readers exclude a row group."""
    known = chunk.statistics
    if known is None:
        return ()
    nulls = known.null_count if known.has_null_count else None
    ends = (known.min_raw, known.max_raw) if known.has_min_max else ()
    return nulls is None, nulls == 0, nulls == chunk.num_values, *ends


def _of_each(work: Callable[[str], _Result], files: Sequence[str]) -> Iterator[_Result]:
    """What ``work`` returns for each file, in order; several answers of a store at once."""
    return answers(work, files) if store_of(files[0]).has_round_trips else map(work, files)


def in_plain_types(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch in plain types."""
    return conform(batch, plain_schema(batch.schema))


def conform(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """The batch with the columns of a schema, in its types."""
    if batch.schema.equals(target, check_metadata=True):
        return batch
    if not target.names:  # built anew, a batch without columns would have no rows
        return batch.replace_schema_metadata()
    arrays = [
        array if array.type == field.type else array.cast(field.type)
        for array, field in zip((batch.column(n) for n in target.names), target, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def common(schema: pa.Schema) -> pa.Schema:
    """The columns in types that do not depend on how a writer stores text."""
    return pa.schema([pa.field(field.name, _common_type(field.type)) for field in schema])


def _common_type(kind: pa.DataType) -> pa.DataType:
    """The type of files that differ in their writers' choices: dictionaries, width of offsets."""
    if pa.types.is_dictionary(kind):
        return _common_type(kind.value_type)
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) else kind


def _refuse_duplicates(path: str, schema: pa.Schema) -> None:
    for name, times in Counter(schema.names).items():
        if times > 1:
            raise InputError(f"{shown(path)}: duplicate column {name!r}; rename one of the two")


def _refuse_mixture(path: str, schema: pa.Schema, like: str, first: pa.Schema) -> None:
    beside = name_of(like)
    _refuse_duplicates(path, schema)
    for name in schema.names:
        if name not in first.names:
            raise InputError(
                f"{shown(path)}: column {name!r} is not in {beside}; give files of one schema"
            )
    for field in first:
        if field.name not in schema.names:
            raise InputError(
                f"{shown(path)}: column {field.name!r} of {beside} is missing; "
                "give files of one schema"
            )
        kind = _common_type(schema.field(field.name).type)
        if kind != _common_type(field.type):
            raise InputError(
                f"{shown(path)}: column {field.name!r} is {kind}, in {beside} {field.type}; "
                f"give files of one schema{_one_type(kind, field.type)}"
            )


def _one_type(*kinds: pa.DataType) -> str:
    """What the remedy for a column of two types adds where they are dates and times."""
    moments = [kind for kind in kinds if pa.types.is_date(kind) or pa.types.is_timestamp(kind)]
    if len(moments) < len(kinds):
        return ""
    if len({pa.types.is_date(kind) for kind in kinds}) > 1:
        return ": dates in all of them, or dates with a time (timestamps) in all"
    if len({kind.tz is None for kind in kinds if pa.types.is_timestamp(kind)}) > 1:
        return ": times with a zone in all of them, or times without one in all"
    return ""


# The index of a pandas frame. The frame does not show it among its columns, so people forget it,
# although it often identifies a person.


def index_columns(schema: pa.Schema) -> set[str]:
    """The columns of ``schema`` that pandas wrote for an index.

    The schema's metadata lists them; if other software has dropped it, an index without a name is
    recognized by ``__index_level_0__``.
    """
    listed = _listed_index((schema.metadata or {}).get(b"pandas", b"{}"))
    return {name for name in schema.names if name in listed or _UNNAMED_INDEX.fullmatch(name)}


def without_index(
    names: Iterable[str], index: Iterable[str], named: Iterable[str]
) -> tuple[list[str], list[str]]:
    """The columns of the data, and the index columns that are left out, both in order.

    ``index``: those of ``names`` that are a pandas index. An index column is part of the data if it
    is among ``named``, the columns that the job names.
    """
    left_out = {*index} - {*named}
    data: list[str] = []
    others: list[str] = []
    for name in names:
        (others if name in left_out else data).append(name)
    return data, others


def _listed_index(metadata: bytes) -> set[str]:
    try:
        columns = json_value(metadata)["index_columns"]
    except (ValueError, LookupError, TypeError):  # other software may write anything there
        return set()
    if not isinstance(columns, list):
        return set()
    # A range index is no column: pandas describes it by a mapping.
    return {name for name in columns if isinstance(name, str)}
