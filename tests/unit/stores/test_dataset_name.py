"""A data set's name without the night: what is a date in a location, and what is not."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops.stores.dataset_name import dataset_name


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("out/people/2025-06-01", "out/people/*"),
        ("out/people/20250601/", "out/people/*/"),
        ("out/people-2025-06-01", "out/people-*"),
        ("out/people/2025/06/01", "out/people/*"),
        ("s3://b/people/day=20250601/r", "s3://b/people/day=*/r"),
        ("/r/2025-06-01T02:30:00Z/x", "/r/*/x"),
        ("/r/20250601T023000/x", "/r/*/x"),
        ("/r/2025-06-01T02:30:00.123456+00:00", "/r/*+00:00"),
        ("out/2025-06-01/to/2025-06-30", "out/*/to/*"),
    ],
)
def test_a_date_is_left_out(location, name):
    assert dataset_name(location) == name


@pytest.mark.parametrize(
    "location",
    [
        "out/people",
        "out/census-1990",
        "customers/10000001",
        "customers/20009901",
        "customers/20250641",
        "customers/120250601",
        "customers/202506011",
        "out/2025-0601",
        "out/3025-06-01",
    ],
)
def test_a_number_is_not(location):
    assert dataset_name(location) == location


@given(st.datetimes(datetime(1900, 1, 1), datetime(2099, 12, 31)), st.sampled_from("-/._"))
def test_every_night_of_a_data_set_has_its_name(moment, sign):
    for pattern in ("%Y-%m-%d", "%Y%m%d", "%Y-%m-%dT%H:%M:%S", "%Y%m%d_%H%M", "%Y-%m-%d-%H%M%S"):
        assert dataset_name(f"out/a/{moment.strftime(pattern)}/b") == "out/a/*/b"
    assert dataset_name(moment.strftime(f"%Y{sign}%m{sign}%d")) == "*"
