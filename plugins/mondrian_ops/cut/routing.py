"""Which leaf of a plan each row belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.cut.plan import Branch, Leaf, Order, Plan, edges_of, scalar_of
from mondrian_ops.data.encoding import (
    Codes,
    Column,
    Indexed,
    as_array,
    code_dtype,
    encode_known,
    indexed,
    value_type,
)
from mondrian_ops.data.small_integers import SmallIntegers, count, look_up
from mondrian_ops.generalize.native.classes import route_rows


class Router:
    """Routes rows to the leaves of a plan, by the cells of their values.

    The edges of a column (`edges_of`) divide its values into cells: cell 0 holds the missing ones,
    cell 2 e + 2 those that equal edge e, cell 2 e + 1 those below it and above the edge before.
    """

    def __init__(self, plan: Plan, orders: Mapping[str, Order]) -> None:
        self.columns = plan.columns  # those that `place` needs
        self._orders = orders
        self._edges = {name: edges_of(plan, name, orders[name]) for name in self.columns}
        self._sizes = [2 * len(self._edges[name]) + 2 for name in self.columns]
        branches = [node if isinstance(node, Branch) else None for node in plan.nodes]
        self._column = np.array([self.columns.index(b.column) if b else -1 for b in branches])
        self._limit = np.array([self._limit_of(b) if b else 0 for b in branches])
        self._left = np.array([b.left if b else 0 for b in branches])
        self._right = np.array([b.right if b else 0 for b in branches])
        self._leaf = np.array([n.number if isinstance(n, Leaf) else -1 for n in plan.nodes])

    @property
    def cells(self) -> int:
        """The number of cells of all columns."""
        return sum(self._sizes)

    def place(self, batch: pa.RecordBatch | pa.Table) -> Codes:
        """The cell of each row in each column, (columns, rows)."""
        cells = code_dtype(max(self._sizes, default=1))
        places = np.empty((len(self.columns), batch.num_rows), cells)
        for i, name in enumerate(self.columns):
            places[i] = self._places(name, batch.column(name))
        return places

    def leaves(self, places: Codes) -> Codes:
        """The leaf of each row by its cells, (rows,)."""
        kind = code_dtype(int(self._leaf.max()) + 1)
        if not self.columns:
            return np.zeros(places.shape[1], kind)
        tree = (self._column, self._limit, self._left, self._right, self._leaf)
        return route_rows(places, *tree, dtype=kind)

    def numbered(self, places: Codes) -> NDArray[np.int64]:
        """The cells of rows, (columns, rows), numbered through all columns."""
        first: NDArray[np.int64] = np.cumsum([0, *self._sizes])[:-1]
        return places + first[:, None]

    def count(self, places: Codes, weights: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """The rows in each cell, (cells,) int64, each counted by its weight."""
        counted = [
            count(of_column, size) if weights is None else np.bincount(of_column, weights, size)
            for of_column, size in zip(places, self._sizes, strict=True)
        ]
        return np.concatenate([np.zeros(0, np.int64), *counted]).astype(np.int64)

    def route(self, batch: pa.RecordBatch | pa.Table) -> Codes:
        """The leaf of each row, (rows,)."""
        return self.leaves(self.place(batch))

    def _limit_of(self, branch: Branch) -> int:
        """The last cell whose rows go left."""
        if branch.value is None:
            return 0
        value = scalar_of(branch.value, self._orders[branch.column])
        return 2 * int(self._edges[branch.column].index(value).as_py()) + 2

    def _places(self, name: str, column: Column) -> NDArray[np.integer[Any]]:
        order, edges = self._orders[name], self._edges[name]
        as_text = order.text or order.leaves is not None
        if not as_text and _has_numpy_order(value_type(column.type)):
            cells = code_dtype(max(self._sizes))
            return _primitive_places(as_array(column), edges, cells)
        by_value = indexed(column).mapped(order.texts) if as_text else indexed(column)
        if order.leaves is None:
            return look_up(_places_of(by_value.values, edges), by_value.indices)
        return look_up(_places_among(order.leaves, by_value.values, edges), by_value.indices)


def _places_among(leaves: pa.Array, values: pa.Array, edges: pa.Array) -> NDArray[np.int64]:
    """The cells of ``values`` that are compared as ``leaves``."""
    codes, _ = encode_known(Indexed(np.arange(len(values)), values), leaves)
    limits = pc.index_in(edges, value_set=leaves).to_numpy() + 1
    return np.where(codes == 0, 0, _cells(limits, codes))


def _places_of(values: pa.Array, edges: pa.Array) -> NDArray[np.int64]:
    """The cells of ``values`` that are compared as they are."""
    objects = np.array(values.to_pylist(), dtype=object)
    limits = np.array(edges.to_pylist(), dtype=object)
    places = np.zeros(len(objects), np.int64)
    present = np.array([value is not None for value in objects], dtype=bool)
    places[present] = _cells(limits, objects[present])
    return places


def _cells(limits: NDArray[Any], values: NDArray[Any]) -> NDArray[np.int64]:
    below, up_to = (np.searchsorted(limits, values, side=side) for side in ("left", "right"))
    return np.asarray(1 + below + up_to, np.int64)


def _has_numpy_order(type_: pa.DataType) -> bool:
    of_type = pa.types.is_integer, pa.types.is_floating, pa.types.is_temporal
    return any(each(type_) for each in of_type)


def _primitive_places(
    column: pa.Array, edges: pa.Array, cells: np.dtype[Any]
) -> NDArray[np.integer[Any]]:
    """The cells of numbers and moments; integers within a small range are looked up in a table."""
    if pa.types.is_temporal(column.type):
        ticks = pa.int32() if column.type.bit_width == 32 else pa.int64()
        column, edges = column.cast(ticks), edges.cast(ticks)
    limits, skipped = _with_values_below(edges.to_numpy())
    small = SmallIntegers.of(column)
    if small is not None:
        found = np.searchsorted(limits, small.numbers.to_numpy()) + (1 + skipped)
        table: NDArray[np.integer[Any]] = np.append(found, 0).astype(cells)
        return small.look_up(table)
    missing = column.is_null(nan_is_null=True)
    values = pc.fill_null(column, pa.scalar(0, column.type)).to_numpy()
    places: NDArray[np.integer[Any]] = np.searchsorted(limits, values) + (1 + skipped)
    if pc.any(missing).as_py():
        places[missing.to_numpy(zero_copy_only=False)] = 0
    return places


def _with_values_below(edges: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Each edge after the next value below it, so that one search finds the cell of a value.

    Also 1 if the least edge is the least value of its type, so that there is none below, else 0.
    """
    if np.issubdtype(edges.dtype, np.floating):
        below = np.nextafter(edges, edges.dtype.type(-np.inf))
    else:
        below = edges - edges.dtype.type(1)
    is_least = len(edges) > 0 and bool(below[0] >= edges[0])
    return np.stack([below, edges], axis=1).ravel()[int(is_least) :], int(is_least)
