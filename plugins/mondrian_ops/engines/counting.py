"""Counting the dataset against a plan, batch by batch, and routing its rows to their fragments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.algorithms.anonymizer import Anonymizer
from mondrian_ops.algorithms.planning import LeafCounts, persons_met
from mondrian_ops.core.plan import Plan, Router

__all__ = ["Counting"]

Routed = list[tuple[int, pa.Table]]
"""Leaves and the rows of each, for the leaves that have some."""


class Counting:
    """Counts batches against ``plan``; with ``scattered`` columns, routes their rows too."""

    def __init__(
        self, anonymizer: Anonymizer, plan: Plan, scattered: Sequence[str] | None = None
    ) -> None:
        self._anonymizer = anonymizer
        self._router = Router(plan, anonymizer.orders)
        self._leaves = plan.leaves
        self._scattered = None if scattered is None else list(scattered)

    def columns(self, names: Sequence[str]) -> list[str]:
        """Those of the source's columns that batches must have, in its order."""
        job = self._anonymizer.job
        needed = {*self._router.columns, *job.sensitive, job.entity_id}
        needed |= set(self._scattered or ())
        return [name for name in names if name in needed]

    def zeros(self) -> LeafCounts:
        """Nothing counted yet."""
        return LeafCounts.zeros(self._router, self._leaves, self._anonymizer)

    def count(self, batch: pa.RecordBatch) -> tuple[LeafCounts, Routed]:
        """What a batch holds in each leaf, and its rows by leaf."""
        places = self._router.place(batch)
        leaf = self._router.leaves(places)
        rows = np.bincount(leaf, minlength=self._leaves)
        sensitive = []
        for domain in self._anonymizer.domains:
            codes = domain.encode(batch.column(domain.name))
            width = len(domain.counts)
            pairs = np.bincount(leaf * width + codes, minlength=self._leaves * width)
            sensitive.append(pairs.reshape(self._leaves, width))
        counts = LeafCounts(rows, sensitive, cells=self._router.count(places))
        job = self._anonymizer.job
        if job.entity_id is not None:
            column = batch.column(job.entity_id)
            met = persons_met(self._router, leaf, places, job.k, column)
            counts.persons[:], counts.cell_persons[:] = met
        if self._scattered is None:
            return counts, []
        return counts, _routed(batch.select(self._scattered), leaf, rows)


def _routed(batch: pa.RecordBatch, leaf: NDArray[np.int64], rows: NDArray[np.int64]) -> Routed:
    """The rows of each leaf that has some, in their order."""
    narrow = leaf.astype(np.uint8 if len(rows) <= 256 else np.uint32)  # few bits sort faster
    sorted_rows = pa.Table.from_batches([batch]).take(pa.array(np.argsort(narrow, kind="stable")))
    starts = np.cumsum(rows) - rows
    return [
        (int(number), sorted_rows.slice(starts[number], rows[number]))
        for number in np.flatnonzero(rows)
    ]
