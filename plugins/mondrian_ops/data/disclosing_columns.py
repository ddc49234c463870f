"""Disclosing columns: published as they are, they give away a quasi-identifier, or rows.

A column ``c`` gives away a quasi-identifier ``q``

- by *value*: the other rows with a row's ``c`` predict its ``q``, as their most frequent one. The
  measure is the proportional reduction of error (L. A. Goodman and W. H. Kruskal, "Measures of
  association for cross classifications", J. Am. Stat. Assoc. 49, 1954: lambda). The row itself does
  not count, or a column of unique values would determine everything;
- by *order*: ``q`` is a function of ``c``, such as its exponential, which rows with neighbouring
  ``c`` show even where each value is unique (S. Chatterjee, "A new coefficient of correlation", J.
  Am. Stat. Assoc. 116, 2021: xi, here as a share of the greatest possible).

Both are 0 where ``c`` says nothing of ``q``, also where most rows have one ``q``, and 1 where it
says all. ``c`` singles out rows *alone* where few rows, or persons, have the same value.

A :class:`Survey` decides on a random sample. What a sample of the rows cannot rule out, since
values occur more often in all rows, a pass over these decides: it follows up to `DRAWN` values that
random rows have, counts their rows, and keeps up to `KEPT` random ones of each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.data.encoding import as_array, encode_ranks, indexed, value_type
from mondrian_ops.data.finding import Finding
from mondrian_ops.data.persons import LeafPersons, digests
from mondrian_ops.data.profile import Profile
from mondrian_ops.job.job import Job
from mondrian_ops.late_methods import dataclass

NEARLY = 0.9
"""Lambda or xi from which on a column gives a quasi-identifier away. Of two equally frequent
values it is 95 % of the rows; of normally distributed columns, a correlation of 0.994."""

MOST = 0.5
"""The share of rows from which on a column singles out rows."""

RARE = 0.05
"""The share of rows with rare values from which on sets of the values show persons by name."""

ENOUGH = 10
"""Rows with another value of the quasi-identifier than the most frequent one: with fewer there is
little to give away, and a column could do it by chance."""

DRAWN = 2000
"""Sampled rows whose values are followed. The standard error of a share is at most 1.1 points."""

KEPT = 64
"""Rows kept of a value that is followed."""

Codes = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Watch:
    """Values of a ``column`` that a pass over all rows follows.

    ``values`` (values,) are distinct, null among them if it occurs; ``drawn`` (values,) says how
    many sampled rows have each. ``guesses``: by quasi-identifier that it may give away, the share
    of its most frequent value. ``alone``: whether it may single out rows, those whose value
    ``fewer_than`` so many rows (persons) have.
    """

    column: str
    values: pa.Array
    drawn: Sequence[int]
    guesses: Mapping[str, float]
    alone: bool
    fewer_than: int

    def follow(self, batch: pa.RecordBatch, first_row: int, entity_id: str | None) -> Followed:
        """Its values in some rows, of which the first has this number among all rows."""
        column = indexed(batch.column(self.column))
        place = pc.fill_null(pc.index_in(column.values, value_set=self.values), -1)
        value = place.to_numpy()[column.indices].astype(np.int64)
        (rows,) = np.nonzero(value >= 0)
        value, taken = value[rows], pa.array(rows)
        rank = _ranks(rows + first_row)
        person = rank
        if entity_id is not None:
            person = digests(batch.column(entity_id).take(taken))
        kept = {"value": pa.array(value), "rank": pa.array(rank), "person": pa.array(person)}
        for number, name in enumerate(self.guesses):
            kept[str(number)] = as_array(batch.column(name).take(taken))
        persons = LeafPersons.nobody(self.fewer_than)
        if self.alone and entity_id is not None:
            persons = persons.added([LeafPersons(self.fewer_than, value, person)])
        return Followed(np.bincount(value, minlength=len(self.values)), pa.table(kept), persons)

    def findings(self, followed: Followed, by_person: bool) -> Iterator[Finding]:
        """What the column discloses, by its values in all rows."""
        kept = followed.thinned().kept
        value = kept["value"].to_numpy()
        persons = kept["person"].to_numpy() if by_person else None
        if self.alone:
            counted = followed.rows
            if by_person:
                counted = np.bincount(followed.persons.leaf, minlength=len(self.values))
            share = self._mean(counted < self.fewer_than)
            if share >= MOST:
                yield Finding(self.column, "alone", share, fewer_than=self.fewer_than)
        for number, (name, guess) in enumerate(self.guesses.items()):
            of, codes = _once_per_person(value, _codes(kept[str(number)]), persons)
            rows = np.bincount(of)
            right = self._mean(np.bincount(of, _predicted(of, codes)) / rows)
            if _reduction(right, self._mean(rows == 1), guess) >= NEARLY:
                yield Finding(self.column, "value", right, name)

    def _mean(self, of_values: NDArray[Any]) -> float:
        """The mean over the sampled rows."""
        return float(np.average(of_values, weights=self.drawn))


@dataclass(frozen=True)
class Followed:
    """The values of a `Watch` in some rows.

    ``rows`` (values,) counts them. ``kept`` has random ones of each value, by `thinned` the same
    ones whichever way all rows are divided: value, rank, person, and quasi-identifiers by number.
    ``persons`` are counted up to `Watch.fewer_than`, if at all.
    """

    rows: NDArray[np.int64]
    kept: pa.Table
    persons: LeafPersons

    def added(self, other: Followed) -> Followed:
        """The values in these and in other rows."""
        kept = pa.concat_tables([self.kept, other.kept])
        persons = self.persons.added([other.persons])
        followed = Followed(self.rows + other.rows, kept, persons)
        return followed.thinned() if len(kept) > 2 * KEPT * len(self.rows) else followed

    def thinned(self) -> Followed:
        """The same with at most `KEPT` rows of each value, those of least rank."""
        value = self.kept["value"].to_numpy()
        order = np.lexsort((self.kept["rank"].to_numpy(), value))
        value = value[order]
        first = np.arange(len(order)) - np.searchsorted(value, value) < KEPT
        return replace(self, kept=self.kept.take(pa.array(order[first])))

    def to_table(self) -> pa.Table:
        """The rows that are kept, the rest as metadata; `from_table` reads it back."""
        counted = {
            "rows": self.rows.tolist(),
            "enough": self.persons.enough,
            "leaf": self.persons.leaf.tolist(),
            "person": self.persons.person.tolist(),
        }
        kept = self.thinned().kept
        return kept.replace_schema_metadata({"followed": json.dumps(counted)})

    @classmethod
    def from_table(cls, table: pa.Table) -> Self:
        """The values that `to_table` gave."""
        counted = json.loads(table.schema.metadata[b"followed"])
        leaf, person = (np.array(counted[name], np.int64) for name in ("leaf", "person"))
        persons = LeafPersons(counted["enough"], leaf, person)
        return cls(np.array(counted["rows"], np.int64), table.replace_schema_metadata(), persons)


@dataclass(frozen=True)
class Survey:
    """What is found on a sample, and what a pass over all rows has to confirm."""

    findings: Sequence[Finding] = ()
    watched: Sequence[Watch] = ()

    def to_json(self) -> dict[str, Any]:
        """A JSON value, without the values of the watched columns."""
        watched = [
            {name: value for name, value in vars(watch).items() if name != "values"}
            for watch in self.watched
        ]
        return {"findings": [each.to_dict() for each in self.findings], "watched": watched}

    @classmethod
    def from_json(cls, survey: Mapping[str, Any], values: Sequence[pa.Array]) -> Self:
        """The survey that `to_json` described, with the values of each watched column."""
        watched = zip(values, survey["watched"], strict=True)
        return cls(
            [Finding(**each) for each in survey["findings"]],
            [Watch(values=each, **watch) for each, watch in watched],
        )


@cache
def comparable(type_: pa.DataType) -> bool:
    """Whether values of a type can be compared and sorted."""
    try:
        nothing = as_array(pa.array([], value_type(type_)))
        encode_ranks(nothing)
        pc.index_in(nothing, value_set=nothing)
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return False
    return True


def survey(job: Job, raw: Sequence[str], sample: pa.Table, rows: int) -> Survey:
    """Survey the columns ``raw``, which are published as they are, on a random sample of ``rows``.

    The sample has them, the quasi-identifiers, and the ``entity_id`` if there is one.
    """
    if not raw:
        return Survey()
    # In random order, so that rows with equal values tell nothing by their order.
    order = np.random.default_rng(0).permutation(sample.num_rows)
    needed = [*job.quasi_identifier_names, *filter(None, [job.entity_id])]
    codes = {name: _codes(sample[name])[order] for name in needed}
    persons = codes.pop(job.entity_id, None)  # type: ignore[arg-type]
    findings: list[Finding] = []
    watched: list[Watch] = []
    for name in raw:
        of_rows, values = encode_ranks(as_array(sample[name]))
        fewer_than = 2 if name in job.sensitive else job.k
        column = _Sampled(name, of_rows[order], fewer_than, codes, persons)
        findings += column.by_order()
        if sample.num_rows == rows:
            findings += column.in_all_rows()
        else:
            watched += column.to_watch(values)
    return Survey(findings, watched)


@dataclass(frozen=True)
class _Sampled:
    """A column in a sample: its codes, those of the quasi-identifiers and of persons, (rows,)."""

    name: str
    codes: Codes
    fewer_than: int
    quasi: Mapping[str, Codes]
    persons: Codes | None

    def by_order(self) -> Iterator[Finding]:
        """The quasi-identifiers that it gives away by order."""
        for name, codes, others in self._pairs():
            xi = _xi(others[np.argsort(codes, kind="stable")])
            if xi >= NEARLY:
                yield Finding(self.name, "order", xi, name)

    def in_all_rows(self) -> Iterator[Finding]:
        """The other findings, where the sample has all rows."""
        share = self._singled_out()
        if share >= MOST:
            yield Finding(self.name, "alone", share, fewer_than=self.fewer_than)
        for name, codes, others in self._pairs():
            right = float(np.mean(_predicted(codes, others)))
            if _reduction(right, _unique(codes), _guess(others)) >= NEARLY:
                yield Finding(self.name, "value", right, name)

    def to_watch(self, values: pa.Array) -> Iterator[Watch]:
        """What the sample cannot rule out; ``values`` are those of the codes from 1 on.

        A value that is unique in the sample may predict all of its rows. One that predicts them
        with an error of e does so with at most 2e where the sample has only two of them.
        """
        guesses = {}
        for name, codes, others in self._pairs():
            guess = _guess(others)
            most = float(np.mean(_predicted(codes, others))) + _unique(codes)
            slack = _deviations(len(codes) * (1 - guess))
            if _reduction(most, 0.0, guess) >= 2 * NEARLY - 1 - slack:
                guesses[name] = guess
        alone = self._singled_out() >= MOST - _deviations(len(self.codes))
        if alone or guesses:
            codes, drawn = np.unique(self.codes[:DRAWN], return_counts=True)
            with_missing = pa.concat_arrays([pa.nulls(1, values.type), values])
            followed = with_missing.take(pa.array(codes))
            yield Watch(self.name, followed, drawn.tolist(), guesses, alone, self.fewer_than)

    def _pairs(self) -> Iterator[tuple[str, Codes, Codes]]:
        """The quasi-identifiers in which rows differ: codes of the column, and theirs."""
        for name, others in self.quasi.items():
            if round(len(others) * (1 - _guess(others))) >= ENOUGH:
                yield name, *_once_per_person(self.codes, others, self.persons)

    def _singled_out(self) -> float:
        """The share of rows whose value too few rows, or persons, have."""
        codes, _ = _once_per_person(self.codes, np.zeros_like(self.codes), self.persons)
        return float(np.mean(np.bincount(codes)[self.codes] < self.fewer_than))


def confirmed(survey: Survey, followed: Mapping[str, Followed], by_person: bool) -> list[Finding]:
    """All findings, by column; a quasi-identifier that is given away both ways is named once."""
    findings = list(survey.findings)
    for watch in survey.watched:
        findings += watch.findings(followed[watch.column], by_person)
    by_pair = {
        (each.column, each.quasi_identifier or ""): each
        for each in sorted(findings, key=lambda each: each.how)  # order before value
    }
    return [by_pair[pair] for pair in sorted(by_pair)]


def shown_in_sets(profile: Profile, k: int) -> list[Finding]:
    """The quasi-identifiers whose sets show values that few have."""
    return [
        Finding(name, "set", share, fewer_than=k)
        for name, share in profile.rare.items()
        if share >= RARE and name not in profile.prefixes
    ]


def _codes(column: pa.ChunkedArray | pa.Array) -> Codes:
    return encode_ranks(as_array(column))[0]


def _guess(codes: Codes) -> float:
    """The share of the most frequent code."""
    return float(np.bincount(codes).max() / len(codes))


def _unique(codes: Codes) -> float:
    """The share of rows whose code no other one has."""
    return float(np.mean(np.bincount(codes)[codes] == 1))


def _reduction(right: float, unique: float, guess: float) -> float:
    """Lambda: by how much ``right`` predictions, and guesses where a value is unique, reduce the
    error of guessing the most frequent value everywhere."""
    return round((right + unique * guess - guess) / (1 - guess), 9)


def _deviations(rows: float) -> float:
    """Three standard deviations of a share of a random sample, at most."""
    return 1.5 / float(np.sqrt(rows))


def _once_per_person(
    codes: Codes, others: Codes, persons: NDArray[np.integer[Any]] | None
) -> tuple[Codes, Codes]:
    """Pairs of codes, each once for each person; a person's rows would predict each other."""
    if persons is None:
        return codes, others
    triples = np.stack([codes.astype(np.int64), others.astype(np.int64), persons.astype(np.int64)])
    _, rows = np.unique(triples, axis=1, return_index=True)
    rows.sort()
    return codes[rows], others[rows]


