"""The cells of values, and the leaf that they lead to."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from mondrian_ops.cut.plan import Branch, Leaf, Order, Plan
from mondrian_ops.cut.routing import Router
from mondrian_ops.generalize.rounding import Round


def test_cells_tell_what_equals_an_edge_from_what_lies_between_two():
    orders = {"x": Order(pa.int64())}
    tree = (Branch("x", 5, 1, 2, Round(10, 0, 20)), Leaf(0), Branch("x", 6, 3, 4), Leaf(1), Leaf(2))
    router = Router(Plan(tree, ((0,), (1,), (2,))), orders)  # edges 0, 5, 6, 10, 20
    values = [None, -1, 0, 3, 5, 6, 7, 10, 15, 20, 21]
    places = router.place(pa.table({"x": values}))
    assert places[0].tolist() == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11]
    assert router.leaves(places).tolist() == [0] * 5 + [1] + [2] * 5
    assert router.count(places).tolist() == [1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1]
    weights = np.arange(len(values))
    assert router.count(places, weights).tolist() == [0, 1, 2, 3, 4, 0, 5, 6, 7, 8, 9, 10]
    assert router.numbered(places).tolist() == [places[0].tolist()]


@pytest.mark.parametrize(
    ("type_", "edge", "values", "cells"),
    [
        (pa.uint8(), 0, [0, 1, 255], [2, 3, 3]),
        (pa.int64(), -(2**63), [-(2**63), 1 - 2**63, 2**63 - 1], [2, 3, 3]),
        (pa.uint64(), 2**64 - 1, [0, 2**64 - 2, 2**64 - 1], [1, 1, 2]),
        (pa.int8(), 127, [-128, 126, 127], [1, 1, 2]),
        (pa.float64(), 0.0, [-5e-324, -0.0, 0.0, 5e-324], [1, 2, 2, 3]),
        (pa.float32(), 0.5, [0.25, 0.5, 0.75, float("nan")], [1, 2, 3, 0]),
        (pa.string(), "b", ["a", "b", "ba", None], [1, 2, 3, 0]),
        (pa.bool_(), False, [False, True], [2, 3]),
    ],
)
def test_cells_at_the_ends_of_a_type(type_, edge, values, cells):
    plan = Plan((Branch("x", edge, 1, 2), Leaf(0), Leaf(1)), ((0,), (1,)))
    router = Router(plan, {"x": Order(type_)})
    places = router.place(pa.table({"x": pa.array(values, type_)}))
    assert places[0].tolist() == cells
    assert router.leaves(places).tolist() == [int(cell > 2) for cell in cells]
