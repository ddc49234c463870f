"""The lattice of full-domain generalizations, and the classes of its nodes.

A node is one level per quasi-identifier (Samarati 2001, section 3). Its classes follow from counts,
which are sums of the counts of any node below it (the roll-up of LeFevre et al. 2005, section 3.1),
so that the dataset itself is not read again.
"""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from functools import cached_property, reduce
from operator import le
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.cut.criteria import Privacy
from mondrian_ops.cut.native.class_criteria import groups_satisfy
from mondrian_ops.cut.person_values import PersonsValues
from mondrian_ops.data.frequency_set import FrequencySet
from mondrian_ops.data.hierarchy import MISSING, CodedHierarchy
from mondrian_ops.data.sensitive_domain import SensitiveDomain
from mondrian_ops.errors import JobError
from mondrian_ops.generalize.attributes import Classes
from mondrian_ops.late_methods import dataclass

Levels = tuple[int, ...]

MAX_NODES = 2**24
"""Nodes of the largest lattice that is searched: a few arrays with an entry per node."""
_CACHED = 2**24  # combinations that the cache holds at least: 256 MiB if a word holds one

Places = NDArray[np.signedinteger[Any]]
_Checked = tuple[FrequencySet, Places, Places, NDArray[np.bool_]]
"""The counts of a node, an index of them class by class, the classes' starts, and which satisfy."""


@dataclass(frozen=True)
class NodeClasses:
    """The equivalence classes of one node.

    nodes
        (attributes, classes) int32, the hierarchy nodes that each class is generalized to.
    rows
        (classes,) int64, rows of each class.
    holds
        (classes,) bool, whether the class satisfies every criterion.
    """

    nodes: NDArray[np.int32]
    rows: NDArray[np.int64]
    holds: NDArray[np.bool_]


