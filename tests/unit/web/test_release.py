"""The page of a release: its charts, their descriptions, and its frontier."""

from __future__ import annotations

import json

import pytest

from html_page import page_at
from mondrian_ops import report as reports
from mondrian_ops.catalogue import releases
from releases import entry, entry_id, keep, keep_entry, report_of
from report_samples import STATES, make_in


def test_the_page_shows_the_figures_of_the_report(client, catalogue):
    report = report_of(suppressed=3)
    keep(catalogue, 1, report=report)
    page = page_at(client, f"releases/{entry_id(1)}")
    charts = [chart.kind for chart in page.charts]
    assert charts == ["bars", "columns", "bars", "bars", "map", "bars"]
    sizes, fragments = page.charts[1].says, page.charts[4].says
    assert sizes[:2] == ["5 rows in a class: 12 classes", "6 rows in a class: 5 classes"]
    assert [each.partition(" rows")[0] for each in fragments] == [
        "fragment 1: 60",
        "fragment 0: 50",
    ]
    for text in ("k-anonymity", "l-diversity", "Prosecutor", "Journalist", "Marketer", "comment",
                 "Check these:", "income", "gain (the job says auto); the budget",
                 "2 min 10 s", "The same, averaged over all rows."):  # fmt: skip
        assert text in page.text
    assert len(page.all("table")) == len(page.charts) + 1


def test_every_chart_can_be_read_without_seeing_it(client, catalogue):
    keep(catalogue, 1)
    page = page_at(client, f"releases/{entry_id(1)}")
    assert page.charts
    for chart in page.charts:
        assert len(chart.label) > 10
        assert all(chart.says)
    sections = [chart for chart in page.charts if "anonymity" not in chart.label]
    assert page.text.count("These figures as a table") == len(sections)


