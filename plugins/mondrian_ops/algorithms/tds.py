"""Two-phase top-down specialization (Zhang, Yang, Liu and Chen, TPDS 2014: "the source").

Every attribute is generalized by a cut through its hierarchy, the same for all rows. From the
topmost values on, the valid specialization of greatest IGPL is performed until none is left. The
first phase does so on random parts of the dataset, each by itself, with a larger k; the second
phase continues from the most specific level that all parts allow. See docs/algorithms.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mondrian_ops.algorithms.specialization import Cuts, Level, specialized, top
from mondrian_ops.core.criteria import Privacy, SensitiveDomain
from mondrian_ops.core.errors import PrivacyError
from mondrian_ops.core.frequency_set import FrequencySet
from mondrian_ops.core.hierarchy import CodedHierarchy, Nodes
from mondrian_ops.core.job import Tds
from mondrian_ops.native import top_down

__all__ = [
    "Cuts",
    "Found",
    "Level",
    "Map",
    "TwoPhase",
    "intermediate_k",
    "loss",
    "merged",
    "partition",
    "partition_level",
    "specialize",
    "top",
]

Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""Like `map`, perhaps several at a time."""

INTERMEDIATE_CLASSES = 5
"""By default k^I leaves room for so many classes in a part."""


@dataclass(frozen=True)
class Found:
    """The result of both phases.

    k_intermediate
        The k of the first phase (the source's k^I).
    partitions
        The first phase, part by part; empty where there was none.
    merged
        The level that the second phase started from (AL^I).
    final
        The second phase, which ends in the level of the release (AL*).
    iloss
        Information loss of the release (Xiao and Tao 2006), see `loss`.
    """

    k_intermediate: int
    partitions: tuple[Level, ...]
    merged: Cuts
    final: Level
    iloss: float

    @property
    def cuts(self) -> Cuts:
        """The level of the release."""
        return self.final.cuts

    @property
    def merged_nodes(self) -> tuple[int, ...]:
        """Nodes of each cut that the second phase started from."""
        return tuple(len(np.unique(cut)) for cut in self.merged)


@dataclass(frozen=True)
class TwoPhase:
    """Algorithm 1 up to its last step, the recoding of the rows.

    ``options`` are the job's; ``seed`` assigns the rows to the parts of the first phase. `second`,
    and so the whole, raises PrivacyError where all rows as one class break a criterion.
    """

    hierarchies: Sequence[CodedHierarchy]
    privacy: Privacy
    domains: Sequence[SensitiveDomain]
    options: Tds
    seed: int

    def __call__(self, frequencies: FrequencySet, in_parallel: Map = map) -> Found:
        """Both phases.

        ``in_parallel`` maps the first phase over the parts. Threads will do, as the kernels release
        the interpreter's lock.
        """
        levels = in_parallel(lambda part: self.first(frequencies, part), self.options.parts)
        return self.second(frequencies, tuple(levels))

    def first(self, frequencies: FrequencySet, part: int) -> Level:
        """The first phase on one part."""
        own = partition(frequencies, part, self.options.partitions, self.seed)
        k = self._k(frequencies)
        return partition_level(own, self.hierarchies, self.privacy, self.domains, k)

    def second(self, frequencies: FrequencySet, levels: Sequence[Level]) -> Found:
        """The second phase: merge the ``levels`` of the parts and specialize the whole from there.

        Without levels it starts at the top. The merged level satisfies the criteria whenever the
        top does: unless it is the top, its classes are unions of classes of the parts, which have
        k^I rows and satisfy every criterion, and so do their unions (lemma 1).
        """
        trees, privacy = self.hierarchies, self.privacy
        start = merged([level.cuts for level in levels], trees) if levels else top(trees)
        k = privacy.min_class_size
        final = specialize(frequencies, trees, privacy, self.domains, k, start)
        iloss = loss(frequencies, trees, final.cuts)
        return Found(self._k(frequencies), tuple(levels), start, final, iloss)

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


def partition_level(
    part: FrequencySet,
    hierarchies: Sequence[CodedHierarchy],
    privacy: Privacy,
    domains: Sequence[SensitiveDomain],
    k_intermediate: int,
) -> Level:
    """The first phase on one part: MRTDS(D_i, k^I, AL^0).

    A part that breaks a criterion even as one class, as it has too few rows, stays at the top.
    """
    start = top(hierarchies)
    return specialized(part, hierarchies, privacy, domains, k_intermediate, start) or Level(
        part.total, start, np.zeros((0, 2), np.int32), 1
    )


def specialize(
    frequencies: FrequencySet,
    hierarchies: Sequence[CodedHierarchy],
    privacy: Privacy,
    domains: Sequence[SensitiveDomain],
    k: int,
    start: Cuts,
) -> Level:
    """Specialize from ``start`` until no valid specialization is left: MRTDS(D, k, AL).

    As `specialized`, but raises PrivacyError where a class of ``start`` breaks a criterion.
    """
    level = specialized(frequencies, hierarchies, privacy, domains, k, start)
    if level is None:
        raise PrivacyError(
            f"k: {frequencies.total} rows in classes of at least {k}, even the most general ones, "
            f"break {', '.join(privacy.describe())}; ask for less"
            f"{privacy.remedy_for_missing(domains)}"
        )
    return level


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
