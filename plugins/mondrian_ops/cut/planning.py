"""From a profile and a sample to a draft: the policy of the cuts, the plan of the fragments."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.cut import partitioning
from mondrian_ops.cut.algorithms.mondrian import CutPolicy, loss
from mondrian_ops.cut.anonymizer import Anonymizer
from mondrian_ops.cut.boundary_fitting import NightBoundaries
from mondrian_ops.cut.criteria import KAnonymity, Privacy
from mondrian_ops.cut.cut_policy import choose_policy, pilot_k, policy_of
from mondrian_ops.cut.plan import Plan
from mondrian_ops.cut.routing import Router
from mondrian_ops.cut.shown_conditions import Disclosure
from mondrian_ops.data.disclosing_columns import Followed, Survey
from mondrian_ops.data.encoding import Codes
from mondrian_ops.data.frequency_set import FrequencySet
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.data.person_rows import PersonRows
from mondrian_ops.data.persons import LeafPersons
from mondrian_ops.data.profile import Profile, as_list, with_prefix
from mondrian_ops.errors import InputError, UnattainableError
from mondrian_ops.job.job import Job
from mondrian_ops.late_methods import dataclass

Hierarchies = Mapping[str, Hierarchy]

PILOT_ROWS = 20_000
"""Rows on which cut policies are compared."""

# With so many rows of the sample in it, the size of a fragment is estimated to some 5 %: a margin
# of four times that keeps nearly all fragments below `max_rows`.
_ROWS_PER_LIMIT = 400
_ROOM = 0.8

_VALUE_S = 4e-8  # seconds that a core takes to read, code, count and write a value


@dataclass(frozen=True)
class Slots:
    """Room for ``most`` fragments, each of which takes ``start_s`` seconds to start."""

    most: int = 1
    start_s: float = 2.0


@dataclass(frozen=True)
class Draft:
    """The decisions before the whole dataset is counted against the plan.

    ``cut`` describes the cut policy of all fragments. ``fragments`` is the number to aim at and, if
    the job leaves it open, ``reason`` says why; ``sample_rows`` is the size of the sample that the
    plan was made from. ``survey``: of the columns that are published as they are. ``boundaries``:
    of a night whose series has stable ones.
    """

    profile: Profile
    cut: dict[str, Any]
    plan: Plan
    sample_rows: int
    fragments: int
    reason: str
    survey: Survey = Survey()
    boundaries: NightBoundaries | None = None

    def anonymizer(self, job: Job, hierarchies: Hierarchies) -> Anonymizer:
        """The anonymizer of the dataset's rows."""
        return Anonymizer(job, self.profile, hierarchies, policy_of(self.cut))

    def to_table(self) -> pa.Table:
        """The profile's table, the rest as its metadata; `from_table` reads it back."""
        table = self.profile.to_table()
        decided = {
            "cut": self.cut,
            "plan": self.plan.to_json(),
            "sample_rows": self.sample_rows,
            "fragments": self.fragments,
            "reason": self.reason,
            "survey": self.survey.to_json(),
            "boundaries": None if self.boundaries is None else self.boundaries.to_json(),
        }
        for number, watch in enumerate(self.survey.watched):
            table = table.append_column(f"watched:{number}", as_list(watch.values))
        metadata = {**table.schema.metadata, b"draft": json.dumps(decided, allow_nan=False)}
        return table.replace_schema_metadata(metadata)

    @classmethod
    def from_table(cls, table: pa.Table) -> Draft:
        """The draft that `to_table` wrote."""
        decided = json.loads(table.schema.metadata[b"draft"])
        plan = Plan.from_json(decided.pop("plan"))
        watched = list(with_prefix(table, "watched:").values())
        survey = Survey.from_json(decided.pop("survey"), watched)
        boundaries = decided.pop("boundaries")
        return cls(
            profile=Profile.from_table(table),
            plan=plan,
            survey=survey,
            boundaries=None if boundaries is None else NightBoundaries.from_json(boundaries),
            **decided,
        )


