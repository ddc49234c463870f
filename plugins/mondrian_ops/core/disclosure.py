"""What of a plan's cuts may be shown: in a label, a log, an XCom, a report or on a page.

A cut value is a value of the data, and where a column's values are unique it is somebody's own. A
cut is shown by

(A) its value, where at least k rows have it;
(B) a round value (`mondrian_ops.core.rounding`) right above it, where no row lies from the cut up
    to it, that one included, so that it takes the same rows; and where at least k rows lie within a
    step of its grid on either side, none of them at or beyond a value that (A) shows; else
(C) its rank: the share of all rows that it sends to the left, the missing ones included.

Rows are counted in the real data, not in the sample. Where the job has an ``entity_id``, k counts
distinct persons instead.

Whatever plans are made of one dataset, with other seeds, samples or numbers of fragments, between
any two round values that (B) shows lie at least k rows. Let r < s be two, and d the smaller of
their steps. Every grid holds the coarser ones, so both lie on the grid of step d, and s is at least
one step above r. If d is the step of r, the k rows above it and up to r + d are not above s; nor
are they at s, where (B) lets no row be. If d is the step of s, the k rows from s - d on are not
below r, nor at r. (Months and years differ in length, but the argument needs only that both are on
the finer grid and that the window ends at a neighbour there. Zero lies on every grid.) A value that
(A) shows is one that k rows have.

The leaves of a hierarchy's file are known, and so is their order: who is told how many of them a
fragment takes knows where it ends. They are named where at least k rows have them, and counted only
where both ends of the range may be shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.core.entities import LeafEntities
from mondrian_ops.core.plan import (
    Branch,
    Conjunction,
    Order,
    Plan,
    Predicate,
    edges_of,
    leaves_between,
)
from mondrian_ops.core.values import read_value

__all__ = ["Disclosure"]

_NAMED_LEAVES = 6
_SHARE_DIGITS = 3  # a tenth of a per cent
_LEAST_SHARE = 0.001

Shown = dict[str, Any]
"""``{"value"}`` or ``{"share"}``: the right side of a predicate that may be shown."""


@dataclass(frozen=True)
class Disclosure:
    """How the cuts of a plan are shown.

    ``cuts`` by column and cut value; ``leaves``, of the columns that are cut by the named leaves of
    a hierarchy, those that at least k rows have.
    """

    orders: Mapping[str, Order]
    cuts: Mapping[tuple[str, Any], Shown] = field(default_factory=dict)
    leaves: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        plan: Plan,
        orders: Mapping[str, Order],
        k: int,
        cells: NDArray[np.int64],
        persons: LeafEntities | None = None,
    ) -> Disclosure:
        """What counts of the real data allow.

        ``cells``: rows in each cell of the plan's `Router`, numbered through all columns.
        ``persons``: where k counts them, those met in each of these cells, up to k.
        """
        cuts: dict[tuple[str, Any], Shown] = {}
        leaves = {}
        start = 0
        for name in plan.columns:
            edges = edges_of(plan, name, orders[name])
            stop = start + 2 * len(edges) + 2
            line = _Line(edges, k, cells[start:stop], start, persons)
            branches = [n for n in plan.nodes if isinstance(n, Branch) and n.column == name]
            cuts |= {(name, value): shown for value, shown in line.shown(branches).items()}
            if orders[name].leaves is not None and orders[name].named:
                leaves[name] = line.held()
            start = stop
        return cls(orders, cuts, leaves)

    def condition(self, any_of: Sequence[Conjunction]) -> list[Conjunction]:
        """A condition as it may be shown: predicates have a ``share`` instead of some values."""
        return [[self._predicate(each) for each in conjunction] for conjunction in any_of]

    def text(self, any_of: Sequence[Conjunction]) -> str:
        """A condition as people may read it, ``age <= 38 AND country IN {France, Italy}``."""
        text, *others = (self._conjunction_text(conjunction) for conjunction in any_of)
        return " OR ".join(f"({each})" for each in (text, *others)) if others else text

    def _predicate(self, predicate: Predicate) -> Predicate:
        if "value" not in predicate:
            return predicate
        column, op = predicate["column"], predicate["op"]
        return {"column": column, "op": op, **self.cuts[column, predicate["value"]]}

    def _conjunction_text(self, conjunction: Conjunction) -> str:
        """Bounds of a column stand together, where the first of them stands."""
        texts = []
        for column in dict.fromkeys(predicate["column"] for predicate in conjunction):
            name = _shown_name(column)
            of_column = [each for each in conjunction if each["column"] == column]
            texts += [
                f"{name} IS {each['op'].upper()}" for each in of_column if "value" not in each
            ]
            bounds = [each for each in of_column if "value" in each]
            shown = [self._predicate(each) for each in bounds]
            named = self._named(column, bounds, shown) if bounds and column in self.leaves else ""
            texts += [named] if named else _bounds_text(name, shown)
        return " AND ".join(texts)

    def _named(self, name: str, bounds: Conjunction, shown: Conjunction) -> str:
        """The leaves between two bounds as far as they may be named; empty where none may be."""
        leaves = leaves_between(bounds, name, self.orders[name]).to_pylist()
        held = [leaf for leaf in leaves if leaf in self.leaves[name]]
        names = held if len(held) <= _NAMED_LEAVES else [*held[:2], held[-1]]
        if not names:
            return ""
        others = len(leaves) - len(names)
        if any("share" in each for each in shown):
            return f"{_shown_name(name)} IN {{{', '.join([*names, '…'])}}}"
        more = f" and {others} more" if others else ""
        return f"{_shown_name(name)} IN {{{', '.join(names)}{more}}}"


class _Line:
    """What lies where on the line of a column's values: between its edges, and at each of them."""

    def __init__(
        self,
        edges: pa.Array,
        k: int,
        cells: NDArray[np.int64],
        first: int,
        persons: LeafEntities | None,
    ) -> None:
        self._edges = edges
        self._k = k
        self._rows = np.concatenate([[0], np.cumsum(cells)])
        self._first = first
        self._persons = persons

    def held(self) -> frozenset[str]:
        """The edges that at least k rows have."""
        found = [at for at in range(len(self._edges)) if self._is_held(at)]
        return frozenset(self._edges.take(pa.array(found, pa.int64())).to_pylist())

    def shown(self, branches: Sequence[Branch]) -> dict[Any, Shown]:
        """How each of a column's cuts is shown, by cut value."""
        cuts = {b.value: b for b in branches if b.value is not None}
        held = {value: at for value in cuts if self._is_held(at := self._edge(value))}
        found: dict[Any, Shown] = {}
        for value, branch in cuts.items():
            if value in held:
                found[value] = {"value": value}
            elif branch.round is not None and self._is_between(branch, list(held.values())):
                found[value] = {"value": branch.round.value}
            else:
                found[value] = {"share": self._share(self._edge(value))}
        return found

    def _is_between(self, branch: Branch, held: Sequence[int]) -> bool:
        """Whether (B) holds of the cut's round value; ``held`` are the edges that (A) shows."""
        value, low, high = branch.round or (None, None, None)
        at = self._edge(value)
        if self._count(_above(self._edge(branch.value)), _above(at)):
            return False
        first = 1 if low is None else _at(self._edge(low))
        last = len(self._rows) - 1 if high is None else _above(self._edge(high))
        first = max([first, *(_above(edge) for edge in held if edge < at)])
        last = min([last, *(_at(edge) for edge in held if edge > at)])
        return self._is_enough(first, _at(at)) and self._is_enough(_above(at), last)

    def _edge(self, value: Any) -> int:
        return int(self._edges.index(read_value(value, self._edges.type)).as_py())

    def _is_held(self, edge: int) -> bool:
        return self._is_enough(_at(edge), _above(edge))

    def _share(self, edge: int) -> float:
        """The share of the rows up to an edge; never none and never all, which no cut has."""
        share = round(self._count(0, _above(edge)) / int(self._rows[-1]), _SHARE_DIGITS)
        return min(max(share, _LEAST_SHARE), 1 - _LEAST_SHARE)

    def _count(self, first: int, stop: int) -> int:
        return int(self._rows[stop] - self._rows[first])

    def _is_enough(self, first: int, stop: int) -> bool:
        """Whether cells ``first`` to ``stop`` - 1 hold k rows, of k persons if these count."""
        if self._count(first, stop) < self._k:
            return False
        if self._persons is None:
            return True
        return self._persons.between(self._first + first, self._first + stop) >= self._k


def _at(edge: int) -> int:
    """The cell of what equals an edge; the one after it lies above."""
    return 2 * edge + 2


def _above(edge: int) -> int:
    return _at(edge) + 1


def _shown_name(column: str) -> str:
    """The name of a column; of one whose name is empty, quotes."""
    return column or "''"


def _bounds_text(name: str, bounds: Conjunction) -> list[str]:
    if len(bounds) == 2 and all("share" in each for each in bounds):
        low, high = (_percent(each["share"]) for each in bounds)
        return [f"{name}: from {low} to {high}"]
    return [_bound_text(name, each) for each in bounds]


def _bound_text(name: str, bound: Predicate) -> str:
    if "value" in bound:
        return f"{name} {bound['op']} {bound['value']}"
    if bound["op"] == "<=":
        return f"{name}: lowest {_percent(bound['share'])}"
    return f"{name}: highest {_percent(1 - bound['share'])}"


def _percent(share: float) -> str:
    return f"{100 * share:g} %"
