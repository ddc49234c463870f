"""Two releases side by side."""

from __future__ import annotations

import re

import pytest

from html_page import page_at
from mondrian_ops.report import Report
from mondrian_ops.web.comparison import differences, figures_of_both
from mondrian_ops.web.release_list import COLUMNS, Release
from releases import entry_id, keep, report_of


def test_two_releases_are_compared(client, catalogue):
    keep(catalogue, 1, GCP=0.1, report=report_of(names=["age", "zip"]))
    keep(catalogue, 2, GCP=0.15, report=report_of(names=["age", "sex"]))
    page = page_at(client, f"compare?id={entry_id(2)}&id={entry_id(1)}")
    assert "+5.0 points, worse" in page.text  # whichever was chosen first, the older one is A
    loss, sizes = page.charts
    assert loss.says == [
        "age: A 20.0 %, B 20.0 %",
        "zip: A 20.0 %, B –",
        "sex: A –, B 20.0 %",
    ]
    for letter in "AB":
        shares = [float(re.search(rf"{letter} ([\d.]+) %", each)[1]) for each in sizes.says]
        assert sum(shares) == pytest.approx(100, abs=0.1)


def test_a_comparison_begins_with_what_was_asked_and_decided_otherwise(client, catalogue):
    one = report_of(requested_by="ada", job={"k": 5, "max_gcp": 0.2})
    other = report_of(requested_by="bob", job={"k": 10}, names=["age", "sex"])
    keep(catalogue, 1, report=one)
    keep(catalogue, 2, report=other)
    rows = differences([Report.of(one), Report.of(other)]).rows
    assert {
        ("k", "5", "10"),
        ("max_gcp", "0.2", "–"),
        ("requested by", "ada", "bob"),
        ("generalization of zip", "interval", "–"),
        ("generalization of sex", "–", "interval"),
    } <= {*rows}
    assert "algorithm" not in {name for name, _, _ in rows}
    text = page_at(client, f"compare?id={entry_id(2)}&id={entry_id(1)}").text
    assert (
        text.index("Asked and decided otherwise") < text.index("max_gcp") < text.index("In figures")
    )


def test_a_difference_behind_many_equal_characters_is_shown():
    same = [{"name": f"column number {n}", "generalization": "interval"} for n in range(9)]
    jobs = [
        {"quasi_identifiers": [*same, {"name": "pay", "top": top}], "purpose": "x" * 500 + str(top)}
        for top in (3, 4)
    ]
    rows = differences([Report.of(report_of(job=job)) for job in jobs]).rows
    assert [name for name, _, _ in rows] == ["quasi-identifier pay", "purpose"]
    assert [each[-4:] for each in rows[1][1:]] == ["xxx3", "xxx4"]
    assert max(map(len, rows[1])) < 210


def test_equal_jobs_have_no_differences(client, catalogue):
    for number in (1, 2):
        keep(catalogue, number)
    text = page_at(client, f"compare?id={entry_id(2)}&id={entry_id(1)}").text
    assert "Nothing: the same job" in text


@pytest.mark.parametrize(
    ("field", "a", "b", "shown"),
    [
        ("rows_suppressed", 0, 500, "+500, worse"),
        ("rows_suppressed", 500, 0, "-500 (-100.0 %), better"),
        ("rows_published", 1000, 1500, "+500 (+50.0 %)"),
        ("GCP", 0.031, 0.034, "+0.3 points, worse"),
        ("GCP", 0.0310, 0.0309, "-0.01 points, better"),
        ("achieved_k", 5, 10, "+5 (+100.0 %), better"),
        ("duration_s", 1.5, 3.0, "+1.50 s (+100.0 %)"),
        ("risk", None, 0.2, ""),
        ("risk", 0.2, 0.2, ""),
    ],
)
def test_differences_of_figures(field, a, b, shown):
    pair = [Release(**{**dict.fromkeys(COLUMNS), field: value}) for value in (a, b)]
    (difference,) = [row[3] for row in figures_of_both(pair).rows if row[3]] or [""]
    assert difference == shown


def test_each_release_says_what_has_changed_since_the_one_before(client, catalogue):
    keep(catalogue, 1, rows_published=1000, rows_suppressed=0, GCP=0.1)
    keep(catalogue, 2, rows_published=1500, rows_suppressed=500, GCP=0.1)
    assert "Since the release" not in page_at(client, f"releases/{entry_id(1)}").text
    assert (
        "Since the release of 2025-01-02 02:30 UTC – Rows published: +500 (+50.0 %); "
        "Rows suppressed: +500, worse\n"
    ) in page_at(client, f"releases/{entry_id(2)}").text


def test_two_releases_without_classes_are_compared(client, catalogue):
    for number in (1, 2):
        keep(catalogue, number, report={**report_of(), "class_sizes": []})
    page = page_at(client, f"compare?id={entry_id(2)}&id={entry_id(1)}")
    assert page.charts[1].says == []


@pytest.mark.parametrize("query", ["", "?id=x", f"?id={entry_id(1)}", "?id=a&id=b&id=c"])
def test_other_than_two_cannot_be_compared(client, catalogue, query):
    keep(catalogue, 1)
    assert client.get(f"compare{query}").status_code == 400
