"""What decides that a release may be published, at its edges: found by mutating that code."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from mondrian_ops.core.errors import PrivacyError
from mondrian_ops.core.job import Job
from mondrian_ops.core.verification import (
    ReleaseCounter,
    check,
    counter_of,
    published_columns,
)

ROWS = 4


def a_job(**keys: Any) -> Job:
    return Job.from_dict({"k": 2, "quasi_identifiers": ["q"], **keys}, paths_required=False)


def a_part(**columns: Any) -> pa.Table:
    return pa.table({"q": ["a"] * ROWS, **columns})


def test_the_figures_of_nothing():
    count = ReleaseCounter(["q"], ["s"]).result()
    assert (count.rows, count.classes, count.dp, count.histogram) == (0, 0, 0, [])
    assert (count.prosecutor_max, count.prosecutor_avg, count.c_avg(5)) == (1.0, 1.0, 0.0)
    verdict = check(count, a_job())
    assert (verdict.passed, verdict.achieved, verdict.checked) == (False, {}, ())
    assert verdict.failures == ("the release has no rows",)


@pytest.mark.parametrize(
    ("parts", "passes"),
    [
        ([["*"] * 4, ["*"] * 4], True),
        ([["*"] * 4, ["*"] * 3 + ["Jane"]], False),
        ([["*"] * 4, ["Jane"] * 4], False),
        ([["*", "*", "Jane", "Joe"], ["*"] * 4], False),
        ([["*", None, "*", "*"], ["*"] * 4], False),
        ([[None] * 4, [None] * 4], True),
        ([["Jane", "Joe", "Jim", "Jill"], ["*"] * 4], False),
    ],
)
def test_a_redacted_identifier_has_one_value_in_all_parts(parts, passes):
    job = a_job(identifiers=["name"], identifier_policy="redact")
    counter = counter_of(job, ["q", "name"])
    for names in parts:
        counter.add(a_part(name=pa.array(names, pa.string())))
    verdict = check(counter.result(), job)
    assert verdict.passed is passes
    assert bool(verdict.failures) is not passes
    assert "Jane" not in str(verdict)


def test_an_identifier_that_was_not_counted_does_not_pass():
    counter = ReleaseCounter(["q"], [])
    counter.add(a_part(name=["*"] * ROWS))
    job = a_job(identifiers=["name"], identifier_policy="redact")
    assert check(counter.result(), job).failures == (
        "identifier 'name' is published; it must be the same in all rows",
    )


def test_a_failing_class_is_told_by_part_and_row():
    counter = ReleaseCounter(["q"], [])
    counter.add(a_part(), "one")
    counter.add(pa.table({"q": ["a", "a", "b"]}), "two")
    count = counter.result()
    (failure,) = check(count, a_job()).failures
    assert failure == (
        "k-anonymity, k = 2: 1 of 2 classes fail; the worst is class 1, with 1 rows and k = 1 "
        "(row 2 of two is in it)"
    )
    assert count.locate(0) == ("one", 0)
    assert count.histogram == [(1, 1), (6, 1)]
    assert count.prosecutor_max == 1.0
    assert count.prosecutor_avg == 2 / 7
    assert count.c_avg(2) == 7 / 2 / 2


def test_parts_without_a_name_are_numbered():
    counter = ReleaseCounter(["q"], [])
    for _ in range(2):
        counter.add(a_part())
    assert counter.result().parts == (("part 0", 0), ("part 1", ROWS))


def test_classes_of_k_pass_and_of_one_less_fail():
    for size, passes in ((2, True), (1, False)):
        counter = ReleaseCounter(["q"], [])
        counter.add(pa.table({"q": ["a"] * ROWS + ["b"] * size}))
        assert check(counter.result(), a_job()).passed is passes


def test_a_release_of_another_shape_is_no_release():
    with pytest.raises(PrivacyError, match="'q' is no column of the release"):
        counter_of(a_job(), ["r"])
    counter = counter_of(a_job(), ["q"])
    counter.add(a_part())
    with pytest.raises(PrivacyError, match="not those of the parts before"):
        counter.add(a_part(other=range(ROWS)))
    with pytest.raises(PrivacyError, match=r"^x: column 'q' is missing"):
        counter.add(pa.table({"r": [1]}), "x")


def test_the_columns_of_a_count_may_stand_in_any_order():
    counter = ReleaseCounter(["q"], [])
    counter.add(pa.table({"q": ["a"], "r": [1]}))
    counter.add(pa.table({"r": [1], "q": ["a"]}))
    assert counter.result().class_sizes.tolist() == [2]


@pytest.mark.parametrize("other", ["age_min", "age_max"])
def test_another_column_does_not_stand_in_for_bounds(other):
    job = a_job(quasi_identifiers=[other, "age"], interval_style="bounds")
    with pytest.raises(PrivacyError, match="'age' is no column of the release"):
        published_columns(job, [other])
    assert published_columns(job, [other, "age"]) == (other, "age")
