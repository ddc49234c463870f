"""The pages: their contents, the escaping of every text, and addresses that do not exist."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest
from fastapi.dependencies.utils import get_flat_dependant

from html_page import page_at
from mondrian_ops.web.pages import MAX_CHARACTERS, MEDIA_TYPES, STATIC
from releases import entry, entry_id, keep, keep_entry, report_of
from report_samples import HOSTILE
from tiers import one_in


def test_a_catalogue_without_releases_says_what_to_do(client):
    assert "Nothing has been released yet" in page_at(client, "releases").text


def test_the_list_shows_every_figure(client, catalogue):
    keep(catalogue, 1, GCP=0.123, DP=7140530, risk=0.2, duration_s=12.3, rows_suppressed=7)
    keep(catalogue, 2, state="refused", reason="k: too small", dataset="out/other")
    page = page_at(client, "releases")
    for text in ("out/people/2025-01-02", "published", "refused", "12.3 %", "7.14 M", "20.0 %",
                 "12.3 s", "2025-01-02 02:30", "mondrian_nightly", "localmondrian"):  # fmt: skip
        assert text in page.text
    assert "2 releases" in page.text
    links = {given.get("href") for given in page.all("a")}
    assert f"/airflow/mondrian_ops/releases/{entry_id(1)}" in links
    run = "/airflow/dags/mondrian_nightly/runs/scheduled__2025-01-02T02%3A30%3A00%2B00%3A00"
    assert run in links


def test_a_dataset_has_a_sparkline_and_its_drift_is_marked(client, catalogue):
    for number in range(9):
        keep(catalogue, number, GCP=0.1 if number < 8 else 0.2, rows_published=1000)
    page = page_at(client, "releases")
    (spark,) = page.charts
    assert [each.partition(": ")[2] for each in spark.says] == ["10.0 % lost"] * 8 + ["20.0 % lost"]
    marks = [given["class"] for given in page.all("circle")]
    assert marks == ["fill s0"] * 8 + ["fill bad"]
    assert "now 20.0 %" in spark.label
    assert page.text.count("+100 %") == 2


def test_the_scripts_for_links_and_look_are_loaded_before_the_body(client, catalogue):
    """A link that is clicked before its script is there would show Airflow inside Airflow."""
    keep(catalogue, 1)
    elements = page_at(client, f"releases/{entry_id(1)}").elements
    body = [tag for tag, _ in elements].index("body")
    at_once = [
        given["src"] for tag, given in elements[:body] if tag == "script" and "defer" not in given
    ]
    assert [src.partition("?")[0].rpartition("/")[2] for src in at_once] == ["look.js", "links.js"]


def test_a_refused_release_says_why(client, catalogue):
    keep_entry(catalogue, entry(1, state="refused", reason="k: 3 classes are smaller than k = 5"))
    page = page_at(client, f"releases/{entry_id(1)}")
    assert "k: 3 classes are smaller than k = 5" in page.text
    assert page.charts == []
    assert client.get(f"releases/{entry_id(1)}/report.json").status_code == 404
    assert client.get(f"releases/{entry_id(1)}/report.html").status_code == 404


def test_a_waiting_release_links_to_the_page_to_approve_it(client, catalogue):
    where = {"run_id": "a+b", "task_id": "g.wrap_up", "map_index": 1}
    keep(catalogue, 1, state="waiting", **where)
    keep(catalogue, 2, state="published", **where)
    action = "/airflow/dags/mondrian_nightly/runs/a%2Bb/tasks/g.wrap_up/mapped/1/required_actions"
    for number, is_asked in ((1, True), (2, False)):
        page = page_at(client, f"releases/{entry_id(number)}")
        links = [given for given in page.all("a") if given.get("href") == action]
        assert ["data-airflow" in given for given in links] == [True] * is_asked
        assert ("Approve or reject" in page.text) == is_asked


def test_files_with_a_web_address_are_linked_to(client, catalogue):
    keep(catalogue, 1, dataset="webhdfs://nn:9870/out")
    keep(catalogue, 2, dataset="s3://bucket/out")
    hrefs = [
        [given.get("href") for given in page_at(client, f"releases/{entry_id(number)}").all("a")]
        for number in (1, 2)
    ]
    assert "http://nn:9870/explorer.html#/out" in hrefs[0]
    assert not [href for href in hrefs[1] if "bucket" in href and href.startswith("http")]


def test_the_report_is_downloaded_as_the_catalogue_holds_it(client, catalogue):
    report = report_of()
    keep(catalogue, 1, report=report)
    download = client.get(f"releases/{entry_id(1)}/report.json")
    assert download.json() == report
    page = client.get(f"releases/{entry_id(1)}/report.html")
    assert "Anonymization report" in page.text
    for answer in (download, page):
        assert answer.headers["content-disposition"].startswith("attachment")
        assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_a_run_leads_to_its_release_or_to_their_list(client, catalogue):
    keep(catalogue, 1, run_id="a+b/c", map_index=0)
    only = client.get("run?dag_id=mondrian_nightly&run_id=a%2Bb%2Fc", follow_redirects=False)
    assert only.headers["location"] == f"/airflow/mondrian_ops/releases/{entry_id(1)}"
    keep(catalogue, 2, run_id="a+b/c", map_index=1)
    keep(catalogue, 3)
    page = page_at(client, "run?dag_id=mondrian_nightly&run_id=a%2Bb%2Fc")
    assert "2 releases" in page.text
    none = page_at(client, "run?dag_id=mondrian_nightly&run_id=other")
    assert "No release matches" in none.text


def keep_named(catalogue, text, first):
    """Two releases in which every text is this one."""
    report = report_of(names=[text, "zip"], job={"output": text, "input": text, "algorithm": text})
    report["notes"] = report["verification"]["checked"] = [text]
    report["columns"]["unlisted"] = [text]
    same = dict.fromkeys(("dataset", "input", "dag_id", "run_id", "task_id", "engine"), text)
    keep(catalogue, first, report=report, **same, algorithm=text, state=text, reason=text)
    keep(catalogue, first + 1, report=report, **same, GCP=0.1)


@pytest.mark.parametrize("text", HOSTILE)
def test_all_text_is_escaped(client, catalogue, text):
    keep_named(catalogue, text, 1)
    keep_named(catalogue, "harmless", 3)
    for path in ("releases", "releases/ONE", "compare?id=ONE&id=OTHER"):
        page, plain = (
            page_at(client, path.replace("ONE", entry_id(at)).replace("OTHER", entry_id(at + 1)))
            for at in (1, 3)
        )
        assert [tag for tag, _ in page.elements] == [tag for tag, _ in plain.elements]
        assert "\x1b" not in page.text
        assert "\u202e" not in page.text
        links = [given.get("href", "") for given in page.all("a")]
        assert all(re.match(r"/airflow/|\?", link) for link in links)
    assert "\u202e" not in client.get("releases", params={"dataset": text}).text


@pytest.mark.parametrize(
    "path", ["static/app.py", "static/NOTICE", "static/..%2fapp.py", "nowhere"]
)
def test_a_path_that_does_not_exist_is_not_found(client, path):
    page_at(client, path, 404)


@pytest.mark.parametrize("name", STATIC)
def test_browsers_may_keep_style_and_scripts(client, name):
    answer = client.get(f"static/{name}")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(MEDIA_TYPES[STATIC[name].suffix])
    assert "immutable" in answer.headers["cache-control"]
    assert "private" in answer.headers["cache-control"]


@pytest.mark.parametrize(
    "path",
    ["releases?page=x", "run?dag_id=a", "compare", "releases?dataset=a%00", "releases/%00"],
)
def test_an_address_with_a_wrong_parameter_is_refused(client, path):
    page_at(client, path, 400)


def addresses(client, text):
    """For each parameter of each route: its name, and a path and query in which it is this text."""
    app = client.app.routes[-1].app
    for route in app.routes:
        path = route.path.lstrip("/").replace(":path", "")
        inside = {each.alias: "x" for each in route.dependant.path_params}
        asked = get_flat_dependant(route.dependant).query_params
        required = {each.alias: "x" for each in asked if each.field_info.is_required()}
        for name in inside:
            yield name, path.format(**{**inside, name: text}), required
        for name in (each.alias for each in asked):
            yield name, path.format(**inside), {**required, name: text}


@pytest.mark.parametrize(
    "text",
    one_in(3, ["x" * 60_000, "%" * 20_000, "9" * 60_000]),
    ids=["letters", "signs", "digits"],
)
def test_no_parameter_is_too_long_for_any_page(client, catalogue, text):
    keep(catalogue, 1)
    names = []
    for name, path, query in addresses(client, text):
        answer = client.get(path, params=query)
        assert answer.status_code in (400, 404), (path[:40], name, answer.status_code)
        names.append(name)
    assert {"dataset", "state", "dag_id", "run_id", "sort", "order", "page", "id", "entry_id",
            "name", "rest"} == set(names)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "letter"),
    one_in(
        3,
        [
            *(("dataset", letter) for letter in ("x", "%", "/", "\u0390", "\ufb03", "\U0001f600")),
            *((name, "x") for name in ("state", "dag_id", "run_id", "sort", "order")),
        ],
    ),
)
def test_a_parameter_may_be_as_long_as_a_path(client, catalogue, name, letter):
    """Letters that become several when case does not count; and signs of a pattern."""
    keep(catalogue, 1)
    page_at(client, f"releases?{urlencode({name: letter * MAX_CHARACTERS})}")
    page = page_at(client, f"releases?{urlencode({name: letter * (MAX_CHARACTERS + 1)})}", 400)
    assert "a parameter of more than 4,096 characters" in page.text