def test_the_conditions_of_fragments_hold_values_and_are_not_shown(client, catalogue):
    report = report_of()
    report["fragments"][0]["where"] = "age <= 4711 AND zip IN ('Canary')"
    keep(catalogue, 1, report=report)
    keep(catalogue, 2, report=report)
    for path in (f"releases/{entry_id(1)}", f"compare?id={entry_id(1)}&id={entry_id(2)}"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert "4711" not in answer.text
        assert "Canary" not in answer.text


def test_the_page_names_who_approved(client, catalogue):
    report = report_of()
    decision = reports.decided("approved", "ada", "2025-06-01T02:30:00+00:00")
    reports.conclude(report, "published", decision=decision)
    keep(catalogue, 1, report=report)
    assert (
        "approved by ada, 2025-06-01 02:30:00 UTC"
        in page_at(client, f"releases/{entry_id(1)}").text
    )


def test_a_frontier_of_the_same_input_is_shown_with_the_release_in_it(client, catalogue):
    told = report_of()
    keep(catalogue, 1, GCP=0.2, report=told)
    points = [
        {"k": 5, "l": None, "GCP": 0.1, "risk_avg": 0.1},
        {"k": 10, "l": None, "GCP": 0.2, "risk_avg": 0.05},
        {"k": 10, "l": 2, "GCP": 0.3, "risk_avg": 0.05},
        {"k": 10, "l": 9, "reason": "not attainable"},
    ]
    frontier = entry(
        90, state="frontier", dag_id="mondrian_frontier", dataset="out/people_frontier"
    )
    measured = {"points": points, "job": told["job"]}
    keep_entry(catalogue, frontier, frontier=json.dumps(measured).encode())
    page = page_at(client, f"releases/{entry_id(1)}")
    (chart,) = [chart for chart in page.charts if chart.kind == "lines"]
    assert chart.says == [
        "no l: k = 5, 10.0 %",
        "no l: k = 10, 20.0 %",
        "l = 2: k = 10, 30.0 %",
        "l = 9: k = 10, not attainable",
        "this release: k = 5, 20.0 %",
    ]
    assert "1 release." in page_at(client, "releases").text
    page_at(client, f"releases/{entry_id(90)}", 404)
    keep(catalogue, 2, GCP=0.3, report=told)
    compared = page_at(client, f"compare?id={entry_id(1)}&id={entry_id(2)}").charts[-1]
    assert [each.partition(":")[0] for each in compared.says[-2:]] == ["A", "B"]
    keep(catalogue, 3, input="elsewhere")
    charts = page_at(client, f"compare?id={entry_id(1)}&id={entry_id(3)}").charts
    assert "lines" not in {chart.kind for chart in charts}


@pytest.mark.parametrize(
    "changed",
    [{"quasi_identifiers": [{"name": "age"}]}, {"cut": "gain"}, {"algorithm": "tds"}, None],
    ids=["columns", "cut", "algorithm", "unknown"],
)
def test_a_release_of_other_columns_or_another_cut_is_on_no_curve(changed, client, catalogue):
    told = report_of()
    keep(catalogue, 1, report=told)
    points = [{"k": 5, "l": None, "GCP": 0.1, "risk_avg": 0.1}]
    frontier = entry(90, state="frontier", dag_id="mondrian_frontier")
    measured = {"points": points}
    if changed is not None:
        measured["job"] = {**told["job"], **changed}
    keep_entry(catalogue, frontier, frontier=json.dumps(measured).encode())
    page = page_at(client, f"releases/{entry_id(1)}")
    assert "lines" not in {chart.kind for chart in page.charts}


def keep_in(catalogue, state):
    """A release in a state, as the operators record it: by its report alone."""
    told = report_of(requested_by="ada", run_type="manual")
    columns = entry(1)
    del columns["state"], columns["reason"]
    with catalogue.writing() as connection:
        releases.keep_reported(connection, columns, make_in(state, told))


@pytest.mark.parametrize("state", STATES)
def test_each_state_is_the_same_in_the_list_on_the_page_and_in_both_downloads(
    client, catalogue, state
):
    keep_in(catalogue, state)
    chip = f'<span class="state {state}">{state}</span>'
    at = f"releases/{entry_id(1)}"
    shown, download = client.get(at).text, client.get(f"{at}/report.html").text
    assert chip in shown and chip in client.get("releases").text
    assert client.get(f"{at}/report.json").json()["outcome"]["state"] == state
    for html in (shown, download):
        assert f'class="card outcome {state}"' in html
        assert ("Rows published" in html) == (state == "published")
        assert "<dt>Asked for by</dt><dd>ada</dd>" in html
        if "reason" in STATES[state]:
            assert f"<dt>Reason</dt><dd>{STATES[state]['reason']}</dd>" in html
        if "decision" in STATES[state]:
            decision, by, _, why = STATES[state]["decision"]
            assert f"{decision} by {by}, 2025-06-01 09:00:00 UTC" in html
            assert f"<dd>{why}</dd>" in html
    assert ("Approve or reject" in shown) == (state == "waiting")


def test_a_report_of_an_earlier_version_says_of_no_release_that_it_is_published(client, catalogue):
    report = report_of()
    report["outcome"] = None
    keep_entry(catalogue, entry(1, state="published"), _report=json.dumps(report).encode())
    at = f"releases/{entry_id(1)}"
    for html in (client.get(at).text, client.get(f"{at}/report.html").text):
        assert "State unknown" in html and 'class="card outcome other"' in html
        assert "Rows published" not in html and 'class="state published"' not in html


def test_a_run_that_ended_before_it_measured_anything_has_a_page_and_downloads(client, catalogue):
    job = {"input": "in.csv", "output": "out/people", "k": 5}
    report = reports.unmeasured(job, made_by="a_dag", requested_by="ada", run_type="manual")
    columns = entry(1)
    with catalogue.writing() as connection:
        releases.keep_reported(
            connection, columns, reports.conclude(report, "failed", "age: no such column")
        )
    keep(catalogue, 2)
    at = f"releases/{entry_id(1)}"
    for html in (client.get(at).text, client.get(f"{at}/report.html").text):
        assert "<dt>Reason</dt><dd>age: no such column</dd>" in html
        assert "Required and achieved" not in html and "In figures" not in html
    assert client.get(f"{at}/report.json").json()["requested_by"] == "ada"
    compared = page_at(client, f"compare?id={entry_id(1)}&id={entry_id(2)}")
    assert "There are no charts" in compared.text


@pytest.mark.parametrize("outcome", [None, {}, {"state": 1}])
def test_a_report_that_does_not_say_what_happened_is_not_kept(client, catalogue, outcome):
    with pytest.raises(reports.ReportError), catalogue.writing() as connection:
        releases.keep_reported(connection, entry(1), report_of() | {"outcome": outcome})
    assert "0 releases" in client.get("releases").text or "Nothing" in client.get("releases").text
