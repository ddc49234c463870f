"""The local engine: this process reads, counts and cuts, streaming, with its own threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext

import pyarrow as pa

from mondrian_ops.algorithms import planning
from mondrian_ops.algorithms.planning import Draft, LeafCounts
from mondrian_ops.algorithms.recoding import choose_recoding
from mondrian_ops.engines import RowsSeen, StepwiseEngine, fragment
from mondrian_ops.engines.counting import Counting
from mondrian_ops.engines.handover import Fragment, Summary
from mondrian_ops.engines.profiling import Profiling
from mondrian_ops.engines.run import Run
from mondrian_ops.engines.threads import available_cores, in_threads
from mondrian_ops.storage import FragmentWriter
from mondrian_ops.storage.source import BATCH_ROWS

__all__ = ["LocalEngine"]

COMBINED_ROWS = 1 << 19
"""Rows of a batch whose combinations are counted: the more, the fewer are met in several."""


class LocalEngine(StepwiseEngine):
    """Does the work in this process.

    ``cores`` are for anonymizing fragments; by default all that this process may use.
    """

    def __init__(self, cores: int | None = None) -> None:
        self._cores = cores or available_cores()

    def draft(self, run: Run, rows_seen: RowsSeen) -> Draft:
        """One pass over the source: its profile, and what is decided on a sample of its rows."""
        dataset = run.dataset
        profiling = Profiling(dataset)
        batches = dataset.source.batches(
            profiling.columns,
            dictionaries=True,
            batch_rows=COMBINED_ROWS if dataset.job.recodes_columns else BATCH_ROWS,
        )
        for batch, part in in_threads(profiling.look, batches):
            profiling.take(batch, part)
            rows_seen(batch.num_rows)
        sample, pilot = (
            pa.Table.from_batches(profiling.draws[name].taken) for name in ("sample", "pilot")
        )
        profiler = profiling.profiler
        run.draft = planning.draft(
            dataset.job, profiler.finish(), dataset.hierarchies, sample, pilot, dataset.slots
        )
        if profiler.combinations is not None:
            run.frequencies = run.anonymizer.frequencies(profiler.combinations)
        return run.draft

    def count(self, run: Run, scatter: bool, rows_seen: RowsSeen) -> LeafCounts:
        """One pass over the source: count it against the plan and, if asked, scatter it too."""
        source = run.dataset.source
        counting = Counting(run.anonymizer, run.draft.plan, run.columns if scatter else None)
        counts = counting.zeros()
        columns = counting.columns(source.schema.names)
        batches = source.batches(columns, dictionaries=not scatter)
        with FragmentWriter(run.work) if scatter else nullcontext() as writer:
            for counted, routed in in_threads(counting.count, batches):
                counts.add(counted)
                if writer is not None:
                    for leaf, rows in routed:
                        writer.append(leaf, rows)
                rows_seen(int(counted.rows.sum()))
        return counts

    def recode(self, run: Run) -> None:
        """Decide on the counted combinations; on parts of them in threads."""
        run.save_recoding(choose_recoding(run.anonymizer, run.frequencies, in_parallel=in_threads))

    def anonymize(self, run: Run, fragments: Sequence[Fragment]) -> Iterator[Summary]:
        """The fragments in threads, the largest first; each on several cores if they are few."""
        run.anonymizer  # noqa: B018 - read once, before the threads all want it
        if len(fragments) == 1:
            yield fragment.anonymize(run, fragments[0], cores=self._cores)
            return
        cores = max(1, self._cores // max(1, len(fragments)))
        yield from in_threads(
            lambda each: fragment.anonymize(run, each, cores=cores),
            sorted(fragments, key=lambda each: -each.rows),
            self._cores,
        )
