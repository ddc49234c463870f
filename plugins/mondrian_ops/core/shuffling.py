"""Orders that nobody can repeat: drawn from the operating system's randomness, and kept nowhere.

Who could compute the order of a release's rows from anything else, such as their codes, the job or
a seed, could run the job again over stand-ins for what is published, lay the two releases side by
side, and read off whose row each one is.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.native import classes

__all__ = ["shuffle_classes"]


def shuffle_classes(index: NDArray[np.int32], starts: NDArray[np.int64]) -> None:
    """Shuffle the rows of every class in place, into another order with every call.

    ``index`` (rows,) int32 holds the rows, ``starts`` (classes,) int64 where each class begins.
    """
    classes.shuffle_classes(index, starts, np.frombuffer(os.urandom(4 * len(index)), np.uint32))
