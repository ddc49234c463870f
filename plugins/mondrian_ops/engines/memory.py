"""The engine of a table in memory, which works without files."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from mondrian_ops import tables
from mondrian_ops.cut.anonymizer import Released
from mondrian_ops.engines import fragment
from mondrian_ops.engines.handover import Fragment, Summary
from mondrian_ops.engines.local import LocalEngine
from mondrian_ops.engines.run import Run
from mondrian_ops.tables.batch_sizes import BATCH_ROWS
from mondrian_ops.tables.callers_table import ROW, CallersTable


@dataclass(frozen=True)
class TableSource(tables.Source):
    """A table as the source of a run."""

    table: pa.Table = field(kw_only=True)

    @classmethod
    def of(cls, table: pa.Table, index: Sequence[str], declared: pa.Schema) -> TableSource:
        """``index``: columns of a pandas index, which do not belong to the data."""
        return cls(
            url="",
            files=[],
            format="parquet",
            schema=table.schema,
            bytes=table.nbytes,
            _groups=[(table.num_rows,)],
            _stamps=[],
            index=tuple(index),
            declared=declared,
            table=table,
        )

    def batches(
        self, columns: Sequence[str] | None = None, *_: Any, **options: Any
    ) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch; see :meth:`tables.Source.batches`."""
        table = self.table if columns is None else self.table.select(columns)
        rows = options.get("batch_rows", BATCH_ROWS)
        return iter(table.combine_chunks().to_batches(max_chunksize=rows))

    def refuse_change(self, file: int | None = None) -> None:
        """Do nothing: a table does not change."""


class MemoryEngine(LocalEngine):
    """Does the work in this process, on ``table``, what was read of a caller's.

    ``changed``: its columns whose values are not the caller's, as the job says of their types.
    ``returned`` is the released table as the caller gets it, once it is anonymized, and
    ``released`` has what was read of that one.
    """

    returned: Any
    released: Released

    def __init__(self, table: pa.Table, callers: CallersTable, changed: Sequence[str] = ()) -> None:
        super().__init__()
        self._changed = changed
        self._table = table
        self._callers = callers

    def anonymize(self, run: Run, fragments: Sequence[Fragment]) -> Iterator[Summary]:
        """Anonymize the table, the only fragment, on all cores."""
        (whole,) = fragments
        started = time.perf_counter()
        job, rows = run.dataset.job, self._table.select(run.columns)
        numbered = rows
        if self._callers.by_rows:
            numbered = rows.append_column(ROW, pa.array(np.arange(rows.num_rows)))
        released = run.anonymizer.release(numbered, run.recoding, self._cores)
        raw = {*run.columns} - {*job.quasi_identifier_names, *job.identifiers, *self._changed}
        self.returned, read = self._callers.hand_out(released.table, raw)
        self.released = released._replace(table=read)
        truth = fragment.truth_of(run, rows, self.released, "the released table")
        hidden = truth(partial(fragment.read_columns, self.released.table))
        yield Summary.of(whole, {**released.summary, "hidden": hidden}, started)
