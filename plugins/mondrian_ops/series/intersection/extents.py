"""How far apart codes of quasi-identifiers are: what rows lose that are published as one class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.cut.native import mondrian as native

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]


class Extents:
    """Losses of sets of rows by the least and the greatest code in each attribute.

    A set of values loses by how far its codes are apart, and by no more than its rows, since only
    these are known here.

    Attributes:
        codes: (rows, attributes) int64.
        places: (rows, attributes): where a row is, so that distances are comparable.
        line: the attribute of intervals with the most codes; None without any.
    """

    def __init__(self, rows: native.Rows) -> None:
        self._rows = rows
        self.codes = rows.codes.T.astype(np.int64)
        self._steps = [np.stack(self._table(a)) for a in range(len(rows.kind))]
        self.places = np.stack(
            [self.middle(a, each, each) for a, each in enumerate(self.codes.T)], axis=1
        )

        sizes = np.where(rows.kind == native.INTERVAL, np.diff(rows.first), 0)
        self.line = int(np.argmax(sizes)) if sizes.any() else None

    def _table(self, attribute: int) -> list[Floats]:
        """The greatest loss of 1, 2, 4, … steps from each code on."""
        rows = self._rows
        first, end = rows.first[attribute], rows.first[attribute + 1]
        tables = [np.asarray(rows.step[first:end], np.float64)]
        while 2 ** len(tables) < end - first:
            last, reach = tables[-1], 2 ** (len(tables) - 1)
            later = np.append(last[reach:], np.zeros(min(reach, len(last))))
            tables.append(np.maximum(last, later[: len(last)]))
        return tables

    def middle(self, attribute: int, low: Codes, high: Codes) -> Floats:
        """A number between the places of two codes; missing values come far before all others."""
        rows, first = self._rows, int(self._rows.first[attribute])
        if rows.kind[attribute] == native.INTERVAL:
            ends = rows.low[first + low], rows.high[first + high]
            between = (ends[0] + ends[1]) / (2 * rows.span[attribute])
            least = rows.low[first + 1] / rows.span[attribute] if self._size(attribute) > 1 else 0.0
            between = between - least
        else:
            between = (low + high) / (2.0 * max(1, self._size(attribute)))
        return np.asarray(np.where(low == 0, np.where(high == 0, -2.0, -1.0), between))

    def _size(self, attribute: int) -> int:
        return int(self._rows.first[attribute + 1] - self._rows.first[attribute])

    def width(self, low: Codes, high: Codes, count: Codes) -> Any:
        """The loss of a row in each of some sets of ``count`` rows (n,), over all attributes.

        ``low``, ``high``: (n, attributes).
        """
        return self.widths(low, high, count).sum(axis=1)

    def widths(self, low: Codes, high: Codes, count: Codes) -> Floats:
        """The same by attribute, (n, attributes)."""
        parts = [self._width(a, low[:, a], high[:, a], count) for a in range(low.shape[1])]
        return np.stack(parts, axis=1)

    def _width(self, attribute: int, low: Codes, high: Codes, count: Codes) -> Floats:
        rows, first = self._rows, int(self._rows.first[attribute])
        kind = rows.kind[attribute]
        if kind == native.INTERVAL:
            lost = (rows.high[first + high] - rows.low[first + low]) / rows.span[attribute]
            lost = np.minimum(lost, rows.most[attribute])
        elif kind == native.SET:
            apart = np.minimum(high - low, count - 1)  # other values, at most
            lost = np.asarray(rows.step[first + np.maximum(apart, 0)])
        else:
            lost = self._greatest_step(attribute, low, high)
        lost = np.where(low == 0, rows.most[attribute], lost)
        is_one = (low == high) & ((kind != native.INTERVAL) | (low == 0))
        return np.asarray(np.where(is_one, 0.0, lost))

    def _greatest_step(self, attribute: int, low: Codes, high: Codes) -> Floats:
        """The loss of the lowest common ancestor: the greatest step from ``low`` to ``high``."""
        steps = self._steps[attribute]
        length = np.maximum(1, high - low)
        level = np.minimum(np.log2(length).astype(np.int64), len(steps) - 1)
        at = np.maximum(low, high - 2**level)
        return np.asarray(np.maximum(steps[level, low], steps[level, at]))
