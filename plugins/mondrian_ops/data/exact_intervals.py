"""Intervals of equal width with exact edges: the steps of a ladder, the cells of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray


class DecimalUnits:
    """Decimal fractions as whole numbers of a unit, so that the edges of intervals are exact.

    The unit is the largest power of ten of which ``numbers``, the widths and the origin, are
    multiples.
    """

    def __init__(self, numbers: Sequence[float]) -> None:
        self._largest = sum(abs(number) for number in numbers)
        exponents = [Decimal(str(number)).normalize().as_tuple().exponent for number in numbers]
        self.digits = max(0, *(-int(exponent) for exponent in exponents))

    def holds(self, values: NDArray[Any]) -> bool:
        """Whether a float64 holds the edges of the intervals of these values exactly."""
        reach = float(np.abs(values.astype(np.float64)).max(initial=0.0)) + self._largest
        return self.digits < 16 and reach * 10.0**self.digits < 2**53

    def units(self, number: float) -> int:
        """``number`` in units."""
        return int(Decimal(str(number)).scaleb(self.digits))

    def floats(self, units: NDArray[np.int64]) -> NDArray[np.float64]:
        """Units as numbers."""
        return units / 10.0**self.digits

    def bins(self, numbers: NDArray[np.float64], width: int, start: int) -> NDArray[np.int64]:
        """The interval of each number, ``width`` units wide; interval 0 begins at ``start``."""
        bins = np.floor((numbers * 10.0**self.digits - start) / width).astype(np.int64)
        # The division may round across an edge; the edges themselves are exact.
        bins += numbers >= self.floats(start + (bins + 1) * width)
        bins -= numbers < self.floats(start + bins * width)
        return bins
