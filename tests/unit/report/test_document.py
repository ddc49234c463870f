"""The report as a value: what it reads and writes, and its figures in one flat dict."""

from __future__ import annotations

import json

import pytest

from mondrian_ops import report as reports
from mondrian_ops.report import Report, ReportError
from report_samples import make


def test_a_report_is_written_as_it_was_read() -> None:
    report = make() | {"overlap": {"people": 3}, "more": {"decision": "asked"}}
    assert Report.of(report).to_dict() == report
    assert list(Report.of(make()).to_dict()) == list(make())
    content = reports.json_content(report)
    assert reports.parsed(content) == Report.from_json(content).to_dict() == report


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"rows": None}, "rows"),
        ({"rows": {"input": True, "published": 1, "suppressed": 0}}, "rows.input"),
        ({"equivalence_classes": -1}, "equivalence_classes"),
        ({"class_sizes": [[1]]}, "class_sizes.0"),
        ({"achieved": {"k": 10**400}}, "achieved.k"),
        ({"timings_s": {"wrap_up": float("inf")}}, "timings_s.wrap_up"),
        ({"schema_version": 2}, "schema_version"),
    ],
)
def test_the_error_about_a_damaged_report_names_the_place_and_not_the_value(changed, where) -> None:
    with pytest.raises(ReportError, match=f"another version: {where}") as refused:
        Report.of(make() | changed)
    assert len(str(refused.value)) < 120


@pytest.mark.parametrize("content", [b"{", b"[]", b"{}", b"\xff", b"[" * 100_000])
def test_content_that_is_not_a_json_object_is_refused(content: bytes) -> None:
    with pytest.raises(ReportError, match="damaged"):
        Report.from_json(content)


def test_a_report_is_frozen() -> None:
    with pytest.raises(AttributeError, match="cannot assign"):
        Report.of(make()).notes = ()


def test_figures_are_those_of_the_report():
    report = make(suppressed=3) | {"risk": {"prosecutor_max": 0.5, "prosecutor_avg": 0.25}}
    assert Report.of(report).overview() == {
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
    figures = Report.of(make(achieved=achieved)).overview()
    assert tuple(figures[f"achieved_{name}"] for name in "klt") == expected


@pytest.mark.parametrize(
    ("timings", "seconds"),
    [({}, 0), ({"a": 0.0004}, 0), ({"a": 0.1, "b": 0.2}, 0.3), ({"a": 1.2344}, 1.234)],
)
def test_seconds_of_all_tasks_are_added_up_and_rounded(timings, seconds):
    report = Report.of(make() | {"timings_s": timings})
    assert report.overview()["duration_s"] == seconds


@pytest.mark.parametrize("changed", [{}, {"passed": False}, {"fragments": 0, "class_sizes": []}])
def test_figures_are_flat_numbers_that_json_holds(changed):
    figures = Report.of(make(**changed)).overview()
    assert all(isinstance(value, int | float | None) for value in figures.values())
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures


def test_no_change_of_a_dict_reaches_the_report_that_was_read_from_it() -> None:
    given = make() | {"levels": {"sex": 1, "more": [{"of": [1]}], "pair": ({"of": 1},)}}
    read = Report.of(given)
    kept = read.to_dict()
    assert kept == given
    for changed in (given, read.to_dict()):
        changed["levels"]["more"][0]["of"].append(2)
        changed["levels"]["pair"][0]["of"] = 2
        changed["rows"]["input"] = 99
    assert read.to_dict() == kept
