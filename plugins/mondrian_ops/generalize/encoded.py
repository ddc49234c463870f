"""A quasi-identifier in codes."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

import numpy as np
import pyarrow as pa

from mondrian_ops.data.encoding import Codes
from mondrian_ops.late_methods import dataclass
from mondrian_ops.native.arrays import Floats


@dataclass(frozen=True)
class Encoded:
    """A column in codes, and the tables over its codes by which losses are measured."""

    codes: Codes
    size: int  # codes, the missing one included
    kind: Literal["interval", "tree", "set"]
    low: Floats = field(default_factory=lambda: np.zeros(0))  # (size,) for intervals
    high: Floats = field(default_factory=lambda: np.zeros(0))
    span: float = 0.0  # the width that loses all: no interval loses more
    origin: float = 0.0  # of intervals: the lower end of the range over the whole dataset
    present: float = 1.0  # distinct values in the whole dataset
    # (size,) for trees and sets, as in Rows
    step: Floats = field(default_factory=lambda: np.zeros(0))
    weight: float = 1.0  # by which its losses count
    values: pa.Array = field(default_factory=lambda: pa.nulls(0))  # of codes 1, 2, ...
