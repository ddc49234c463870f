"""The profile of a dataset: spans, domains and counts of sensitive values, collected in one pass.

Each fragment is anonymized alone, but losses and criteria are measured on the whole dataset.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mondrian_ops.data.column_checks import (
    check_countable,
    check_length,
    check_moments,
    check_time_zone,
    ends_of,
)
from mondrian_ops.data.combinations import Combinations, CombinationTally
from mondrian_ops.data.encoding import (
    Indexed,
    as_array,
    encode_known,
    indexed,
    positions,
    value_type,
)
from mondrian_ops.data.generalizations import (
    MOSTLY_RARE,
    generalization_of,
    published_as_prefixes,
)
from mondrian_ops.data.grid_steps import Grids
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.data.named_types import is_text
from mondrian_ops.data.near_values import near_ends
from mondrian_ops.data.persons_per_value import PersonsPerValue
from mondrian_ops.data.sensitive_domain import SensitiveDomain
from mondrian_ops.data.spans import extreme_values, quantiles_of, robust_ends
from mondrian_ops.data.unlisted_values import (
    check_spellings,
    check_text,
    leaves_of,
    no_leaves,
    not_in_order,
)
from mondrian_ops.data.values import example_text, one_spelling, one_value, text_of
from mondrian_ops.job.checks import with_codes
from mondrian_ops.job.job import Job
from mondrian_ops.job.quasi_identifier import QuasiIdentifier
from mondrian_ops.job.widths import Width, widths_of
from mondrian_ops.late_methods import dataclass

Hierarchies = Mapping[str, Hierarchy]
"""Hierarchies read from files, by column."""


@dataclass(frozen=True)
class Profile:
    """The profile of a dataset.

    ``domains`` by column: its distinct values in order, or the ends of its range. ``counts`` by
    column whose values are all in its domain: rows of the missing value, if it occurs, then of each
    value. The texts of sensitive columns are as they are counted. ``constant``: quasi-identifiers
    with one value in all rows, which may be the missing one. ``boundaries`` by interval column:
    those of its series. ``pointed``: the columns whose whole numbers are written ``70.0``.
    ``complete``: those of ``domains`` without a missing value. ``rare`` by column that would be
    published as sets: the share of rows whose value fewer than k rows have, or persons, if there is
    an ``entity_id``. ``prefixes``: those that are published as prefixes for this reason.
    ``quantiles`` by quasi-identifier of numbers or moments: those of a random sample, by
    `spans.quantiles_of`. ``grids``: of the intervals that are rounded.
    """

    rows: int
    types: Mapping[str, pa.DataType]
    domains: Mapping[str, pa.Array]
    counts: Mapping[str, pa.Array]
    constant: tuple[str, ...] = ()
    boundaries: Mapping[str, pa.Array] = field(default_factory=dict)
    pointed: tuple[str, ...] = ()
    complete: tuple[str, ...] = ()
    rare: Mapping[str, float] = field(default_factory=dict)
    prefixes: tuple[str, ...] = ()
    quantiles: Mapping[str, pa.Array] = field(default_factory=dict)
    grids: Grids = field(default_factory=Grids)

    @property
    def robust_ends(self) -> dict[str, pa.Array]:
        """By column with quantiles, the two values that its robust span reaches between."""
        return {name: robust_ends(each, name) for name, each in self.quantiles.items()}

    @property
    def notes(self) -> list[str]:
        """What is to say of extreme values and of rare ones, column by column."""
        noted = (
            extreme_values(name, self.domains[name], each) for name, each in self.quantiles.items()
        )
        rare = (published_as_prefixes(name, self.rare[name]) for name in self.prefixes)
        return [*rare, *self.grids.notes(self.types), *(note for note in noted if note)]

    def resolved(self, job: Job) -> Job:
        """The job with the generalizations that its columns' values decide."""
        quasi_identifiers = (
            replace(quasi, generalization="prefix")
            if quasi.name in self.prefixes
            else self.grids.resolved(quasi)
            for quasi in job.quasi_identifiers
        )
        return replace(job, quasi_identifiers=tuple(quasi_identifiers))

    def with_quantiles(
        self, job: Job, sample: pa.Table, chosen: Mapping[str, str] | None = None
    ) -> Profile:
        """The profile with the quantiles of a random sample of its rows.

        ``chosen`` by column: what it has had since the first release of its dataset. Raises
        InputError on infinite values.
        """
        quantiles = {
            quasi.name: quantiles_of(sample[quasi.name])
            for quasi in job.quasi_identifiers
            if quasi.order is None
            and (
                (quasi.widths and not quasi.named_ladder)
                or generalization_of(quasi, self.types[quasi.name]) == "interval"
            )
        }
        for name in quantiles:
            positions(self.domains[name], name)
        grids = Grids.of(job, self.rows, sample, self.domains, quantiles, chosen)
        kept = dict.fromkeys(self.prefixes, "prefix") | dict(chosen or {})
        prefixes = tuple(name for name in self.rare if kept.get(name) == "prefix")
        return replace(self, quantiles=quantiles, grids=grids, prefixes=prefixes)

    def sensitive(self, job: Job, hierarchies: Hierarchies) -> list[SensitiveDomain]:
        """The sensitive columns of ``job``; a hierarchy gives the order of its column's values."""
        widths, of_codes = widths_of(job.l_width), with_codes(job)
        domains = {
            name: self._sensitive(name, hierarchies.get(name), widths.get(name))
            for name in job.sensitive
        }
        return [replace(domain, of_codes=name in of_codes) for name, domain in domains.items()]

    def persons(self, job: Job) -> SensitiveDomain:
        """The persons of the whole dataset, where recoding is global."""
        return replace(self._sensitive(str(job.entity_id), None), as_written=True)

    def _sensitive(
        self, name: str, hierarchy: Hierarchy | None, width: Width | None = None
    ) -> SensitiveDomain:
        values, counts = self.domains[name], self.counts[name].to_numpy()
        if hierarchy is None:
            ends = None
            if width is not None:
                ends = near_ends(values, width, missing=len(counts) > len(values))
            return SensitiveDomain(name, values, counts, near_end=ends)
        leaves = leaves_of(hierarchy, True)
        pointed = name in self.pointed
        place, _ = encode_known(indexed(text_of(values, pointed)), leaves)
        missing = len(counts) - len(values)
        spread = np.zeros(len(leaves) + missing, np.int64)
        spread[:missing] = counts[:missing]
        np.add.at(spread, place.astype(np.int64) - 1 + missing, counts[missing:])
        return SensitiveDomain(name, leaves, spread, pointed=pointed)

    def to_table(self) -> pa.Table:
        """One row of lists, for Arrow IPC; `from_table` reads it back."""
        columns = {f"domain:{name}": as_list(d) for name, d in self.domains.items()}
        columns |= {f"count:{name}": as_list(c) for name, c in self.counts.items()}
        columns |= {f"boundaries:{name}": as_list(b) for name, b in self.boundaries.items()}
        columns |= {f"quantiles:{name}": as_list(q) for name, q in self.quantiles.items()}
        meta = {
            "rows": str(self.rows),
            "types": pa.schema(self.types).serialize().to_pybytes().hex(),
            "constant": json.dumps(self.constant),
            "pointed": json.dumps(self.pointed),
            "complete": json.dumps(self.complete),
            "rare": json.dumps(self.rare),
            "prefixes": json.dumps(self.prefixes),
            "grids": json.dumps(vars(self.grids)),
        }
        return pa.table(columns).replace_schema_metadata(meta)

    @classmethod
    def from_table(cls, table: pa.Table) -> Profile:
        """The profile that `to_table` gave."""
        meta = table.schema.metadata
        schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(meta[b"types"].decode())))
        return cls(
            rows=int(meta[b"rows"]),
            types={field.name: field.type for field in schema},
            domains=with_prefix(table, "domain:"),
            counts=with_prefix(table, "count:"),
            constant=tuple(json.loads(meta[b"constant"])),
            pointed=tuple(json.loads(meta[b"pointed"])),
            complete=tuple(json.loads(meta[b"complete"])),
            rare=json.loads(meta[b"rare"]),
            prefixes=tuple(json.loads(meta[b"prefixes"])),
            grids=Grids(**json.loads(meta[b"grids"])),
            boundaries=with_prefix(table, "boundaries:"),
            quantiles=with_prefix(table, "quantiles:"),
        )


