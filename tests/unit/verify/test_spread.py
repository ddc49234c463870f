"""How close the values of a class are, as written: against brute force over the values."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import FrozenInstanceError
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brute_force
from counted_classes import all_classes
from hypothesis_profiles import examples
from mondrian_ops.errors import PrivacyError
from mondrian_ops.job.job import Job
from mondrian_ops.job.widths import as_width
from mondrian_ops.verify.requirements import check, counter_of
from mondrian_ops.verify.spread import default_width, fullest, most_persons, narrow


def counted(classes: list[list], type_: pa.DataType, **keys):
    """The count of a release of some classes, in two parts, and its job."""
    rows = [(at, value) for at, values in enumerate(classes) for value in values]
    job = Job.from_dict(
        {"k": 2, "l": 2, "quasi_identifiers": ["q"], "sensitive": ["s"], **keys},
        paths_required=False,
    )
    counter = counter_of(job, ["q", "s"])
    for part in (rows[::2], rows[1::2]):
        q, s = ([row[at] for row in part] for at in (0, 1))
        counter.add(pa.table({"q": pa.array(q, pa.int64()), "s": pa.array(s, type_)}))
    return counter.result(), job


def near(low, high, width) -> bool:
    number = Fraction(width.removesuffix(" %"))
    if width.endswith("%"):
        return high - low <= number / 100 * max(abs(low), abs(high))
    return high - low <= number


# Some lie near one another, so that classes of either kind are drawn.
NUMBERS = st.sampled_from([-100, -95, -91, -60, -4, -1, 0, 1, 2, 4, 9, 60, 90, 95, 100])
SHOWN = st.lists(st.lists(st.none() | NUMBERS, min_size=1, max_size=6), min_size=2, max_size=6)
WIDTHS = st.sampled_from(["1", "4", "20", "5 %", "10 %", "50 %"])
LEVELS = st.sampled_from([2, 3, 2.5])


@examples(120)
@given(SHOWN, WIDTHS, LEVELS, st.booleans(), st.sampled_from([pa.int64(), pa.decimal128(9, 1)]))
def test_the_fullest_interval_is_that_of_brute_force(shown, width, level, missing_counts, type_):
    diversity = {"diversity": "entropy"} if level == 2.5 else {}
    missing = {"missing_sensitive": "value"} if missing_counts else {}
    keys = {"l": level, "l_width": {"s": width}, **diversity, **missing}
    count, job = counted(shown, type_, **keys)
    verdict = check(count, job)
    counts = [Counter(values) for values in shown]
    if not missing_counts:
        counts = [brute_force.present(each) for each in counts]

    def alike(low, high) -> bool:
        return near(low, high, width)

    wrong = sum(not brute_force.is_spread(each, level, alike) for each in counts)
    title = f"l-diversity of s by intervals of {width}, l = {level}"
    title += ", missing values counted as one" * missing_counts
    found = [each for each in verdict.failures if each.startswith(title)]
    assert len(found) == (wrong > 0)
    assert all(each.startswith(f"{title}: {wrong} of {len(shown)} classes fail") for each in found)
    assert title in verdict.checked
    if not diversity:
        least = min(each.total() / max(1, brute_force.fullest(each, alike)) for each in counts)
        assert verdict.achieved["l"] == pytest.approx(least)


@examples(500)
@given(SHOWN, WIDTHS)
def test_each_class_by_brute_force(shown, width):
    """The rows of its fullest interval, and whether all its values are near one another."""
    count, _ = counted(shown, pa.int64())
    classes = all_classes(count)
    half = count.parts[1][1]  # every second row is in the first part
    rows = classes.first_rows
    order = np.argsort(np.where(rows < half, 2 * rows, 2 * (rows - half) + 1))
    args = classes.sensitive["s"], len(shown), "s", as_width(width)
    most, alike = fullest(*args)[order].tolist(), narrow(*args)[order].tolist()
    for values, rows_near, is_narrow in zip(shown, most, alike, strict=True):
        present = [value for value in values if value is not None]
        of_class = Counter(values)
        assert rows_near == brute_force.fullest(of_class, lambda a, b: near(a, b, width))
        assert is_narrow == (bool(present) and near(min(present), max(present), width))


@pytest.mark.parametrize(
    ("type_", "values", "width", "expected"),
    [
        *(
            (pa.timestamp(unit), [0, (86_400 + late) * ticks], "24 hours", [2 - late, not late])
            for unit, ticks in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9))
            for late in (0, 1)
        ),
        (pa.date32(), [dt.date(2024, 1, 1), dt.date(2024, 1, 31)], "30 days", [2, True]),
        (pa.date32(), [dt.date(2024, 1, 1), dt.date(2024, 2, 1)], "30 days", [1, False]),
        (pa.date32(), [-86_401, 0], "86400 days", [1, False]),
        (pa.float64(), [0.5, 0.47], "10 %", [2, True]),
        (pa.float64(), [-0.5, -0.47], "10 %", [2, True]),
        (pa.float64(), [-0.5, -0.44], "10 %", [1, False]),
        (pa.date64(), [dt.date(2024, 1, 1), dt.date(2024, 2, 1)], "30 days", [1, False]),
        (pa.timestamp("ns"), [dt.datetime(2024, 1, 1, h) for h in (0, 12)], "12 hours", [2, True]),
        (pa.timestamp("s"), [dt.datetime(2024, 1, 1, h) for h in (0, 12)], "11 hours", [1, False]),
        (pa.time32("s"), [dt.time(8), dt.time(9)], "1 hour", [2, True]),
        (pa.int64(), [1, 6], "4", [1, False]),
        (pa.float64(), [0.1, 0.4], "0.3", [2, True]),
        (pa.float64(), [-100.0, -90.0], "10 %", [2, True]),
        (pa.float64(), [-100.0, -89.9], "10 %", [1, False]),
        (pa.decimal128(5, 2), [Decimal("0.10"), Decimal("0.40")], "0.3", [2, True]),
        (pa.float64(), [None, None], "1", [2, False]),
    ],
)
def test_types_of_values(type_, values, width, expected):
    count, _ = counted([values], type_)
    sensitive = all_classes(count).sensitive["s"]
    rows = fullest(sensitive, 1, "s", as_width(width))
    assert [int(rows[0]), bool(narrow(sensitive, 1, "s", as_width(width))[0])] == expected


@pytest.mark.parametrize(
    ("type_", "values", "width"),
    [
        (pa.string(), ["a", "b"], "5"),
        (pa.int64(), [1, 2], "5 days"),
        (pa.date32(), [dt.date(2024, 1, 1), None], "5 %"),
        (pa.bool_(), [True, False], "5"),
    ],
)
def test_a_release_whose_values_have_no_such_width_cannot_be_checked(type_, values, width):
    count, job = counted([values], type_, l_width={"s": width})
    with pytest.raises(PrivacyError, match=f"column 's' is .* do not have the width {width}"):
        check(count, job)


def test_by_which_width_the_report_measures():
    for type_ in (pa.int16(), pa.float64(), pa.decimal128(5, 2)):
        assert default_width(type_).text == "10 %"
    for type_ in (pa.date32(), pa.timestamp("us", "UTC")):
        assert default_width(type_).text == "30 days"
    for type_ in (pa.string(), pa.bool_(), pa.null(), pa.time32("s")):
        assert default_width(type_) is None


def test_a_count_does_not_change():
    count, _ = counted([[1, 2]], pa.int64())
    with pytest.raises(FrozenInstanceError):
        all_classes(count).sensitive["s"].counts = None


@examples(120)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), NUMBERS), max_size=30),
    WIDTHS,
    st.sampled_from([pa.int64(), pa.decimal128(9, 1)]),
)
def test_the_most_persons_of_an_interval_are_those_of_brute_force(had, width, type_):
    values = sorted({value for *_, value in had})
    expected = [
        max(
            (
                len({p for c, p, v in had if c == at and v <= high and near(v, high, width)})
                for c, _, high in had
                if c == at
            ),
            default=0,
        )
        for at in range(max((c for c, *_ in had), default=-1) + 1)
    ]
    of_class, persons = (np.array([row[at] for row in had], np.int64) for at in (0, 1))
    codes = np.array([values.index(value) for *_, value in had], np.int64)
    shown = pa.array([Decimal(each) for each in values] if type_ != pa.int64() else values, type_)
    found = most_persons(shown, of_class, persons, codes, "s", as_width(width))
    assert found.tolist() == expected
