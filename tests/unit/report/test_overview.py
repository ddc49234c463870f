"""The figures of a release in a list: one flat dict, of every kind of report."""

from __future__ import annotations

import json

import pytest

from mondrian_ops.report.overview import overview
from report_samples import make


def test_figures_are_those_of_the_report():
    report = make(suppressed=3) | {"risk": {"prosecutor_max": 0.5, "prosecutor_avg": 0.25}}
    found = overview(report)
    assert found == {
        "achieved_k": 5,
        "achieved_l": 2,
        "achieved_t": None,
        "rows_input": 113,
        "rows_published": 110,
        "rows_suppressed": 3,
        "equivalence_classes": 22,
        **{name: report["metrics"][name] for name in ("NCP", "GCP", "LM", "DP")},
        "risk": 0.5,
        "risk_avg": 0.25,
        "duration_s": 131.123,
    }
    assert found["DP"] == 550


@pytest.mark.parametrize(
    ("achieved", "expected"),
    [
        ({}, (None, None, None)),
        ({"k": None, "l": None, "t": None}, (None, None, None)),
        ({"k": 0, "l": 0, "t": 0.0}, (0, 0, 0.0)),
        ({"k": 7, "l": {"ä": 3, "b": 2.5}, "t": {"ä": 0.1, "b": 0.25}}, (7, 2.5, 0.25)),
    ],
)
def test_of_several_attributes_the_weakest_counts(achieved, expected):
    found = overview(make(achieved=achieved))
    assert tuple(found[f"achieved_{name}"] for name in "klt") == expected


@pytest.mark.parametrize(
    ("timings", "seconds"),
    [({}, 0), ({"a": 0.0004}, 0), ({"a": 0.1, "b": 0.2}, 0.3), ({"a": 1.2344}, 1.234)],
)
def test_seconds_of_all_tasks_are_added_up_and_rounded(timings, seconds):
    assert overview(make() | {"timings_s": timings})["duration_s"] == seconds


@pytest.mark.parametrize("changed", [{}, {"passed": False}, {"fragments": 0, "class_sizes": []}])
def test_figures_are_flat_numbers_that_json_holds(changed):
    found = overview(make(**changed))
    assert all(isinstance(value, int | float | None) for value in found.values())
    assert json.loads(json.dumps(found, allow_nan=False)) == found
