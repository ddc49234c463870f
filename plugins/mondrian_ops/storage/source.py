"""The input of a job as one table, read in batches: Parquet or CSV; a file, directory or glob."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from mondrian_ops.core.errors import InputError, did_you_mean
from mondrian_ops.storage import csv_files, parquet_files
from mondrian_ops.storage.locations import Format, data_files, file_format

if TYPE_CHECKING:
    import pyarrow.compute as pc

__all__ = ["Source", "open_source"]

BATCH_ROWS = 131_072


@dataclass(frozen=True)
class Source:
    """A readable source; made by :func:`open_source`.

    Attributes:
        url: as the job gives it.
        files: its data files, sorted; the order in which they are read.
        format: ``parquet`` or ``csv``, the same for all files.
        schema: columns and types, the same in every batch; no metadata.
        rows: exact number of rows.
        bytes: size of the files.
    """

    url: str
    files: list[str]
    format: Format
    schema: pa.Schema
    rows: int
    bytes: int
    _stamp: str = field(repr=False)

    def batches(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002 - pyarrow's own name for it
        batch_rows: int = BATCH_ROWS,
        exact: pc.Expression | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows, in the order of the files, a bounded number in memory at a time.

        Args:
            columns: names to read, in this order; all of them when None.
            filter: rows to keep; Parquet row groups that cannot hold any are not read.
            batch_rows: rows of a batch at most.
            exact: a further filter, on `columns` as they were read, where statistics, which know
                no NaN, may not decide.

        Raises:
            InputError: a column is unknown, a file is damaged, or the source changed meanwhile.
        """
        schema = self.schema if columns is None else self._select(columns)
        read = parquet_files.batches if self.format == "parquet" else csv_files.batches
        for path in self.files:
            for batch in read(path, self.schema, schema.names, filter, batch_rows):
                if exact is not None:
                    batch = batch.filter(exact)
                if batch.num_rows:
                    yield batch
        if self.fingerprint() != self._stamp:
            raise InputError(
                f"{self.url}: changed while it was read; run again when its writer is done"
            )

    def share_read(self, filter: pc.Expression | None) -> float:  # noqa: A002
        """Share of the rows that lie where rows of ``filter`` may be, and so would be read."""
        if filter is None or self.format == "csv":
            return 1.0
        return parquet_files.rows_in_reach(self.files, filter) / self.rows

    def fingerprint(self) -> str:
        """A text that changes when a file is added, removed, or has another size or time."""
        try:
            return _fingerprint(data_files(self.url))
        except (InputError, FileNotFoundError):
            return "gone"

    def _select(self, columns: Sequence[str]) -> pa.Schema:
        for name in columns:
            if name not in self.schema.names:
                raise InputError(
                    f"{self.url}: no column {name!r}{did_you_mean(name, self.schema.names)}; "
                    f"it has {', '.join(map(repr, self.schema.names[:20]))}"
                )
        return pa.schema([self.schema.field(name) for name in columns])


def open_source(url: str) -> Source:
    """Look at every file of the source: schema, rows, size. CSV files are read once for it.

    Raises:
        InputError: missing, unreadable, of mixed formats or schemas (the file is named), without
            rows, or a CSV file has a ragged row or is not UTF-8 (file and line are named).
    """
    files = data_files(url)
    try:
        stamp = _fingerprint(files)
    except FileNotFoundError as error:
        raise InputError(f"{error.filename}: no such file; is `input` still written to?") from None
    kind = _one_format(files)
    survey = parquet_files.survey if kind == "parquet" else csv_files.survey
    schema, rows = survey(files)
    if rows == 0:
        raise InputError(f"{url}: there are no rows; nothing can be anonymized")
    size = sum(Path(path).stat().st_size for path in files)
    return Source(url, files, kind, schema, rows, size, stamp)


def _one_format(files: list[str]) -> Format:
    first = file_format(files[0])
    for path in files[1:]:
        if file_format(path) != first:
            raise InputError(
                f"{path}: not {first} like {Path(files[0]).name}; "
                "give files of one format, or a glob that takes only one"
            )
    return first


def _fingerprint(files: list[str]) -> str:
    digest = hashlib.sha256()
    for path in files:
        status = Path(path).stat()
        digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()
