"""Counts and requirements of a few classes, whose figures one can work out by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pyarrow as pa
import pytest

from counted_classes import all_classes
from mondrian_ops.job.job import Job
from mondrian_ops.verify.labels import labels_of_job
from mondrian_ops.verify.requirements import ReleaseCounter, Requirement, no_unions_in


def test_the_figures_of_a_few_classes():
    counter = ReleaseCounter(["q"], ["s"], ["name"])
    assert counter.columns == {"q", "s", "name"}
    counter.add(pa.table({"q": list("abbcc"), "s": list("xxyyy")}))
    count = counter.result()
    assert (count.rows, count.classes, count.dp) == (5, 3, 1 + 4 + 4)
    assert [tuple(each) for each in count.histogram] == [(1, 1), (2, 2)]
    assert (count.prosecutor_max, count.prosecutor_avg, count.c_avg(2)) == (1.0, 0.6, 5 / 3 / 2)


def test_rows_that_are_made_up_lose_nothing():
    domain = pa.array([1, 2, 3])
    job = Job.from_dict({"k": 2, "quasi_identifiers": ["q"]}, paths_required=False)
    labels = labels_of_job(job, {"q": domain.type}, {"q": domain}, {}, {}, [])
    counter = ReleaseCounter(["q"], ["s"], with_persons=True, with_counterfeits=True, labels=labels)
    part = pa.table({"q": ["*"] * 4, "s": ["x", None, "x", None]})
    counted = counter.add(part, persons=pa.chunked_array([["a", "b", None, "c"]]))
    assert counted.losses["q"]["rows_star"] == 3
    assert all_classes(counter.result()).persons.tolist() == [3]


# requirements of some classes, and of others


def requirement(achieved, failing=1, row=0, at_most=False) -> Requirement:
    return Requirement("t" if at_most else "k", "it", 2, at_most, failing, achieved, 9, row)


@pytest.mark.parametrize(
    ("one", "other", "worst"),
    [
        (requirement(3), requirement(2), 1),
        (requirement(0.3, at_most=True), requirement(0.2, at_most=True), 0),
        (requirement(0.3, at_most=True), requirement(0.4, at_most=True), 1),
        (requirement(-1.0), requirement(math.nan), 1),
        (requirement(math.nan, row=5), requirement(math.nan, row=4), 1),
        (requirement(2, row=3), requirement(2, row=7), 0),
    ],
)
def test_of_two_sets_of_classes_the_worst_is_named_and_all_that_fail_are_counted(one, other, worst):
    named = (one, other)[worst]._replace(failing=2)
    for joined in (one.joined(other), other.joined(one)):
        assert str(joined) == str(named)  # as nan is not equal to itself


@pytest.mark.parametrize("achieved", [2.5, math.nan])
def test_a_requirement_comes_back_from_json(achieved):
    given = requirement(achieved)
    assert str(Requirement.from_json(given.to_json())) == str(given)
    assert given.to_json()[5] == (None if math.isnan(achieved) else achieved)


def test_intervals_that_are_no_unions_of_cells_are_counted_as_texts_and_as_bounds():
    boundaries = {
        "night": 3,
        "columns": {
            "age": {"values": [10, 20], "closed": False},
            "pay": {"values": [500], "closed": False},
        },
    }
    fine = {"age": ["[10, 20)", "*"], "pay_min": ["500", None], "pay_max": [None, "500"]}
    wrong = {"age": ["[10, 19)", "[11, 20)"], "pay_min": ["400", None], "pay_max": [None, "500"]}
    for published, numbers in ((fine, {}), (wrong, {"age": 2, "pay": 1})):
        arrays = {name: pa.array(texts) for name, texts in published.items()}
        assert no_unions_in(SimpleNamespace(published=arrays), boundaries) == [
            f"boundaries of the series: {count} distinct value(s) of column {name!r} do not begin "
            "and end at those fitted in night 3"
            for name, count in numbers.items()
        ]
