"""A source as one table, read in batches: Parquet or CSV; a file, directory or glob."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mondrian_ops.data.column_types import declared_fields
from mondrian_ops.errors import InputError, JobError, did_you_mean
from mondrian_ops.job.source_options import Csv
from mondrian_ops.stores.access_policy import check_reading, current_policy
from mondrian_ops.stores.locations import is_local, shown
from mondrian_ops.tables import csv_files, parquet_files
from mondrian_ops.tables.batch_sizes import BATCH_ROWS, Unpacked, joined
from mondrian_ops.tables.csv_text import Dialect
from mondrian_ops.tables.discovery import Format, data_file, data_files
from mondrian_ops.tables.typed_columns import cast_errors, in_type, may_be_text, without_missing

if TYPE_CHECKING:
    import pyarrow.compute as pc

    from mondrian_ops.cut.plan import Order, Plan

_SMALL_FILE_ROWS = 4096


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
    """A readable source; made by :func:`mondrian_ops.tables.open_source`.

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
        copy: the same rows in one working file, without columns that the job does not need.
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
    copy: Source | None = field(default=None, repr=False)
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
        yield from joined(one_by_one, batch_rows)
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
        unpacked = Unpacked(self.url, self.bytes)
        at: int | None = None
        # A local file is checked when it is open.
        is_restricted = current_policy() is not None and not is_local(self.url)
        try:
            for at in range(len(self.files)) if chosen is None else chosen:
                if is_restricted:
                    check_reading(self.files[at])
                for batch in self._of_file(at, names, keep, batch_rows, groups, dictionaries):
                    unpacked.add(self.files[at], batch)
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

    @cached_property
    def _converts(self) -> bool:
        """Whether values are changed after they are read, and so cannot be filtered before."""
        read = self._read or self.schema
        return any(each.type != self.schema.field(each.name).type for each in read) or (
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
            rows = self._in_types(path, batch)
            rows = (rows if keep is None else rows.filter(keep)).select(columns)
            for first in range(0, rows.num_rows, batch_rows):
                yield rows.slice(first, batch_rows)

    def _in_types(self, path: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not self._converts:
            return batch
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
            "copy": None,
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

    def _select(self, columns: Sequence[str]) -> pa.Schema:
        names = dict.fromkeys(self.schema.names)
        for name in columns:
            if name not in names:
                raise InputError(
                    f"{shown(self.url)}: no column {name!r}{did_you_mean(name, names)}; it has "
                    f"{', '.join(map(repr, list(names)[:20]))}"
                )
        return pa.schema([self.schema.field(name) for name in columns])


def _hex(schema: pa.Schema) -> str:
    return bytes(schema.serialize().to_pybytes()).hex()


def _of_hex(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(text)))


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
