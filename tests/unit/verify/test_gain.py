"""Narrow classes and the gain on rare values, for the report: against brute force."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.job.job import Job
from mondrian_ops.verify.gain import MOST_VALUES, SensitiveFigures
from mondrian_ops.verify.requirements import counter_of


def figures_of(classes: list[list], type_: pa.DataType, **keys) -> SensitiveFigures:
    job = Job.from_dict(
        {"k": 2, "l": 2, "quasi_identifiers": ["q"], "sensitive": ["s"], **keys},
        paths_required=False,
    )
    counter = counter_of(job, ["q", "s"])
    rows = [(at, value) for at, values in enumerate(classes) for value in values]
    q, s = ([row[at] for row in rows] for at in (0, 1))
    counter.add(pa.table({"q": pa.array(q, pa.int64()), "s": pa.array(s, type_)}))
    return counter.result().figures.sensitive["s"]


LETTERS = st.lists(
    st.lists(st.sampled_from([*"abcde", None]), min_size=1, max_size=9), min_size=1, max_size=6
)


@examples(150)
@given(LETTERS, st.integers(0, 6))
def test_the_gain_is_that_of_beta_likeness_however_classes_are_divided(classes, middle):
    """Cao and Karras, definition 2: the greatest (q - p) / p, q the share of a class."""
    whole = Counter(value for values in classes for value in values)
    rows = whole.total()
    gains = [
        (count / len(values)) / (whole[value] / rows) - 1
        for values in classes
        for value, count in Counter(values).items()
        if value is not None
    ]
    figures = figures_of(classes, pa.string())
    assert (figures.gain is None) == (not gains)
    assert figures.narrow == 0 and figures.width is None
    if gains:
        assert figures.gain.beta == pytest.approx(max(gains))
    parts = [part for part in (classes[:middle], classes[middle:]) if part]
    sent = [json.loads(json.dumps(figures_of(part, pa.string()).to_json())) for part in parts]
    joined = SensitiveFigures.from_json(sent[0])
    for each in sent[1:]:
        joined = joined.joined(SensitiveFigures.from_json(each))
    assert joined == figures


def test_people_in_narrow_classes():
    classes = [[100, 95, 91], [100, 89], [5], [None, 7], [None]]
    figures = figures_of(classes, pa.int64())
    assert figures.to_report() == {
        "width": "10 %",
        "narrow": pytest.approx(6 / 9),
        "gain": pytest.approx(8.0),
        "gain_from": pytest.approx(1 / 9),
        "gain_to": 1.0,
    }
    assert figures_of(classes, pa.int64(), l_width={"s": "3"}).to_report()["narrow"] == 3 / 9
    assert figures_of(classes, pa.int64(), l_width={"s": "11"}).to_report()["narrow"] == 8 / 9
    days = [[dt.date(2024, 1, 1), dt.date(2024, 1, 31)], [dt.date(2024, 1, 1), dt.date(2024, 2, 1)]]
    figures = figures_of(days, pa.date32())
    assert (figures.width, figures.narrow, figures.people) == ("30 days", 2, 4)


def test_of_very_many_values_no_gain_is_measured():
    many = list(range(MOST_VALUES))
    assert figures_of([many], pa.int64()).gain is not None
    assert figures_of([[*many, -1]], pa.int64()).to_report() == {"width": "10 %", "narrow": 0.0}
    one, other = figures_of([many], pa.int64()), figures_of([[-1]], pa.int64())
    assert one.joined(other).values is None and other.joined(one).values is None
    assert one.joined(one).values is not None


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([b"\xff", b"\xfe"], pa.binary()),
        ([True, False], pa.bool_()),
        ([dt.datetime(2024, 1, 1), None], pa.timestamp("ns", "Europe/Berlin")),
        ([None, None], pa.null()),
    ],
)
def test_values_of_any_type(values, type_):
    figures = figures_of([values], type_)
    assert (figures.gain is None) == (type_ == pa.null())
    assert figures.people == figures.rows == 2
