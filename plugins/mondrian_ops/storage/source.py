"""The input of a job as one table, read in batches: Parquet or CSV; a file, directory or glob."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mondrian_ops.core import resource_limits
from mondrian_ops.core.column_types import declared_fields
from mondrian_ops.core.errors import InputError, JobError, did_you_mean
from mondrian_ops.core.named_types import Declared, is_already
from mondrian_ops.core.source_options import Csv
from mondrian_ops.storage import csv_files, parquet_files, parquet_pages
from mondrian_ops.storage.access_policy import check_reading, current_policy
from mondrian_ops.storage.csv_text import Dialect
from mondrian_ops.storage.discovery import Format, data_file, data_files, file_format
from mondrian_ops.storage.locations import name_of, shown
from mondrian_ops.storage.typed_columns import cast_errors, in_type, may_be_text, without_missing

if TYPE_CHECKING:
    import pyarrow.compute as pc

    from mondrian_ops.core.plan import Order, Plan

BATCH_ROWS = 131_072
_SMALL_FILE_ROWS = 4096
_SMALL_BATCH_BYTES = 1 << 16  # so little that nobody minds its exact size
_SHORT_BYTES = 64  # a value this short may be repeated without being counted
_TEXTS = (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())


@dataclass(frozen=True)
class Split:
    """Consecutive rows of a source that can be read on their own.

    Attributes:
        file: which of the source's files.
        first_row: number of the first row, over the whole source.
        rows: how many rows.
        row_groups: ``[start, stop)`` among the file's row groups; None for the whole file.
    """

    file: int
    first_row: int
    rows: int
    row_groups: tuple[int, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """A small JSON value."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Split:
        """The split that :meth:`to_json` wrote."""
        groups = value["row_groups"]
        return cls(value["file"], value["first_row"], value["rows"], groups and tuple(groups))


