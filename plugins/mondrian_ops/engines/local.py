"""The local engine: this process reads, counts and cuts, streaming, with its own threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.algorithms import planning
from mondrian_ops.algorithms.planning import Draft, LeafCounts
from mondrian_ops.algorithms.recoding import choose_recoding
from mondrian_ops.core.profile import Profiler, profiled_columns
from mondrian_ops.engines import fragment as fragments
from mondrian_ops.engines.cores import available_cores
from mondrian_ops.engines.counting import Counting
from mondrian_ops.engines.fragment import Fragment, Summary
from mondrian_ops.engines.run import Run
from mondrian_ops.storage import FragmentWriter
from mondrian_ops.storage.source import BATCH_ROWS

__all__ = ["LocalEngine", "in_threads"]

COMBINED_ROWS = 1 << 19
"""Rows of a batch whose combinations are counted: the more, the fewer are met in several."""

Told = Callable[[int], None]
"""Called with the number of rows just seen."""

T = TypeVar("T")
R = TypeVar("R")


class LocalEngine:
    """Does the work in this process. See :class:`mondrian_ops.engines.Engine`.

    ``cores`` are for anonymizing fragments; by default all that this process may use.
    """

    remote = False

    def __init__(self, cores: int | None = None) -> None:
        self._cores = cores or available_cores()

    def draft(self, run: Run, told: Told) -> Draft:
        """One pass over the source: the survey, and what is decided on a sample of its rows.

        Sample and pilot are drawn without replacement by ``partitioning.seed``. The pilot's size
        depends on nothing else, so that what is decided on it is the same for every plan.
        """
        dataset = run.dataset
        job, source = dataset.job, dataset.source
        profiler = Profiler(job, source.schema, dataset.hierarchies)
        draws = [
            Draw(planning.chosen_rows(source.rows, size, job.partitioning.seed), source.schema)
            for size in (planning.sample_size(job, source.rows), planning.PILOT_ROWS)
        ]
        size = COMBINED_ROWS if job.recodes_columns else BATCH_ROWS
        batches = source.batches(profiled_columns(job), dictionaries=True, batch_rows=size)
        for batch, found in in_threads(lambda batch: (batch, profiler.profile(batch)), batches):
            profiler.merge(found)
            for draw in draws:
                draw.take_from(batch)
            told(batch.num_rows)
        sample, pilot = (pa.Table.from_batches(draw.taken) for draw in draws)
        run.draft = planning.draft(
            job, profiler.finish(), dataset.hierarchies, sample, pilot, dataset.slots
        )
        if profiler.combinations is not None:
            run.frequencies = run.anonymizer.frequencies(profiler.combinations)
        return run.draft

    def count(self, run: Run, scatter: bool, told: Told) -> LeafCounts:
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
                told(int(counted.rows.sum()))
        return counts

    def recode(self, run: Run) -> None:
        """Decide on the counted combinations; on parts of them in threads."""
        run.save_recoding(choose_recoding(run.anonymizer, run.frequencies, in_parallel=in_threads))

    def anonymize(self, run: Run, chosen: Sequence[Fragment]) -> Iterator[Summary]:
        """The fragments in threads, the largest first; each on several cores if they are few."""
        run.anonymizer  # noqa: B018 - read once, before the threads all want it
        largest_first = sorted(chosen, key=lambda fragment: -int(fragment["rows"]))
        cores = max(1, self._cores // max(1, len(chosen)))
        return in_threads(
            lambda fragment: fragments.anonymize(run, fragment, cores), largest_first, self._cores
        )


class Draw:
    """Rows of given ascending numbers, taken from batches as they pass, in a source's types."""

    def __init__(self, chosen: NDArray[np.int64], schema: pa.Schema, passed: int = 0) -> None:
        self.taken: list[pa.RecordBatch] = []
        self._chosen = chosen
        self._schema = schema
        self._passed = passed

    def take_from(self, batch: pa.RecordBatch) -> None:
        """Take what is wanted of the next batch."""
        ends = [self._passed, self._passed + batch.num_rows]
        first, last = np.searchsorted(self._chosen, ends)
        if last > first:
            taken = batch.take(pa.array(self._chosen[first:last] - self._passed))
            types = [self._schema.field(name) for name in taken.schema.names]
            self.taken.append(taken.cast(pa.schema(types)))
        self._passed += batch.num_rows


def in_threads(
    work: Callable[[T], R], items: Iterable[T], at_once: int | None = None
) -> Iterator[R]:
    """``work`` on every item, as many at once as there are cores; results in the items' order.

    The kernels and Arrow release the GIL. Few results wait to be taken, so that memory is bounded
    by them and not by the number of items. The first exception ends it all.
    """
    at_once = at_once or available_cores()
    running: deque[Future[R]] = deque()
    with ThreadPoolExecutor(at_once) as pool:
        try:
            for item in items:
                running.append(pool.submit(work, item))
                if len(running) > at_once:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
