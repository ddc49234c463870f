"""The pages: what they show, that all of it is escaped, and that no report can break them."""

from __future__ import annotations

import json
import re

import pytest

from html_page import Page
from mondrian_ops.storage import Archive
from mondrian_ops.web import reader
from mondrian_ops.web.app import STATIC
from releases import entry, entry_id, keep, report_of
from report_samples import HOSTILE


def page_at(client, path: str, status: int = 200) -> Page:
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "private, no-store"
    return Page(answer.text)


def test_an_archive_without_releases_says_what_to_do(client):
    assert "Nothing has been released yet" in page_at(client, "releases").text


def test_the_list_shows_every_figure(client, archive):
    keep(archive, 1, GCP=0.123, DP=7140530, risk=0.2, duration_s=12.3, rows_suppressed=7)
    keep(archive, 2, state="refused", reason="k: too small", dataset="out/other")
    page = page_at(client, "releases")
    for said in ("out/people/2025-01-02", "published", "refused", "12.3 %", "7.14 M", "20.0 %",
                 "12.3 s", "2025-01-02 02:30", "mondrian_nightly", "localmondrian"):  # fmt: skip
        assert said in page.text
    assert "2 releases" in page.text
    links = {given.get("href") for given in page.all("a")}
    assert f"/airflow/mondrian_ops/releases/{entry_id(1)}" in links
    run = "/airflow/dags/mondrian_nightly/runs/scheduled__2025-01-02T02%3A30%3A00%2B00%3A00"
    assert run in links


def test_a_dataset_has_a_sparkline_and_its_drift_is_marked(client, archive):
    for number in range(9):
        keep(archive, number, GCP=0.1 if number < 8 else 0.2, rows_published=1000)
    page = page_at(client, "releases")
    (spark,) = page.charts
    assert spark["values"] == [0.1] * 8 + [0.2]
    assert spark["marked"] == [8]
    assert "now 20.0 %" in spark["label"]
    assert page.text.count("+100 %") == 2


def test_one_release_shows_what_its_report_says(client, archive):
    report = report_of(suppressed=3)
    keep(archive, 1, report=report)
    page = page_at(client, f"releases/{entry_id(1)}")
    kinds = {chart["kind"] for chart in page.charts}
    assert kinds == {"bars", "across", "stacked", "map"}
    histogram = next(chart for chart in page.charts if chart["kind"] == "bars")
    assert sum(histogram["series"][0]["values"]) == 19
    fragments = next(chart for chart in page.charts if chart["kind"] == "map")
    assert [each["rows"] for each in fragments["items"]] == [60, 50]
    for said in ("k-anonymity", "l-diversity", "Prosecutor", "Journalist", "Marketer", "comment",
                 "Published untouched", "income", "gain (asked: auto); the budget",
                 "2 min 10 s"):  # fmt: skip
        assert said in page.text
    assert len(page.all("table")) == len(page.charts) + 2


def test_links_and_look_work_before_anything_is_shown(client, archive):
    """Clicked before its script is there, a link would show Airflow inside of Airflow."""
    keep(archive, 1)
    elements = page_at(client, f"releases/{entry_id(1)}").elements
    body = [tag for tag, _ in elements].index("body")
    at_once = [
        given["src"] for tag, given in elements[:body] if tag == "script" and "defer" not in given
    ]
    assert [src.partition("?")[0].rpartition("/")[2] for src in at_once] == ["look.js", "links.js"]


def test_every_chart_can_be_reached_and_read_without_seeing_it(client, archive):
    keep(archive, 1)
    page = page_at(client, f"releases/{entry_id(1)}")
    drawn = [given for _, given in page.elements if "data-chart" in given]
    assert drawn
    for given in drawn:
        assert given["role"] == "img"
        assert given["tabindex"] == "0"
        assert len(given["aria-label"]) > 10
    assert page.text.count("The same as a table") == len(drawn)