@dataclass(frozen=True)
class Source:
    """A readable source; made by :func:`open_source`.

    Attributes:
        url: as the job gives it.
        files: its data files, sorted; the order in which they are read.
        format: ``parquet`` or ``csv``, the same for all files.
        schema: columns and plain types, the same in every batch; no metadata.
        bytes: size of the files.
        index: columns that are a pandas index and no part of the data; not in ``schema``.
        declared: the columns whose type in the files is not plain, such as a UUID, in that type.
        types: by column, the type that the job names, or that was found in CSV files.
        csv: how the job says that CSV files are read, and which texts are missing values.
        dialects: by CSV file, the separator and encoding.
        empty: columns of CSV files without any value, so that their type says nothing.
        read_as: how the input is read, as a report shows it.
    """

    url: str
    files: list[str]
    format: Format
    schema: pa.Schema
    bytes: int
    _groups: list[tuple[int, ...]] = field(repr=False)  # by file, the rows of its row groups
    _stamps: list[str] = field(repr=False)  # by file
    index: tuple[str, ...] = ()
    declared: pa.Schema = field(default_factory=lambda: pa.schema([]), repr=False)
    types: Mapping[str, str] = field(default_factory=dict)
    csv: Csv = Csv()  # noqa: RUF009 - frozen
    dialects: tuple[Dialect, ...] = ()
    empty: tuple[str, ...] = ()
    read_as: Mapping[str, Any] = field(default_factory=dict)
    _read: pa.Schema | None = field(default=None, repr=False)  # the types in the files

    @cached_property
    def rows(self) -> int:
        """Exact number of rows."""
        return sum(map(sum, self._groups))

    @property
    def pointed(self) -> list[str]:
        """The columns whose whole numbers are written ``70.0``."""
        return [name for name, kind in self.types.items() if kind == "float"]

    def batches(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002 - pyarrow's own name for it
        batch_rows: int = BATCH_ROWS,
        exact: pc.Expression | None = None,
        split: Split | None = None,
        files: Sequence[int] | None = None,
        dictionaries: bool = False,
        lists: bool = True,
    ) -> Iterator[pa.RecordBatch]:
        """The rows, in the order of the files, a bounded number in memory at a time.

        Args:
            columns: names to read, in this order; all of them when None.
            filter: rows to keep; Parquet row groups that cannot hold any are not read.
            batch_rows: the most rows of a batch.
            exact: a further filter, applied to the columns that were read, for conditions on NaN,
                which the statistics of row groups ignore.
            split: read only this part of the source.
            files: read only these of the source's files. Of files that are named so, or by
                ``split``, each is asked whether it changed.
            lists: list the source after the last batch, to notice a change. False where the
                caller uses :meth:`unchanged`.
            dictionaries: text may come as dictionaries from files that store it so: several times
                as fast for a caller that looks at each value once.

        Raises:
            InputError: a column is unknown, a file is damaged, the source changed meanwhile, or
                a value is beyond one of the limits ``parquet_page``, ``text`` and ``inflation``.
            JobError: the access policy does not let jobs read a file.
        """
        names = (self.schema if columns is None else self._select(columns)).names
        if self.rows < len(self.files) * _SMALL_FILE_ROWS and len(self.files) > 1:
            dictionaries = False  # dictionaries of many small files take longer to unify
        chosen = files if split is None else [split.file]
        groups = None if split is None or split.row_groups is None else range(*split.row_groups)
        one_by_one = self._one_by_one(
            chosen, groups, names, filter, batch_rows, exact, dictionaries
        )
        yield from _joined(one_by_one, batch_rows)
        if chosen is None and lists:
            self.refuse_change()

    def _one_by_one(
        self,
        chosen: Sequence[int] | None,
        groups: Sequence[int] | None,
        names: Sequence[str],
        keep: pc.Expression | None,
        batch_rows: int,
        exact: pc.Expression | None,
        dictionaries: bool,
    ) -> Iterator[pa.RecordBatch]:
        """The batches as they come from each file; see :meth:`batches`."""
        unpacked, most = 0, resource_limits.most_unpacked(self.bytes)
        at: int | None = None
        is_restricted, longest = current_policy() is not None, resource_limits.limit("text")
        try:
            for at in range(len(self.files)) if chosen is None else chosen:
                if is_restricted:
                    check_reading(self.files[at])
                for batch in self._of_file(at, names, keep, batch_rows, groups, dictionaries):
                    unpacked += _checked_bytes(self.files[at], batch, longest)
                    if unpacked > most:
                        raise InputError(self._inflated())
                    if exact is not None:
                        batch = batch.filter(exact)
                    if batch.num_rows:
                        yield batch
                if chosen is not None:
                    self.refuse_change(at)
        except JobError:  # forbidden, even if the source changed too
            raise
        except Exception:
            self.refuse_change(None if chosen is None else at)  # a change explains the error
            raise

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Raise InputError, as :meth:`refuse_change` does, if the source changes meanwhile.

        If the source changed, that is raised in place of any other error.
        """
        try:
            yield
        except Exception:
            self.refuse_change()
            raise
        self.refuse_change()

    def _of_file(
        self,
        at: int,
        columns: Sequence[str],
        keep: pc.Expression | None,
        batch_rows: int,
        groups: Sequence[int] | None,
        dictionaries: bool,
    ) -> Iterator[pa.RecordBatch]:
        path, read = self.files[at], self._read or self.schema
        if self.format == "parquet" and not self._converts:
            common = (path, read, columns, keep, batch_rows)
            return parquet_files.batches(*common, groups, self._stamps[at], dictionaries)
        needed = list(columns)
        if keep is not None:  # its text names the columns of the filter
            needed += [name for name in self.schema.names if name in str(keep)]
            needed = list(dict.fromkeys(needed))
        if self.format == "csv":
            raw = csv_files.batches(path, self.dialects[at], self.csv, read, needed)
        else:
            raw = parquet_files.batches(
                path, read, needed, None, batch_rows, groups, self._stamps[at], dictionaries
            )
        return self._converted(path, raw, columns, keep, batch_rows)

    @property
    def _converts(self) -> bool:
        """Whether values are changed after they are read, and so cannot be filtered before."""
        read = self._read or self.schema
        return not read.equals(self.schema) or (
            bool(self.csv.missing) and any(may_be_text(each.type) for each in read)
        )

    def _converted(
        self,
        path: str,
        raw: Iterator[pa.RecordBatch],
        columns: Sequence[str],
        keep: pc.Expression | None,
        batch_rows: int,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a file in the types of ``schema``, filtered after that."""
        for batch in raw:
            table = pa.Table.from_batches([self._in_types(path, batch)])
            if keep is not None:
                table = table.filter(keep)
            yield from table.select(columns).to_batches(max_chunksize=batch_rows)

    def _in_types(self, path: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        names, arrays = batch.schema.names, list(batch.columns)
        for at, name in enumerate(names):
            if self.csv.missing and self.format == "parquet":
                arrays[at] = without_missing(arrays[at], self.csv.missing)
            type_ = self.schema.field(name).type
            if name in self.types:
                with cast_errors(shown(path), name, self.types[name], arrays[at].type):
                    arrays[at] = in_type(arrays[at], self.types[name], type_, self.csv)
        return pa.RecordBatch.from_arrays(arrays, names=names)

    def splits(self, rows: int) -> list[Split]:
        """The source as consecutive splits of about ``rows`` rows, none of them empty.

        A split is some row groups of one Parquet file, or one CSV file, however long it is.
        """
        splits: list[Split] = []
        first_row = 0
        for file, sizes in enumerate(self._groups):
            for first, last in _runs(sizes, rows):
                size = sum(sizes[first:last])
                groups = (first, last) if self.format == "parquet" else None
                if size:
                    splits.append(Split(file, first_row, size, groups))
                first_row += size
        return splits

    def rows_read(self, plan: Plan, orders: Mapping[str, Order]) -> Iterator[dict[int, int]]:
        """For each file, the rows that a reader of each leaf of a plan has to decode.

        Leaves that have none of the file's are left out. Each file is opened once, for its
        statistics, when its turn comes.
        """
        if self.format == "csv" or self._converts:
            leaves = range(plan.leaves)
            yield from (dict.fromkeys(leaves, sum(groups)) for groups in self._groups)
        else:
            yield from parquet_files.rows_in_reach(self.files, plan, orders)

    def refuse_change(self, file: int | None = None) -> None:
        """Raise InputError, which names it, if a file was added, removed or changed.

        Several tasks read the source one after the other, long after it was opened. With ``file``,
        one of the source's, only that one is looked at; else the source is listed.
        """
        changed = self._changed(file)
        if changed is not None:
            raise InputError(
                f"{shown(changed)}: changed while it was read; run again from the "
                "partition task when its writer is done"
            )

    def to_json(self) -> dict[str, Any]:
        """A JSON value from which another process opens the source without inspecting its files."""
        value = {each.name: getattr(self, each.name) for each in fields(self)}
        read = self._read or self.schema
        return value | {
            "schema": _hex(self.schema),
            "declared": _hex(self.declared),
            "_read": _hex(read),
            "csv": self.csv.to_dict(),
            "dialects": [asdict(each) for each in self.dialects],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Source:
        """The source of :meth:`to_json`; a change since then is noticed when it is read."""
        decoded = {
            "schema": _of_hex(value["schema"]),
            "declared": pa.schema(declared_fields(_of_hex(value["declared"]))),
            "_read": _of_hex(value["_read"]),
            "csv": Csv.read(value["csv"]),
            "dialects": tuple(Dialect(**each) for each in value["dialects"]),
            "empty": tuple(value["empty"]),
            "_groups": [tuple(groups) for groups in value["_groups"]],
            "index": tuple(value["index"]),
        }
        return cls(**{**value, **decoded})

    def _changed(self, file: int | None) -> str | None:
        """The first file that changed since the source was opened."""
        if file is not None:
            url = self.files[file]
            with suppress(FileNotFoundError):
                if data_file(url).stamp == self._stamps[file]:
                    return None
            return url
        try:
            current = {file.url: file.stamp for file in data_files(self.url)}
        except InputError:
            return self.url
        before = dict(zip(self.files, self._stamps, strict=True))
        return next(
            (url for url in sorted(before | current) if before.get(url) != current.get(url)), None
        )

    def _inflated(self) -> str:
        return resource_limits.exceeded(
            "inflation",
            f"{shown(self.url)}: its {resource_limits.size_text(self.bytes)} unpack to more than "
            f"{resource_limits.size_text(resource_limits.most_unpacked(self.bytes))}",
            "check the file for endlessly repeated values",
        )

    def _select(self, columns: Sequence[str]) -> pa.Schema:
        names = dict.fromkeys(self.schema.names)
        for name in columns:
            if name not in names:
                raise InputError(
                    f"{shown(self.url)}: no column {name!r}{did_you_mean(name, names)}; it has "
                    f"{', '.join(map(repr, list(names)[:20]))}"
                )
        return pa.schema([self.schema.field(name) for name in columns])


def open_source(
    url: str,
    named: Sequence[str] = (),
    others: bool = True,
    may_be_empty: bool = False,
    types: Mapping[str, str] | None = None,
    csv: Csv | None = None,
    known: Mapping[str, str] | None = None,
) -> Source:
    """Inspect every file of a source for schema, rows and size; a CSV file is read once for it.

    Args:
        url: a file, a directory or a glob.
        named: columns that the job names. A pandas index is part of the data if it is among them.
        others: whether other columns are ever read; if not, CSV's need no type.
        may_be_empty: whether files without rows will do.
        types: by column, the type that the job names; other names are ignored here.
        csv: how the job says that CSV files are read, and which texts are missing values.
        known: by column, a type that CSV files had before, and keep where it fits.

    Raises:
        InputError: the source is missing, unreadable, empty, or of mixed formats or schemas (the
            file is named), or a CSV file has a ragged row, a quote that is never closed, or text
            that is not of its encoding (file and line are named).
        JobError: no file can have the path, or the access policy does not let jobs read there.
    """
    entries = data_files(url)
    files = [file.url for file in entries]
    kind = _one_format(files)
    csv, needed = csv or Csv(), None if others else named
    found: dict[str, Any] = {"csv": csv}
    declared: list[pa.Field] = []
    if kind == "parquet":
        read, groups, index, declared = parquet_files.inspect(files)
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
    found["_read"] = pa.schema([read.field(name) for name in data])
    size = sum(file.bytes for file in entries)
    stamps = [file.stamp for file in entries]
    kept = pa.schema([each for each in declared if each.name in data])
    source = Source(url, files, kind, schema, size, groups, stamps, tuple(left_out), kept, **found)
    if kind == "parquet":
        wanted = {name: each for name, each in (types or {}).items() if name in data}
        if needed is not None:
            wanted = {name: each for name, each in wanted.items() if name in needed}
        source = _typed(source, wanted)
    read_as = _read_as(source, () if kind == "parquet" else inspected.numberlike)
    source = replace(source, read_as=read_as)
    if source.rows == 0 and not may_be_empty:
        raise InputError(f"{shown(url)}: there are no rows; nothing can be anonymized")
    return source


def _typed(source: Source, types: Mapping[str, str]) -> Source:
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
        for batch in source.batches(list(tried), files=[at]):
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


def _read_as(source: Source, numberlike: Sequence[str]) -> dict[str, Any]:
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


def _hex(schema: pa.Schema) -> str:
    return bytes(schema.serialize().to_pybytes()).hex()


def _of_hex(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(text)))


def _joined(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """The rows in batches of up to ``most``: small batches, as of small files, are joined."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        is_large = 2 * batch.num_rows > most or not batch.num_columns
        held = 0 if is_large else batch.get_total_buffer_size()
        if waiting and (
            is_large
            or rows + batch.num_rows > most
            or size + held > parquet_pages.BATCH_BYTES
            or not batch.schema.equals(waiting[0].schema)
        ):
            yield _one_of(waiting)
            waiting, rows, size = [], 0, 0
        if is_large:
            yield batch
            continue
        waiting.append(batch)
        rows += batch.num_rows
        size += held
    if waiting:
        yield _one_of(waiting)


def _one_of(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _checked_bytes(path: str, batch: pa.RecordBatch, most: int) -> int:
    """The bytes of a batch with its dictionaries unpacked.

    Raises InputError for a value of more than ``most`` bytes.
    """
    import pyarrow.compute as pc

    taken: int = batch.get_total_buffer_size()  # where it shares buffers with others, too much
    if taken <= min(most, _SMALL_BATCH_BYTES) and not any(
        map(pa.types.is_dictionary, batch.schema.types)
    ):
        return taken
    taken = 0
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        taken += column.nbytes
        is_encoded = isinstance(column, pa.DictionaryArray)
        values = column.dictionary if is_encoded else column
        if values.type not in _TEXTS or (values.nbytes <= most and not is_encoded):
            continue
        lengths = pc.binary_length(values)
        longest = pc.max(lengths).as_py() or 0
        resource_limits.check_text(f"{shown(path)}: column {name!r}", longest)
        if is_encoded and longest > _SHORT_BYTES:
            taken += pc.sum(lengths.take(column.indices)).as_py() or 0
    return taken


def _runs(sizes: Sequence[int], wanted: int) -> Iterator[tuple[int, int]]:
    """``[start, stop)`` of consecutive ``sizes`` that sum to ``wanted`` at most, or of one."""
    first, gathered = 0, 0
    for number, size in enumerate(sizes):
        if number > first and gathered + size > wanted:
            yield first, number
            first, gathered = number, 0
        gathered += size
    if sizes:
        yield first, len(sizes)


def _one_format(files: list[str]) -> Format:
    first = file_format(files[0])
    for path in files[1:]:
        if file_format(path) != first:
            raise InputError(
                f"{shown(path)}: not {first} like {name_of(files[0])}; "
                "give files of one format, or a glob that takes only one"
            )
    return first
