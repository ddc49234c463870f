"""What is learnt of the sensitive values where a node of a hierarchy is specialized (two-phase TDS,
equations 2 and 3).

It depends on the dataset alone and not on how its attributes are generalized.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.core.frequency_set import FrequencySet
from mondrian_ops.core.hierarchy import CodedHierarchy

__all__ = ["information_gains"]

Ints = NDArray[np.integer[Any]]
Floats = NDArray[Any]  # to NumPy's stubs a bincount is of integers, whatever its weights

DIGITS = 9  # gains that differ by rounding alone are to be equal


def information_gains(
    frequencies: FrequencySet, at: int, hierarchy: CodedHierarchy, sensitive: range
) -> Floats:
    """(nodes,) IG of specializing each node of column ``at``, in bits; 0 for leaves.

    ``sensitive`` are the columns to learn about; gains are summed over them. Where there is none
    every row counts as if it had a sensitive value of its own, so that the gain is the entropy of
    the split itself.
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
    return np.round(np.maximum(total, 0.0), DIGITS)


def _pairs(
    frequencies: FrequencySet, at: int, sensitive: int | None
) -> tuple[Ints, Ints | None, Floats]:
    """The codes of a column with those of a sensitive one, or alone: code, label, rows."""
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
        found, below = _summed(node, rows, hierarchy.nodes)
        count[found] = below
        entropy[found] = np.log2(below)
        if label is not None:
            keys, counts = _summed(node * np.int64(size) + label, rows, hierarchy.nodes * size)
            known = np.bincount(keys // size, counts * np.log2(counts), hierarchy.nodes)
            entropy[found] -= known[found] / below
    return count, entropy


def _summed(keys: Ints, weights: NDArray[Any], size: int) -> tuple[Ints, Floats]:
    """The distinct keys below ``size`` in ascending order, and the sum of the weights of each."""
    if size <= max(1 << 20, 4 * len(keys)):
        sums = np.bincount(keys, weights, size)
        found = np.flatnonzero(sums)
        return found, sums[found]
    distinct, place = np.unique(keys, return_inverse=True)
    return distinct, np.bincount(place, weights, len(distinct))
