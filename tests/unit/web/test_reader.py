"""Reading the archive: once for each request, only for the user's DAGs, damaged reports too."""

from __future__ import annotations

import json

import pytest

from html_page import page_at
from mondrian_ops.storage import ReportArchive
from mondrian_ops.web import reader
from releases import entry, entry_id, keep, report_of


def test_a_frontier_of_a_hidden_dag_is_not_shown(client, archive, hidden):
    keep(archive, 1)
    points = [{"k": 5, "l": None, "GCP": 0.1, "risk_avg": 0.1}]
    frontier = entry(90, state="frontier", dag_id="mondrian_frontier")
    archive.keep(frontier, {"frontier.json": json.dumps({"points": points}).encode()})
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
def test_the_page_says_that_a_report_is_damaged(client, archive, content):
    archive.keep(entry(1, report_of()), {"_report.json": content})
    keep(archive, 2)
    page = page_at(client, f"releases/{entry_id(1)}")
    assert "is damaged" in page.text
    assert page.charts == []
    assert page_at(client, f"compare?id={entry_id(1)}&id={entry_id(2)}").all("table")
    assert client.get(f"releases/{entry_id(1)}/report.html").status_code in (200, 404)


def test_a_report_that_was_removed_is_not_found(client, archive, tmp_path):
    keep(archive, 1)
    (tmp_path / "reports" / "reports" / entry_id(1) / "_report.json").unlink()
    assert "does not have this report" in page_at(client, f"releases/{entry_id(1)}", 404).text


@pytest.mark.parametrize("path", ["releases", f"releases/{entry_id(1)}", "run?dag_id=d&run_id=r",
                                  f"compare?id={entry_id(1)}&id={entry_id(2)}"])  # fmt: skip
def test_a_page_looks_into_the_archive_once(client, archive, monkeypatch, path):
    keep(archive, 1)
    keep(archive, 2)
    keep(archive, 3, dag_id="d", run_id="r")
    keep(archive, 4, dag_id="d", run_id="r")
    looks = []
    entries = ReportArchive.entries

    def counted(self):
        looks.append(self)
        return entries(self)

    monkeypatch.setattr(ReportArchive, "entries", counted)
    page_at(client, path)
    assert len(looks) == 1


@pytest.mark.parametrize(
    "path",
    ["releases/ID", "releases/ID/report.json", "releases/ID/report.html", "compare?id=ID&id=ID",
     "run?dag_id=DAG&run_id=r", "releases?dag_id=DAG"],
)  # fmt: skip
def test_a_hidden_release_takes_the_same_steps_as_one_that_does_not_exist(
    client, archive, hidden, monkeypatch, path
):
    """The same steps with the same arguments, so that timing does not tell the two apart."""
    keep(archive, 1)
    keep(archive, 2, dag_id="hidden", run_id="r")
    hidden.add("hidden")
    steps = []

    def noted(name, done):
        def step(*given):
            steps.append((name, given[1:]))
            return done(*given)

        return step

    for owner, name in (
        (ReportArchive, "entries"),
        (ReportArchive, "file"),
        (reader, "readable_dags"),
    ):
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

    monkeypatch.setattr("mondrian_ops.storage.report_archive.names_in", fail)
    page = page_at(client, "releases", 503)
    assert "[mondrian_ops] reports" in page.text
    assert "secret" not in page.text
