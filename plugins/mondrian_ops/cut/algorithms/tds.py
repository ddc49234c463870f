"""Two-phase top-down specialization (Zhang, Yang, Liu and Chen, TPDS 2014).

Every attribute is generalized by a cut through its hierarchy, the same for all rows. From the roots
on, the valid specialization of greatest IGPL is performed until none is left. The first phase does
so on random parts of the dataset, each by itself, with a larger k; the second phase continues from
the most specific level that all parts allow. See docs/algorithms.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.cut.criteria import Privacy
from mondrian_ops.cut.native import top_down
from mondrian_ops.cut.person_values import PersonsValues
from mondrian_ops.cut.steps_for_persons import CheckedSteps
from mondrian_ops.data.frequency_set import FrequencySet, places
from mondrian_ops.data.hierarchy import CodedHierarchy, Nodes
from mondrian_ops.data.sensitive_domain import SensitiveDomain
from mondrian_ops.errors import PrivacyError
from mondrian_ops.job.sections import Tds
from mondrian_ops.late_methods import dataclass

Ints = NDArray[np.integer[Any]]
Floats = NDArray[Any]  # NumPy's stubs give np.bincount integers even if its weights are floats

Cuts = tuple[Nodes, ...]
"""The source's anonymization level (definition 1): one (codes,) int32 array per attribute, the node
that each code is generalized to. On every path from a leaf to the root lies one node of a cut."""

Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""Like `map`, perhaps with several calls at a time."""

INTERMEDIATE_CLASSES = 5
"""The default k of the first phase leaves room for so many classes in a part."""

_DIGITS = 9  # gains that differ by rounding alone are to be equal


@dataclass(frozen=True)
class Level:
    """The result of top-down specialization of a dataset, or of a part of it.

    rows
        Rows of the dataset.
    cuts
        The level; no specialization of it is valid.
    steps
        (steps, 2) int32, the specializations performed in order: attribute and node.
    classes
        Equivalence classes.
    """

    rows: int
    cuts: Cuts
    steps: Nodes
    classes: int

    def to_table(self) -> pa.Table:
        """One row of lists, for Arrow IPC; `from_table` reads it back."""
        lists = {f"cut:{at}": pa.array([cut]) for at, cut in enumerate(self.cuts)}
        lists["steps"] = pa.array([self.steps.reshape(-1)])
        counts = {"rows": str(self.rows), "classes": str(self.classes)}
        return pa.table(lists).replace_schema_metadata(counts)

    @classmethod
    def from_table(cls, table: pa.Table) -> Level:
        """The level that `to_table` wrote."""
        *cuts, steps = (column.chunk(0).flatten().to_numpy() for column in table.columns)
        counts = {name: int(table.schema.metadata[name]) for name in (b"rows", b"classes")}
        return cls(counts[b"rows"], tuple(cuts), steps.reshape(-1, 2), counts[b"classes"])


@dataclass(frozen=True)
class TwoPhaseResult:
    """The result of both phases.

    k_intermediate
        The k of the first phase (k^I in Zhang et al.).
    partitions
        The first phase, part by part; empty where there was none.
    merged
        The level that the second phase started from (AL^I).
    final
        The second phase, which ends in the level of the release (AL*).
    iloss
        Information loss of the release, see `loss`.
    """

    k_intermediate: int
    partitions: tuple[Level, ...]
    merged: Cuts
    final: Level
    iloss: float