@dataclass(frozen=True)
class PartialProfile:
    """The profile of some rows: the ends or the values of each column, or their combinations.

    ``ends`` by column, (2,) each; ``missing``: the columns among these with missing values;
    ``counted`` by column: its values, and the rows of each. ``persons`` by column that may be
    published as sets: those of its values, if the job has an ``entity_id``.
    """

    rows: int
    ends: Mapping[str, pa.Array]
    counted: Mapping[str, tuple[pa.Array, pa.Array]]
    combinations: Combinations | None = None
    missing: frozenset[str] = frozenset()
    persons: Mapping[str, PersonsPerValue] = field(default_factory=dict)

    def to_table(self) -> pa.Table:
        """One row of lists, for Arrow IPC; `from_table` reads it back."""
        columns = {f"ends:{name}": ends for name, ends in self.ends.items()}
        for name, (values, counts) in self.counted.items():
            columns |= {f"values:{name}": values, f"counts:{name}": counts}
        if self.combinations is not None:
            combined = self.combinations.to_columns()
            columns |= {f"combined:{name}": each for name, each in combined.items()}
        for name, each in self.persons.items():
            columns |= {f"having:{name}": each.values, f"persons:{name}": pa.array(each.persons)}
        lists = {name: as_list(each) for name, each in columns.items()}
        meta = {"rows": str(self.rows), "missing": json.dumps(sorted(self.missing))}
        meta |= {"enough": str(next((each.enough for each in self.persons.values()), 0))}
        return pa.table(lists).replace_schema_metadata(meta)

    @classmethod
    def from_table(cls, table: pa.Table) -> PartialProfile:
        """The profile that `to_table` gave."""
        values, counts = with_prefix(table, "values:"), with_prefix(table, "counts:")
        combined = with_prefix(table, "combined:")
        having, persons = with_prefix(table, "having:"), with_prefix(table, "persons:")
        enough = int(table.schema.metadata[b"enough"])
        return cls(
            int(table.schema.metadata[b"rows"]),
            with_prefix(table, "ends:"),
            {name: (values[name], counts[name]) for name in values},
            Combinations.from_columns(combined) if combined else None,
            frozenset(json.loads(table.schema.metadata[b"missing"])),
            {
                name: PersonsPerValue(enough, having[name], persons[name].to_numpy())
                for name in having
            },
        )