@dataclass(frozen=True)
class _Level:
    """One level of a hierarchy: its nodes numbered from 0 in the order of their first code."""

    number: NDArray[np.int64]  # (codes,)
    node: NDArray[np.int32]  # (numbers,)

    @classmethod
    def of(cls, above: NDArray[np.int32]) -> _Level:
        node, first, inverse = np.unique(above, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return cls(np.argsort(order)[inverse], node[order])

    def to(self, other: _Level) -> NDArray[np.int64]:
        """(numbers,): the numbers of the nodes above them on a higher level."""
        table = np.empty(len(self.node), np.int64)
        table[self.number] = other.number
        return table


class Lattice:
    """All combinations of levels of the quasi-identifiers' ``hierarchies``.

    ``of_persons``: what classes must satisfy beside ``privacy``, if persons have several rows.
    Raises JobError where there are more than `MAX_NODES`.
    """

    def __init__(
        self,
        frequencies: FrequencySet,
        hierarchies: Sequence[CodedHierarchy],
        privacy: Privacy,
        domains: Sequence[SensitiveDomain],
        of_persons: PersonsValues | None = None,
    ) -> None:
        self.shape = tuple(hierarchy.height + 1 for hierarchy in hierarchies)
        if self.size > MAX_NODES:
            raise JobError(
                f"quasi_identifiers: their levels have {self.size} combinations, but at most "
                f"{MAX_NODES} are searched; give hierarchies or ladders with fewer levels, fewer "
                "quasi-identifiers, or another algorithm"
            )
        self.counted_nodes = 0
        self._criteria = privacy.kernel(domains)
        self._of_persons = of_persons
        if not self._criteria.kind.size:
            frequencies = _first_columns(frequencies, len(hierarchies))
        self._frequencies = frequencies
        self._hierarchies = hierarchies
        self._levels = [
            [_Level.of(above) for above in hierarchy.levels] for hierarchy in hierarchies
        ]
        # The attribute that is generalized first shrinks the counts most.
        self._order = sorted(range(len(hierarchies)), key=lambda a: -frequencies.sizes[a])
        self._cache = _Cache(max(_CACHED, 2 * len(frequencies.rows)))

    @property
    def size(self) -> int:
        """The number of nodes."""
        return math.prod(self.shape)

    @property
    def top(self) -> Levels:
        """Every quasi-identifier at its root."""
        return tuple(depth - 1 for depth in self.shape)

    def node(self, place: int) -> Levels:
        """The node at a place of the flattened lattice."""
        return tuple(map(int, np.unravel_index(place, self.shape)))

    def above(self, levels: Levels) -> list[Levels]:
        """The nodes one step up."""
        return [
            (*levels[:a], level + 1, *levels[a + 1 :])
            for a, level in enumerate(levels)
            if level + 1 < self.shape[a]
        ]

    @property
    def weight(self) -> float:
        """The weights of all quasi-identifiers together: what a row loses that is suppressed."""
        return sum(hierarchy.weight for hierarchy in self._hierarchies)

    @cached_property
    def heights(self) -> NDArray[np.int16]:
        """The sum of each node's levels, shaped like the lattice."""
        return reduce(np.add.outer, [np.arange(depth, dtype=np.int16) for depth in self.shape])

    @cached_property
    def losses(self) -> NDArray[np.float64]:
        """LM of each node when nothing is suppressed, shaped like the lattice.

        It is summed over the attributes by their weights, each averaged over the rows, so that the
        counts of each attribute suffice. It never decreases from a node to one above it.
        """
        return reduce(np.add.outer, self._attribute_losses())

    def _attribute_losses(self) -> list[NDArray[np.float64]]:
        counted, losses = self._frequencies, []
        for a, hierarchy in enumerate(self._hierarchies):
            codes = hierarchy.levels.shape[1]
            share = np.bincount(counted.column(a), counted.rows, codes) / counted.total
            lost = hierarchy.lm[hierarchy.levels]
            if share[MISSING]:
                lost[-1] = 1.0  # a root over missing values is published "*"
            losses.append(hierarchy.weight * (lost @ share))
        return losses

    def classes(self, levels: Levels) -> NodeClasses:
        """The classes of a node."""
        counted, index, starts, holds = self._checked(levels)
        codes = counted.codes()[: len(levels), index[starts]]
        nodes = [self._levels[a][level].node[codes[a]] for a, level in enumerate(levels)]
        return NodeClasses(np.stack(nodes), np.add.reduceat(counted.rows[index], starts), holds)

    def failing_rows(self, levels: Levels) -> int:
        """Rows in classes of a node that do not satisfy every criterion."""
        counted, index, starts, holds = self._checked(levels)
        self.counted_nodes += 1
        return int(np.add.reduceat(counted.rows[index], starts)[~holds].sum())

    def _checked(self, levels: Levels) -> _Checked:
        counted = self._counted(levels)
        if not self._criteria.kind.size:  # a combination is a class
            every = np.arange(len(counted.rows))
            return counted, every, every, counted.rows >= self._criteria.k
        index, starts = counted.grouped(len(levels))
        sensitive = counted.codes(len(levels))
        holds = groups_satisfy(index, starts, sensitive, counted.rows, self._criteria)
        if self._of_persons is not None and holds.any():
            diverse = Classes(index, starts).where(holds)
            holds[holds] = self._of_persons.satisfied(diverse, sensitive)
        return counted, index, starts, holds

    def _counted(self, levels: Levels) -> FrequencySet:
        """The counts of a node, rolled up from the node halfway down, or a nearer one.

        Many nodes share a node halfway down, and many of these share one again, so that few counts
        are rolled up from those of the whole dataset.
        """
        if not any(levels):
            return self._frequencies
        counts = self._cache.get(levels)
        if counts is None:
            halfway = self._halfway(levels)
            nearer = [kept for kept in self._cache.over(halfway) if all(map(le, kept, levels))]
            below = min(nearer, key=self._cache.combinations, default=halfway)
            tables = {
                a: self._levels[a][low].to(self._levels[a][high])
                for a, (low, high) in enumerate(zip(below, levels, strict=True))
                if low < high
            }
            counts = self._counted(below).recoded(tables)
            self._cache.keep(levels, halfway, counts)
        return counts

    def _halfway(self, levels: Levels) -> Levels:
        """The node with the later half of its generalized attributes back at their values."""
        stop = len(self._order)
        while not any(levels[a] for a in self._order[stop // 2 : stop]):
            stop //= 2
        back = self._order[stop // 2 :]
        return tuple(0 if a in back else level for a, level in enumerate(levels))


def _first_columns(frequencies: FrequencySet, columns: int) -> FrequencySet:
    """The counts of the first ``columns`` columns; the others are generalized to one value."""
    sizes = frequencies.sizes
    return frequencies.recoded(
        {a: np.zeros(sizes[a], np.int64) for a in range(columns, len(sizes))}
    )


class _Cache:
    """The counts of the most recently used nodes, of ``allowed`` combinations in all at most."""

    def __init__(self, allowed: int) -> None:
        self._allowed = allowed
        self._held = 0
        self._counts: OrderedDict[Levels, tuple[Levels, FrequencySet]] = OrderedDict()
        self._over: defaultdict[Levels, set[Levels]] = defaultdict(set)

    def get(self, levels: Levels) -> FrequencySet | None:
        if levels not in self._counts:
            return None
        self._counts.move_to_end(levels)
        return self._counts[levels][1]

    def over(self, halfway: Levels) -> list[Levels]:
        """The cached nodes whose node halfway down is this one, in order."""
        return sorted(self._over[halfway])

    def combinations(self, levels: Levels) -> int:
        """The number of combinations of a cached node."""
        return len(self._counts[levels][1].rows)

    def keep(self, levels: Levels, halfway: Levels, counts: FrequencySet) -> None:
        """Add the counts of a node, and drop the least recently used ones."""
        self._counts[levels] = halfway, counts
        self._over[halfway].add(levels)
        self._held += len(counts.rows)
        while self._held > self._allowed and len(self._counts) > 1:
            old, (below, dropped) = self._counts.popitem(last=False)
            self._over[below].discard(old)
            self._held -= len(dropped.rows)
