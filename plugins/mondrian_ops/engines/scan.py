"""One pass over a source, batch by batch: profile it and sample its rows, or count them by leaf."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.cut import planning
from mondrian_ops.cut.anonymizer import Anonymizer, columns_to_read
from mondrian_ops.cut.boundary_fitting import NightBoundaries, settle
from mondrian_ops.cut.plan import Plan
from mondrian_ops.cut.planning import LeafCounts, persons_met
from mondrian_ops.cut.routing import Router
from mondrian_ops.data.disclosing_columns import Watch, comparable, survey
from mondrian_ops.data.encoding import Codes, value_type
from mondrian_ops.data.finding import Finding
from mondrian_ops.data.frequency_set import FrequencySet
from mondrian_ops.data.native.lookup import count_pairs
from mondrian_ops.data.person_rows import PersonRows, hashed, mixed
from mondrian_ops.data.pool import HIDDEN
from mondrian_ops.data.profile import PartialProfile, Profile, Profiler, profiled_columns
from mondrian_ops.data.small_integers import count
from mondrian_ops.engines import RowsSeen
from mondrian_ops.engines.kept_rows import KeptRows
from mondrian_ops.engines.run import Dataset, Run
from mondrian_ops.engines.threads import shared_rows
from mondrian_ops.generalize.native.classes import sort_classes
from mondrian_ops.generalize.series_boundaries import SeriesBoundaries
from mondrian_ops.late_methods import dataclass
from mondrian_ops.publish import FragmentWriter
from mondrian_ops.tables import Split, Table
from mondrian_ops.tables.batch_sizes import BATCH_ROWS

Routed = list[tuple[int, pa.Table]]
"""Leaves and the rows of each, for the leaves that have some."""

_ROUTED_ROWS = 1 << 12  # for each leaf on average
_ROUTED_BYTES = 16 << 20
_VALUES_PER_ROW = 4
"""To encode a block, each value of a sensitive column is looked at: at most so many for a row."""


def _unobserved(_rows: int) -> None:
    """Progress that nobody follows."""


class Profiling:
    """Profiles a source, or a split of it that begins with ``first_row``, and samples its rows.

    ``samples`` has the ``sample``, on which the fragments are planned, and the ``pilot``, on which
    the cut is chosen and the columns that are published as they are get surveyed. Both are drawn
    without replacement, by ``partitioning.seed``. The size of the pilot is fixed, so that every
    plan leads to the same choice.
    """

    def __init__(self, dataset: Dataset, first_row: int = 0) -> None:
        job, source = dataset.job, dataset.source
        sizes = {"sample": planning.sample_size(job, source.rows), "pilot": planning.PILOT_ROWS}
        profiled, (raw, _) = profiled_columns(job), raw_columns(dataset)
        columns = {"sample": profiled, "pilot": [*dict.fromkeys([*profiled, *raw])]}
        self.columns = columns["pilot"]
        self.profiler = Profiler(job, source.schema, dataset.hierarchies, source.pointed)
        self.samples = {
            name: SampledRows(source, columns[name], size, job.partitioning.seed, first_row)
            for name, size in sizes.items()
        }

    def scan(
        self,
        batches: Iterable[pa.RecordBatch],
        rows_seen: RowsSeen = _unobserved,
        in_parallel: Callable[..., Iterator[Any]] = map,
    ) -> None:
        """Take in all batches, in their order."""
        for batch, profile in in_parallel(self._profiled, batches):
            self.profiler.merge(profile)
            for rows in self.samples.values():
                rows.take_from(batch)
            rows_seen(batch.num_rows)

    def _profiled(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, PartialProfile]:
        return batch, self.profiler.profile(batch)


class SampledRows:
    """``size`` random rows of a source, in its types, taken from batches as they pass."""

    def __init__(
        self, source: Table, columns: Sequence[str], size: int, seed: int, first_row: int = 0
    ) -> None:
        self.taken: list[pa.RecordBatch] = []
        self._schema = pa.schema([source.schema.field(name) for name in columns])
        self._chosen = planning.chosen_rows(source.rows, size, seed)
        self._passed = first_row

    def take_from(self, batch: pa.RecordBatch) -> None:
        """Take the chosen rows of the next batch."""
        ends = [self._passed, self._passed + batch.num_rows]
        first, last = np.searchsorted(self._chosen, ends)
        if last > first:
            columns = batch.select(self._schema.names)
            taken = columns.take(pa.array(self._chosen[first:last] - self._passed))
            self.taken.append(taken.cast(self._schema))
        self._passed += batch.num_rows


def raw_columns(dataset: Dataset) -> tuple[list[str], list[str]]:
    """The columns that are published as they are: those to survey, and those of other types."""
    job, schema = dataset.job, dataset.source.schema
    others = {*job.quasi_identifier_names, job.entity_id, *HIDDEN}
    raw = [name for name in columns_to_read(job, schema.names) if name not in others]
    known = [name for name in raw if comparable(schema.field(name).type)]
    return known, [name for name in raw if name not in known]


def make_draft(
    run: Run, profiler: Profiler, sample: pa.Table, pilot: pa.Table
) -> FrequencySet | None:
    """Make and save the draft of a run whose source is profiled as a whole.

    Returns the frequencies of the combinations of codes, where recoding is global.
    """
    dataset = run.dataset
    job, hierarchies = dataset.job, dataset.hierarchies
    profile = profiler.finish().with_quantiles(job, pilot, dataset.chosen)
    boundaries = _boundaries(dataset, profile, pilot)
    if boundaries is not None:
        profile = replace(profile, boundaries=boundaries.boundaries.arrays(profile.types))
    raw, unknown = raw_columns(dataset)
    surveyed = survey(job, raw, pilot, profile.rows)
    unknowns = [Finding(name, "unknown") for name in unknown]
    draft = planning.draft(job, profile, hierarchies, sample, pilot, dataset.slots)
    surveyed = replace(surveyed, findings=[*surveyed.findings, *unknowns])
    run.save_draft(replace(draft, survey=surveyed, boundaries=boundaries))
    combinations = profiler.combinations
    return None if combinations is None else run.anonymizer.frequencies(combinations)


def _boundaries(dataset: Dataset, profile: Profile, pilot: pa.Table) -> NightBoundaries | None:
    """The boundaries of a night whose series has stable ones."""
    job, night = dataset.job, dataset.night
    if night is None or job.series is None or job.series.boundaries != "stable":
        return None
    known = None if night.boundaries is None else SeriesBoundaries.from_json(night.boundaries)
    return settle(job, profile, dataset.hierarchies, pilot, known, night.number, night.refit)


def count_rows(
    run: Run,
    scatter: bool,
    split: Split | None = None,
    writer_name: str = "",
    rows_seen: RowsSeen = _unobserved,
    in_parallel: Callable[..., Iterator[Any]] = map,
    batch_rows: int = BATCH_ROWS,
) -> LeafCounts:
    """Count a source, or a split of it, in the leaves of the draft's plan.

    ``scatter``: write the rows of each leaf to the working files too, as the writer of this name.
    """
    watched = run.draft.survey.watched
    counting = Counting(
        run.anonymizer, run.draft.plan, run.columns if scatter else None, watched, of_persons=True
    )
    counts = counting.zeros()
    batches = counting.batches(run.dataset.source, split, batch_rows, run.kept)
    blocks = counting.blocks(batches, 0 if split is None else split.first_row)
    with FragmentWriter(run.work, writer_name) if scatter else nullcontext() as writer:
        for counted, routed in in_parallel(counting.count, blocks):
            counts.add(counted)
            counting.know(counts)
            if writer is not None:
                for leaf, rows in routed:
                    writer.append(leaf, rows)
            rows_seen(int(counted.rows.sum()))
    return counts


@dataclass(frozen=True)
class Block:
    """Consecutive batches of a source; ``first_row`` is the number of their first row."""

    batches: Sequence[pa.RecordBatch]
    first_row: int

    @property
    def rows(self) -> int:
        return sum(batch.num_rows for batch in self.batches)

    @property
    def bytes(self) -> int:
        return sum(batch.nbytes for batch in self.batches)

    def column(self, name: str) -> pa.ChunkedArray:
        """A column of all batches, of which only some may have dictionaries."""
        arrays = [batch.column(name) for batch in self.batches]
        if len({array.type for array in arrays}) > 1:
            arrays = [array.cast(value_type(array.type)) for array in arrays]
        return pa.chunked_array(arrays)


class Counting:
    """Counts blocks by leaf of ``plan``; with columns ``to_route``, routes their rows too.

    It follows the values of the columns ``watched`` as well and, with ``of_persons``, the rows of
    persons, where the job needs them.
    """

    def __init__(
        self,
        anonymizer: Anonymizer,
        plan: Plan,
        to_route: Sequence[str] | None = None,
        watched: Sequence[Watch] = (),
        of_persons: bool = False,
    ) -> None:
        self._anonymizer = anonymizer
        self._of_persons = of_persons and anonymizer.counts_person_rows(plan.leaves)
        self._limits: NDArray[np.int64] | None = None
        self._router = Router(plan, anonymizer.orders)
        self._leaves = plan.leaves
        self._to_route = None if to_route is None else list(to_route)
        self._watched = watched
        values = max((len(domain.counts) for domain in anonymizer.domains), default=0)
        self._least_rows = values // _VALUES_PER_ROW

    def batches(
        self,
        source: Table,
        split: Split | None = None,
        batch_rows: int = BATCH_ROWS,
        kept: KeptRows | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The batches of a source, or of a split of it, with the columns that :meth:`count` needs.

        Rows that are routed keep the types of the source; others may come as dictionaries. They are
        read unless ``kept`` has all rows of the source.
        """
        job = self._anonymizer.job
        needed = {*self._router.columns, *job.sensitive, job.entity_id, *(self._to_route or ())}
        if self._of_persons and self._keeps_equal_rows:
            needed |= {*job.quasi_identifier_names}
        for watch in self._watched:
            needed |= {watch.column, *watch.guesses}
        columns = [name for name in source.schema.names if name in needed]
        dictionaries = self._to_route is None
        if kept is not None and kept.has(columns):
            return kept.batches(
                pa.schema([source.schema.field(name) for name in columns]), dictionaries
            )
        return source.batches(
            columns, batch_rows=batch_rows, split=split, dictionaries=dictionaries, lists=False
        )

    def blocks(self, batches: Iterable[pa.RecordBatch], first_row: int = 0) -> Iterator[Block]:
        """The batches in blocks; ``first_row`` is the number of their first row.

        A block has several batches where rows go to many leaves: to handle the few rows that a
        batch has for each would take longer than to move them. So it has where a sensitive column
        has many values.
        """
        rows, most = self._leaves * _ROUTED_ROWS, shared_rows(_ROUTED_BYTES)
        gathered: list[pa.RecordBatch] = []
        for batch in batches:
            gathered.append(batch)
            block = Block(gathered, first_row)
            is_large = self._to_route is None or block.rows >= rows or block.bytes >= most
            if is_large and block.rows >= self._least_rows:
                yield block
                gathered, first_row = [], first_row + block.rows
        if gathered:
            yield Block(gathered, first_row)

    def zeros(self) -> LeafCounts:
        """Nothing counted yet."""
        return LeafCounts.zeros(self._router, self._leaves, self._anonymizer)

    def count(self, block: Block) -> tuple[LeafCounts, Routed]:
        """The counts of a block in each leaf, and its rows by leaf."""
        total, leaves, first_row = self.zeros(), [], block.first_row
        total = replace(total, sensitive=[], person_rows=[])
        for batch in block.batches:
            counts, leaf = self._counted(batch, first_row)
            total.add(counts)
            leaves.append(leaf)
            first_row += batch.num_rows
        leaf_of = np.concatenate(leaves)
        codes = [domain.encode(block.column(domain.name)) for domain in self._anonymizer.domains]
        total = replace(total, sensitive=self._sensitive(codes, leaf_of))
        if self._of_persons:
            total.person_rows.append(self._person_rows(block, leaf_of.astype(np.int64), codes))
        if self._to_route is None:
            return total, []
        rows = pa.Table.from_batches(block.batches).select(self._to_route)
        return total, _routed(rows, leaf_of, total.rows)

    def _counted(self, batch: pa.RecordBatch, first_row: int) -> tuple[LeafCounts, Codes]:
        """The counts of a batch but for the sensitive values, and the leaf of each row.

        ``first_row``: the number of its first row, which chooses the rows to follow.
        """
        places = self._router.place(batch)
        leaf = self._router.leaves(places)
        rows = count(leaf, self._leaves)
        counts = LeafCounts(rows, [], cells=self._router.count(places))
        job = self._anonymizer.job
        for watch in self._watched:
            counts.followed[watch.column] = watch.follow(batch, first_row, job.entity_id)
        if job.entity_id is not None:
            column = batch.column(job.entity_id)
            met = persons_met(self._router, leaf, places, job.k, column)
            counts.persons[:], counts.cell_persons[:] = met
        return counts, leaf

    def _sensitive(
        self, codes: Sequence[NDArray[np.int32]], leaf: Codes
    ) -> list[NDArray[np.int64]]:
        """How often each sensitive value is in each leaf, (leaves, codes) for each column."""
        counts = []
        for domain, of_column in zip(self._anonymizer.domains, codes, strict=True):
            counts.append(count_pairs(leaf, of_column, self._leaves, len(domain.counts)))
        return counts

    @property
    def _keeps_equal_rows(self) -> bool:
        return not self._anonymizer.cut.parts_equal_rows

    def know(self, counts: LeafCounts) -> None:
        """Leave out, from now on, the rows of persons of whom there are enough in ``counts``."""
        for rows in counts.person_rows:
            self._limits = rows.limits(self._leaves)

    def _person_rows(
        self, block: Block, leaf: NDArray[np.int64], codes: Sequence[NDArray[np.int32]]
    ) -> PersonRows:
        """The rows of the persons of a block in each leaf."""
        job, limits = self._anonymizer.job, self._limits
        persons = hashed(block.column(str(job.entity_id)))
        combinations = np.zeros_like(persons)
        if self._keeps_equal_rows:
            for name in job.quasi_identifier_names:
                combinations = mixed(combinations, hashed(block.column(name)))
        if limits is None:
            return PersonRows.of(leaf, persons, combinations, codes)
        kept = persons <= limits[leaf]
        chosen = [each[kept] for each in codes]
        return PersonRows.of(leaf[kept], persons[kept], combinations[kept], chosen)


def _routed(table: pa.Table, leaf: Codes, rows: NDArray[np.int64]) -> Routed:
    """The rows of each leaf that has some, in their order."""
    order, _ = sort_classes([leaf])
    sorted_rows = pc.take(table.combine_chunks(), pa.array(order), boundscheck=False)
    starts = np.cumsum(rows) - rows
    return [
        (int(number), sorted_rows.slice(starts[number], rows[number]))
        for number in np.flatnonzero(rows)
    ]
