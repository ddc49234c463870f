"""The share of a column's information that a label loses, the same for labels of all kinds.

A label that covers some values of a column leaves open which of them a row has. The uncertainty in
bits is the entropy of the column's values in the dataset among those that the label covers (the
entropy measure of A. Gionis and T. Tassa, "k-Anonymization with Minimal Loss of Information", IEEE
Transactions on Knowledge and Data Engineering 21, 2009). As a share of the column's own entropy,
which ``*`` leaves open, it compares columns: neither the number of values nor the unit of a column,
nor one extreme value of it, makes a loss look small.
"""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Information:
    """The rows that have each of a column's values, in an order that the caller knows.

    ``terms`` (values,): r log2(r) of the ``rows`` r of each. The sums of both over the values that
    a label covers are all that its loss depends on.
    """

    def __init__(self, rows: NDArray[np.integer] | Floats, missing: float) -> None:
        self.rows = np.asarray(rows, np.float64)
        self.terms = self.rows * np.log2(np.maximum(self.rows, 1.0))
        all_terms = float(self.terms.sum()) + missing * float(np.log2(max(missing, 1.0)))
        self._bits = float(
            _entropy(np.array([self.rows.sum() + missing]), np.array([all_terms]))[0]
        )

    def lost(self, rows: Floats, terms: Floats) -> Floats:
        """What labels lose that cover values of so many ``rows``, with such a sum of ``terms``."""
        if self._bits <= 0:
            return np.zeros(len(rows))
        return _entropy(rows, terms) / self._bits

    def ordered(self, order: list[int]) -> Information:
        """The same with the values in another order."""
        changed = copy(self)
        changed.rows, changed.terms = self.rows[order], self.terms[order]
        return changed

    def summed(self, label: NDArray[np.int64], value: NDArray[np.int64], labels: int) -> Floats:
        """What each of some ``labels`` loses, by pairs of a label and a value that it covers."""
        rows: Floats = np.bincount(label, self.rows[value], labels).astype(np.float64)
        terms: Floats = np.bincount(label, self.terms[value], labels).astype(np.float64)
        return self.lost(rows, terms)

    def between(self, first: NDArray[np.int64], stop: NDArray[np.int64]) -> Floats:
        """What labels lose that cover the values from place ``first`` to before ``stop``.

        A place beyond the values, as of a missing one in a column of no other, covers nothing.
        """
        rows, terms = (np.append(0.0, np.cumsum(each)) for each in (self.rows, self.terms))
        stop = np.minimum(np.maximum(first, stop), len(self.rows))
        return self.lost(rows[stop] - rows[first], terms[stop] - terms[first])


def _entropy(rows: Floats, terms: Floats) -> Floats:
    """The entropy in bits, (labels,), by sums over the values that each label covers."""
    some = np.maximum(rows, 1.0)
    bits: Floats = np.maximum(0.0, np.log2(some) - terms / some)
    return np.where(bits < 1e-9, 0.0, bits)
