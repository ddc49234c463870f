"""How the cuts of a plan may be shown: in a label, a log, an XCom, a report or on a page.

A cut value is a value of the data; where values are unique, it belongs to one person. A cut is
shown as

(A) its value, if at least k rows have it;
(B) a round value (`mondrian_ops.generalize.rounding`) right above it, if no row lies above the cut
    and up to that value, so that both divide the rows alike, and if at least k rows lie within one
    step of its grid on either side, none of them at or beyond a value that (A) shows; else
(C) its rank: the share of all rows, those with a missing value included, that it sends left.

Rows are counted in the real data, not in the sample. Where the job has an ``entity_id``, k counts
distinct persons instead.

Over all plans of one dataset, with any seeds, samples and numbers of fragments, at least k rows lie
between any two round values that (B) shows. Proof: let r < s be two of them, and d the smaller of
their steps. Every grid contains the coarser ones, so both lie on the grid of step d, and s is at
least one step above r. If d is the step of r, the k rows above r and up to r + d are not above s,
and not at s, where (B) allows no row. If d is the step of s, the k rows from s - d on are not below
r, and not at r. (Months and years differ in length, but the argument needs only that both values
are on the finer grid, and that the window ends at a neighbour there. Zero lies on every grid.) The
values that (A) shows have k rows each.

The leaves of a hierarchy's file and their order are public: the number of leaves in a fragment
would disclose where it ends. So a leaf is named only if at least k rows have it, and the others are
counted only if both ends of the range may be shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.cut.plan import (
    Branch,
    Conjunction,
    Order,
    Plan,
    Predicate,
    edges_of,
    leaves_between,
)
from mondrian_ops.data.persons import LeafPersons
from mondrian_ops.data.values import read_value
from mondrian_ops.late_methods import dataclass

_NAMED_LEAVES = 6
_SHARE_DIGITS = 3  # a tenth of a per cent
_LEAST_SHARE = 0.001

Shown = dict[str, Any]
"""``{"value"}`` or ``{"share"}``: the right side of a predicate as it may be shown."""


@dataclass(frozen=True)
class Disclosure:
    """How the cuts of a plan are shown.

    ``cuts`` by column and cut value. ``leaves`` by column cut along the leaves of a hierarchy's
    file: those that at least k rows have.
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
        persons: LeafPersons | None = None,
    ) -> Disclosure:
        """The form in which each cut may be shown, by counts of the real data.

        ``cells``: rows in each cell of the plan's `Router`, numbered through all columns.
        ``persons``: where k counts persons, those of each cell, up to k.
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
                leaves[name] = line.frequent()
            start = stop
        return cls(orders, cuts, leaves)

    def condition(self, any_of: Sequence[Conjunction]) -> list[Conjunction]:
        """The condition in its public form: some predicates have a ``share`` instead of a value."""
        return [[self._predicate(predicate) for predicate in conjunction] for conjunction in any_of]

    def text(self, any_of: Sequence[Conjunction]) -> str:
        """The public form as text, such as ``age <= 38 AND country IN {France, Italy}``."""
        text, *others = (self._conjunction_text(conjunction) for conjunction in any_of)
        return " OR ".join(f"({each})" for each in (text, *others)) if others else text

    def _predicate(self, predicate: Predicate) -> Predicate:
        if "value" not in predicate:
            return predicate
        column, op = predicate["column"], predicate["op"]
        return {"column": column, "op": op, **self.cuts[column, predicate["value"]]}

    def _conjunction_text(self, conjunction: Conjunction) -> str:
        """The bounds of a column stand together, where the first one is."""
        texts = []
        for column in dict.fromkeys(predicate["column"] for predicate in conjunction):
            name = _shown_name(column)
            of_column = [predicate for predicate in conjunction if predicate["column"] == column]
            texts += [
                f"{name} IS {predicate['op'].upper()}"
                for predicate in of_column
                if "value" not in predicate
            ]
            bounds = [predicate for predicate in of_column if "value" in predicate]
            shown = [self._predicate(predicate) for predicate in bounds]
            named = self._named(column, bounds, shown) if bounds and column in self.leaves else ""
            texts += [named] if named else _bounds_text(name, shown)
        return " AND ".join(texts)

    def _named(self, name: str, bounds: Conjunction, shown: Conjunction) -> str:
        """The leaves between two bounds that may be named; empty if none may."""
        leaves = leaves_between(bounds, name, self.orders[name]).to_pylist()
        frequent = [leaf for leaf in leaves if leaf in self.leaves[name]]
        few = len(frequent) <= _NAMED_LEAVES
        names = frequent if few else [*frequent[:2], frequent[-1]]
        if not names:
            return ""
        others = len(leaves) - len(names)
        if any("share" in predicate for predicate in shown):
            return f"{_shown_name(name)} IN {{{', '.join([*names, '…'])}}}"
        more = f" and {others} more" if others else ""
        return f"{_shown_name(name)} IN {{{', '.join(names)}{more}}}"


class _Line:
    """Counts of a column's rows, at its edges and between them."""

    def __init__(
        self,
        edges: pa.Array,
        k: int,
        cells: NDArray[np.int64],
        first: int,
        persons: LeafPersons | None,
    ) -> None:
        self._edges = edges
        self._k = k
        self._rows = np.concatenate([[0], np.cumsum(cells)])
        self._first = first
        self._persons = persons

    def frequent(self) -> frozenset[str]:
        """The edges that at least k rows have."""
        frequent = [at for at in range(len(self._edges)) if self._is_frequent(at)]
        return frozenset(self._edges.take(pa.array(frequent, pa.int64())).to_pylist())

    def shown(self, branches: Sequence[Branch]) -> dict[Any, Shown]:
        """How each of a column's cuts is shown, by cut value."""
        cuts = {b.value: b for b in branches if b.value is not None}
        edges = {value: self._edge(value) for value in cuts}
        frequent = [edge for edge in edges.values() if self._is_frequent(edge)]
        shown: dict[Any, Shown] = {}
        for value, branch in cuts.items():
            if edges[value] in frequent:
                shown[value] = {"value": value}
            elif branch.round is not None and self._allows_round(branch, frequent):
                shown[value] = {"value": branch.round.value}
            else:
                shown[value] = {"share": self._share(edges[value])}
        return shown

    def _allows_round(self, branch: Branch, frequent: Sequence[int]) -> bool:
        """Whether (B) allows the cut's round value; ``frequent`` are the edges that (A) shows."""
        value, low, high = branch.round or (None, None, None)
        at = self._edge(value)
        if self._count(_above(self._edge(branch.value)), _above(at)):
            return False
        first = 1 if low is None else _at(self._edge(low))
        last = len(self._rows) - 1 if high is None else _above(self._edge(high))
        first = max([first, *(_above(edge) for edge in frequent if edge < at)])
        last = min([last, *(_at(edge) for edge in frequent if edge > at)])
        return self._is_enough(first, _at(at)) and self._is_enough(_above(at), last)

    def _edge(self, value: Any) -> int:
        return int(self._edges.index(read_value(value, self._edges.type)).as_py())

    def _is_frequent(self, edge: int) -> bool:
        return self._is_enough(_at(edge), _above(edge))

    def _share(self, edge: int) -> float:
        """The share of the rows up to an edge, rounded, but never to 0 or 1."""
        share = round(self._count(0, _above(edge)) / int(self._rows[-1]), _SHARE_DIGITS)
        return min(max(share, _LEAST_SHARE), 1 - _LEAST_SHARE)

    def _count(self, first: int, stop: int) -> int:
        return int(self._rows[stop] - self._rows[first])

    def _is_enough(self, first: int, stop: int) -> bool:
        """Whether cells ``first`` to ``stop`` - 1 have k rows, and k persons if k counts them."""
        if self._count(first, stop) < self._k:
            return False
        if self._persons is None:
            return True
        return self._persons.between(self._first + first, self._first + stop) >= self._k


def _at(edge: int) -> int:
    """The cell of the values that equal an edge."""
    return 2 * edge + 2


def _above(edge: int) -> int:
    return _at(edge) + 1


def _shown_name(column: str) -> str:
    """The name of a column; quotes where it is empty."""
    return column or "''"


def _bounds_text(name: str, bounds: Conjunction) -> list[str]:
    if len(bounds) == 2 and all("share" in bound for bound in bounds):
        low, high = (_percent(bound["share"]) for bound in bounds)
        return [f"{name}: from {low} to {high}"]
    return [_bound_text(name, bound) for bound in bounds]


def _bound_text(name: str, bound: Predicate) -> str:
    if "value" in bound:
        return f"{name} {bound['op']} {bound['value']}"
    if bound["op"] == "<=":
        return f"{name}: lowest {_percent(bound['share'])}"
    return f"{name}: highest {_percent(1 - bound['share'])}"


def _percent(share: float) -> str:
    return f"{100 * share:g} %"
