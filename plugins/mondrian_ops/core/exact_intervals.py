"""Intervals of equal width with exact edges: the steps of a ladder, the cells of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["DecimalUnits"]


class DecimalUnits:
    """Decimal fractions as whole numbers of their smallest unit, so that edges are exact.

    ``numbers`` are the widths and the origin that are to be whole.
    """

    def __init__(self, numbers: Sequence[float]) -> None:
        self._largest = sum(abs(number) for number in numbers)
        exponents = [Decimal(str(number)).normalize().as_tuple().exponent for number in numbers]
        self.digits = max(0, *(-int(exponent) for exponent in exponents))

    def holds(self, values: NDArray[Any]) -> bool:
        """Whether the edges of the intervals around these values are exact in a float64."""
        reach = float(np.abs(values.astype(np.float64)).max(initial=0.0)) + self._largest
        return self.digits < 16 and reach * 10.0**self.digits < 2**53

    def units(self, number: float) -> int:
        """``number`` in units."""
        return int(Decimal(str(number)).scaleb(self.digits))

    def floats(self, units: NDArray[np.int64]) -> NDArray[np.float64]:
        """The numbers that are so many units."""
        return units / 10.0**self.digits

    def bins(self, numbers: NDArray[np.float64], width: int, start: int) -> NDArray[np.int64]:
        """The interval of ``width`` units each number lies in; interval 0 begins at ``start``."""
        bins = np.floor((numbers * 10.0**self.digits - start) / width).astype(np.int64)
        # The division may round across an edge; the edges themselves are exact.
        bins += numbers >= self.floats(start + (bins + 1) * width)
        bins -= numbers < self.floats(start + bins * width)
        return bins