class Profiler:
    """Collects a `Profile` from batches; memory follows the distinct values, not the rows."""

    def __init__(
        self, job: Job, schema: pa.Schema, hierarchies: Hierarchies, pointed: Sequence[str] = ()
    ) -> None:
        """``pointed``: the columns whose whole numbers are written ``70.0``."""
        self._hierarchies = hierarchies
        self._pointed = tuple(pointed)
        self._rows, self._k = 0, job.k
        self._types = {name: schema.field(name).type for name in _domain_columns(job)}
        of_codes = with_codes(job)
        self._sensitive = {n: one_spelling if n in of_codes else one_value for n in job.sensitive}
        for name in job.sensitive:
            check_countable("sensitive", name, self._types[name])
            if name in hierarchies:
                check_spellings(name, hierarchies[name])
        if job.entity_id is not None:
            check_countable("entity_id", job.entity_id, schema.field(job.entity_id).type)
        for name, type_ in self._types.items():
            check_time_zone(name, type_)
        self._quasi = {quasi.name: quasi for quasi in job.quasi_identifiers}
        self._how = {
            name: generalization_of(quasi, self._types[name]) for name, quasi in self._quasi.items()
        }
        self._ranges: dict[str, list[pa.Array]] = {
            n: []
            for n, how in self._how.items()
            if how == "interval" and not job.recodes_globally and self._quasi[n].order is None
        }
        # Algorithms that recode whole columns need only the combinations of values. This pass
        # counts them, and the counts of single columns follow from them.
        self._combined = CombinationTally() if job.recodes_globally else None
        self._missing: set[str] = set()
        counted = [name for name in self._types if name not in self._ranges]
        self._tallies = {name: _Tally() for name in counted if self._combined is None}
        self._entity_id = job.entity_id
        self._persons: dict[str, list[PersonsPerValue]] = {
            name: []
            for name in self._tallies
            if job.entity_id is not None and self._how.get(name) == "set"
        }

    def profile(self, batch: pa.RecordBatch | pa.Table) -> PartialProfile:
        """The profile of rows with at least `profiled_columns`; several threads may call it."""
        arrays = {name: as_array(batch.column(name)) for name in self._ranges}
        for name, array in arrays.items():
            check_moments(name, array)
        ends = {name: ends_of(array) for name, array in arrays.items()}
        missing = frozenset(name for name, array in arrays.items() if array.null_count)
        columns = {
            name: self._comparable(name, batch.column(name))
            for name in self._types
            if name not in ends
        }
        if self._combined is not None:
            return PartialProfile(batch.num_rows, ends, {}, Combinations.of(columns))
        counted = {name: each.counted() for name, each in columns.items()}
        persons = {}
        if self._persons:
            sets = {name: columns[name] for name in self._persons}
            persons = PersonsPerValue.of_each(self._k, sets, batch.column(self._entity_id))
        return PartialProfile(batch.num_rows, ends, counted, missing=missing, persons=persons)

    def merge(self, part: PartialProfile) -> None:
        """Add the profile of some rows."""
        self._rows += part.rows
        self._missing |= part.missing
        for name, ends in self._ranges.items():
            ends.append(part.ends[name])
            if len(ends) > 64:
                ends[:] = [ends_of(pa.concat_arrays(ends))]
        for name, tally in self._tallies.items():
            tally.add(*part.counted[name])
        for name, persons in self._persons.items():
            persons.append(part.persons[name])
            if len(persons) > 64:
                persons[:] = [PersonsPerValue.joined(persons)]
        if self._combined is not None and part.combinations is not None:
            self._combined.add(part.combinations)

    def add(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Add some rows with at least `profiled_columns`."""
        self.merge(self.profile(batch))

    def so_far(self) -> PartialProfile:
        """The profile of all rows so far."""
        ends = {name: ends_of(pa.concat_arrays(each)) for name, each in self._ranges.items()}
        counted = {name: tally.so_far() for name, tally in self._tallies.items()}
        missing = frozenset(self._missing)
        persons = {name: PersonsPerValue.joined(each) for name, each in self._persons.items()}
        return PartialProfile(self._rows, ends, counted, self.combinations, missing, persons)

    @property
    def combinations(self) -> Combinations | None:
        """The combinations of the columns' values, where recoding is global."""
        return self._combined.result() if self._combined is not None and self._rows else None

    def finish(self) -> Profile:
        """The profile; raises InputError or HierarchyError where the dataset cannot be coded."""
        domains: dict[str, pa.Array] = {}
        counts: dict[str, pa.Array] = {}
        distinct: dict[str, int] = {}
        missing = {*self._missing}
        rare: dict[str, float] = {}
        for name, ends in self._ranges.items():
            domains[name] = ends_of(pa.concat_arrays(ends)).drop_null()
            positions(domains[name], name)
            distinct[name] = _at_least(domains[name]) + (name in self._missing)
        for name, tally in self._finished_tallies().items():
            domains[name], occurrences = tally.finish(self._types[name])
            check_text(name, domains[name])
            if name in self._quasi and self._quasi[name].order is not None:
                self._check_order(self._quasi[name], domains[name], occurrences)
            hierarchy = self._hierarchies.get(name)
            if hierarchy is not None:
                leaves = leaves_of(hierarchy, name in self._sensitive)
                self._check_leaves(name, domains[name], occurrences, leaves)
            distinct[name] = len(occurrences)
            if len(occurrences) > len(domains[name]):
                missing.add(name)
            counts[name] = occurrences
            if name not in self._quasi:
                continue
            if self._how[name] == "set" and self._combined is None and self._rows:
                rare[name] = self._rare(name, domains[name], occurrences)
        constant = tuple(name for name in self._quasi if distinct[name] == 1)
        complete = tuple(name for name in domains if name not in missing)
        return Profile(
            self._rows,
            self._types,
            domains,
            counts,
            constant,
            pointed=self._pointed,
            complete=complete,
            rare=rare,
            prefixes=tuple(name for name, share in rare.items() if self._is_by_prefix(name, share)),
        )

    def _rare(self, name: str, values: pa.Array, rows: pa.Array) -> float:
        """The share of rows whose value fewer than k rows, or persons, have."""
        holders = rows
        if name in self._persons:
            missing = pa.nulls(len(rows) - len(values), values.type)
            persons = PersonsPerValue.joined(self._persons[name])
            holders = pa.array(persons.count(pa.concat_arrays([missing, values])))
        few = pc.less(holders, self._k)
        return (pc.sum(rows.filter(few)).as_py() or 0) / self._rows

    def _is_by_prefix(self, name: str, rare: float) -> bool:
        """Whether sets, which the job does not ask for, would show the values of most rows."""
        unnamed = self._quasi[name].generalization is None
        return unnamed and rare >= MOSTLY_RARE and is_text(value_type(self._types[name]))

    def _check_order(self, quasi: QuasiIdentifier, values: pa.Array, counts: pa.Array) -> None:
        listed = pa.array(quasi.order, values.type)
        unknown = pc.invert(pc.is_in(values, value_set=listed))
        if len(values) and pc.any(unknown).as_py():
            rows = pc.sum(counts.slice(len(counts) - len(values)).filter(unknown)).as_py()
            raise not_in_order(quasi.name, rows)

    def _check_leaves(
        self, name: str, values: pa.Array, counts: pa.Array, leaves: pa.Array
    ) -> None:
        known = pc.is_in(values, value_set=leaves)
        if pc.all(known).as_py() in (True, None):
            return
        type_, missing = self._types[name], len(counts) - len(values)
        rows = pc.sum(pc.filter(counts.slice(missing), pc.invert(known))).as_py()
        distinct = pc.sum(pc.invert(known)).as_py()
        form = example_text(type_, name in self._pointed)
        empty = pc.any(pc.equal(values, "").filter(pc.invert(known))).as_py()
        raise no_leaves(
            name, type_, form, self._hierarchies[name], rows, distinct, empty=bool(empty)
        )

    def _finished_tallies(self) -> dict[str, _Tally]:
        """The counts of single columns."""
        combinations = self.combinations
        if combinations is None:
            return self._tallies
        tallies = {name: _Tally() for name in combinations.values}
        for name, tally in tallies.items():
            tally.add(*combinations.counted(name))
        return tallies

    def _comparable(self, name: str, column: pa.Array) -> Indexed:
        by_value = indexed(column)
        if name in self._quasi:
            check_moments(name, by_value.values)
            check_length(name, by_value.values)
        if self._how.get(name) == "prefix" or name in self._hierarchies:
            by_value = by_value.mapped(lambda each: text_of(each, name in self._pointed))
        if name in self._sensitive:
            check_text(name, by_value.values)
            by_value = by_value.mapped(self._sensitive[name])
        return by_value


class _Tally:
    """Distinct values of a column and how often each occurs."""

    def __init__(self) -> None:
        self._parts: list[pa.Table] = []
        self._pending = 0

    def add(self, values: pa.Array, counts: pa.Array) -> None:
        self._parts.append(pa.table({"value": values, "count": counts}))
        self._pending += len(values)
        if len(self._parts) > 64 and self._pending > 4 * self._parts[0].num_rows:
            self._merge()

    def _merge(self) -> None:
        merged = pa.concat_tables(self._parts)
        listed = as_array(merged["value"]).dictionary_encode(null_encoding="encode")
        counts = np.zeros(len(listed.dictionary), np.int64)
        np.add.at(counts, listed.indices.to_numpy(), merged["count"].to_numpy())
        self._parts = [pa.table({"value": listed.dictionary, "count": counts})]
        self._pending = len(counts)

    def so_far(self) -> tuple[pa.Array, pa.Array]:
        """Values in no order, and occurrences."""
        self._merge()
        table = self._parts[0].combine_chunks()
        return as_array(table["value"]), as_array(table["count"])

    def finish(self, type_: pa.DataType) -> tuple[pa.Array, pa.Array]:
        """The present values in order; the rows of the missing value, if any, then of each."""
        if not self._parts:
            return pa.array([], type_), pa.array([], pa.int64())
        values, counts = self.so_far()
        order = pc.array_sort_indices(values, null_placement="at_start")
        values = values.take(order)
        return values.drop_null(), counts.take(order)


def profiled_columns(job: Job) -> list[str]:
    """The columns to read for a profile and a sample.

    They are the quasi-identifiers, the sensitive columns and the ``entity_id``.
    """
    persons = [] if job.entity_id is None else [job.entity_id]
    return [*job.quasi_identifier_names, *job.sensitive, *persons]


def _domain_columns(job: Job) -> list[str]:
    """The columns whose domain is collected.

    There may be as many persons as rows, so the ``entity_id`` is among them only where combinations
    of all columns are counted.
    """
    columns = profiled_columns(job)
    return [name for name in columns if name != job.entity_id or job.recodes_globally]


def as_list(values: pa.Array) -> pa.Array:
    """The values as one list."""
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


def with_prefix(table: pa.Table, prefix: str) -> dict[str, pa.Array]:
    """The lists of the columns with a prefix, by the rest of their names."""
    return {
        name.removeprefix(prefix): table[name].chunk(0).flatten()
        for name in table.column_names
        if name.startswith(prefix)
    }


def _at_least(ends: pa.Array) -> int:
    """A lower bound, 0, 1 or 2, of the number of distinct values between two ends."""
    return len(ends) and (1 if ends[0].equals(ends[1]) else 2)
