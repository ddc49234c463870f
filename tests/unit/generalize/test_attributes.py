"""The four generalizations: text, bounds and losses of a class."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.data.profile import Profiler
from mondrian_ops.errors import HierarchyError, InputError, JobError
from mondrian_ops.generalize.attributes import (
    Classes,
    IntervalAttribute,
    TreeAttribute,
)
from mondrian_ops.generalize.cells import Grid
from mondrian_ops.generalize.resolving import attributes_of
from mondrian_ops.generalize.set_attribute import SetAttribute
from mondrian_ops.job.job import Job
from published_text import CHAINS, KINDS, Column, is_missing

TREE = Hierarchy.from_rows([[leaf, *chain] for leaf, chain in CHAINS.items()], "tree.csv")


def attribute_of(values: pa.Array, way: str, hierarchy: Hierarchy | None = None, **keys):
    job = Job.from_dict({"k": 2, "quasi_identifiers": [f"q={way}"], **keys}, paths_required=False)
    trees = {"q": hierarchy} if hierarchy else {}
    table = pa.table({"q": values})
    profiler = Profiler(job, table.schema, trees)
    profiler.add(table)
    (attribute,) = attributes_of(profiler.finish(), job, trees, tree_order=True)
    return attribute


def published(values: pa.Array, way: str, *classes: int, hierarchy=None, **keys):
    """Values cut into classes of so many rows each -> what is published of each class."""
    attribute = attribute_of(values, way, hierarchy, **keys)
    return publish(attribute, values, classes)


def publish(attribute, values, sizes):
    starts = np.cumsum([0, *sizes[:-1]])
    index = np.arange(len(values), dtype=np.int32)
    return attribute.publish(attribute.encode(values), Classes(index, starts))


def texts(values, way: str, *classes: int, hierarchy=None) -> list[str | None]:
    found = published(values, way, *classes, hierarchy=hierarchy)
    return found.columns["q"].to_pylist()


@st.composite
def classed_columns(draw):
    """A column, how it is generalized, and the sizes of its classes."""
    kind = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    values = draw(st.lists(st.none() | kind.values, min_size=1, max_size=24))
    ends = draw(st.lists(st.integers(1, len(values)), max_size=6))
    edges = sorted({0, len(values), *ends})
    return Column("q", kind, draw(st.sampled_from(kind.ways)), values), np.diff(edges).tolist()


@examples(400)
@given(classed_columns())
def test_every_class_is_covered_tightly_and_its_loss_is_that_of_its_text(column):
    column, sizes = column
    plain = column.kind.type
    values = pa.array(column.values, plain.value_type if "dict" in str(plain) else plain)
    values = values.dictionary_encode() if "dict" in str(plain) else values
    tree = TREE if "tree" in column.way else None
    found = published(values, column.way, *sizes, hierarchy=tree)
    labels = found.columns["q"]
    assert labels.dictionary.null_count == 0  # Parquet could not write it
    start = 0
    for at, size in enumerate(sizes):
        originals = column.values[start : start + size]
        start += size
        ncp, lm = column.check(labels[at].as_py(), originals)
        assert found.ncp[at] == pytest.approx(ncp, abs=1e-9)
        assert found.lm[at] == pytest.approx(lm, abs=1e-9)
        gaps = [is_missing(value) for value in originals]
        assert found.star[at] == (any(gaps) and not all(gaps))
        if "grid" in column.way:
            assert found.exact[at] == all(gaps)
        single = len({str(v) for v in originals if not is_missing(v)}) <= 1
        if "grid" not in column.way and "float" not in str(plain) and "double" not in str(plain):
            assert found.exact[at] == (single and not found.star[at])


def test_the_texts_of_the_paper():
    zips = pa.array([10010, 10020, 10030, 10010])
    assert texts(zips, "prefix", 3, 1) == ["100**", "10010"]
    countries = pa.array(["Italy", "Italy", "France", "France"])
    assert texts(countries, "set", 3, 1) == ["{France, Italy}", "France"]
    assert texts(pa.array([42, 50, 43, 38]), "interval", 3, 1) == ["[42, 50]", "38"]


def test_a_prefix_of_values_of_different_lengths():
    values = pa.array(["1", "100", "12345", "", "2"])
    assert texts(values, "prefix", 3, 2) == ["1****", "*"]
    assert texts(values, "prefix", 1, 1, 3) == ["1", "100", "*****"]


def test_one_category_that_the_others_do_not_share_is_not_published_raw():
    values = pa.array(["a", "zebra", None])
    assert texts(values, "prefix", 2, 1) == ["*****", None]


def test_intervals_of_negative_numbers_dates_and_decimals():
    assert texts(pa.array([-5, -1]), "interval", 2) == ["[-5, -1]"]
    days = pa.array([dt.date(1999, 12, 31), dt.date(2000, 1, 2)])
    assert texts(days, "interval", 2) == ["[1999-12-31, 2000-01-02]"]
    money = pa.array([Decimal("-0.50"), Decimal("1.25")])
    assert texts(money, "interval", 2) == ["[-0.50, 1.25]"]
    assert texts(pa.array([38.0, 40.5]), "interval", 1, 1) == ["38", "40.5"]
    assert texts(pa.array([0.1, 0.2], pa.float32()), "interval", 2) == ["[0.1, 0.2]"]


def test_a_grid_is_exact_and_half_open():
    values = pa.array([0.3, 0.7, 0.6, 0.1])
    assert texts(values, "grid:0.1", 1, 1, 1, 1) == [
        "[0.3, 0.4)",
        "[0.7, 0.8)",
        "[0.6, 0.7)",
        "[0.1, 0.2)",
    ]
    assert texts(pa.array([16, 20, 21]), "grid:5@16", 2, 1) == ["[16, 21)", "[21, 26)"]
    assert texts(pa.array([-1, 4]), "grid:5", 2) == ["[-5, 5)"]


@pytest.mark.parametrize(
    "type_",
    [pa.date32(), pa.date64(), *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
     pa.timestamp("us", "America/New_York"), pa.dictionary(pa.int8(), pa.date32())],
    ids=str,
)  # fmt: skip
def test_a_grid_of_days(type_):
    """Weeks from Monday on; before 1970, too. A day is one of UTC."""
    days = [dt.date(1969, 12, 29), dt.date(1970, 1, 4), dt.date(1970, 1, 5), dt.date(2024, 2, 29)]
    plain = type_.value_type if pa.types.is_dictionary(type_) else type_
    values = pa.array(days).cast(plain)
    if pa.types.is_dictionary(type_):
        values = values.dictionary_encode()
    weeks = ["[1969-12-29, 1970-01-05)", "[1970-01-05, 1970-01-12)", "[2024-02-26, 2024-03-04)"]
    assert texts(values, "grid:7@4", 2, 1, 1) == weeks
    assert texts(values, "grid:7@4", 3, 1) == ["[1969-12-29, 1970-01-12)", weeks[2]]
    late = pa.array([dt.datetime(1970, 1, 4, 23, 59, 59)]).cast(pa.timestamp("ms"))
    assert texts(late, "grid:7@4", 1) == weeks[:1]


def test_a_grid_of_days_has_whole_ones():
    days = pa.array([dt.date(2000, 1, 1), dt.date(2000, 1, 2)])
    for way in ("grid:0.5", "grid:7@0.5"):
        with pytest.raises(JobError, match="a grid of dates counts days"):
            texts(days, way, 2)
    with pytest.raises(JobError, match="a grid needs numbers, dates or timestamps"):
        texts(pa.array([dt.time(5), dt.time(6)]), "grid:5", 2)
    for last in (dt.date(9999, 12, 31), dt.date(1, 1, 1)):
        with pytest.raises(InputError, match=r"^column 'q': holds days so close to the start"):
            texts(pa.array([dt.date(2000, 1, 1), last]), "grid:7", 2)


@examples(200)
@given(
    st.lists(st.decimals(-50, 50, places=2).map(float), min_size=1, max_size=10),
    st.sampled_from([0.01, 0.1, 0.25, 0.3, 2.5, 7]),
    st.sampled_from([0, 0.05, -3, 16]),
)
def test_every_number_lies_in_its_cell(numbers, step, origin):
    grid = Grid(step, origin)
    line = np.array(numbers)
    cells = grid.of(pa.array(line), "q")
    assert np.all(grid.edges(cells) <= line)
    assert np.all(line < grid.edges(cells + 1))


def test_a_ladder():
    ages = pa.array([17, 17, 16, 20, 16, 25, 16, 36, None])
    assert texts(ages, "ladder:5/10/20@16", 2, 2, 2, 2, 1) == [
        "17",
        "[16, 20]",
        "[16, 25]",
        "*",
        None,
    ]


def test_missing_and_present_together_lose_everything():
    for way in ("interval", "set", "prefix"):
        found = published(pa.array([1, None, None, 3]), way, 2, 1, 1)
        assert found.columns["q"].to_pylist() == ["*", None, "3"]
        assert found.ncp.tolist() == found.lm.tolist() == [1.0, 0.0, 0.0]
        assert found.star.tolist() == [True, False, False]


def test_bounds_keep_the_type():
    days = pa.array([dt.date(2000, 1, 1), dt.date(2000, 1, 3), None, dt.date(2000, 1, 2)])
    found = published(days, "interval", 2, 1, 1, interval_style="bounds").columns
    assert found["q_min"].to_pylist() == [dt.date(2000, 1, 1), None, dt.date(2000, 1, 2)]
    assert found["q_max"].to_pylist() == [dt.date(2000, 1, 3), None, dt.date(2000, 1, 2)]
    mixed = published(days, "interval", 3, 1, interval_style="bounds").columns
    assert mixed["q_min"].to_pylist() == [None, dt.date(2000, 1, 2)]
    assert found["q_hidden"].to_pylist() == [False, False, False]
    assert mixed["q_hidden"].to_pylist() == [True, False]


def test_one_value_loses_nothing():
    for way in ("interval", "set", "prefix"):
        found = published(pa.array([7, 7, 7]), way, 3)
        assert found.columns["q"].to_pylist() == ["7"]
        assert found.ncp.tolist() == found.lm.tolist() == [0.0]


def test_losses_of_a_hierarchy():
    values = pa.array(["a", "ab", "a", "b", "b", "b"])
    found = published(values, "hierarchy:tree.csv", 2, 2, 2, hierarchy=TREE)
    assert found.columns["q"].to_pylist() == ["A", "*", "b"]
    assert found.ncp.tolist() == [3 / 6, 1.0, 0.0]
    assert found.lm.tolist() == [2 / 5, 1.0, 0.0]


@pytest.mark.parametrize(
    ("way", "values"),
    [
        ("interval", [0, 1, 2, 10]),
        ("grid:4", [0, 1, 2, 10]),
        ("set", [0, 1, 2, 10]),
        ("prefix", [0, 1, 2, 10]),
        ("ladder:2", [0, 1, 2, 10]),
        ("hierarchy:tree.csv", ["a", "b", "ab", "ö"]),
    ],
)
def test_a_part_is_coded_on_the_scale_of_the_whole(way, values):
    whole = pa.array([*values, None])
    attribute = attribute_of(whole, way, TREE if "tree" in way else None)
    all_rows, part = attribute.encode(whole), attribute.encode(whole[:2])
    assert (part.span, part.present) == (all_rows.span, all_rows.present)
    assert all_rows.present == (1.0 if way.partition(":")[0] in ("interval", "grid") else 4.0)
    if part.size == all_rows.size:  # a domain is coded as a whole, numbers as they come
        assert part.codes.tolist() == all_rows.codes[:2].tolist()


def test_rows_of_a_class_may_lie_anywhere():
    attribute = attribute_of(pa.array([1, 9, 2, 8]), "interval")
    classes = Classes(np.array([2, 0, 3, 1], np.int32), np.array([0, 2]))
    found = attribute.publish(attribute.encode(pa.array([1, 9, 2, 8])), classes)
    assert found.columns["q"].to_pylist() == ["[1, 2]", "[8, 9]"]


def test_many_distinct_intervals_are_labelled_alike():
    values = pa.array(np.arange(6000))
    labels = texts(values, "interval", *[2] * 3000)
    assert labels == [f"[{at}, {at + 1}]" for at in range(0, 6000, 2)]


@pytest.mark.parametrize(
    ("type_", "edge"),
    [
        (pa.int64(), 9),
        (pa.dictionary(pa.int8(), pa.int64()), 9),
        (pa.decimal128(8, 2), "9.99"),
        (pa.float64(), float(np.nextafter(10.0, 0))),
        (pa.float32(), float(np.nextafter(np.float32(10), np.float32(0)))),
    ],
)
def test_a_cut_of_a_grid_lies_right_below_its_edge(type_, edge):
    attribute = IntervalAttribute("q", type_, 0.0, 20.0, Grid(5, 0))
    values = pa.array([Decimal(2), Decimal(7), Decimal(11)], pa.decimal128(8, 2))
    encoded = attribute.encode(values if "decimal" in str(type_) else values.cast(pa.int64()))
    assert attribute.cut_value(encoded, 2) == edge
    assert attribute.cut_value(encoded, 0) is None
    near = attribute.cut_round(encoded, 2)
    assert near is not None
    assert float(near.value) == 10  # the edge
    assert attribute.cut_round(encoded, 0) is attribute.cut_round(encoded, 3) is None


def test_a_cell_that_ends_beyond_the_type_has_no_round_value_below_it():
    attribute = IntervalAttribute("q", pa.int8(), 0.0, 150.0, Grid(50, 0))
    encoded = attribute.encode(pa.array([20, 70, 120], pa.int8()))
    assert attribute.cut_value(encoded, 2) == 99
    assert attribute.cut_round(encoded, 2) is None
    assert attribute.cut_round(encoded, 1) == (50, 40, 60)


def test_a_round_value_lies_between_a_cut_and_the_next_value():
    attribute = IntervalAttribute("q", pa.int64(), 0.0, 95.0)
    encoded = attribute.encode(pa.array([18, 36, 58, 59]))
    assert [attribute.cut_round(encoded, code) for code in range(5)] == [
        None, (20, 10, 30), (40, 30, 50), None, None
    ]  # fmt: skip
    numbers = pa.array(["1", "9"])
    leaves = TreeAttribute("q", pa.string(), Hierarchy.flat(["1", "9"], "q"), np.arange(2))
    for attribute in (SetAttribute("q", pa.string(), numbers), leaves):
        assert attribute.cut_round(attribute.encode(numbers), 1) is None


def test_unknown_values_are_counted_not_shown():
    with pytest.raises(InputError, match="'q': 1 row") as caught:
        SetAttribute("q", pa.string(), pa.array(["a"])).encode(pa.array(["a", "secret", None]))
    assert "secret" not in str(caught.value)
    truth = TreeAttribute("q", pa.bool_(), Hierarchy.flat(["a"], "tree.csv"), np.arange(1))
    with pytest.raises(HierarchyError, match=r"'q': 2 row.* as true or false; .*--column q$"):
        truth.encode(pa.array([True, False, None]))
    attribute = attribute_of(pa.array(["a"]), "hierarchy:tree.csv", TREE)
    with pytest.raises(HierarchyError, match=r"'q': 1 row.*tree\.csv") as caught:
        attribute.encode(pa.array(["a", "secret", None]))
    assert "secret" not in str(caught.value)
