"""The engines of this process: on a source, in its own threads, and on a table in memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pyarrow as pa

from mondrian_ops.cores import available_cores
from mondrian_ops.cut.planning import LeafCounts
from mondrian_ops.cut.recoding_search import choose_recoding
from mondrian_ops.engines import RowsSeen, StepwiseEngine, fragment
from mondrian_ops.engines.handover import Fragment, Summary
from mondrian_ops.engines.kept_rows import KeptRows
from mondrian_ops.engines.run import Run
from mondrian_ops.engines.scan import Profiling, count_rows, make_draft
from mondrian_ops.engines.threads import at_once, in_threads, shared_rows
from mondrian_ops.tables.batch_sizes import BATCH_ROWS

COMBINED_ROWS = 1 << 19
"""Rows of a batch whose combinations are counted: in larger batches fewer come up repeatedly."""


class LocalEngine(StepwiseEngine):
    """Does the work in this process.

    ``cores`` are for anonymizing fragments; by default all that this process may use.
    """

    def __init__(self, cores: int | None = None) -> None:
        self._cores = cores or available_cores()

    def draft(self, run: Run, rows_seen: RowsSeen) -> None:
        """One pass over the source, in threads, then the decisions."""
        dataset = run.dataset
        profiling = Profiling(dataset)
        batches = dataset.source.batches(
            profiling.columns,
            dictionaries=True,
            lists=False,
            batch_rows=shared_rows(COMBINED_ROWS if dataset.job.recodes_globally else BATCH_ROWS),
        )
        run.kept = KeptRows()
        profiling.scan(run.kept.passing(batches), rows_seen, in_threads)
        with run.phases("plan"):
            taken = [each.taken for each in profiling.samples.values()]
            sample, pilot = map(pa.Table.from_batches, taken)
            run.frequencies = make_draft(run, profiling.profiler, sample, pilot)

    def count(self, run: Run, scatter: bool, rows_seen: RowsSeen) -> LeafCounts:
        """One pass over the source, in threads."""
        batch_rows = shared_rows(BATCH_ROWS)
        return count_rows(
            run, scatter, rows_seen=rows_seen, in_parallel=in_threads, batch_rows=batch_rows
        )

    def recode(self, run: Run) -> None:
        """Choose the recoding here; a first phase on parts of the rows runs in threads."""
        run.save_recoding(choose_recoding(run.anonymizer, run.frequencies, in_parallel=in_threads))

    def anonymize(self, run: Run, fragments: Sequence[Fragment]) -> Iterator[Summary]:
        """Anonymize the fragments in threads, the largest first; they share out all cores."""
        largest_first = sorted(fragments, key=lambda each: -each.rows)
        threads = min(self._cores, len(fragments), at_once(largest_first[0].rows))
        if threads == 1:  # in this thread, which then has what the others would
            for each in largest_first:
                yield fragment.anonymize(run, each, cores=self._cores)
            return
        run.anonymizer  # noqa: B018 - made once, before the threads need it
        yield from in_threads(
            lambda each: fragment.anonymize(
                run, each, cores=self._cores // threads, cpu=time.thread_time
            ),
            largest_first,
            threads,
        )
