"""The memory engine: anonymize a table of this process as one fragment, without any file."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from mondrian_ops import storage
from mondrian_ops.algorithms.anonymizer import Released
from mondrian_ops.engines.handover import Fragment, Summary
from mondrian_ops.engines.local import LocalEngine
from mondrian_ops.engines.run import Run
from mondrian_ops.storage.source import BATCH_ROWS

__all__ = ["MemoryEngine", "TableSource"]


@dataclass(frozen=True)
class TableSource(storage.Source):
    """A table as the source of a run."""

    table: pa.Table = field(kw_only=True)

    @classmethod
    def of(cls, table: pa.Table, index: Sequence[str]) -> TableSource:
        """``index``: columns of a pandas index, which do not belong to the data."""
        groups: list[tuple[int, ...]] = [(table.num_rows,)]
        return cls(
            "", [], "parquet", table.schema, table.nbytes, groups, [], tuple(index), table=table
        )

    def batches(
        self, columns: Sequence[str] | None = None, *_: Any, **options: Any
    ) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch; see :meth:`storage.Source.batches`."""
        table = self.table if columns is None else self.table.select(columns)
        rows = options.get("batch_rows", BATCH_ROWS)
        return iter(table.combine_chunks().to_batches(max_chunksize=rows))


class MemoryEngine(LocalEngine):
    """Does the work in this process, on ``table``.

    ``released`` is the released table, once it is anonymized.
    """

    released: Released

    def __init__(self, table: pa.Table) -> None:
        super().__init__()
        self._table = table

    def anonymize(self, run: Run, fragments: Sequence[Fragment]) -> Iterator[Summary]:
        """Anonymize the table, the only fragment, on all cores."""
        (fragment,) = fragments
        started = time.perf_counter()
        rows = self._table.select(run.columns)
        self.released = run.anonymizer.release(rows, run.recoding, self._cores)
        yield Summary.of(fragment, self.released.summary, started)