def test_the_conditions_of_fragments_hold_values_and_are_not_shown(client, archive):
    report = report_of()
    report["fragments"][0]["where"] = "age <= 4711 AND zip IN ('Canary')"
    keep(archive, 1, report=report)
    keep(archive, 2, report=report)
    for path in (f"releases/{entry_id(1)}", f"compare?id={entry_id(1)}&id={entry_id(2)}"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert "4711" not in answer.text
        assert "Canary" not in answer.text


def test_a_refused_release_says_why(client, archive):
    archive.keep(entry(1, state="refused", reason="k: 3 classes are smaller than k = 5"), {})
    page = page_at(client, f"releases/{entry_id(1)}")
    assert "k: 3 classes are smaller than k = 5" in page.text
    assert page.charts == []
    assert client.get(f"releases/{entry_id(1)}/report.json").status_code == 404
    assert client.get(f"releases/{entry_id(1)}/report.html").status_code == 404


def test_a_waiting_release_leads_to_where_it_is_answered(client, archive):
    where = {"run_id": "a+b", "task_id": "g.wrap_up", "map_index": 1}
    keep(archive, 1, state="waiting", **where)
    keep(archive, 2, state="published", **where)
    action = "/airflow/dags/mondrian_nightly/runs/a%2Bb/tasks/g.wrap_up/mapped/1/required_actions"
    for number, is_asked in ((1, True), (2, False)):
        page = page_at(client, f"releases/{entry_id(number)}")
        links = [given for given in page.all("a") if given.get("href") == action]
        assert ["data-airflow" in given for given in links] == [True] * is_asked
        assert ("Approve or reject" in page.text) == is_asked


def test_files_with_a_web_address_are_linked_to(client, archive):
    keep(archive, 1, dataset="webhdfs://nn:9870/out")
    keep(archive, 2, dataset="s3://bucket/out")
    hrefs = [
        [given.get("href") for given in page_at(client, f"releases/{entry_id(number)}").all("a")]
        for number in (1, 2)
    ]
    assert "http://nn:9870/explorer.html#/out" in hrefs[0]
    assert not [href for href in hrefs[1] if "bucket" in href and href.startswith("http")]


def test_an_approval_is_told_as_in_the_report(client, archive):
    report = report_of()
    report["approval"] = {"decision": "approved", "by": "ada", "at": "2025-06-01T02:30:00+00:00"}
    keep(archive, 1, report=report)
    assert (
        "approved by ada, 2025-06-01 02:30:00 UTC"
        in page_at(client, f"releases/{entry_id(1)}").text
    )


def test_two_releases_are_compared(client, archive):
    keep(archive, 1, GCP=0.1, report=report_of(names=["age", "zip"]))
    keep(archive, 2, GCP=0.15, report=report_of(names=["age", "sex"]))
    page = page_at(client, f"compare?id={entry_id(2)}&id={entry_id(1)}")
    assert "+50.0 %" in page.text  # whichever was chosen first, the older one is A
    loss, sizes = page.charts
    assert loss["labels"] == ["age", "sex", "zip"]
    assert [series["values"][2] for series in loss["series"]] == [pytest.approx(0.2), None]
    assert [sum(series["values"]) for series in sizes["series"]] == [pytest.approx(1.0)] * 2


@pytest.mark.parametrize("query", ["", "?id=x", f"?id={entry_id(1)}", "?id=a&id=b&id=c"])
def test_other_than_two_cannot_be_compared(client, archive, query):
    keep(archive, 1)
    assert client.get(f"compare{query}").status_code == 400


def test_a_frontier_of_the_same_input_is_shown_with_the_release_in_it(client, archive):
    keep(archive, 1, GCP=0.2)
    points = [
        {"k": 5, "l": None, "GCP": 0.1, "risk_avg": 0.1},
        {"k": 10, "l": None, "GCP": 0.2, "risk_avg": 0.05},
        {"k": 10, "l": 2, "GCP": 0.3, "risk_avg": 0.05},
        {"k": 10, "l": 9, "reason": "not attainable"},
    ]
    told = entry(90, state="frontier", dag_id="mondrian_frontier", dataset="out/people_frontier")
    archive.keep(told, {"frontier.json": json.dumps({"points": points}).encode()})
    page = page_at(client, f"releases/{entry_id(1)}")
    (chart,) = [chart for chart in page.charts if chart["kind"] == "lines"]
    assert chart["at"] == [{"name": "this release", "point": [5, 0.2]}]
    assert [(each["name"], len(each["points"])) for each in chart["series"]] == [
        ("no l", 2),
        ("l = 2", 1),
    ]
    assert "1 release." in page_at(client, "releases").text
    page_at(client, f"releases/{entry_id(90)}", 404)
    keep(archive, 2, GCP=0.3)
    compared = page_at(client, f"compare?id={entry_id(1)}&id={entry_id(2)}").charts[-1]
    assert [each["name"] for each in compared["at"]] == ["A", "B"]
    keep(archive, 3, input="elsewhere")
    charts = page_at(client, f"compare?id={entry_id(1)}&id={entry_id(3)}").charts
    assert "lines" not in {chart["kind"] for chart in charts}


def test_a_frontier_of_a_hidden_dag_is_not_shown(client, archive, hidden):
    keep(archive, 1)
    points = [{"k": 5, "l": None, "GCP": 0.1, "risk_avg": 0.1}]
    told = entry(90, state="frontier", dag_id="mondrian_frontier")
    archive.keep(told, {"frontier.json": json.dumps({"points": points}).encode()})
    assert "Frontier" in page_at(client, f"releases/{entry_id(1)}").text
    hidden.add("mondrian_frontier")
    assert "Frontier" not in page_at(client, f"releases/{entry_id(1)}").text


def test_the_report_is_downloaded_as_it_is_kept(client, archive):
    report = report_of()
    keep(archive, 1, report=report)
    told = client.get(f"releases/{entry_id(1)}/report.json")
    assert told.json() == report
    page = client.get(f"releases/{entry_id(1)}/report.html")
    assert "Anonymization report" in page.text
    for answer in (told, page):
        assert answer.headers["content-disposition"].startswith("attachment")
        assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_a_run_leads_to_its_release_or_to_their_list(client, archive):
    keep(archive, 1, run_id="a+b/c", map_index=0)
    only = client.get("run?dag_id=mondrian_nightly&run_id=a%2Bb%2Fc", follow_redirects=False)
    assert only.headers["location"] == f"/airflow/mondrian_ops/releases/{entry_id(1)}"
    keep(archive, 2, run_id="a+b/c", map_index=1)
    keep(archive, 3)
    page = page_at(client, "run?dag_id=mondrian_nightly&run_id=a%2Bb%2Fc")
    assert "2 releases" in page.text
    none = page_at(client, "run?dag_id=mondrian_nightly&run_id=other")
    assert "No release matches" in none.text


@pytest.mark.parametrize("text", HOSTILE)
def test_all_text_is_escaped(client, archive, text):
    report = report_of(names=[text, "zip"], job={"output": text, "input": text, "algorithm": text})
    report["notes"] = report["verification"]["checked"] = [text]
    report["columns"]["unlisted"] = [text]
    told = dict.fromkeys(("dataset", "input", "dag_id", "run_id", "task_id", "engine"), text)
    keep(archive, 1, report=report, **told, algorithm=text, state=text, reason=text)
    keep(archive, 2, report=report, **told, GCP=0.1)
    before = page_at(client, "releases?dataset=nothing")
    for path in (
        "releases",
        f"releases/{entry_id(1)}",
        f"compare?id={entry_id(1)}&id={entry_id(2)}",
    ):
        page = page_at(client, path)
        assert len(page.all("script")) <= len(before.all("script"))
        assert not page.all("svg")
        assert "\x1b" not in page.text
        assert "\u202e" not in page.text
        links = [given.get("href", "") for given in page.all("a")]
        assert all(re.match(r"/airflow/|\?", link) for link in links)
    assert "\u202e" not in client.get("releases", params={"dataset": text}).text


DAMAGED = {
    "no JSON": b"{",
    "a list": b"[]",
    "no report": b"{}",
    "text for numbers": None,
    "no fragments": None,
    "infinite": None,
    "not a number": None,
    "a number out of range": None,
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_report_is_said_to_be_damaged(client, archive, damage):
    report = report_of()
    content = DAMAGED[damage]
    if damage == "text for numbers":
        report["rows"]["published"] = "<b>many</b>"
    if damage == "infinite":
        report["job"]["k"] = float("inf")
    if damage == "no fragments":
        report["fragments"] = [{"id": 1}]
    if damage == "not a number":
        report["attributes"]["age"]["NCP"] = float("nan")
    content = content or json.dumps(report).encode()
    if damage == "a number out of range":
        report["risk"]["marketer"] = "1e999"
        content = json.dumps(report).replace('"1e999"', "1e999").encode()
    archive.keep(entry(1, report_of()), {"_report.json": content})
    keep(archive, 2)
    page = page_at(client, f"releases/{entry_id(1)}")
    assert "is damaged" in page.text
    assert page.charts == []
    assert page_at(client, f"compare?id={entry_id(1)}&id={entry_id(2)}").all("table")
    assert client.get(f"releases/{entry_id(1)}/report.html").status_code in (200, 404)


def test_a_report_that_is_gone_is_not_there(client, archive, tmp_path):
    keep(archive, 1)
    (tmp_path / "reports" / "reports" / entry_id(1) / "_report.json").unlink()
    assert "not in the archive" in page_at(client, f"releases/{entry_id(1)}", 404).text


@pytest.mark.parametrize("path", ["releases", f"releases/{entry_id(1)}", "run?dag_id=d&run_id=r",
                                  f"compare?id={entry_id(1)}&id={entry_id(2)}"])  # fmt: skip
def test_a_page_looks_into_the_archive_once(client, archive, monkeypatch, path):
    keep(archive, 1)
    keep(archive, 2)
    keep(archive, 3, dag_id="d", run_id="r")
    keep(archive, 4, dag_id="d", run_id="r")
    looks = []
    entries = Archive.entries

    def counted(self):
        looks.append(self)
        return entries(self)

    monkeypatch.setattr(Archive, "entries", counted)
    page_at(client, path)
    assert len(looks) == 1


@pytest.mark.parametrize(
    "path",
    ["releases/ID", "releases/ID/report.json", "releases/ID/report.html", "compare?id=ID&id=ID",
     "run?dag_id=DAG&run_id=r", "releases?dag_id=DAG"],
)  # fmt: skip
def test_what_may_not_be_read_costs_as_much_as_what_is_not_there(
    client, archive, hidden, monkeypatch, path
):
    """So that no clock tells one from the other: the same steps with the same arguments."""
    keep(archive, 1)
    keep(archive, 2, dag_id="hidden", run_id="r")
    hidden.add("hidden")
    steps = []

    def noted(name, done):
        def step(*given):
            steps.append((name, given[1:]))
            return done(*given)

        return step

    for owner, name in ((Archive, "entries"), (Archive, "file"), (reader, "readable_dags")):
        monkeypatch.setattr(owner, name, noted(name, getattr(owner, name)))
    taken = []
    for its, dag_id in ((entry_id(2), "hidden"), (entry_id(3), "absent")):
        client.get(path.replace("ID", its).replace("DAG", dag_id))
        taken.append(list(steps))
        steps.clear()
    assert taken[0] == taken[1]
    assert ("readable_dags", ({"mondrian_nightly", "hidden"},)) in taken[0]


def test_an_archive_that_cannot_be_read_says_so_and_no_more(client, tmp_path, monkeypatch):
    def fail(*_):
        raise PermissionError(13, "Permission denied", "/secret/place")

    monkeypatch.setattr("mondrian_ops.storage.archive.names_in", fail)
    page = page_at(client, "releases", 503)
    assert "[mondrian_ops] reports" in page.text
    assert "secret" not in page.text


@pytest.mark.parametrize(
    "path", ["static/app.py", "static/NOTICE", "static/..%2fapp.py", "nowhere"]
)
def test_what_is_not_there_is_not_found(client, path):
    page_at(client, path, 404)


@pytest.mark.parametrize("name", STATIC)
def test_style_and_scripts_are_served_for_good(client, name):
    answer = client.get(f"static/{name}")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(STATIC[name])
    assert "immutable" in answer.headers["cache-control"]
    assert "private" in answer.headers["cache-control"]


@pytest.mark.parametrize("path", ["releases?page=x", "run?dag_id=a", "compare"])
def test_an_address_that_makes_no_sense_is_refused(client, path):
    page_at(client, path, 400)
