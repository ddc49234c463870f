"""What of a plan is shown, against counting the rows one by one."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.cut.plan import Branch, Leaf, Order, Plan
from mondrian_ops.cut.planning import persons_met
from mondrian_ops.cut.routing import Router
from mondrian_ops.cut.shown_conditions import Disclosure
from mondrian_ops.data.persons import LeafPersons
from mondrian_ops.generalize.rounding import Round, round_between

NUMBERS = Order(pa.int64())
COUNTRIES = Order(
    pa.string(),
    leaves=pa.array(
        ["Italy", "France", "Spain", "USA", "Canada", "Greenland", "China", "Japan", "India"]
    ),
)


def chain(column: str, *values: Any, near: dict[Any, Round] | None = None) -> Plan:
    """A plan that cuts one column at each of some ascending values."""
    nodes: list[Branch | Leaf] = []
    for at, value in enumerate(values):
        nodes += [Branch(column, value, 2 * at + 1, 2 * at + 2, (near or {}).get(value)), Leaf(at)]
    nodes.append(Leaf(len(values)))
    return Plan(tuple(nodes), tuple((at,) for at in range(len(values) + 1)))


def disclosed(
    plan: Plan, orders: dict[str, Order], k: int, table: pa.Table, entity: str | None = None
) -> Disclosure:
    router = Router(plan, orders)
    places = router.place(table)
    persons = None
    if entity is not None:
        met = persons_met(router, router.leaves(places), places, k, table[entity])
        persons = LeafPersons.nobody(k).added(met[1])
    return Disclosure.of(plan, orders, k, router.count(places), persons)


def texts(
    plan: Plan, orders: dict[str, Order], k: int, table: pa.Table, entity: str | None = None
) -> list[str]:
    shown = disclosed(plan, orders, k, table, entity)
    return [shown.text(plan.condition(at, orders)) for at in range(len(plan.fragments))]


def test_more_than_k_persons_on_either_side_are_enough():
    table = pa.table({"age": [*range(25, 38), *range(43, 60)], "person": range(30)})
    plan = chain("age", 33, 37, 45, near={37: Round(40, 30, 50)})
    shown = disclosed(plan, {"age": NUMBERS}, 3, table, "person")
    assert shown.cuts["age", 37] == {"value": 40}


def test_a_value_of_k_rows_is_shown_any_other_by_its_rank():
    table = pa.table({"age": [*[20] * 5, *range(21, 40), *[40] * 4, *range(41, 61), None, None]})
    assert texts(chain("age", 20, 40), {"age": NUMBERS}, 5, table) == [
        "age <= 20",
        "age > 20 AND age: lowest 60 %",
        "age: highest 40 %",
    ]
    assert texts(chain("age", 20, 40), {"age": NUMBERS}, 4, table) == [
        "age <= 20",
        "age > 20 AND age <= 40",
        "age > 40",
    ]
    assert texts(chain("age", 20, 40), {"age": NUMBERS}, 6, table) == [
        "age: lowest 14 %",
        "age: from 14 % to 60 %",
        "age: highest 40 %",
    ]


def test_conditions_are_data():
    table = pa.table({"age": [*[20] * 5, *range(21, 1021)]})
    plan = chain("age", 20, 300)
    shown = disclosed(plan, {"age": NUMBERS}, 5, table)
    result = shown.condition(plan.condition(1, {"age": NUMBERS}))
    assert result == [
        [{"column": "age", "op": ">", "value": 20}, {"column": "age", "op": "<=", "share": 0.284}]
    ]
    assert json.loads(json.dumps(result)) == result


def test_missing_and_present_name_no_value():
    table = pa.table({"age": [None, *range(9)]})
    tree = (Branch("age", None, 1, 2), Leaf(0), Branch("age", 4, 3, 4), Leaf(1), Leaf(2))
    plan = Plan(tree, ((0,), (1, 2)))
    assert texts(plan, {"age": NUMBERS}, 2, table) == [
        "age IS MISSING",
        "(age IS PRESENT AND age: lowest 60 %) OR (age IS PRESENT AND age: highest 40 %)",
    ]
    shown = disclosed(plan, {"age": NUMBERS}, 2, table)
    assert shown.condition(plan.condition(0, {"age": NUMBERS})) == [
        [{"column": "age", "op": "missing"}]
    ]


def test_no_share_is_none_or_all():
    table = pa.table({"age": range(10_000)})
    assert texts(chain("age", 0, 9_998), {"age": NUMBERS}, 5, table) == [
        "age: lowest 0.1 %",
        "age: from 0.1 % to 99.9 %",
        "age: highest 0.1 %",
    ]


def test_what_is_decided_stays():
    shown = Disclosure({})
    assert shown.text([[]]) == ""
    with pytest.raises(FrozenInstanceError):
        shown.cuts = {}  # type: ignore[misc]


def test_one_fragment_has_no_condition():
    plan = Plan((Leaf(0),), ((0,),))
    assert texts(plan, {}, 5, pa.table({"age": [1, 2]})) == [""]


NEAR = {38: Round(40, 30, 50)}


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([30, 31, 38, 41, 42, 50], "age <= 40"),
        ([30, 31, 38, 40, 41, 42, 50], "age: lowest 42.9 %"),  # somebody is 40
        ([30, 31, 38, 39, 41, 42, 50], "age: lowest 42.9 %"),  # or between
        ([29, 31, 38, 41, 42, 50], "age: lowest 50 %"),  # too few within a step below
        ([30, 31, 38, 41, 42, 51], "age: lowest 50 %"),  # or above
    ],
)
def test_a_round_value_takes_the_same_rows_and_has_k_of_them_on_either_side(values, shown):
    table = pa.table({"age": values})
    assert texts(chain("age", 38, near=NEAR), {"age": NUMBERS}, 3, table)[0] == shown


def test_missing_rows_lie_on_no_side_of_a_round_value():
    near = {-7: Round(0, None, None)}
    rows = [None] * 9
    for values, shown in (([-9, -8, -7, 3, 4, 5], "x <= 0"), ([-8, -7, 3, 4, 5], "x: lowest")):
        table = pa.table({"x": [*rows, *values]})
        assert texts(chain("x", -7, near=near), {"x": NUMBERS}, 3, table)[0].startswith(shown)


def test_rows_at_a_shown_value_do_not_part_a_round_value_from_it():
    plan = chain("age", 31, 38, near=NEAR)
    for below, first, second in (
        ([31, 31, 31, 36, 37, 38], "age <= 31", "age > 31 AND age <= 40"),
        ([30, 31, 31, 31, 37, 38], "age <= 31", "age > 31 AND age: lowest 66.7 %"),
    ):
        table = pa.table({"age": [*below, 41, 42, 50]})
        assert texts(plan, {"age": NUMBERS}, 3, table)[:2] == [first, second]
    plan = chain("age", 38, 43, near=NEAR)
    for above, shown in (([41, 41, 42], "age <= 40"), ([41, 42, 44], "age: lowest 30 %")):
        table = pa.table({"age": [36, 37, 38, *above, 43, 43, 43, 50]})
        assert texts(plan, {"age": NUMBERS}, 3, table)[0] == shown


def test_a_column_without_a_name_is_shown_by_quotes():
    table = pa.table({"": [20] * 5 + [30] * 5})
    assert texts(chain("", 20), {"": NUMBERS}, 5, table) == ["'' <= 20", "'' > 20"]


def test_rows_of_one_person_are_one():
    table = pa.table(
        {"age": [20, 20, 20, 31, 32, 33, 34], "who": ["a", "a", "b", "c", "d", "e", "f"]}
    )
    plan = chain("age", 20, near={20: Round(30, 20, 40)})
    assert texts(plan, {"age": NUMBERS}, 2, table, "who")[0] == "age <= 20"
    assert texts(plan, {"age": NUMBERS}, 3, table)[0] == "age <= 20"
    assert texts(plan, {"age": NUMBERS}, 3, table, "who")[0] == "age: lowest 42.9 %"
    plan = chain("age", 30)
    rows = {"age": [18, 19, 30, 30, 30, 31, 40], "who": ["a", "b", "c", "c", "c", "d", "e"]}
    assert texts(plan, {"age": NUMBERS}, 3, pa.table(rows), "who")[0] == "age: lowest 71.4 %"
    others = table.set_column(1, "who", pa.array(["a", "a", "b", "c", "c", "c", "c"]))
    plan = chain("age", 20, near={20: Round(30, 10, 40)})
    assert texts(plan, {"age": NUMBERS}, 3, others, "who")[0] == "age: lowest 42.9 %"


@pytest.mark.parametrize("entity", [None, "who"])
def test_each_column_is_counted_by_itself(entity):
    """Columns in another order than by name, with few rows at some cuts and many at others."""
    orders = {"b": NUMBERS, "a": COUNTRIES, "c": NUMBERS}
    nodes = (
        Branch("b", 7, 1, 2),
        Branch("a", "Spain", 3, 4),
        Branch("c", 20, 5, 6, Round(30, 20, 40)),
        *(Leaf(at) for at in range(4)),
    )
    plan = Plan(nodes, ((0,), (1,), (2,), (3,)))
    table = pa.table(
        {
            "a": ["Italy", "Spain", "Spain", "Spain", "Japan", "Japan", "Japan", "USA"],
            "b": [7, 7, 7, 1, 2, 8, 8, 9],
            "c": [20, 20, 21, 20, 21, 34, 35, 36],
            "who": range(8),
        }
    )
    assert texts(plan, orders, 3, table, entity) == [
        "b <= 7 AND a IN {Spain and 2 more}",
        "b <= 7 AND a IN {Japan and 5 more}",
        "b > 7 AND c <= 20",
        "b > 7 AND c > 20",
    ]
    table = table.set_column(1, "b", pa.array([7, 7, 6, 1, 2, 8, 8, 9]))
    table = table.set_column(2, "c", pa.array([20, 20, 29, 25, 28, 31, 35, 36]))
    assert texts(plan, orders, 3, table, entity) == [
        "b: lowest 62.5 % AND a IN {Spain and 2 more}",
        "b: lowest 62.5 % AND a IN {Japan and 5 more}",
        "b: highest 37.5 % AND c: lowest 25 %",
        "b: highest 37.5 % AND c: highest 75 %",
    ]


# Hierarchies


def test_leaves_that_k_rows_have_are_named():
    held = ["Italy", "France", "Spain", "China", "Japan"]
    table = pa.table({"country": [*held * 2, "USA", "India"]})
    plan = chain("country", "Spain")
    assert texts(plan, {"country": COUNTRIES}, 2, table) == [
        "country IN {Italy, France, Spain}",
        "country IN {China, Japan and 4 more}",
    ]
    assert texts(plan, {"country": COUNTRIES}, 1, table)[1] == (
        "country IN {USA, China, Japan, India and 2 more}"
    )


def test_how_many_leaves_there_are_is_not_told_where_the_end_is_not():
    """The leaves and their order are known: their number would tell which one the last is."""
    held = ["Italy", "France", "China", "Japan"]
    table = pa.table({"country": [*held * 2, "Spain", "USA", "India"]})
    plan = chain("country", "Spain")
    assert texts(plan, {"country": COUNTRIES}, 2, table) == [
        "country IN {Italy, France, …}",
        "country IN {China, Japan, …}",
    ]
    assert texts(plan, {"country": COUNTRIES}, 3, table) == [
        "country: lowest 45.5 %",
        "country: highest 54.5 %",
    ]
    shown = disclosed(plan, {"country": COUNTRIES}, 2, table)
    assert "Spain" not in json.dumps(shown.condition(plan.condition(0, {"country": COUNTRIES})))


def test_many_leaves_are_shortened():
    order = Order(pa.string(), leaves=pa.array([f"c{at}" for at in range(20)]))
    table = pa.table({"x": [f"c{at}" for at in range(20) if at != 15]})
    assert texts(chain("x", "c6", "c12"), {"x": order}, 1, table) == [
        "x IN {c0, c1, c6 and 4 more}",
        "x IN {c7, c8, c9, c10, c11, c12}",
        "x IN {c13, c14, c16, c17, c18, c19 and 1 more}",
    ]


def test_leaves_of_one_person_are_not_named():
    table = pa.table({"country": ["Italy"] * 4 + ["Japan"] * 4, "who": [*"aaaa", *"abcd"]})
    plan = chain("country", "Italy")
    assert texts(plan, {"country": COUNTRIES}, 3, table, "who") == [
        "country: lowest 50 %",
        "country IN {Japan, …}",
    ]


def test_leaves_that_are_values_of_people_are_not_listed():
    order = Order(pa.int64(), leaves=pa.array(["16", "17", "18", "20"]), named=False)
    table = pa.table({"age": [16, 17, 17, 18, 18, 20]})
    assert texts(chain("age", "17"), {"age": order}, 2, table) == ["age <= 17", "age > 17"]
    assert texts(chain("age", "17"), {"age": order}, 3, table) == [
        "age: lowest 50 %",
        "age: highest 50 %",
    ]


# Against counting one by one


@st.composite
def cut_tables(draw: st.DrawFn) -> tuple[Plan, pa.Table, int, bool]:
    """Values that crowd around round ones, persons, and a plan that cuts at some of the values."""
    values = draw(st.lists(st.none() | st.integers(-25, 130), min_size=4, max_size=60))
    sample = sorted({v for v in values if v is not None and draw(st.booleans())})
    near = {
        low: round_between(pa.scalar(low, pa.int64()), pa.scalar(high, pa.int64()))
        for low, high in pairwise(sample)
    }
    cuts = [value for value in sample[:-1] if draw(st.integers(0, 2))]
    who = [draw(st.integers(0, 25)) for _ in values]
    table = pa.table({"x": pa.array(values, pa.int64()), "who": who})
    return chain("x", *cuts, near=near), table, draw(st.integers(2, 4)), draw(st.booleans())


@examples(400)
@given(cut_tables())
def test_only_what_may_be_shown_is_shown(made):
    plan, table, k, by_person = made
    rows = list(zip(*table.to_pydict().values(), strict=True))

    def enough(first: float, last: float) -> bool:
        """Whether k rows, or persons, lie from ``first`` to ``last``."""
        met = [who for value, who in rows if value is not None and first <= value <= last]
        return (len(set(met)) if by_person else len(met)) >= k

    orders = {"x": NUMBERS}
    shown = disclosed(plan, orders, k, table, "who" if by_person else None)
    branches = [node for node in plan.nodes if isinstance(node, Branch)]
    held = [branch.value for branch in branches if enough(branch.value, branch.value)]
    for branch in branches:
        result, cut = shown.cuts["x", branch.value], branch.value
        left = sum(value is None or value <= cut for value, _ in rows) / len(rows)
        expected = {"share": np.clip(round(left, 3), 0.001, 0.999)}
        if cut in held:
            expected = {"value": cut}
        elif branch.round is not None:
            value, low, high = branch.round
            first = max([-99 if low is None else low, *(each + 1 for each in held if each < value)])
            last = min(
                [999 if high is None else high, *(each - 1 for each in held if each > value)]
            )
            is_between = not any(v is not None and cut < v <= value for v, _ in rows)
            if is_between and enough(first, value - 1) and enough(value + 1, last):
                expected = {"value": value}
        assert result == expected


@examples(200)
@given(cut_tables(), st.data())
def test_round_values_of_any_two_plans_have_k_rows_between_them(made, data):
    _, table, k, by_person = made
    values = [value for value in table["x"].to_pylist() if value is not None]
    shown: set[int] = set()
    for _ in range(4):
        sample = sorted({value for value in values if data.draw(st.booleans())})
        near = {
            low: round_between(pa.scalar(low, pa.int64()), pa.scalar(high, pa.int64()))
            for low, high in pairwise(sample)
        }
        plan = chain("x", *sample[:-1], near=near)
        result = disclosed(plan, {"x": NUMBERS}, k, table, "who" if by_person else None).cuts
        shown |= {each["value"] for each in result.values() if "value" in each}
    assert all(
        sum(low < value < high for value in values) >= k
        for low, high in pairwise(sorted(each for each in shown if each not in values))
    )


def test_a_shown_condition_of_values_takes_the_rows_of_the_exact_one():
    generator = np.random.default_rng(1)
    numbers = generator.integers(0, 4000, 1000)
    numbers = numbers[numbers % 100 > 10]  # so that there is nobody around the round ones
    table = pa.table({"x": np.concatenate([numbers, [1234] * 20])})
    values = sorted(set(table["x"].to_pylist()))
    near = {
        low: round_between(pa.scalar(low, pa.int64()), pa.scalar(high, pa.int64()))
        for low, high in pairwise(values)
    }
    cuts = [low for low, high in pairwise(values) if high - low > 10 or low % 700 < 3]
    plan = chain("x", *sorted({*cuts, 1234}), near=near)
    orders = {"x": NUMBERS}
    shown = disclosed(plan, orders, 8, table)
    of_round = 0
    for at in range(len(plan.fragments)):
        exact = plan.condition(at, orders)
        condition = shown.condition(exact)
        if any("share" in predicate for predicate in condition[0]):
            continue
        of_round += condition != exact
        assert taken(condition, table) == taken(exact, table)
    assert of_round > 5
    assert {"value": 1234} in shown.cuts.values()


def taken(any_of: list[list[dict[str, Any]]], table: pa.Table) -> list[int]:
    compare = {"<=": lambda a, b: a <= b, ">": lambda a, b: a > b}
    return [
        at
        for at, row in enumerate(table.to_pylist())
        if any(all(compare[p["op"]](row[p["column"]], p["value"]) for p in c) for c in any_of)
    ]
