"""Classes that fail are joined with their neighbours in the order in which they were cut.

Neighbours in this order lie next to each other. A join keeps what the rows of both classes satisfy:
k, l of each kind, and t. A class is joined with the neighbour by which the smaller class comes out,
or the one that is less widened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.generalize.attributes import Classes

Bools = NDArray[np.bool_]
Costs = Callable[[Classes], NDArray[np.float64]]
"""(classes - 1,) what it costs to join each class with the next one."""


def joined_until(
    classes: Classes, satisfied: Callable[[Classes], Bools], costs: Costs | None = None
) -> Classes:
    """The classes, as few as possible of them joined, until all are ``satisfied`` (classes,).

    A class is joined where it costs least, by default where the fewest rows come together. One
    class that is left may still fail.
    """
    costs = costs or _rows
    while len(classes.starts) > 1:
        failing = ~satisfied(classes)
        if not failing.any():
            break
        classes = _with_neighbours(classes, failing, costs(classes))
    return classes


def _rows(classes: Classes) -> NDArray[np.float64]:
    return (classes.sizes[:-1] + classes.sizes[1:]).astype(np.float64)


def widening(codes: NDArray[np.unsignedinteger[Any]]) -> Costs:
    """How much wider the rows of two classes become by a join; ``codes``: (attributes, rows).

    A row of a class is as wide as the share of all codes of an attribute that the class spans.
    """

    def costs(classes: Classes) -> NDArray[np.float64]:
        total = np.zeros(max(0, len(classes.starts) - 1))
        sizes = classes.sizes
        for column in codes:
            of_rows = column[classes.index].astype(np.int64)
            low = np.minimum.reduceat(of_rows, classes.starts)
            high = np.maximum.reduceat(of_rows, classes.starts)
            own = (high - low) * sizes
            both = np.maximum(high[1:], high[:-1]) - np.minimum(low[1:], low[:-1])
            wider = both * (sizes[1:] + sizes[:-1]) - own[1:] - own[:-1]
            total += wider / max(1, int(of_rows.max() - of_rows.min()))
        return total

    return costs


def _with_neighbours(classes: Classes, failing: Bools, costs: NDArray[np.float64]) -> Classes:
    """The classes, with each that fails joined to the neighbour by which it costs less, or to one
    that has joined it."""
    last = len(failing) - 1
    ends = np.ones(len(failing), bool)  # whether a class begins here
    taken = np.zeros(len(failing), bool)
    for at in np.flatnonzero(failing):
        if taken[at]:
            continue
        before = at > 0 and (at == last or costs[at - 1] <= costs[at])
        first = at - 1 if before else at
        ends[first + 1] = False
        taken[[first, first + 1]] = True
    return Classes(classes.index, classes.starts[ends])