@dataclass(frozen=True)
class TwoPhase:
    """Algorithm 1 up to its last step, the recoding of the rows.

    ``options`` are the job's; ``seed`` assigns the rows to the parts of the first phase.
    ``of_persons``: what l asks of the values of persons, the last of ``domains``; it is asked in
    the second phase only, as rows of one person are in several parts.
    """

    hierarchies: Sequence[CodedHierarchy]
    privacy: Privacy
    domains: Sequence[SensitiveDomain]
    options: Tds
    seed: int
    of_persons: PersonsValues | None = None

    def __call__(self, frequencies: FrequencySet, in_parallel: Map = map) -> TwoPhaseResult:
        """Both phases; raises what `second` raises.

        ``in_parallel`` maps the first phase over the parts. Threads will do, as the kernels release
        the interpreter's lock.
        """
        levels = in_parallel(lambda part: self.first(frequencies, part), self.options.parts)
        return self.second(frequencies, tuple(levels))

    def first(self, frequencies: FrequencySet, part: int) -> Level:
        """The first phase on one part: MRTDS(D_i, k^I, AL^0).

        A part that breaks a criterion even as one class, as it has too few rows, stays at the top.
        """
        own = partition(frequencies, part, self.options.partitions, self.seed)
        start = top(self.hierarchies)
        return self._specialized(own, self._k(frequencies), start) or Level(
            own.total, start, np.zeros((0, 2), np.int32), 1
        )

    def second(self, frequencies: FrequencySet, levels: Sequence[Level]) -> TwoPhaseResult:
        """The second phase: merge the ``levels`` of the parts and specialize all rows from there.

        Without levels it starts at the top. The merged level satisfies the criteria whenever the
        top does: unless it is the top, its classes are unions of classes of the parts, which have
        k^I rows and satisfy every criterion, and so do their unions (lemma 1). Of the values of
        persons, and of criteria of packages, this need not be so: it starts at the top then.

        Raises PrivacyError where all rows as one class break a criterion.
        """
        trees, privacy = self.hierarchies, self.privacy
        start = merged([level.cuts for level in levels], trees) if levels else top(trees)
        of_persons = self.of_persons
        if of_persons is not None and not of_persons.concern(frequencies):
            of_persons = None
        k = privacy.min_class_size
        final = self._specialized(frequencies, k, start, of_persons)
        if final is None and levels:
            start = top(trees)
            final = self._specialized(frequencies, k, start, of_persons)
        if final is None:
            raise PrivacyError(
                f"k: the {frequencies.total} rows as one equivalence class do not satisfy "
                f"{', '.join(privacy.describe())}{'' if of_persons is None else ' of persons'}; "
                "lower k or l, or raise t"
                f"{privacy.remedy_for_missing(self.domains)}"
            )
        iloss = loss(frequencies, trees, final.cuts)
        return TwoPhaseResult(self._k(frequencies), tuple(levels), start, final, iloss)

    def _specialized(
        self,
        frequencies: FrequencySet,
        k: int,
        start: Cuts,
        of_persons: PersonsValues | None = None,
    ) -> Level | None:
        trees, privacy, domains = self.hierarchies, self.privacy, self.domains
        return specialize(frequencies, trees, privacy, domains, k, start, of_persons)

    def _k(self, frequencies: FrequencySet) -> int:
        partitions, k = self.options.partitions, self.options.k_intermediate
        return intermediate_k(frequencies.total, partitions, self.privacy, k)


def intermediate_k(rows: int, partitions: int, privacy: Privacy, requested: int | None) -> int:
    """The k of the first phase, never less than that of the release.

    By default a fifth of the rows of a part: the level on which such parts agree loses next to no
    information (benchmarks/RESULTS.md has figures).
    """
    chosen = rows // (INTERMEDIATE_CLASSES * partitions) if requested is None else requested
    return max(privacy.min_class_size, chosen)


def partition(frequencies: FrequencySet, part: int, parts: int, seed: int) -> FrequencySet:
    """A random part of the dataset, one of ``parts`` of about equal size (algorithm 2)."""
    rows = top_down.rows_of_part(frequencies.rows, part, parts, seed)
    present = rows > 0
    words = frequencies.words.compress(present, axis=1)
    return FrequencySet(frequencies.sizes, words, rows[present])


def top(hierarchies: Sequence[CodedHierarchy]) -> Cuts:
    """The most general level, every attribute at its root (AL^0)."""
    return tuple(hierarchy.levels[-1] for hierarchy in hierarchies)


def merged(levels: Sequence[Cuts], hierarchies: Sequence[CodedHierarchy]) -> Cuts:
    """For every code the most general of its nodes in the ``levels`` (section 4.3)."""
    return tuple(
        _more_general(cuts, hierarchy)
        for cuts, hierarchy in zip(zip(*levels, strict=True), hierarchies, strict=True)
    )


def _more_general(cuts: Sequence[Nodes], hierarchy: CodedHierarchy) -> Nodes:
    height = np.zeros(hierarchy.nodes, np.int32)
    for level in range(hierarchy.height, -1, -1):  # a leaf is on several levels: the lowest counts
        height[hierarchy.levels[level]] = level
    general = cuts[0]
    for cut in cuts[1:]:
        general = np.where(height[cut] > height[general], cut, general)
    return general


