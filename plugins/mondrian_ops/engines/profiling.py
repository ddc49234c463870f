"""Profiling the dataset, batch by batch: what its columns hold, and rows drawn at random."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.algorithms import planning
from mondrian_ops.core.profile import PartialProfile, Profiler, profiled_columns
from mondrian_ops.engines.run import Dataset

__all__ = ["Draw", "Profiling"]


class Profiling:
    """One pass over a dataset, or over a part of it that begins with ``first_row``.

    ``profiler`` knows what its columns hold. ``draws`` takes the ``sample``, on which the fragments
    are planned, and the ``pilot``, on which the cut is chosen: without replacement, by
    ``partitioning.seed``. The pilot's size depends on nothing else, so that what is decided on it
    is the same for every plan.
    """

    def __init__(self, dataset: Dataset, first_row: int = 0) -> None:
        job, source = dataset.job, dataset.source
        sizes = {
            "sample": planning.sample_size(job, source.rows),
            "pilot": planning.PILOT_ROWS,
        }
        self.columns = profiled_columns(job)
        self.profiler = Profiler(job, source.schema, dataset.hierarchies)
        self.draws = {
            name: Draw(
                planning.chosen_rows(source.rows, size, job.partitioning.seed),
                source.schema,
                first_row,
            )
            for name, size in sizes.items()
        }

    def look(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, PartialProfile]:
        """A batch and what is in it; threads may look at several at once."""
        return batch, self.profiler.profile(batch)

    def take(self, batch: pa.RecordBatch, part: PartialProfile) -> None:
        """Take in what :meth:`look` gave of the next batch."""
        self.profiler.merge(part)
        for draw in self.draws.values():
            draw.take_from(batch)


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
