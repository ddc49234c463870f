"""The local engine: this process reads, counts and cuts, streaming, with its own threads."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.algorithms.anonymizer import Anonymizer
from mondrian_ops.core.encoding import as_array
from mondrian_ops.core.hierarchy import Hierarchy
from mondrian_ops.core.job import Job
from mondrian_ops.core.plan import Plan, Router
from mondrian_ops.core.survey import Survey, Surveyor, surveyed_columns
from mondrian_ops.storage import FragmentWriter, Source

__all__ = [
    "PILOT_ROWS",
    "LeafCounts",
    "chosen_rows",
    "count_rows",
    "in_threads",
    "sample_size",
    "survey",
]

Told = Callable[[int], None]
"""Called with the number of rows just seen."""

T = TypeVar("T")
R = TypeVar("R")


def sample_size(job: Job, rows: int) -> int:
    """Rows of the sample: the rate, at least ``min_sample``, at most all."""
    wanted = max(1, round(job.partitioning.sample * rows), job.partitioning.min_sample)
    return rows if job.partitioning.sample >= 1.0 else min(wanted, rows)


def survey(
    job: Job, source: Source, hierarchies: Mapping[str, Hierarchy], told: Told
) -> tuple[Survey, pa.Table, pa.Table]:
    """One pass over the source: what the whole looks like, a sample of its rows, and the pilot.

    Both are drawn without replacement by ``partitioning.seed`` and have the surveyed columns. The
    pilot's size depends on nothing else, so that what is decided on it is the same for every plan.
    """
    surveyor = Surveyor(job, source.schema, hierarchies)
    seed = job.partitioning.seed
    draws = [
        _Draw(chosen_rows(source.rows, sample_size(job, source.rows), seed)),
        _Draw(chosen_rows(source.rows, PILOT_ROWS, seed)),
    ]
    for batch in source.batches(surveyed_columns(job)):
        surveyor.add(batch)
        for draw in draws:
            draw.take_from(batch)
        told(batch.num_rows)
    sample, pilot = (pa.Table.from_batches(draw.taken) for draw in draws)
    return surveyor.finish(), sample, pilot


PILOT_ROWS = 20_000
"""Rows on which policies are tried out."""


def chosen_rows(rows: int, size: int, seed: int) -> NDArray[np.int64]:
    """Ascending numbers of ``size`` of ``rows`` rows, of all of them if they are fewer."""
    if size >= rows:
        return np.arange(rows)
    generator = np.random.default_rng(seed)
    return np.sort(generator.choice(rows, size, replace=False, shuffle=False))


class _Draw:
    """Rows of given ascending numbers, taken from batches as they pass."""

    def __init__(self, chosen: NDArray[np.int64]) -> None:
        self.taken: list[pa.RecordBatch] = []
        self._chosen = chosen
        self._passed = 0

    def take_from(self, batch: pa.RecordBatch) -> None:
        ends = [self._passed, self._passed + batch.num_rows]
        first, last = np.searchsorted(self._chosen, ends)
        if last > first:
            self.taken.append(batch.take(pa.array(self._chosen[first:last] - self._passed)))
        self._passed += batch.num_rows


@dataclass(frozen=True)
class LeafCounts:
    """What the real data holds in each leaf of a plan.

    ``rows`` (leaves,) int64; ``sensitive``: one (leaves, codes) int64 array per sensitive column.
    """

    rows: NDArray[np.int64]
    sensitive: Sequence[NDArray[np.int64]]


def count_rows(
    anonymizer: Anonymizer,
    source: Source,
    plan: Plan,
    columns: Sequence[str],
    writer: FragmentWriter | None,
    told: Told,
) -> LeafCounts:
    """One pass over the source: count it against the plan; with a ``writer``, scatter it too.

    ``columns`` are those to scatter.
    """
    router = Router(plan, anonymizer.orders)
    needed = {*router.columns, *anonymizer.job.sensitive, *(columns if writer else ())}
    scattered = list(columns) if writer else None

    def count(batch: pa.RecordBatch) -> _Counted:
        return _counted(batch, anonymizer, router, plan.leaves, scattered)

    rows = np.zeros(plan.leaves, np.int64)
    sensitive = [np.zeros((plan.leaves, len(d.counts)), np.int64) for d in anonymizer.domains]
    batches = source.batches([name for name in source.schema.names if name in needed])
    for counted in in_threads(count, batches):
        rows += counted.counts.rows
        for total, part in zip(sensitive, counted.counts.sensitive, strict=True):
            total += part
        if writer is not None:
            for leaf, table in counted.routed:
                writer.append(leaf, table)
        told(int(counted.counts.rows.sum()))
    return LeafCounts(rows, sensitive)


class _Counted(NamedTuple):
    """A batch counted, and its rows by leaf if they are to be scattered."""

    counts: LeafCounts
    routed: list[tuple[int, pa.Table]]


def _counted(
    batch: pa.RecordBatch,
    anonymizer: Anonymizer,
    router: Router,
    leaves: int,
    scattered: Sequence[str] | None,
) -> _Counted:
    leaf = router.route(batch)
    rows = np.bincount(leaf, minlength=leaves)
    sensitive = []
    for domain in anonymizer.domains:
        codes = domain.encode(as_array(batch.column(domain.name)))
        width = len(domain.counts)
        pairs = np.bincount(leaf * width + codes, minlength=leaves * width)
        sensitive.append(pairs.reshape(leaves, width))
    routed = [] if scattered is None else _routed(batch.select(list(scattered)), leaf, rows)
    return _Counted(LeafCounts(rows, sensitive), routed)


def _routed(
    batch: pa.RecordBatch, leaf: NDArray[np.int64], rows: NDArray[np.int64]
) -> list[tuple[int, pa.Table]]:
    """The rows of each leaf that has some, in their order."""
    narrow = leaf.astype(np.uint8 if len(rows) <= 256 else np.uint32)  # few bits sort faster
    sorted_rows = pa.Table.from_batches([batch]).take(pa.array(np.argsort(narrow, kind="stable")))
    starts = np.cumsum(rows) - rows
    return [
        (int(number), sorted_rows.slice(starts[number], rows[number]))
        for number in np.flatnonzero(rows)
    ]


def in_threads(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """``work`` on every item, as many at once as there are cores; results in the items' order.

    The kernels and Arrow release the GIL. Few results wait to be taken, so that memory is bounded
    by them and not by the number of items. The first exception ends it all.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    running: deque[Future[R]] = deque()
    with ThreadPoolExecutor(cores or 1) as pool:
        try:
            for item in items:
                running.append(pool.submit(work, item))
                if len(running) > (cores or 1):
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
