"""What a report says that its release does not prevent."""

from __future__ import annotations

import pytest

from report_samples import make


@pytest.mark.parametrize(
    ("job", "text", "other_text"),
    [
        ({"l": None}, "No column is named sensitive", "l-diversity"),
        ({"l": None, "sensitive": ["income"]}, "requires neither l nor t", "t limits"),
        ({"sensitive": ["income"]}, "l-diversity does not prevent", "neither"),
        ({"sensitive": ["income"], "t": 0.2}, "t limits what a class", "l-diversity"),
        ({"sensitive": ["income"]}, "skewed (t limits it), or by somebody", "skewed or similar"),
        ({"sensitive": ["income"]}, "values of income in a class may be similar", "wider than"),
        (
            {"sensitive": ["income", "ill"], "l_width": {"income": "10 %"}},
            "l_width does). A guess may be wider than the width of l_width, and right: "
            "income (10 %).",
            "values of income",
        ),
        ({"sensitive": ["a"], "l_width": {"a": "5"}}, "and right: a (5).", "may be similar"),
        ({"l": None, "sensitive": ["income"]}, "requires neither", "may be similar"),
        ({}, "tight intervals", "several files"),
        (
            {"quasi_identifiers": [{"name": "age", "grid": 5}, {"name": "zip", "grid": 9}]},
            "algorithm can undo",
            "tight intervals",
        ),
        ({"algorithm": "samarati"}, "algorithm can undo", "tight intervals"),
        ({"series": {"boundaries": "nightly"}}, "tight intervals", "several files"),
        ({"series": {"boundaries": "stable"}}, "algorithm can undo", "tight intervals"),
        ({"entity_id": "person"}, "intersect them", "has several rows"),
        ({"entity_id": "p", "algorithm": "tds", "l": 2}, "most rows of a class", "l counts rows"),
    ],
)
def test_limits_are_those_of_the_job(job, text, other_text):
    limits = make(job=job)["limits"]
    assert limits.startswith("k-anonymity makes it hard to link")
    assert text in limits
    assert other_text not in limits
    assert "The job publishes a column unchanged without a role" in limits


def test_limits_say_where_files_tell_more_than_the_table():
    assert "several files" in make(partitioning={"split_classes": 2})["limits"]
    assert "several files" not in make(partitioning={"split_classes": 0})["limits"]


def test_limits_count_the_columns_published_unchanged():
    columns = {"unlisted": ["a", "b"], "unlisted_policy": "publish"}
    assert "publishes 2 columns unchanged without a role" in make(columns=columns)["limits"]
    assert "without a role" not in make(columns={**columns, "unlisted_policy": "drop"})["limits"]