def loss(frequencies: FrequencySet, hierarchies: Sequence[CodedHierarchy], cuts: Cuts) -> float:
    """ILoss (Xiao and Tao 2006): (leaves of the published node - 1) / all leaves, averaged over
    rows and attributes. A missing value published as missing loses nothing."""
    total = 0.0
    for at, (hierarchy, cut) in enumerate(zip(hierarchies, cuts, strict=True)):
        rows = np.bincount(frequencies.column(at), frequencies.rows, len(cut))
        lost = np.maximum(hierarchy.leaves[cut] - 1, 0) / hierarchy.leaves[hierarchy.root]
        total += float(rows @ lost)
    return total / max(1, frequencies.total) / len(hierarchies)


def specialize(
    frequencies: FrequencySet,
    hierarchies: Sequence[CodedHierarchy],
    privacy: Privacy,
    domains: Sequence[SensitiveDomain],
    k: int,
    start: Cuts,
    of_persons: PersonsValues | None = None,
) -> Level | None:
    """MRTDS(D, k, AL) of section 5: the level reached from ``start``.

    A specialization is valid if every class after it satisfies ``privacy`` and has ``k`` rows. The
    valid one of greatest IGPL is performed until there is none (equation 1); of equal ones that of
    the first attribute, then of the first node. None where a class of ``start`` breaks a criterion.
    With ``of_persons``, specializations that leave persons too few values are left out.
    """
    criteria = privacy.kernel(domains)
    criteria = criteria._replace(k=max(k, criteria.k))
    if frequencies.total < criteria.k:
        return None
    sensitive = len(domains) - (privacy.persons is not None)  # persons carry no information
    forest = _forest(frequencies, hierarchies, sensitive)
    offsets = _offsets(hierarchies)[:-1]
    cut = np.concatenate([nodes + offset for nodes, offset in zip(start, offsets, strict=True)])
    result = top_down.specialize(_combinations(frequencies), forest, cut, criteria)
    if not result.classes:
        return None
    if of_persons is not None:
        checked = CheckedSteps(frequencies, forest, cut, of_persons)
        if not checked.holds:
            return None
        while checked.take(result.steps):  # some were refused, so that others may be valid
            result = top_down.specialize(
                _combinations(frequencies), checked.without_refused(), checked.cut, criteria
            )
        result = checked.result
    nodes = result.steps
    attributes = forest.attribute[nodes]
    return Level(
        rows=frequencies.total,
        cuts=tuple(
            codes - offset
            for codes, offset in zip(np.split(result.cut, forest.first[1:-1]), offsets, strict=True)
        ),
        steps=np.stack([attributes, nodes - offsets[attributes]], axis=1),
        classes=result.classes,
    )


def _combinations(frequencies: FrequencySet) -> top_down.PackedCombinations:
    """A copy for the kernels, which permute it."""
    word, shift, bits = np.array(places(frequencies.sizes), np.int64).T.copy()
    mask = (np.uint64(1) << bits.astype(np.uint64)) - np.uint64(1)
    return top_down.PackedCombinations(
        frequencies.words.copy(), frequencies.rows.copy(), word, shift.astype(np.uint64), mask
    )


def _offsets(hierarchies: Sequence[CodedHierarchy]) -> Nodes:
    """(attributes + 1,): the number of each hierarchy's first node, and of all nodes."""
    return np.cumsum([0, *(hierarchy.nodes for hierarchy in hierarchies)], dtype=np.int32)


def _forest(
    frequencies: FrequencySet, hierarchies: Sequence[CodedHierarchy], sensitive_columns: int
) -> top_down.Forest:
    """The hierarchies for the kernels, their nodes numbered through."""
    offsets = _offsets(hierarchies)
    first = np.cumsum([0, *(hierarchy.levels.shape[1] for hierarchy in hierarchies)])
    sensitive = range(len(hierarchies), len(hierarchies) + sensitive_columns)
    parents, walks, gains = [], [], []
    for at, hierarchy in enumerate(hierarchies):
        parent = hierarchy.parents()
        parents.append(np.where(parent < 0, parent, parent + offsets[at]))
        walks.append(_walk(hierarchy, int(first[at])))
        gains.append(hierarchy.weight * information_gains(frequencies, at, hierarchy, sensitive))
    parent = np.concatenate(parents)
    below = np.flatnonzero(parent >= 0)
    child = below[np.argsort(parent[below], kind="stable")]
    members, member_first, member_stop = map(np.concatenate, zip(*walks, strict=True))
    return top_down.Forest(
        first=first,
        attribute=np.repeat(np.arange(len(hierarchies), dtype=np.int32), np.diff(offsets)),
        child_first=np.searchsorted(parent[child], np.arange(len(parent) + 1)),
        children=child.astype(np.int32),
        member_first=member_first,
        member_stop=member_stop,
        members=members,
        gain=np.concatenate(gains),
    )


