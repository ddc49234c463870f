"""The engine of a table in memory, which works without files."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from mondrian_ops.cut.anonymizer import Released
from mondrian_ops.engines import fragment
from mondrian_ops.engines.handover import Fragment, Summary
from mondrian_ops.engines.local import LocalEngine
from mondrian_ops.engines.run import Run
from mondrian_ops.phases import Phases
from mondrian_ops.tables.callers_table import ROW, CallersTable


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
        started, phases = time.perf_counter(), Phases()
        job, rows = run.dataset.job, self._table.select(run.columns)
        numbered = rows
        if self._callers.by_rows:
            numbered = rows.append_column(ROW, pa.array(np.arange(rows.num_rows)))
        released = run.anonymizer.release(numbered, run.recoding, self._cores, phases=phases)
        raw = {*run.columns} - {*job.quasi_identifier_names, *job.identifiers, *self._changed}
        self.returned, read = self._callers.hand_out(released.table, raw)
        self.released = released._replace(table=read)
        with phases("truth"):
            truth = fragment.truth_of(run, rows, self.released, "the released table")
            truth(partial(fragment.read_columns, self.released.table))
        more = {"phases": phases.costs()}
        yield Summary.of(whole, {**released.summary, **more}, started)
