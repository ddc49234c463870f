"""The options of a series, and what they cannot be combined with."""

from __future__ import annotations

from typing import Any

import pytest

from jobs import minimal, with_sensitive
from mondrian_ops.errors import JobError
from mondrian_ops.job.job import Job
from mondrian_ops.job.series_options import Series


def test_a_job_is_of_no_series_unless_it_says_so() -> None:
    assert Job.from_dict(minimal()).series is None
    assert not Series.read({}).holds
    assert Series.read({"hold_nights": "7", "hold_above": 0.1}).holds


WRONG_SERIES = [
    ({"hold_above": 0.1}, {}, "series.hold_above: needs hold_nights"),
    ({"overdue": "suppress"}, {}, "series.overdue: needs hold_nights"),
    ({"unmatched": "suppress"}, {}, "series.unmatched: applies only to protect: intersection"),
    ({}, {"algorithm": "tds"}, "series: is not available with algorithm: tds"),
    ({"kind": "snapshots", "hold_nights": 1}, {}, "series.hold_nights: applies only to kind"),
    ({"protect": "intersection"}, {"entity_id": None}, "intersection needs entity_id"),
    ({"protect": "intersection"}, {"sensitive": ["a", "b"]}, "needs exactly one sensitive"),
    ({"protect": "intersection"}, {"l": None}, "series.protect: intersection needs l"),
    ({"protect": "intersection"}, {"diversity": "entropy"}, "needs diversity: distinct"),
    ({"protect": "intersection"}, {"t": 0.3}, "series.protect: intersection needs no t"),
    ({"protect": "intersection"}, {"algorithm": "di_mondrian"}, "needs algorithm: mondrian"),
    ({"protect": "intersection"}, {}, "series.unmatched: wait needs hold_nights"),
    (
        {"refit_above": 0.2},
        {},
        "series.refit_above: applies only to boundaries: stable",
    ),
    ({"hold_nights": 7, "hold_above": 0.1}, {"t": 0.2}, "series.hold_above: cannot be combined"),
    ({"hold_nights": 7}, {"overlap": "warn"}, "overlap: warn cannot be combined with series.hold"),
    ({"kind": "snapshots"}, {"overlap": "warn"}, "overlap: warn cannot be combined with series.ki"),
    ({"protect": "intersection"}, {"overlap": "refuse"}, "overlap: refuse cannot be combined with"),
]


def test_people_are_compared_in_a_series_that_brings_each_of_them_once() -> None:
    series = {"boundaries": "stable"}
    job = Job.from_dict(
        {**with_sensitive(entity_id="patient"), "overlap": "warn", "series": series}
    )
    assert job.compares_people


@pytest.mark.parametrize(("series", "changes", "problem"), WRONG_SERIES)
def test_a_wrong_series_is_refused(
    series: dict[str, Any], changes: dict[str, Any], problem: str
) -> None:
    job = with_sensitive(entity_id="patient", l=2) | changes
    with pytest.raises(JobError) as refused:
        Job.from_dict({**job, "series": {"hold_nights": None, **series}})
    assert problem in str(refused.value)
