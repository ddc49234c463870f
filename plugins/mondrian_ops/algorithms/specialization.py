"""Top-down specialization of one dataset: MRTDS(D, k, AL) of Zhang et al., TPDS 2014, section 5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.core.criteria import Privacy, SensitiveDomain
from mondrian_ops.core.frequency_set import FrequencySet
from mondrian_ops.core.hierarchy import CodedHierarchy, Nodes
from mondrian_ops.native import top_down

__all__ = ["Cuts", "Level", "information_gains", "specialized", "top"]

Ints = NDArray[np.integer[Any]]
Floats = NDArray[Any]  # to NumPy's stubs a bincount is of integers, whatever its weights

_DIGITS = 9  # gains that differ by rounding alone are to be equal

Cuts = tuple[Nodes, ...]
"""The source's anonymization level (definition 1): one (codes,) int32 array per attribute, the node
that each code is generalized to. A cut holds one node of every way from a leaf to the root."""


@dataclass(frozen=True)
class Level:
    """The result of top-down specialization of a dataset, or of a part of it.

    rows
        Rows specialized.
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
        """The level that `to_table` gave."""
        *cuts, steps = (column.chunk(0).flatten().to_numpy() for column in table.columns)
        counts = {name: int(table.schema.metadata[name]) for name in (b"rows", b"classes")}
        return cls(counts[b"rows"], tuple(cuts), steps.reshape(-1, 2), counts[b"classes"])


def top(hierarchies: Sequence[CodedHierarchy]) -> Cuts:
    """The most general level, every attribute at its root (AL^0)."""
    return tuple(hierarchy.levels[-1] for hierarchy in hierarchies)


def specialized(
    frequencies: FrequencySet,
    hierarchies: Sequence[CodedHierarchy],
    privacy: Privacy,
    domains: Sequence[SensitiveDomain],
    k: int,
    start: Cuts,
) -> Level | None:
    """The level reached from ``start``; None where a class of ``start`` breaks a criterion.

    A specialization is valid if every class after it satisfies ``privacy`` and has ``k`` rows. The
    valid one of greatest IGPL is performed until there is none (equation 1); of equal ones that of
    the first attribute, then of the first node.
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


def _combinations(frequencies: FrequencySet) -> top_down.Combinations:
    """A copy for the kernels, which permute it."""
    word, shift, bits = np.array(frequencies.places(), np.int64).T.copy()
    mask = (np.uint64(1) << bits.astype(np.uint64)) - np.uint64(1)
    return top_down.Combinations(
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
        gains.append(information_gains(frequencies, at, hierarchy, sensitive))
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
            known = np.bincount(keys // size, counts * np.log2(counts), hierarchy.nodes)
            entropy[nodes] -= known[nodes] / below
    return count, entropy


def _summed(keys: Ints, weights: NDArray[Any], size: int) -> tuple[Ints, Floats]:
    """The distinct keys below ``size`` in ascending order, and the sum of the weights of each."""
    if size <= max(1 << 20, 4 * len(keys)):
        sums = np.bincount(keys, weights, size)
        present = np.flatnonzero(sums)
        return present, sums[present]
    distinct, place = np.unique(keys, return_inverse=True)
    return distinct, np.bincount(place, weights, len(distinct))