@dataclass(frozen=True)
class LeafCounts:
    """Counts of the real data in each leaf of a plan.

    ``rows`` (leaves,) int64; ``sensitive``: one (leaves, codes) int64 array per sensitive column.
    ``persons`` has one entry, the persons up to k, if the job counts them, else none. ``cells``
    (cells,) int64 counts rows in the cells of the plan's `Router`, numbered through all columns;
    ``cell_persons`` has the persons of the cells, likewise. ``followed`` has the values of
    the columns that the survey watches, by column. ``person_rows`` has one entry where l counts
    the values of persons.
    """

    rows: NDArray[np.int64]
    sensitive: Sequence[NDArray[np.int64]]
    persons: list[LeafPersons] = field(default_factory=list)
    cells: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    cell_persons: list[LeafPersons] = field(default_factory=list)
    followed: dict[str, Followed] = field(default_factory=dict)
    person_rows: list[PersonRows] = field(default_factory=list)

    @classmethod
    def zeros(cls, router: Router, leaves: int, anonymizer: Anonymizer) -> LeafCounts:
        """No rows."""
        k, counts_persons = anonymizer.job.k, anonymizer.job.entity_id is not None
        counts_rows = anonymizer.counts_person_rows(leaves)
        of_values = [PersonRows(len(anonymizer.domains))] if counts_rows else []
        return cls(
            np.zeros(leaves, np.int64),
            [np.zeros((leaves, len(domain.counts)), np.int64) for domain in anonymizer.domains],
            persons=[LeafPersons.nobody(k)] if counts_persons else [],
            cells=np.zeros(router.cells, np.int64),
            cell_persons=[LeafPersons.nobody(k)] if counts_persons else [],
            person_rows=of_values,
        )

    def add(self, other: LeafCounts) -> None:
        """Add the counts of another part of the dataset."""
        self.rows[:] += other.rows
        for total, part in zip(self.sensitive, other.sensitive, strict=True):
            total += part
        self.cells[:] += other.cells
        self.add_persons(other.persons, other.cell_persons)
        self.add_followed(other.followed)
        for rows, of_part in zip(self.person_rows, other.person_rows, strict=True):
            rows.add(of_part)

    def add_followed(self, others: Mapping[str, Followed]) -> None:
        """Add the values of another part that are followed."""
        for name, part in others.items():
            if name in self.followed:
                part = self.followed[name].added(part)
            self.followed[name] = part

    def add_persons(
        self, in_leaves: Sequence[LeafPersons], in_cells: Sequence[LeafPersons]
    ) -> None:
        """Add the persons of another part."""
        self.persons[:] = [persons.added(in_leaves) for persons in self.persons]
        self.cell_persons[:] = [persons.added(in_cells) for persons in self.cell_persons]


