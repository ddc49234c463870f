"""Which published values may be a person's: of each kind, and all that a release publishes."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops import anonymize
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.errors import InputError, MondrianOpsError
from mondrian_ops.job.quasi_identifier import QuasiIdentifier
from mondrian_ops.verify.coverage import coverage, fitting

TREE = Hierarchy.from_rows(
    [["Paris", "France", "*"], ["Lyon", "France", "*"], ["Rome", "Italy", "*"]], "places"
)
NAN = float("nan")


def covered(quasi, values, **published):
    """For each value the numbers of the published values that cover it."""
    arrays = {name: pa.array(each) for name, each in published.items()}
    column = coverage(quasi, arrays, values, TREE if quasi.hierarchy else None)
    every = np.arange(len(column.published))
    return [
        np.flatnonzero(column.covers(value, column.published[every])).tolist()
        for value in range(len(values))
    ]


def quasi(generalization=None, **options):
    return QuasiIdentifier(name="a", generalization=generalization, **options)


TEXTS = ["[18, 23]", "[24, 30)", "24", "(-inf, 17]", "[30, inf)", "*", None]


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        (pa.int64(), 17, [3, 5]),
        (pa.int16(), 18, [0, 5]),
        (pa.uint64(), 23, [0, 5]),
        (pa.float32(), 23.5, [5]),
        (pa.int64(), 24, [1, 2, 5]),
        (pa.float64(), 29.9, [1, 5]),
        (pa.float64(), 30, [4, 5]),
        (pa.float64(), -1e300, [3, 5]),
        (pa.decimal128(5, 1), Decimal("30.1"), [4, 5]),
        (pa.uint64(), 2**64 - 1, [4, 5]),
        (pa.float64(), NAN, [5, 6]),
        (pa.int64(), None, [5, 6]),
    ],
)
def test_numbers_lie_between_the_ends_of_intervals(type_, value, expected):
    values = pa.array([0, value] if value is not None else [0, None], type_)
    assert covered(quasi(), values, a=TEXTS)[1] == expected


def test_the_edges_of_a_grid_are_no_whole_numbers():
    values = pa.array([24, 25, 26])
    assert covered(quasi(grid=2.5), values, a=["[22.5, 25)", "[25, 27.5)"]) == [[0], [1], [1]]


def test_dates_and_times_lie_between_dates():
    texts = ["[2025-01-01, 2025-01-31]", "2025-02-01", "[2025-02-01, 2025-03-01)", "*"]
    days = pa.array([date(2025, 1, 31), date(2025, 2, 1), None])
    assert covered(quasi(), days, a=texts) == [[0, 3], [1, 2, 3], [3]]
    moments = pa.array([datetime(2025, 2, 28, 23), datetime(2025, 3, 1)], pa.timestamp("us"))
    assert covered(quasi(), moments, a=texts) == [[2, 3], [3]]


def test_moments_are_compared_to_the_nanosecond():
    moments = pa.array([1_740_000_000_000_000_000 + tick for tick in range(3)], pa.timestamp("ns"))
    first, second, third = moments.cast(pa.string()).to_pylist()
    texts = [f"[{first}, {second}]", f"[{second}, inf)", third]
    assert covered(quasi(), moments, a=texts) == [[0], [0, 1], [1, 2]]


def test_times_of_day_and_moments_of_a_zone_are_read():
    times = pa.array([time(7, 30), time(12), None], pa.time32("s"))
    assert covered(quasi(), times, a=["[07:00:00, 07:30:00]", "12:00:00"]) == [[0], [1], []]
    moments = pa.array([0, 3600], pa.timestamp("s", "Europe/Rome"))
    first, second = moments.cast(pa.string()).to_pylist()
    assert covered(quasi(), moments, a=[f"[{first}, {second}]", second]) == [[0], [0, 1]]


def test_two_bounds_stand_for_an_interval_and_none_for_all_or_missing():
    values = pa.array([17, 18, 30, None], pa.int64())
    bounds = {"a_min": [18, None, 30, None], "a_max": [23, 17, None, None]}
    assert covered(quasi(), values, **bounds) == [[1, 3], [0, 3], [2, 3], [3]]
    for hidden, by in ((True, [[1, 3], [0, 3], [2, 3], [3]]), (False, [[1], [0], [2], [3]])):
        told = {**bounds, "a_hidden": [False, False, False, hidden]}
        assert covered(quasi(), values, **told) == by
    of_source = {**bounds, "a_hidden": ["no", "yes", "", None]}  # of an older version's
    assert covered(quasi(), values, **of_source) == [[1, 3], [0, 3], [2, 3], [3]]


def test_a_ladder_is_published_as_intervals():
    texts = ["[16, 20]", "18", "*"]
    assert covered(quasi("hierarchy", ladder=(1, 5)), pa.array([18, 21]), a=texts) == [
        [0, 1, 2],
        [2],
    ]


def test_a_prefix_stands_for_texts_that_are_not_longer():
    texts = ["10115", "101**", "1****", "10***", "*****", "101*", None, "*"]
    values = pa.array(["10115", "10200", "101", "2", None])
    assert covered(quasi("prefix"), values, a=texts) == [
        [0, 1, 2, 3, 4, 7],
        [2, 3, 4, 7],
        [1, 2, 3, 4, 5, 7],
        [4, 7],
        [6, 7],
    ]


def test_a_column_whose_kind_the_values_decide_may_have_prefixes():
    """A job that names no generalization gets prefixes where most values are rare."""
    values = pa.array(["ann@a.org", "ann", "bob", "b*", None])
    texts = ["ann******", "bob", '"b*"', "*", None]
    assert covered(quasi(), values, a=texts) == [[0, 3], [0, 3], [1, 3], [2, 3], [3, 4]]
    sets = ["{ann, bob}", '"b*"', "*"]
    assert covered(quasi(), values, a=sets) == [[2], [0, 2], [0, 2], [1, 2], [2]]


def test_a_set_lists_its_values():
    texts = ["{F, M}", "F", '{F, "a, b"}', None, "*", "None", '"*"']
    values = pa.array(["F", "M", "a, b", "X", None, "*"])
    assert covered(quasi(), values, a=texts) == [
        [0, 1, 2, 4], [0, 4], [2, 4], [4], [3, 4], [4, 6]
    ]  # fmt: skip
    assert covered(quasi(), pa.array([True, None]), a=["{false, true}", None]) == [[0], [1]]
    assert covered(quasi(), pa.array(["F"], pa.large_string()), a=["F", "M"]) == [[0]]
    assert covered(quasi(), pa.nulls(1), a=["F", None]) == [[1]]
    assert covered(quasi("set"), pa.array([7, 8]), a=["{7, 9}", "8"]) == [[0], [1]]
    assert covered(quasi(), pa.array(["", None]), a=['{"", F}', None]) == [[0], [1]]


def test_a_node_stands_for_the_leaves_below_it():
    texts = ["Paris", "France", "Italy", "*", None]
    values = pa.array(["Paris", "Lyon", "Rome", None, "Bonn"])
    node = quasi("hierarchy", hierarchy="places.csv")
    assert covered(node, values, a=texts) == [[0, 1, 3], [1, 3], [2, 3], [3, 4], [3]]


@pytest.mark.parametrize(
    ("values", "published"),
    [
        (pa.array([1]), {"a": ["[old, young]"]}),
        (pa.array([1]), {"b": ["1"]}),
        (pa.array([b"1"]), {"a": ["1"]}),
    ],
)
def test_what_cannot_be_read_is_told(values, published):
    with pytest.raises(InputError, match="column 'a': its published values cannot be read"):
        covered(quasi(), values, **published)


def test_the_classes_of_a_place_cover_it_in_each_column():
    """In any order; sorted, it is faster."""
    published = {"a": pa.array(["[20, 30]", "20", "*", "[20, 30]"]),
                 "b": pa.array(["F", "M", "{F, M}", "{F, M}"]),
                 "c": pa.array(["1", "[1, 2]", "2", "[1, 2]"])}  # fmt: skip
    columns = [
        coverage(QuasiIdentifier(name=name), published, pa.array(values))
        for name, values in (("a", [20, 30, None]), ("b", ["F", "M"]), ("c", [1, 2]))
    ]
    fits = {
        (0, 0, 0): [0, 3], (0, 0, 1): [2, 3], (0, 1, 0): [1, 3], (0, 1, 1): [1, 2, 3],
        (1, 0, 0): [0, 3], (1, 1, 1): [2, 3], (2, 0, 1): [2], (2, 1, 0): [],
    }  # fmt: skip
    for places in (sorted(fits), sorted(fits, reverse=True), [*fits][::2] + [*fits][1::2]):
        found = [each.tolist() for each in fitting(columns, np.array(places))]
        assert found == [fits[place] for place in places]


PEOPLE = st.lists(
    st.tuples(
        st.none() | st.integers(-50, 50),
        st.none() | st.sampled_from(["1", "10", "101", "102", "11", "2", "20"]),
        st.none() | st.sampled_from(["F", "M", "X"]),
        st.none() | st.dates(date(2024, 12, 30), date(2025, 2, 2)),
        st.none() | st.floats(-5, 5, width=32),
        st.sampled_from(["Paris", "Lyon", "Rome"]),
    ),
    min_size=6,
    max_size=30,
)


@given(PEOPLE, st.sampled_from(["text", "bounds"]), st.booleans())
def test_what_is_published_of_a_row_covers_it(tmp_path_factory, people, style, grid):
    file = tmp_path_factory.getbasetemp() / "places.csv"
    file.write_text("Paris;France;*\nLyon;France;*\nRome;Italy;*\n")
    names = ["age", "zip", "sex", "day", "size", "place"]
    types = [pa.int32(), pa.string(), pa.string(), pa.date32(), pa.float32(), pa.string()]
    columns = [pa.array(each, type_) for each, type_ in
               zip(zip(*people, strict=True), types, strict=True)]  # fmt: skip
    table = pa.table([*columns, pa.array(range(len(people)))], names=[*names, "row"])
    quasi = [
        {"name": "age", **({"grid": 7} if grid else {})},
        "zip=prefix",
        "sex",
        "day",
        "size",
        f"place=hierarchy:{file}",
    ]
    job = {"k": 2, "quasi_identifiers": quasi, "unlisted": "publish", "interval_style": style}
    try:
        released, _ = anonymize(table, job)
    except MondrianOpsError:
        return
    rows = released["row"].to_numpy()
    published = {name: released[name].combine_chunks() for name in released.column_names}
    for name, quasi_identifier in zip(names, ["", "prefix", "", "", "", "hierarchy"], strict=True):
        of_rows = table[name].combine_chunks().take(pa.array(rows))
        found = coverage(
            QuasiIdentifier(
                name=name,
                generalization=quasi_identifier or None,
                hierarchy="places.csv" if quasi_identifier == "hierarchy" else None,
            ),
            published,
            of_rows,
            TREE if name == "place" else None,
        )
        for row in range(len(rows)):
            assert found.covers(row, found.published[row : row + 1])[0]


def test_units_of_the_calendar_cover_the_days_that_they_hold():
    labels = pa.array(["2024-05", "2024-Q2", "2020s", "*", None, "2024-05-02", "2024-W18"])
    days = pa.array([date(2024, 5, 2), None, date(2025, 1, 1)])
    units = coverage(QuasiIdentifier.read("d=ladder:calendar"), {"d": labels}, days)
    found = [np.flatnonzero(units.covers(at, units.published)).tolist() for at in range(3)]
    assert found == [[0, 1, 2, 3, 5, 6], [3, 4], [2, 3]]


def test_intervals_of_ordered_categories_cover_those_between():
    labels = pa.array(["[a, b]", "c", "*", None])
    persons = pa.array(["a", "c", None])
    ordered = coverage(QuasiIdentifier.read("p=order:a/b/c"), {"p": labels}, persons)
    found = [np.flatnonzero(ordered.covers(at, ordered.published)).tolist() for at in range(3)]
    assert found == [[0, 2], [1, 2], [2, 3]]
