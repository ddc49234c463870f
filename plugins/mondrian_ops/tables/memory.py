"""A table in memory, as what a run reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import pyarrow as pa

from mondrian_ops.errors import InputError
from mondrian_ops.late_methods import dataclass
from mondrian_ops.tables.table import Table


@dataclass(frozen=True, kw_only=True)
class MemoryTable(Table):
    """A table in memory: one part of one piece, which this process alone can read."""

    table: pa.Table = field(repr=False)

    @classmethod
    def of(
        cls,
        table: pa.Table,
        index: Sequence[str] = (),
        declared: pa.Schema | None = None,
        types: Mapping[str, str] | None = None,
    ) -> MemoryTable:
        """The rows of ``table``; the rest as for :class:`Table`."""
        return cls(
            url="",
            schema=table.schema,
            sizes=[(table.num_rows,)],
            index=tuple(index),
            declared=pa.schema([]) if declared is None else declared,
            types=types or {},
            table=table,
        )

    def read(
        self,
        part: int,
        columns: Sequence[str],
        pieces: Sequence[int] | None,
        batch_rows: int,
        dictionaries: bool,
    ) -> Iterator[pa.RecordBatch]:
        """The rows, none of them copied where a column is in one chunk."""
        table = self.table.select(columns).combine_chunks()
        return iter(table.to_batches(max_chunksize=batch_rows))

    def changed(self, part: int | None = None) -> None:
        """Nothing: an Arrow table does not change."""

    def to_json(self) -> dict[str, Any]:
        """Raises InputError: another process has not this memory."""
        raise InputError("a table in memory cannot be read by another process; write it to a file")
