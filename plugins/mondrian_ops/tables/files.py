"""Files as one table: Parquet or CSV; a file, directory or glob."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mondrian_ops.errors import InputError
from mondrian_ops.job.source_options import Csv
from mondrian_ops.late_methods import dataclass
from mondrian_ops.stores.access_policy import check_reading, current_policy
from mondrian_ops.stores.locations import is_local, shown
from mondrian_ops.tables import csv_files, parquet_files
from mondrian_ops.tables.batch_sizes import Unpacked
from mondrian_ops.tables.csv_text import Dialect
from mondrian_ops.tables.discovery import Format, data_file, data_files
from mondrian_ops.tables.table import Table, hex_of, of_hex
from mondrian_ops.tables.typed_columns import cast_errors, in_type, may_be_text, without_missing

if TYPE_CHECKING:
    from typing import Self

    import pyarrow.compute as pc

    from mondrian_ops.cut.plan import Order, Plan


@dataclass(frozen=True, kw_only=True)
class FileTable(Table):
    """The rows of files: each file is a part, and a row group of Parquet a piece.

    Attributes:
        files: the data files, sorted; the order in which they are read.
        format: ``parquet`` or ``csv``, the same for all files.
        bytes: size of the files.
        stamps: by file, what tells its versions apart.
        csv: how the job says that CSV files are read, and which texts are missing values.
        dialects: by CSV file, the separator and encoding.
        stored: the columns in the types of the files.
    """

    files: list[str]
    format: Format
    bytes: int
    stamps: list[str] = field(repr=False)
    csv: Csv = Csv()
    dialects: tuple[Dialect, ...] = ()
    stored: pa.Schema = field(repr=False)

    def read(
        self,
        part: int,
        columns: Sequence[str],
        pieces: Sequence[int] | None,
        batch_rows: int,
        dictionaries: bool,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a file; see :meth:`Table.read`."""
        path = self.files[part]
        if self.format == "csv":
            raw = csv_files.batches(path, self.dialects[part], self.csv, self.stored, columns)
        else:
            raw = self._of_parquet(part, columns, None, pieces, batch_rows, dictionaries)
        for batch in raw:
            yield self._in_types(path, batch)

    def filtered(
        self,
        part: int,
        columns: Sequence[str],
        keep: pc.Expression | None,
        pieces: Sequence[int] | None,
        batch_rows: int,
        dictionaries: bool,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a file to keep; Parquet row groups that cannot hold any are not read."""
        # A local file is checked when it is open.
        if current_policy() is not None and not is_local(self.url):
            check_reading(self.files[part])
        if self.format == "parquet" and not self._converts:
            return self._of_parquet(part, columns, keep, pieces, batch_rows, dictionaries)
        return super().filtered(part, columns, keep, pieces, batch_rows, dictionaries)

    def watch(self) -> Callable[[int, pa.RecordBatch], Any]:
        """Raise InputError where a value, or all that was read, is beyond its limit."""
        unpacked = Unpacked(self.url, self.bytes)
        return lambda part, batch: unpacked.add(self.files[part], batch)

    @property
    def locations(self) -> Sequence[str]:
        """The files."""
        return self.files

    def _of_parquet(
        self,
        part: int,
        columns: Sequence[str],
        keep: pc.Expression | None,
        pieces: Sequence[int] | None,
        batch_rows: int,
        dictionaries: bool,
    ) -> Iterator[pa.RecordBatch]:
        path, stamp = self.files[part], self.stamps[part]
        return parquet_files.batches(
            path, self.stored, columns, keep, batch_rows, pieces, stamp, dictionaries
        )

    @cached_property
    def _converts(self) -> bool:
        """Whether values are changed after they are read, and so cannot be filtered before."""
        return any(each.type != self.schema.field(each.name).type for each in self.stored) or (
            bool(self.csv.missing) and any(may_be_text(each.type) for each in self.stored)
        )

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

    def rows_read(self, plan: Plan, orders: Mapping[str, Order]) -> Iterator[dict[int, int]]:
        """As :meth:`Table.rows_read`; each Parquet file is opened once, when its turn comes."""
        if self.format == "csv" or self._converts:
            yield from super().rows_read(plan, orders)
        else:
            yield from parquet_files.rows_in_reach(self.files, plan, orders)

    def changed(self, part: int | None = None) -> str | None:
        """The first file that changed since the table was opened."""
        if part is not None:
            url = self.files[part]
            with suppress(FileNotFoundError):
                if data_file(url).stamp == self.stamps[part]:
                    return None
            return url
        try:
            current = {file.url: file.stamp for file in data_files(self.url)}
        except InputError:
            return self.url
        before = dict(zip(self.files, self.stamps, strict=True))
        return next(
            (url for url in sorted(before | current) if before.get(url) != current.get(url)), None
        )

    def to_json(self) -> dict[str, Any]:
        """As :meth:`Table.to_json`."""
        return super().to_json() | {
            "stored": hex_of(self.stored),
            "csv": self.csv.to_dict(),
            "dialects": [asdict(each) for each in self.dialects],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """As :meth:`Table.from_json`."""
        decoded = {
            "stored": of_hex(value["stored"]),
            "csv": Csv.read(value["csv"]),
            "dialects": tuple(Dialect(**each) for each in value["dialects"]),
        }
        return super().from_json({**value, **decoded})
