"""Two-phase top-down specialization (Zhang, Yang, Liu and Chen, TPDS 2014: "the source").

Every attribute is generalized by a cut through its hierarchy, the same for all rows. From the
topmost values on, the valid specialization of greatest IGPL is performed until none is left. In the
first phase random parts of the dataset do so by themselves, with a larger k; the second goes on
from the most specific level that all of them allow. See docs/algorithms.md.
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
"""Unless asked for, k^I leaves room for so many classes in a part."""


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

    ``asked``: the options of a job; its ``seed`` deals the rows to the parts of the first phase.
    `second`, and so both phases, raise PrivacyError where all rows as one class break what is
    asked.
    """

    hierarchies: Sequence[CodedHierarchy]
    privacy: Privacy
    domains: Sequence[SensitiveDomain]
    asked: Tds
    seed: int

    def __call__(self, frequencies: FrequencySet, in_parallel: Map = map) -> Found:
        """Both phases.

        ``in_parallel`` maps the first over the parts; the kernels release the interpreter's lock,
        so that threads serve.
        """
        levels = in_parallel(lambda part: self.first(frequencies, part), self.asked.parts)
        return self.second(frequencies, tuple(levels))

    def first(self, frequencies: FrequencySet, part: int) -> Level:
        """The first phase on one part; anywhere, and in any order."""
        dealt = partition(frequencies, part, self.asked.partitions, self.seed)
        k = self._k(frequencies)
        return partition_level(dealt, self.hierarchies, self.privacy, self.domains, k)

    def second(self, frequencies: FrequencySet, levels: Sequence[Level]) -> Found:
        """The second phase: merge the ``levels`` of the parts and specialize the whole from there.

        Without levels it starts at the top. The merged level satisfies what is asked whenever the
        top does: unless it is the top, its classes are unions of classes of the parts, which hold
        k^I rows and every criterion, and so do their unions (lemma 1).
        """
        trees, privacy = self.hierarchies, self.privacy
        start = merged([level.cuts for level in levels], trees) if levels else top(trees)
        k = privacy.min_class_size
        final = specialize(frequencies, trees, privacy, self.domains, k, start)
        iloss = loss(frequencies, trees, final.cuts)
        return Found(self._k(frequencies), tuple(levels), start, final, iloss)

    def _k(self, frequencies: FrequencySet) -> int:
        partitions, k = self.asked.partitions, self.asked.k_intermediate
        return intermediate_k(frequencies.total, partitions, self.privacy, k)


def intermediate_k(rows: int, partitions: int, privacy: Privacy, asked: int | None) -> int:
    """The k of the first phase, never less than that of the release.

    Unless ``asked`` for, a fifth of the rows that a part has of the ``rows`` of the dataset: what
    such parts agree on costs next to no information (docs/algorithms.md has figures).
    """
    chosen = rows // (INTERMEDIATE_CLASSES * partitions) if asked is None else asked
    return max(privacy.min_class_size, chosen)


def partition(frequencies: FrequencySet, part: int, parts: int, seed: int) -> FrequencySet:
    """A part of the dataset; every row is in any of the ``parts`` alike (algorithm 2)."""
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

    A part that breaks what is asked even as one class, for it has too few rows, stays at the top.
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

    As `specialized`, but raises PrivacyError where a class of ``start`` breaks what is asked.
    """
    level = specialized(frequencies, hierarchies, privacy, domains, k, start)
    if level is None:
        raise PrivacyError(
            f"k: {frequencies.total} rows in classes of at least {k}, generalized as far as they "
            f"are to begin with, break {', '.join(privacy.describe())}; ask for less"
            f"{privacy.remedy_for_missing(domains)}"
        )
    return level


def merged(levels: Sequence[Cuts], hierarchies: Sequence[CodedHierarchy]) -> Cuts:
    """The more general node of every code among the ``levels`` (section 4.3)."""
    return tuple(
        _more_general(cuts, hierarchy)
        for cuts, hierarchy in zip(zip(*levels, strict=True), hierarchies, strict=True)
    )


def _more_general(cuts: Sequence[Nodes], hierarchy: CodedHierarchy) -> Nodes:
    height = np.zeros(hierarchy.nodes, np.int32)
    for level in range(hierarchy.height, -1, -1):  # a leaf is on several: the lowest counts
        height[hierarchy.levels[level]] = level
    general = cuts[0]
    for cut in cuts[1:]:
        general = np.where(height[cut] > height[general], cut, general)
    return general


def loss(frequencies: FrequencySet, hierarchies: Sequence[CodedHierarchy], cuts: Cuts) -> float:
    """ILoss (Xiao and Tao 2006): leaves under the published node less one over all leaves, averaged
    over rows and attributes. A missing value published as missing loses nothing."""
    total = 0.0
    for at, (hierarchy, cut) in enumerate(zip(hierarchies, cuts, strict=True)):
        rows = np.bincount(frequencies.column(at), frequencies.rows, len(cut))
        lost = np.maximum(hierarchy.leaves[cut] - 1, 0) / hierarchy.leaves[hierarchy.root]
        total += float(rows @ lost)
    return total / max(1, frequencies.total) / len(hierarchies)