def _walk(
    hierarchy: CodedHierarchy, offset: int
) -> tuple[Nodes, NDArray[np.integer[Any]], NDArray[np.integer[Any]]]:
    """The codes in the order of a walk through the tree, and where the codes of each node start and
    stop in it; all counted from ``offset``."""
    order = np.lexsort(hierarchy.levels)
    first = np.zeros(hierarchy.nodes, np.int64)
    stop = np.zeros(hierarchy.nodes, np.int64)
    for level in hierarchy.levels[:, order]:
        heads = np.flatnonzero(np.diff(level, prepend=-1))
        first[level[heads]] = heads
        stop[level[heads]] = np.append(heads[1:], len(level))
    return (order + offset).astype(np.int32), first + offset, stop + offset


def information_gains(
    frequencies: FrequencySet, at: int, hierarchy: CodedHierarchy, sensitive: range
) -> Floats:
    """(nodes,) IG of specializing each node of column ``at``, in bits; 0 for leaves.

    Two-phase TDS, equations 2 and 3. It depends on the dataset alone, not on how its attributes are
    generalized.

    Gains are summed over the ``sensitive`` columns. Where there is none, every row counts as if it
    had a sensitive value of its own: the gain is then the entropy of the split itself.
    """
    parent = hierarchy.parents()
    child = np.flatnonzero(parent >= 0)
    above = parent[child]
    total = np.zeros(hierarchy.nodes)
    for column in sensitive or [None]:
        code, label, rows = _pairs(frequencies, at, column)
        count, entropy = _entropies(hierarchy, code, label, rows)
        share = count[child] / np.maximum(1.0, count[above])
        has_child = np.bincount(above, minlength=hierarchy.nodes) > 0
        total += entropy * has_child
        total -= np.bincount(above, share * entropy[child], hierarchy.nodes)
    return np.round(np.maximum(total, 0.0), _DIGITS)


def _pairs(
    frequencies: FrequencySet, at: int, sensitive: int | None
) -> tuple[Ints, Ints | None, Floats]:
    """The pairs of a column's and a sensitive column's codes, or its codes: code, label, rows."""
    codes = frequencies.column(at)
    if sensitive is None:
        code, rows = _summed(codes, frequencies.rows, frequencies.sizes[at])
        return code, None, rows
    size = frequencies.sizes[sensitive]
    keys = codes * np.int64(size) + frequencies.column(sensitive)
    pairs, rows = _summed(keys, frequencies.rows, frequencies.sizes[at] * size)
    return pairs // size, pairs % size, rows


def _entropies(
    hierarchy: CodedHierarchy, code: Ints, label: Ints | None, rows: Floats
) -> tuple[Floats, Floats]:
    """Rows under each node, and the entropy of their labels."""
    count, entropy = np.zeros(hierarchy.nodes), np.zeros(hierarchy.nodes)
    size = 1 if label is None else int(label.max(initial=0)) + 1
    for level in hierarchy.levels:
        node = level[code]
        nodes, below = _summed(node, rows, hierarchy.nodes)
        count[nodes] = below
        entropy[nodes] = np.log2(below)
        if label is not None:
            keys, counts = _summed(node * np.int64(size) + label, rows, hierarchy.nodes * size)
            within = np.bincount(keys // size, counts * np.log2(counts), hierarchy.nodes)
            entropy[nodes] -= within[nodes] / below
    return count, entropy


def _summed(keys: Ints, weights: NDArray[Any], size: int) -> tuple[Ints, Floats]:
    """The distinct keys below ``size`` in ascending order, and the sum of the weights of each."""
    if size <= max(1 << 20, 4 * len(keys)):
        sums = np.bincount(keys, weights, size)
        present = np.flatnonzero(sums)
        return present, sums[present]
    distinct, place = np.unique(keys, return_inverse=True)
    return distinct, np.bincount(place, weights, len(distinct))
