"""The plan: which rows belong to which fragment, as data.

A plan is a tree of cuts with numbered leaves. A fragment is one leaf, or several where small
fragments were merged. A plan is stored as a small JSON value with a schema version; this module
renders it as conditions and as a filter for a reader, and `mondrian_ops.cut.routing` finds the
leaf of each row. Nothing is evaluated as code.

Cut values are values of the data, so a plan and its conditions stay in the private working files;
`mondrian_ops.cut.shown_conditions` decides what of them may be shown.

A cut sends rows with ``value <= v`` and rows with a missing value to the left, all others to the
right; a cut without a value sends only the missing ones to the left. So every row has exactly one
leaf, whether or not the sample had its value (De Capitani di Vimercati et al., section 4.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property, reduce
from itertools import chain, pairwise
from operator import and_, or_
from typing import Any, TypeAlias, TypeVar, cast

import pyarrow as pa
import pyarrow.compute as pc

from mondrian_ops.cut.plan_version import SCHEMA, check_schema
from mondrian_ops.data.encoding import value_type
from mondrian_ops.data.values import read_value, text_of
from mondrian_ops.errors import StorageError
from mondrian_ops.generalize.attributes import Attribute, OrderedAttribute, TreeAttribute
from mondrian_ops.generalize.rounding import Round
from mondrian_ops.late_methods import dataclass

T = TypeVar("T")

Predicate: TypeAlias = dict[str, Any]
"""``{"column", "op", "value"}``; op is "<=" (or missing), ">", "missing" or "present"."""

Conjunction: TypeAlias = list[Predicate]


@dataclass(frozen=True)
class Branch:
    """A cut at ``value``, as JSON; None cuts between missing and present values.

    ``round``, if there is one, is a round value above it and below the next value of the sample.
    """

    column: str
    value: Any
    left: int
    right: int
    round: Round | None = None


@dataclass(frozen=True)
class Leaf:
    """A leaf of the tree; leaves are numbered from 0."""

    number: int


@dataclass(frozen=True)
class Order:
    """How the values of a column are compared: as they are, as text, or as a hierarchy's leaves."""

    type: pa.DataType
    leaves: pa.Array = None  # in their order; None: not compared as leaves
    text: bool = False
    named: bool = True  # whether the leaves come from a file, so that conditions may name them
    pointed: bool = False  # whether whole numbers are written 70.0

    def texts(self, values: pa.Array) -> pa.Array:
        """The values as the texts that are compared."""
        return text_of(values, self.pointed)


def orders_of(attributes: Sequence[Attribute]) -> dict[str, Order]:
    """The order of each attribute's values, by column."""
    orders = {}
    for attribute in attributes:
        order = Order(attribute.type)
        if isinstance(attribute, TreeAttribute):
            leaves = None if attribute.prefix else attribute.compared
            order = Order(
                attribute.type, leaves, attribute.prefix, attribute.named, attribute.pointed
            )
        elif isinstance(attribute, OrderedAttribute):
            order = Order(attribute.type, attribute.order)
        orders[attribute.name] = order
    return orders


