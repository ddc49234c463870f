"""Reading the catalogue: once for each request, only for the user's DAGs, damaged reports too."""

from __future__ import annotations

import json

import pytest
import sqlalchemy as sa
from airflow.api_fastapi.core_api.security import get_user
from fastapi.testclient import TestClient

from html_page import page_at
from mondrian_ops.catalogue import Catalogue
from mondrian_ops.errors import JobError
from mondrian_ops.web import reader
from mondrian_ops.web.pages import create
from releases import entry, entry_id, keep, keep_entry, report_of


def test_a_frontier_of_a_hidden_dag_is_not_shown(client, catalogue, hidden):
    told = report_of()
    keep(catalogue, 1, report=told)
    points = [{"k": 5, "l": None, "GCP": 0.1, "risk_avg": 0.1}]
    frontier = entry(90, state="frontier", dag_id="mondrian_frontier")
    keep_entry(
        catalogue, frontier, frontier=json.dumps({"points": points, "job": told["job"]}).encode()
    )
    assert "Frontier" in page_at(client, f"releases/{entry_id(1)}").text
    hidden.add("mondrian_frontier")
    assert "Frontier" not in page_at(client, f"releases/{entry_id(1)}").text


def report_with(section: str, key: str | int, value: object) -> bytes:
    report = report_of()
    report[section][key] = value
    return json.dumps(report).encode()


DAMAGED = {
    "no JSON": b"{",
    "a list": b"[]",
    "no report": b"{}",
    "deep": b"[" * 100_000,
    "text for numbers": report_with("rows", "published", "<b>many</b>"),
    "a fragment without figures": report_with("fragments", 0, {"id": 1}),
    "infinite": report_with("job", "k", float("inf")),
    "not a number": report_with("attributes", "age", {"NCP": float("nan")}),
    "a number out of range": report_with("risk", "marketer", "1e999").replace(b'"1e999"', b"1e999"),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_the_page_says_that_a_report_is_damaged(client, catalogue, content):
    keep_entry(catalogue, entry(1, report_of()), _report=content)
    keep(catalogue, 2)
    page = page_at(client, f"releases/{entry_id(1)}")
    assert "is damaged" in page.text
    assert page.charts == []
    assert page_at(client, f"compare?id={entry_id(1)}&id={entry_id(2)}").all("table")
    assert client.get(f"releases/{entry_id(1)}/report.html").status_code in (200, 404)


@pytest.mark.parametrize("path", ["releases", f"releases/{entry_id(1)}", "run?dag_id=d&run_id=r",
                                  f"compare?id={entry_id(1)}&id={entry_id(2)}"])  # fmt: skip
def test_a_page_is_one_transaction(client, catalogue, monkeypatch, path):
    for number in (1, 2):
        keep(catalogue, number)
    for number in (3, 4):
        keep(catalogue, number, dag_id="d", run_id="r")
    reading, opened = Catalogue.reading, []

    def counted(self):
        opened.append(self)
        return reading(self)

    monkeypatch.setattr(Catalogue, "reading", counted)
    page_at(client, path)
    assert len(opened) == 1


@pytest.mark.parametrize(
    "path",
    ["releases/ID", "releases/ID/report.json", "releases/ID/report.html", "compare?id=ID&id=ID",
     "run?dag_id=DAG&run_id=r", "releases?dag_id=DAG"],
)  # fmt: skip
def test_a_hidden_release_takes_the_same_steps_as_one_that_does_not_exist(
    client, catalogue, hidden, monkeypatch, path
):
    """The same statements with the same values, but for the id that was asked for."""
    keep(catalogue, 1)
    keep(catalogue, 2, dag_id="hidden", run_id="r")
    hidden.add("hidden")
    steps = []

    @sa.event.listens_for(catalogue._engine, "before_cursor_execute")
    def noted(_connection, _cursor, statement, parameters, _context, _many):
        steps.append((statement, parameters))

    looked_up = []
    readable = reader.readable_dags
    monkeypatch.setattr(
        reader, "readable_dags", lambda *given: looked_up.append(given[1]) or readable(*given)
    )
    taken = []
    for its, dag_id in ((entry_id(2), "hidden"), (entry_id(3), "absent")):
        client.get(path.replace("ID", its).replace("DAG", dag_id))
        taken.append(repr(steps).replace(its, "ID").replace(dag_id, "DAG"))
        steps.clear()
    assert taken[0] == taken[1]
    assert looked_up == [{"mondrian_nightly", "hidden"}] * 2


def test_a_catalogue_that_cannot_be_read_says_so_and_no_more(client, tmp_path):
    (tmp_path / "catalogue.db").write_text("no database" * 100)
    page = page_at(client, "releases", 503)
    assert "[mondrian_ops] catalogue" in page.text
    assert "NotADatabase" not in page.text
    assert str(tmp_path) not in page.text


def test_a_catalogue_whose_connection_is_missing_is_told(user):
    def missing():
        raise JobError("catalogue_conn_id: there is no connection 'secret'")

    app = create(missing)
    app.dependency_overrides[get_user] = lambda: user
    answer = TestClient(app).get("/releases")
    assert answer.status_code == 503
    assert "catalogue_conn_id" in answer.text
    assert "secret" not in answer.text