def sample_size(job: Job, rows: int) -> int:
    """Rows of the sample, by the job's rate, ``min_sample`` and what ``max_rows`` needs."""
    options = job.partitioning
    size = max(1, round(options.sample * rows), options.min_sample)
    if options.max_rows < rows:
        size = max(size, -(-rows * _ROWS_PER_LIMIT // options.max_rows))
    return rows if options.sample >= 1.0 else min(size, rows)


def chosen_rows(rows: int, size: int, seed: int) -> NDArray[np.int64]:
    """Ascending numbers of ``size`` random rows out of ``rows``; of all if they are fewer."""
    if size >= rows:
        return np.arange(rows)
    generator = np.random.default_rng(seed)
    return np.sort(generator.choice(rows, size, replace=False, shuffle=False))


def draft(
    job: Job,
    profile: Profile,
    hierarchies: Hierarchies,
    sample: pa.Table,
    pilot: pa.Table,
    slots: Slots = Slots(),  # noqa: B008 - frozen
) -> Draft:
    """Choose the cut policy on the ``pilot`` rows and plan the fragments on the ``sample``.

    ``slots`` is the room for fragments, if the job leaves their number open.

    Raises PrivacyError where the dataset as a whole breaks a criterion, InputError where no
    quasi-identifier distinguishes any two rows, and JobError where the column has too few values
    for the quantiles.
    """
    cut = choose_policy(job, profile, hierarchies, pilot)
    anonymizer = Anonymizer(job, profile, hierarchies, policy_of(cut))
    _check_attainable(anonymizer)
    fragments, reason = choose_fragments(job, profile.rows, cut["seconds"], slots)
    plan = _planned(anonymizer, sample, pilot, fragments)
    return Draft(profile, cut, plan, sample.num_rows, fragments, reason)


def choose_fragments(job: Job, rows: int, seconds: float, slots: Slots) -> tuple[int, str]:
    """The number of fragments to aim at and, if the job leaves it open, the reason.

    There are as many as ``slots`` has room for, if the work of each takes at least as long as its
    start. Cutting takes ``seconds`` of one core.
    """
    requested = job.partitioning.fragments
    if requested != "auto":
        return requested, ""
    values = rows * (len(job.quasi_identifiers) + len(job.sensitive))
    work = seconds + values * _VALUE_S
    fragments = max(1, min(slots.most, int(work / slots.start_s)))
    how = f"auto: about {work:.1f} s of work for one core, at least {slots.start_s:g} s per task"
    return fragments, f"{how}, at most {slots.most} of them"


def _planned(anonymizer: Anonymizer, sample: pa.Table, pilot: pa.Table, requested: int) -> Plan:
    """The plan of the fragments, by the sample."""
    options, rows = anonymizer.job.partitioning, anonymizer.profile.rows
    whole = sample.num_rows == rows
    fragments, most = requested, rows
    if options.max_rows < rows:
        most = options.max_rows if whole else round(_ROOM * options.max_rows)
        fragments = max(fragments, -(-rows // most))
    if fragments == 1:
        return partitioning.single()
    if options.strategy == "quantile":
        coded = anonymizer.encode(sample, Privacy(KAnonymity(1), ()))
        return partitioning.quantile(coded, anonymizer.attributes, fragments)
    most = max(1, round(most * sample.num_rows / rows))
    if whole and not anonymizer.job.relaxed:
        coded = anonymizer.encode(sample)
        return partitioning.multidimensional(
            coded, anonymizer.attributes, requested, anonymizer.cut, most
        )
    return _sampled_plan(anonymizer, sample, pilot, requested, fragments, most)


def _sampled_plan(
    anonymizer: Anonymizer,
    sample: pa.Table,
    pilot: pa.Table,
    requested: int,
    fragments: int,
    most: int,
) -> Plan:
    """The plan by a sample: fragments of like size or, where the ``pilot`` loses less, by gain."""
    job, rows = anonymizer.job, anonymizer.profile.rows

    def cut_by(greedy: str, least: int) -> Plan:
        coded = anonymizer.encode(sample, Privacy(KAnonymity(max(1, least)), ()))
        return partitioning.multidimensional(
            coded, anonymizer.attributes, requested, CutPolicy(greedy), most
        )

    least = round(anonymizer.privacy.min_class_size * sample.num_rows / rows)
    balanced = cut_by("balanced", least)
    cut = anonymizer.cut
    if not isinstance(cut, CutPolicy) or cut.greedy not in ("gain", "widest gain"):
        return balanced
    if job.partitioning.max_rows < rows:
        return balanced
    weighed = cut_by(cut.greedy, sample.num_rows // (2 * fragments))
    return min(balanced, weighed, key=lambda plan: _loss_within(anonymizer, plan, pilot))


def _loss_within(anonymizer: Anonymizer, plan: Plan, pilot: pa.Table) -> float:
    """The loss of the ``pilot`` rows when the fragments of a plan are cut by gain."""
    k = pilot_k(anonymizer.job, anonymizer.profile, pilot)
    coded = anonymizer.encode(pilot, Privacy(KAnonymity(k), ()))
    leaf = Router(plan, anonymizer.orders).route(pilot)
    parts = (coded.taken(np.flatnonzero(leaf == number)) for number in range(plan.leaves))
    return sum(loss(part, CutPolicy("gain")) for part in parts if part.count)


def leaf_of(anonymizer: Anonymizer, plan: Plan, frequencies: FrequencySet) -> NDArray[np.int64]:
    """The leaf of each combination of codes, (combinations,)."""
    router = Router(plan, anonymizer.orders)
    return _routed(router, anonymizer, plan, frequencies)[1]


def _routed(
    router: Router, anonymizer: Anonymizer, plan: Plan, frequencies: FrequencySet
) -> tuple[Codes, NDArray[np.int64]]:
    """The places, (columns, combinations), and the leaf, (combinations,), of each combination."""
    columns = {
        tree.name: pa.DictionaryArray.from_arrays(
            pa.array(codes.astype(np.int32) - 1, mask=codes == 0), tree.greatest
        )
        for tree, codes in zip(anonymizer.trees, frequencies.codes(), strict=False)
        if tree.name in plan.columns
    }
    places = router.place(pa.table(columns))
    if not columns:  # such a table has no rows
        return places, np.zeros(len(frequencies.rows), np.int64)
    return places, router.leaves(places).astype(np.int64)


def known_counts(
    anonymizer: Anonymizer, plan: Plan, frequencies: Callable[[], FrequencySet]
) -> LeafCounts | None:
    """The counts of a plan's leaves, if the profile determines them; None: rows must be read.

    ``frequencies`` is called only where recoding is global; it returns the counts of
    the whole dataset.
    """
    if plan.leaves == 1 and anonymizer.job.entity_id is None:
        return LeafCounts(
            np.array([anonymizer.profile.rows]),
            [domain.counts[None, :].copy() for domain in anonymizer.domains],
        )
    return counts_of(anonymizer, plan, frequencies()) if anonymizer.job.recodes_globally else None


def counts_of(anonymizer: Anonymizer, plan: Plan, frequencies: FrequencySet) -> LeafCounts:
    """The counts of a plan's leaves, by the ``frequencies`` of the whole dataset."""
    router = Router(plan, anonymizer.orders)
    counts = LeafCounts.zeros(router, plan.leaves, anonymizer)
    places, leaf = _routed(router, anonymizer, plan, frequencies)
    np.add.at(counts.rows, leaf, frequencies.rows)
    counts.cells[:] = router.count(places, frequencies.rows)
    counted = frequencies.codes(len(anonymizer.attributes))
    for column, codes in zip(counts.sensitive, counted, strict=False):  # persons come last
        np.add.at(column, (leaf, codes), frequencies.rows)
    if counts.persons:
        counts.add_persons(
            *persons_met(router, leaf, places, anonymizer.job.k, pa.array(counted[-1]))
        )
    return counts


def persons_met(
    router: Router, leaf: NDArray[np.integer[Any]], places: Codes, k: int, column: pa.Array
) -> tuple[list[LeafPersons], list[LeafPersons]]:
    """The persons of some rows, up to k, in each leaf and in each cell.

    ``leaf`` (rows,) and ``places`` (columns, rows) are from ``router``; ``column`` has the persons.
    """
    leaves = [leaf.astype(np.int64), *router.numbered(places)]
    in_leaves, *in_cells = LeafPersons.of_each(k, leaves, column)
    return [in_leaves], in_cells


def disclosure(anonymizer: Anonymizer, plan: Plan, counts: LeafCounts) -> Disclosure:
    """What of the plan's cuts may be shown, by counts of the real data."""
    persons = counts.cell_persons[0] if counts.cell_persons else None
    return Disclosure.of(plan, anonymizer.orders, anonymizer.job.k, counts.cells, persons)


def check_persons(job: Job, persons: int) -> None:
    """Refuse a dataset of fewer than k persons, however many rows they have."""
    if persons < job.k:
        raise UnattainableError(
            f"entity_id: the input has {persons} person(s) by column {job.entity_id!r}, fewer than "
            f"k = {job.k}; lower k or wait for more persons"
        )


def _check_distinguishing(profile: Profile, job: Job) -> None:
    """Refuse quasi-identifiers that are all constant: any k is reached, but protects nobody.

    In a series a small night may have one value, and they still distinguish people of all nights.
    """
    if job.series is not None or len(profile.constant) < len(job.quasi_identifiers):
        return
    listed = ", ".join(map(repr, profile.constant))
    raise InputError(
        f"quasi_identifiers: each of them ({listed}) has the same value in all rows, so they "
        "distinguish nobody and k protects nothing; name the columns that others may know about a "
        "person"
    )


def _check_attainable(anonymizer: Anonymizer) -> None:
    """Refuse criteria that the dataset as a whole breaks: no partition of it can satisfy them.

    Raises PrivacyError, or InputError where no quasi-identifier distinguishes any two rows.
    """
    job, privacy, domains = anonymizer.job, anonymizer.privacy, anonymizer.domains
    _check_distinguishing(anonymizer.profile, job)
    remedy = privacy.remedy_for_missing(domains)
    for domain in domains:
        distinct = domain.distinct + (domain.missing and job.missing_sensitive == "value")
        if job.l is not None and distinct < job.l:
            raise UnattainableError(
                f"l: the sensitive column {domain.name!r} has {distinct} distinct value(s), "
                f"fewer than l = {job.l:g}; lower l or choose another column{remedy}"
            )
    if job.recodes_globally and job.suppressible(anonymizer.profile.rows):
        return  # without some of its rows it may satisfy them
    domain_of = {domain.name: domain for domain in domains}
    for criterion in privacy.criteria:
        if reason := criterion.unattainable(domain_of[criterion.column]):
            raise UnattainableError(f"{reason}{remedy}")
    counts = [domain.counts for domain in domains]
    if not privacy.holds(anonymizer.profile.rows, counts, domains):
        raise UnattainableError(
            f"all rows as one equivalence class do not satisfy {'; '.join(privacy.describe())}, so "
            f"no release can; lower k or l, or raise t{remedy}"
        )