def _predicted(codes: Codes, others: Codes) -> NDArray[np.bool_]:
    """Whether the other rows of a row's code have the row's ``others`` most often, (rows,)."""
    size = int(others.max()) + 1
    pairs, place, rows = _distinct(codes.astype(np.int64) * size + others)
    starts = np.flatnonzero(np.diff(pairs // size, prepend=-1))
    group = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(pairs)))
    most = np.maximum.reduceat(rows, starts)[group]
    leads = rows == most
    second = np.maximum.reduceat(np.where(leads, 0, rows), starts)[group]
    only_lead = leads & (np.add.reduceat(leads.astype(np.int64), starts)[group] == 1)
    predicted: NDArray[np.bool_] = rows - 1 > np.where(only_lead, second, most)
    return predicted[place]


def _distinct(
    keys: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The distinct keys in order, the place of each key among them, and the rows of each."""
    if int(keys.max()) > 4 * len(keys):
        distinct, place, rows = np.unique(keys, return_inverse=True, return_counts=True)
        return distinct, place, rows
    counts = np.bincount(keys)
    is_there = counts > 0
    return np.flatnonzero(is_there), (np.cumsum(is_there) - 1)[keys], counts[is_there]


def _xi(codes: Codes) -> float:
    """Chatterjee's xi of codes in the order of another column, as a share of the greatest one."""
    rows = len(codes)
    counts = np.bincount(codes)
    upto = np.cumsum(counts)
    rank = upto[codes]
    at_least = rows - rank + counts[codes]
    scale = rows / (2 * np.sum(at_least * (rows - at_least)))
    steps = np.abs(np.diff(rank)).sum()
    return float((1 - scale * steps) / (1 - scale * (rank.max() - rank.min())))


def _ranks(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """A pseudo-random number for each number of a row (splitmix64)."""
    mixed = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))).view(np.int64)
