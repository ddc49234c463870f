"""The rows of a source of many small files, gathered in one working file.

To open a small file takes longer than to read its rows, and each step of a run would open each of
them. So the step that looks at them copies their rows, and the others read the copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from mondrian_ops.stores.store import FileInfo, NewFile, store_of
from mondrian_ops.tables import parquet_pages
from mondrian_ops.tables.batch_sizes import BATCH_ROWS, Unpacked

_LEAST_FILES = 16
_SMALL_FILE_BYTES = 1 << 16  # on average


class GatheredRows:
    """A Parquet file of rows, in the order in which they are added.

    Attributes:
        path: where it is, among the working files of a run.
        columns: given the names of the source's columns, those to copy.
        groups: the rows of its row groups so far.
    """

    def __init__(self, path: str, columns: Callable[[list[str]], list[str]]) -> None:
        self.path = path
        self.columns = columns
        self.groups: list[int] = []
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._file: NewFile | None = None
        self._writer: pq.ParquetWriter | None = None

    @staticmethod
    def suit(files: Sequence[FileInfo]) -> bool:
        """Whether files are so many and so small, and on this machine, that it is worthwhile."""
        size = sum(file.bytes for file in files)
        small = len(files) >= _LEAST_FILES and size < len(files) * _SMALL_FILE_BYTES
        return small and not store_of(files[0].url).has_round_trips

    def add(self, path: str, batch: pa.RecordBatch, unpacked: Unpacked) -> None:
        """Add the next rows, which are of the file ``path`` and counted in ``unpacked``."""
        self._bytes += unpacked.add(path, batch)
        self._rows += batch.num_rows
        self._waiting.append(batch)
        if self._rows >= BATCH_ROWS or self._bytes >= parquet_pages.BATCH_BYTES:
            self._write()

    def close(self) -> None:
        """Complete the file."""
        self._write()
        if self._writer is not None and self._file is not None:
            self._writer.close()
            self._file.commit()

    def abandon(self) -> None:
        """Drop the file, and all rows that were added."""
        if self._writer is not None and self._file is not None:
            self._writer.close()
            self._file.abandon()
        self._waiting, self._writer, self._file = [], None, None

    def _write(self) -> None:
        if not self._rows:
            return
        rows = pa.concat_batches(self._waiting)  # else each of them is encoded by itself
        if self._writer is None:
            self._file = store_of(self.path).new_file(self.path)
            self._writer = pq.ParquetWriter(self._file.sink, rows.schema)
        self._writer.write_batch(rows, row_group_size=rows.num_rows)
        self.groups.append(rows.num_rows)
        self._waiting, self._rows, self._bytes = [], 0, 0
