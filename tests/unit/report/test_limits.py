"""What a report says that k-anonymity does not do."""

from __future__ import annotations

import pytest

from report_samples import make


@pytest.mark.parametrize(
    ("job", "said", "not_said"),
    [
        ({"l": None}, "No column is named sensitive", "l-diversity"),
        ({"l": None, "sensitive": ["income"]}, "Neither l nor t was asked for", "t bounds"),
        ({"sensitive": ["income"]}, "l-diversity does not stop", "Neither"),
        ({"sensitive": ["income"], "t": 0.2}, "t bounds how much", "l-diversity"),
        ({}, "tight intervals", "several files"),
        (
            {"quasi_identifiers": [{"name": "age", "grid": 5}, {"name": "zip", "grid": 9}]},
            "algorithm can undo",
            "tight intervals",
        ),
        ({"algorithm": "samarati"}, "algorithm can undo", "tight intervals"),
        ({"entity_id": "person"}, "releases of overlapping people", "several rows"),
    ],
)
def test_limits_are_those_of_the_job(job, said, not_said):
    limits = make(job=job)["limits"]
    assert limits.startswith("k-anonymity limits linking")
    assert said in limits
    assert not_said not in limits
    assert "A column that the job does not name is published unchanged" in limits


def test_limits_say_where_files_tell_more_than_the_table():
    assert "several files" in make(partitioning={"split_classes": 2})["limits"]
    assert "several files" not in make(partitioning={"split_classes": 0})["limits"]


def test_limits_count_the_columns_published_unchanged():
    columns = {"unlisted": ["a", "b"], "unlisted_policy": "publish"}
    assert "2 columns that the job does not name are" in make(columns=columns)["limits"]
    assert "does not name" not in make(columns={**columns, "unlisted_policy": "drop"})["limits"]
