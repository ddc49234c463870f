"""Classes that fail are joined with their neighbours in the order in which they were cut.

Neighbours in this order lie next to each other. A join keeps what the rows of both classes satisfy:
k, l of each kind, and t. A class is joined with the neighbour by which the smaller class comes out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.generalize.attributes import Classes

Bools = NDArray[np.bool_]


def joined_until(classes: Classes, satisfied: Callable[[Classes], Bools]) -> Classes:
    """The classes, as few as possible of them joined, until all are ``satisfied`` (classes,).

    One class that is left may still fail.
    """
    while len(classes.starts) > 1:
        failing = ~satisfied(classes)
        if not failing.any():
            break
        classes = _with_neighbours(classes, failing)
    return classes


def _with_neighbours(classes: Classes, failing: Bools) -> Classes:
    """The classes, with each that fails joined to its smaller neighbour, or to one that has joined
    it."""
    rows = classes.sizes
    last = len(failing) - 1
    ends = np.ones(len(failing), bool)  # whether a class begins here
    taken = np.zeros(len(failing), bool)
    for at in np.flatnonzero(failing):
        if taken[at]:
            continue
        before = at > 0 and (at == last or rows[at - 1] <= rows[at + 1])
        first = at - 1 if before else at
        ends[first + 1] = False
        taken[[first, first + 1]] = True
    return Classes(classes.index, classes.starts[ends])