@dataclass(frozen=True)
class Plan:
    """A tree of cuts (node 0 is the root) and the leaves of each fragment."""

    nodes: tuple[Branch | Leaf, ...]
    fragments: tuple[tuple[int, ...], ...]

    def to_json(self) -> dict[str, Any]:
        """A JSON value that `from_json` reads back."""
        nodes = [
            {"leaf": node.number} if isinstance(node, Leaf) else asdict(node) for node in self.nodes
        ]
        return {"schema": SCHEMA, "nodes": nodes, "fragments": [list(f) for f in self.fragments]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Plan:
        """The plan that `to_json` gave.

        Raises StorageError on another schema version, and where it is not one whole tree.
        """
        check_schema(value)
        try:
            nodes = tuple(map(_node, value["nodes"]))
            plan = cls(nodes, tuple(map(tuple, value["fragments"])))
            is_whole = plan._is_whole()
        except (KeyError, TypeError):
            is_whole = False
        if not is_whole:
            raise StorageError(
                "plan: the file of the plan is damaged; run again from the partition task"
            )
        return plan

    def _is_whole(self) -> bool:
        """Whether the nodes are one tree, and each leaf belongs to one fragment."""
        seen: set[int] = set()
        stack = [0]
        while stack:
            at = stack.pop()
            if at in seen or not 0 <= at < len(self.nodes):
                return False
            seen.add(at)
            node = self.nodes[at]
            if isinstance(node, Branch):
                stack += [node.left, node.right]
        leaves = list(range(self.leaves))
        numbered = sorted(node.number for node in self.nodes if isinstance(node, Leaf))
        return len(seen) == len(self.nodes) and numbered == leaves == sorted(chain(*self.fragments))

    @property
    def columns(self) -> list[str]:
        """The distinct columns that are cut."""
        return list(dict.fromkeys(n.column for n in self.nodes if isinstance(n, Branch)))

    @property
    def leaves(self) -> int:
        """How many leaves the tree has."""
        return sum(isinstance(node, Leaf) for node in self.nodes)

    @cached_property
    def paths(self) -> list[list[int]]:
        """The nodes from the root to each leaf, by leaf number."""
        paths: list[list[int]] = [[] for _ in range(self.leaves)]
        stack = [(0, [0])]
        while stack:
            at, path = stack.pop()
            node = self.nodes[at]
            if isinstance(node, Leaf):
                paths[node.number] = path
            else:
                stack += [(child, [*path, child]) for child in (node.left, node.right)]
        return paths

    def condition(self, fragment: int, orders: Mapping[str, Order]) -> list[Conjunction]:
        """The fragment's condition: any of these conjunctions; an empty one holds for every row."""
        return [self._conjunction(self.paths[leaf], orders) for leaf in self.fragments[fragment]]

    def _conjunction(self, path: Sequence[int], orders: Mapping[str, Order]) -> Conjunction:
        tightest: dict[tuple[str, str], Any] = {}
        for at, child in pairwise(path):
            cut = self._predicate(cast(Branch, self.nodes[at]), child)
            # Further down, cuts of a column only get tighter.
            tightest[cut["column"], cut["op"]] = cut.get("value")
        return [
            {"column": column, "op": op, **({} if value is None else {"value": value})}
            for (column, op), value in sorted(
                tightest.items(),
                key=lambda item: (list(orders).index(item[0][0]), item[0][1] == "<="),
            )
        ]

    @staticmethod
    def _predicate(cut: Branch, child: int) -> Predicate:
        """What holds for the rows that go to a child of a cut."""
        went_left = child == cut.left
        if cut.value is None:
            return {"column": cut.column, "op": "missing" if went_left else "present"}
        return {"column": cut.column, "op": "<=" if went_left else ">", "value": cut.value}

    def reaches(self, orders: Mapping[str, Order]) -> dict[int, pc.Expression | None]:
        """By node below a cut, a filter of its rows alone, as `pushdown_filter` has it."""
        return {
            child: _predicate_reach(self._predicate(node, child), orders[node.column])
            for node in self.nodes
            if isinstance(node, Branch)
            for child in (node.left, node.right)
        }

    def descend(self, whole: T, narrowed: Callable[[T, int], T | None]) -> dict[int, T]:
        """What is left of ``whole`` in each leaf, for the leaves that anything is left for.

        ``narrowed``: what a node below a cut leaves of what its parent left; None for nothing.
        """
        left: dict[int, T] = {}
        stack = [(0, whole)]
        while stack:
            at, rest = stack.pop()
            node = self.nodes[at]
            if isinstance(node, Leaf):
                left[node.number] = rest
                continue
            for child in (node.left, node.right):
                narrower = narrowed(rest, child)
                if narrower is not None:
                    stack.append((child, narrower))
        return left


def _node(value: Mapping[str, Any]) -> Branch | Leaf:
    if "leaf" in value:
        return Leaf(value["leaf"])
    return Branch(**{**value, "round": Round(*value["round"]) if value["round"] else None})


def leaves_between(conjunction: Conjunction, column: str, order: Order) -> pa.Array:
    """The leaves of ``column`` within the conjunction's bounds."""
    leaves = order.leaves
    bounds = {p["op"]: p["value"] for p in conjunction if p["column"] == column and "value" in p}
    start = leaves.index(bounds[">"]).as_py() + 1 if ">" in bounds else 0
    stop = leaves.index(bounds["<="]).as_py() + 1 if "<=" in bounds else len(leaves)
    return leaves.slice(start, stop - start)


def filter_of(any_of: Sequence[Conjunction], orders: Mapping[str, Order]) -> pc.Expression | None:
    """The condition as a pyarrow filter, for rows in memory; None keeps every row."""
    return _rendered(any_of, orders, _predicate_filter)


def pushdown_filter(
    any_of: Sequence[Conjunction], orders: Mapping[str, Order]
) -> pc.Expression | None:
    """A filter that readers push down: it keeps the rows of the condition, and maybe others.

    Readers decide by the statistics of row groups, which leave out NaN: whether they read a NaN
    would depend on the other values of its row group.
    """
    return _rendered(any_of, orders, _predicate_reach)


def is_exact(any_of: Sequence[Conjunction], orders: Mapping[str, Order]) -> bool:
    """Whether `pushdown_filter` keeps no other rows."""
    columns = {predicate["column"] for conjunction in any_of for predicate in conjunction}
    return not any(pa.types.is_floating(value_type(orders[name].type)) for name in columns)


def _rendered(
    any_of: Sequence[Conjunction],
    orders: Mapping[str, Order],
    render: Callable[[Predicate, Order], pc.Expression | None],
) -> pc.Expression | None:
    conjunctions = []
    for conjunction in any_of:
        each = [render(predicate, orders[predicate["column"]]) for predicate in conjunction]
        filters = [rendered for rendered in each if rendered is not None]
        if not filters:
            return None
        conjunctions.append(reduce(and_, filters))
    return reduce(or_, conjunctions)


def _predicate_reach(predicate: Predicate, order: Order) -> pc.Expression | None:
    is_exact = not pa.types.is_floating(value_type(order.type))
    keeps_nan = predicate["op"] != ">" or pa.types.is_string(_compared_type(order))
    return _predicate_filter(predicate, order) if is_exact or not keeps_nan else None


def _predicate_filter(predicate: Predicate, order: Order) -> pc.Expression:
    field = pc.field(predicate["column"])
    plain = value_type(order.type)
    # Before version 26 Arrow takes a row group with nothing but missing values of a dictionary for
    # one without any, unless they are asked for as a set.
    encoded = pa.types.is_dictionary(order.type)
    missing = field.isin(pa.array([None], plain)) if encoded else field.is_null()
    if pa.types.is_floating(plain):
        if order.type not in (pa.float32(), pa.float64()):
            field = field.cast(pa.float32() if pa.types.is_float16(plain) else plain)
        missing = missing | field.is_nan()
    op = predicate["op"]
    if op == "missing":
        return missing
    if op == "present":
        return ~missing
    if pa.types.is_string(_compared_type(order)) and not pa.types.is_string(plain):
        if pa.types.is_floating(plain):
            field = pc.add(field, 0.0)  # -0.0 is 0.0
        field = field.cast(pa.string())
    if order.leaves is not None:
        inside = field.isin(leaves_between([predicate], predicate["column"], order))
    else:
        value = scalar_of(predicate["value"], order)
        inside = field <= value if op == "<=" else field > value
    return inside | missing if op == "<=" else inside & ~missing


def _compared_type(order: Order) -> pa.DataType:
    """The type that values are compared in."""
    if order.text or order.leaves is not None:
        return pa.string()
    plain = value_type(order.type)
    return pa.float32() if pa.types.is_float16(plain) else plain


def scalar_of(value: Any, order: Order) -> pa.Scalar:
    """A cut value, which JSON holds as a number or text, in the column's type."""
    return read_value(value, _compared_type(order))


def edges_of(plan: Plan, name: str, order: Order) -> pa.Array:
    """The values of a cut column between which rows are counted, in order.

    The counts decide which values a condition may show. The edges are the cut values and, for a cut
    with a round value, that value and those one step below and above it. For a hierarchy from a
    file the edges are all its leaves.
    """
    if order.leaves is not None and order.named:
        return order.leaves
    branches = [n for n in plan.nodes if isinstance(n, Branch) and n.column == name]
    values = [v for branch in branches for v in (branch.value, *(branch.round or ()))]
    scalars = pa.array(
        [scalar_of(value, order) for value in values if value is not None], _compared_type(order)
    ).unique()
    keys = scalars if order.leaves is None else pc.index_in(scalars, value_set=order.leaves)
    return scalars.take(pc.array_sort_indices(keys))
