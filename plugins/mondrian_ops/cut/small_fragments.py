"""Merging the fragments that cannot be published as files of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.cut.anonymizer import Anonymizer
from mondrian_ops.cut.native.class_criteria import groups_satisfy
from mondrian_ops.cut.person_values import kept, unattainable
from mondrian_ops.cut.plan import Plan
from mondrian_ops.cut.planning import LeafCounts, check_persons, leaf_of
from mondrian_ops.cut.recoding import Recoding
from mondrian_ops.data.frequency_set import FrequencySet, group, packed
from mondrian_ops.errors import UnattainableError
from mondrian_ops.generalize.attributes import Classes


def merge_small(anonymizer: Anonymizer, plan: Plan, counts: LeafCounts) -> Plan:
    """Merge each fragment that breaks a criterion with its neighbours.

    Raises UnattainableError where the dataset as a whole has fewer than k persons, or where they
    cannot have the values that l needs.
    """
    k = anonymizer.job.k
    for persons in counts.persons:
        check_persons(anonymizer.job, persons.within(range(plan.leaves)))
    has_values = _of_persons_values(anonymizer, plan, counts)

    def satisfies(leaves: Sequence[int]) -> bool:
        chosen = list(leaves)
        has_persons = all(persons.within(chosen) >= k for persons in counts.persons)
        return (
            has_persons
            and anonymizer.privacy.holds(
                int(counts.rows[chosen].sum()),
                [column[chosen].sum(axis=0) for column in counts.sensitive],
                anonymizer.domains,
            )
            and has_values(chosen)
        )

    return merge_neighbours(plan, counts.rows, satisfies)


def _of_persons_values(
    anonymizer: Anonymizer, plan: Plan, counts: LeafCounts
) -> Callable[[list[int]], bool]:
    """Whether a fragment of some leaves can keep l among the values of persons, as far as known.

    A fragment that is one class that does is cut into such classes, or published as one. If it is
    not, its classes may still keep l where persons' rows are in several of them. So fragments are
    merged for certain success; where not even the whole dataset is such a class, only those are
    merged that are certain to fail.

    Raises UnattainableError where the dataset is certain to fail.
    """
    values = anonymizer.persons_values
    if values is None or not counts.person_rows:
        return lambda leaves: True
    (rows,) = counts.person_rows
    is_certain = not anonymizer.cut.parts_equal_rows

    def succeeds(leaves: list[int]) -> bool:
        known = rows.within(leaves)
        return kept(known, values.columns(known.codes), values.level)

    def failure(leaves: list[int]) -> str:
        known = rows.within(leaves)
        columns = values.columns(known.codes)
        return unattainable(known, columns, values.level) if is_certain else ""

    whole = list(range(plan.leaves))
    if succeeds(whole):
        return succeeds
    if problem := failure(whole):
        raise UnattainableError(
            f"{problem}{anonymizer.privacy.remedy_for_missing(anonymizer.domains)}"
        )
    return lambda leaves: not failure(leaves)


def merge_neighbours(
    plan: Plan, rows: NDArray[np.int64], satisfies: Callable[[Sequence[int]], bool]
) -> Plan:
    """Merge each fragment that breaks a criterion with its nearest neighbour in the tree.

    ``rows`` (leaves,) counts the real data; ``satisfies`` says whether the rows of some leaves
    together satisfy every criterion.
    """
    paths, known = plan.paths, dict[tuple[int, ...], bool]()
    fragments = [list(leaves) for leaves in plan.fragments]

    def size(leaves: Sequence[int]) -> int:
        return int(rows[list(leaves)].sum())

    fragments.sort(key=size)
    at = 0
    while at < len(fragments) and len(fragments) > 1:
        leaves = tuple(fragments[at])
        if leaves not in known:
            known[leaves] = satisfies(leaves)
        if known[leaves]:
            at += 1
            continue
        weak = fragments.pop(at)
        depth = [max(_shared(paths[a], paths[b]) for a in weak for b in f) for f in fragments]
        near = max(range(len(fragments)), key=lambda i: (depth[i], -size(fragments[i])))
        fragments[near] += weak
        fragments.sort(key=size)
        at = 0
    return Plan(plan.nodes, tuple(sorted(tuple(sorted(leaves)) for leaves in fragments)))


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    """The number of nodes that two paths from the root share."""
    return sum(a == b for a, b in zip(one, other, strict=False))


def merge_split_classes(
    anonymizer: Anonymizer, plan: Plan, frequencies: FrequencySet, recoding: Recoding
) -> tuple[Plan, NDArray[np.int64], int]:
    """Merge fragments until the part of a class that lies in one satisfies every criterion.

    Where recoding is global, classes are counted over the whole release, and the rows
    of one class can lie in several fragments. Whoever knows a person's quasi-identifiers knows
    their fragment, whose condition is in the report: so the part of a class in each file must
    satisfy the criteria, too.

    Fragments are not merged beyond ``partitioning.max_rows`` rows. Returns the plan, the rows of
    each leaf, and the number of classes that still break a criterion within some fragment.
    """
    leaf = leaf_of(anonymizer, plan, frequencies)
    codes = frequencies.codes()
    count = len(anonymizer.trees)
    classes, _ = recoding.classes(list(codes[:count]))
    published = classes.index
    class_of = np.repeat(np.arange(len(classes.starts)), classes.sizes)
    rows = frequencies.rows[published]
    sensitive = np.ascontiguousarray(codes[count:, published])
    criteria = anonymizer.privacy.kernel(anonymizer.counted_domains)
    values = anonymizer.persons_values
    if values is not None and not values.concern(frequencies):
        values = None
    leaf_rows = np.bincount(leaf, frequencies.rows, plan.leaves).astype(np.int64)
    merging = _Merging(plan, leaf_rows)
    most = anonymizer.job.partitioning.max_rows
    while True:
        place = merging.fragment_of[leaf[published]]
        sizes = [len(classes.starts), plan.leaves]
        index, starts = group(packed([class_of, place], sizes))
        parts = Classes(index.astype(np.int32), starts.astype(np.int64))
        holds = groups_satisfy(parts.index, parts.starts, sensitive, rows, criteria)
        if values is not None:
            holds &= values.satisfied(parts, sensitive)
        firsts = index[starts]
        pairs = _partners(class_of[firsts], place[firsts], holds)
        if not merging.merge(pairs, most):
            return merging.plan(), leaf_rows, len(np.unique(class_of[firsts][~holds]))


def _partners(
    classes: NDArray[np.int64], places: NDArray[np.int64], holds: NDArray[np.bool_]
) -> list[tuple[int, int]]:
    """Pairs of a fragment in which a class breaks a criterion and another one that has the class.

    ``classes`` ascend. There is always another one, as a class as a whole satisfies the criteria.
    """
    broken = np.flatnonzero(~holds)
    last = len(classes) - 1
    follows = (broken < last) & (classes[np.minimum(broken + 1, last)] == classes[broken])
    other = np.where(follows, broken + 1, broken - 1)
    pairs = np.unique(np.stack([places[broken], places[other]]), axis=1)
    return [(int(one), int(two)) for one, two in pairs.T]


class _Merging:
    """Fragments while they are merged; a fragment is named by its first leaf."""

    def __init__(self, plan: Plan, leaf_rows: NDArray[np.int64]) -> None:
        self.fragment_of = np.zeros(plan.leaves, np.int64)
        for leaves in plan.fragments:
            self.fragment_of[list(leaves)] = leaves[0]
        self._nodes = plan.nodes
        self._leaf_rows = leaf_rows

    def merge(self, pairs: Iterable[tuple[int, int]], most: int) -> bool:
        """Merge pairs of fragments of up to ``most`` rows together; returns whether any were."""
        merged = False
        for one, two in pairs:
            kept, gone = sorted((int(self.fragment_of[one]), int(self.fragment_of[two])))
            both = (self.fragment_of == kept) | (self.fragment_of == gone)
            if kept != gone and self._leaf_rows[both].sum() <= most:
                self.fragment_of[both] = kept
                merged = True
        return merged

    def plan(self) -> Plan:
        """The plan with these fragments."""
        fragments = [
            tuple(np.flatnonzero(self.fragment_of == first).tolist())
            for first in np.unique(self.fragment_of)
        ]
        return Plan(self._nodes, tuple(fragments))
