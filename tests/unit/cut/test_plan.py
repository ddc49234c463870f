"""The plan: every row has exactly one fragment, and all renderings of a condition agree."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops import tables
from mondrian_ops.cut.plan import (
    Branch,
    Leaf,
    Order,
    Plan,
    filter_of,
    is_exact,
    pushdown_filter,
)
from mondrian_ops.cut.plan_version import check_schema
from mondrian_ops.cut.routing import Router
from mondrian_ops.errors import StorageError
from mondrian_ops.generalize.rounding import Round
from published_text import CHAINS, KINDS, is_missing, text_of

AGES = Order(pa.int64())
COUNTRIES = Order(
    pa.string(),
    leaves=pa.array(
        ["Italy", "France", "Spain", "USA", "Canada", "Greenland", "China", "Japan", "India"]
    ),
)
ORDERS = {"age": AGES, "country": COUNTRIES}

# The example of the paper's section 4.2: Age <= 38, then the country; Age > 38, then Age <= 42.
PLAN = Plan(
    (
        Branch("age", 38, 1, 2),
        Branch("country", "Spain", 3, 4),
        Branch("age", 42, 5, 6),
        Leaf(0),
        Leaf(1),
        Leaf(2),
        Leaf(3),
    ),
    ((0,), (1,), (2, 3)),
)


def test_conditions_are_small_json():
    condition = PLAN.condition(2, ORDERS)
    assert condition == [
        [{"column": "age", "op": ">", "value": 38}, {"column": "age", "op": "<=", "value": 42}],
        [{"column": "age", "op": ">", "value": 42}],
    ]
    assert json.loads(json.dumps(PLAN.to_json())) == PLAN.to_json()
    assert Plan.from_json(json.loads(json.dumps(PLAN.to_json()))) == PLAN
    near = Plan((Branch("age", 38, 1, 2, Round(40, None, 50)), Leaf(0), Leaf(1)), ((0,), (1,)))
    assert Plan.from_json(json.loads(json.dumps(near.to_json()))) == near


def test_one_fragment_takes_every_row():
    plan = Plan((Leaf(0),), ((0,),))
    assert plan.condition(0, ORDERS) == [[]]
    assert filter_of(plan.condition(0, ORDERS), ORDERS) is None
    assert Router(plan, ORDERS).route(pa.table({"age": [1, None]})).tolist() == [0, 0]


def test_another_schema_version_is_refused():
    with pytest.raises(StorageError, match=r"schema version 1.*partition task"):
        check_schema({"schema": 1})
    with pytest.raises(StorageError, match="schema version None"):
        Plan.from_json({"nodes": [], "fragments": []})


# Random trees over columns of every kind


@st.composite
def plans(draw):
    """A kind of column, all its values, and a tree of cuts over two columns of it."""
    name = draw(st.sampled_from([n for n in KINDS if n != "nothing"]))
    kind = KINDS[name]
    ways = [way for way in kind.ways if "ladder" not in way and "grid" not in way]
    way = draw(st.sampled_from(ways)).partition(":")[0]
    rows = draw(st.integers(1, 30))
    columns = {
        column: draw(st.lists(st.none() | kind.values, min_size=rows, max_size=rows))
        for column in ("a", "b")
    }
    order = Order(kind.type)
    if way == "prefix":
        order = Order(kind.type, text=True)
    if way == "hierarchy":
        order = Order(kind.type, leaves=pa.array(CHAINS))
    nodes = _tree(draw, kind, order)
    leaves = sum(isinstance(node, Leaf) for node in nodes)
    fragments = tuple((at,) for at in range(leaves))
    if leaves > 2 and draw(st.booleans()):
        fragments = ((0, leaves - 1), *((at,) for at in range(1, leaves - 1)))
    return kind, columns, order, Plan(tuple(nodes), fragments)


def _tree(draw, kind, order) -> list[Branch | Leaf]:
    """Cuts whose values tighten down the tree, as those of Mondrian do."""
    plain = kind.type.value_type if pa.types.is_dictionary(kind.type) else kind.type

    def key(value):
        if order.leaves is not None:
            return list(CHAINS).index(value)
        return text_of(kind, value) if order.text else value

    def as_json(value):
        if order.text or order.leaves is not None:
            return text_of(kind, value)
        return value if isinstance(value, int | float | str) else text_of(kind, value)

    nodes: list[Branch | Leaf | None] = [None]
    waiting: list[tuple[int, dict, int]] = [(0, {"a": [None, None], "b": [None, None]}, 0)]
    count = 0
    while waiting:
        at, bounds, depth = waiting.pop()
        column = draw(st.sampled_from(["a", "b"]))
        low, high = bounds[column]
        value = draw(kind.values.filter(lambda v: not is_missing(v)))
        fits = (low is None or key(value) > key(low)) and (high is None or key(value) < key(high))
        if depth == 3 or not fits or draw(st.booleans()):
            nodes[at] = Leaf(count)
            count += 1
            continue
        assert plain is not None
        nodes[at] = Branch(column, as_json(value), len(nodes), len(nodes) + 1)
        for side, bound in enumerate(([low, value], [value, high])):
            waiting.append((len(nodes) + side, {**bounds, column: bound}, depth + 1))
        nodes += [None, None]
    return nodes


@examples(250)
@given(plans(), st.booleans())
def test_every_row_has_one_fragment_in_every_rendering(tmp_path_factory, planned, parts_missing):
    kind, columns, order, plan = planned
    if parts_missing:  # the missing values of one column are parted from all others first
        moved = [
            replace(node, left=node.left + 1, right=node.right + 1)
            if isinstance(node, Branch)
            else node
            for node in plan.nodes
        ]
        extra = plan.leaves
        nodes = (Branch("a", None, len(moved) + 1, 1), *moved, Leaf(extra))
        plan = Plan(nodes, (*plan.fragments, (extra,)))
    orders = {"a": order, "b": order}
    plain = kind.type.value_type if pa.types.is_dictionary(kind.type) else kind.type
    table = pa.table({n: pa.array(values, plain) for n, values in columns.items()})
    if pa.types.is_dictionary(kind.type):
        table = pa.table({n: table[n].combine_chunks().dictionary_encode() for n in columns})
    numbered = table.append_column("row", pa.array(range(table.num_rows)))

    leaf = Router(plan, orders).route(table)
    assert np.all((leaf >= 0) & (leaf < plan.leaves))
    fragment_of = {each: at for at, leaves in enumerate(plan.fragments) for each in leaves}
    routed = [fragment_of[each] for each in leaf.tolist()]

    path = tmp_path_factory.getbasetemp() / "rows.parquet"
    pq.write_table(numbered, path, row_group_size=3)
    source = tables.open_table(str(path))
    for at in range(len(plan.fragments)):
        condition = plan.condition(at, orders), orders
        expected = [row for row, fragment in enumerate(routed) if fragment == at]
        where = filter_of(*condition)
        in_memory = numbered if where is None else numbered.filter(where)
        assert in_memory["row"].to_pylist() == expected
        exact = None if is_exact(*condition) else where
        batches = source.batches(["a", "b", "row"], pushdown_filter(*condition), exact=exact)
        assert [row for batch in batches for row in batch["row"].to_pylist()] == expected

    (reached,) = source.rows_read(plan, orders)
    for each in np.unique(leaf).tolist():  # no less than the row groups that have rows of it
        groups = np.unique(np.flatnonzero(leaf == each) // 3)
        assert reached[each] >= np.minimum(3, len(leaf) - 3 * groups).sum()
    assert all(0 < rows <= len(leaf) for rows in reached.values())


@pytest.mark.parametrize("values", [[0.25, float("nan")], [0.25, None], [-2.5, float("nan"), 7.0]])
def test_missing_floats_are_found_whatever_the_statistics_say(tmp_path, values):
    """A row group of 0.25 and NaN has the statistics of one that holds 0.25 only."""
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"x": values}), path)
    source = tables.open_table(str(path))
    orders = {"x": Order(pa.float64())}
    tree = (Branch("x", None, 1, 2), Leaf(0), Branch("x", 0.0, 3, 4), Leaf(1), Leaf(2))
    plan = Plan(tree, ((0,), (1,), (2,)))
    found = []
    for at in range(3):
        condition = plan.condition(at, orders), orders
        assert not is_exact(*condition)
        batches = source.batches(["x"], pushdown_filter(*condition), exact=filter_of(*condition))
        found.append([v for batch in batches for v in batch["x"].to_pylist()])
    assert [len(each) for each in found] == [
        sum(is_missing(v) for v in values),
        sum(not is_missing(v) and v <= 0 for v in values),
        sum(not is_missing(v) and v > 0 for v in values),
    ]


def test_zero_has_one_sign_in_a_filter_on_text():
    table = pa.table({"x": [-0.0, 0.0, -2.5]})
    orders = {"x": Order(pa.float64(), text=True)}  # "-2.5" < "-3" < "0", "-0" < "-3"
    plan = Plan((Branch("x", "-3", 1, 2), Leaf(0), Leaf(1)), ((0,), (1,)))
    assert Router(plan, orders).route(table).tolist() == [1, 1, 0]
    where = filter_of(plan.condition(1, orders), orders)
    assert table.filter(where)["x"].to_pylist() == [0.0, 0.0]


def test_values_the_sample_never_saw_have_a_fragment():
    table = pa.table({"age": [-5, 39, 10**9, None], "country": ["Spain", "nowhere", "India", None]})
    assert Router(PLAN, ORDERS).route(table).tolist() == [0, 2, 3, 0]
