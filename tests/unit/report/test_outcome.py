"""What became of a release: each state, in each form of its report."""

from __future__ import annotations

import copy
import html
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from mondrian_ops import report as reports
from mondrian_ops.report import Report, ReportError, statements
from report_samples import AT, STATES, make, make_in

HEADLINES = {
    "published": "Published",
    "held": "Held: nothing was published tonight",
    "waiting": "Waits for approval: nothing is published yet",
    "refused": "Refused: nothing was published",
    "rejected": "Rejected: nothing was published",
    "expired": "Not approved in time: nothing was published",
    "failed": "Failed: nothing was published",
}
MAY_BE_UNMEASURED = ("refused", "rejected", "expired", "failed")
OF_PUBLISHED = ("Rows published", "110 published", "Each person shares", "Each class holds",
                "published as it is", "published unchanged", "was checked again")  # fmt: skip


def on_page(report: dict[str, Any]) -> str:
    """The text of the page, which is also what is printed as PDF: it has no other style there."""
    page = reports.render_html(report)
    body = page[page.index("<body") :]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def as_text(report: dict[str, Any]) -> str:
    return " ".join(reports.render_text(report, 120).split())


def as_markdown(report: dict[str, Any]) -> str:
    return re.sub(r"\\(.)", r"\1", reports.render_markdown(report))


FORMS = {"page": on_page, "text": as_text, "markdown": as_markdown}
Form = Callable[[dict[str, Any]], str]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("state", STATES)
def test_every_form_says_what_happened_why_when_and_who_asked_and_decided(
    state: str, form: Form
) -> None:
    shown = form(make_in(state))
    title, _, rest = HEADLINES[state].partition(": ")
    assert (title.upper() if form is as_text else title) in shown
    assert rest in shown
    for others in HEADLINES.keys() - {state}:
        other = HEADLINES[others].partition(": ")[0]
        assert (other.upper() if form is as_text else f" {other}: ") not in shown
    assert STATES[state].get("reason", "") in shown
    assert "ada" in shown
    if "decision" in STATES[state]:
        decision, by, _, why = STATES[state]["decision"]
        assert f"{decision} by {by}, 2025-06-01 09:00:00 UTC" in shown
        assert why in shown
    else:
        assert "grace" not in shown
    # A question to an approver is the same in each try, so it has no time.
    assert ("2025-06-01 10:00:00 UTC" in shown) == (state != "waiting" or form is not as_markdown)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("state", [*STATES, None])
def test_only_a_published_release_has_published_figures_and_guarantees(
    state: str | None, form: Form
) -> None:
    report = copy.deepcopy(make()) if state is None else make_in(state)
    if state is None:
        report["outcome"] = None
    shown = form(report)
    told = [words for words in OF_PUBLISHED if words in shown]
    if state != "published":
        assert told == []
    elif form is on_page:
        assert set(told) == {*OF_PUBLISHED} - {"110 published", "published unchanged"}
    rows = report["rows"]
    if state not in ("published", None):
        assert (rows["published"], rows["checked"]) == (0, 110)


@pytest.mark.parametrize("state", STATES)
def test_the_file_for_programs_says_the_same(state: str) -> None:
    report = json.loads(reports.json_content(make_in(state)))
    told = report["outcome"]
    assert (told["state"], told["reason"], told["at"]) == (
        *(state, STATES[state].get("reason", ""), AT),
    )
    assert (report["requested_by"], report["run_type"]) == ("ada", "manual")
    decision = tuple(told.get(key) for key in reports.decided("", ""))
    assert (
        decision
        == STATES[state].get("decision", (None,) * 4)[0:2]
        + STATES[state].get("decision", (None,) * 4)[2:]
    )
    assert report["rows"]["published"] == (110 if state == "published" else 0)
    assert Report.of(report).overview()["rows_published"] == report["rows"]["published"]
    assert next(iter(report)) == "outcome"


@pytest.mark.parametrize("state", [*STATES, "other", None])
def test_only_what_is_published_is_green(state: str | None) -> None:
    report = make_in(state) if state in STATES else make()
    if state not in STATES:
        report["outcome"] = state and {"state": state}
    page = reports.render_html(report)
    colour = re.search(r'class="card outcome (\w+)"', page)
    assert colour is not None and colour[1] == (state if state in STATES else "other")
    coloured = reports.render_text(report, colour=True).split("\n")[0]
    assert ("\x1b[1;32m" in coloured) == (state == "published")


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("outcome", [None, {"state": "of a later version"}])
def test_a_report_that_does_not_say_it_is_of_unknown_state(outcome: object, form: Form) -> None:
    shown = form(make() | {"outcome": outcome})
    assert "state unknown" in shown.lower()
    assert "does not say whether anything was published" in shown


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("state", MAY_BE_UNMEASURED)
def test_a_run_that_ends_before_there_are_figures_has_a_report_without_any(
    state: str, form: Form
) -> None:
    job = {"input": "in.parquet", "output": "out/x", "k": 5, "algorithm": "mondrian"}
    report = reports.unmeasured(job, made_by="a_dag", requested_by=None, run_type="scheduled")
    report = reports.conclude(report, state, "age: no such column")
    shown = form(report)
    assert HEADLINES[state].partition(": ")[2] in shown
    assert "age: no such column" in shown and "the DAG's schedule" in shown
    assert "in-memory" not in shown
    assert not re.search(r"required|achieved|Classes|[Rr]isk", shown.partition("Reference")[0])
    assert Report.of(report).overview() == {}


@pytest.mark.parametrize("state", ["published", "held", "waiting", ""])
def test_what_was_checked_has_figures(state: str) -> None:
    report = reports.conclude(reports.unmeasured({"input": "i", "output": "o", "k": 5}), state)
    with pytest.raises(ReportError, match="it is missing"):
        Report.of(report)


@pytest.mark.parametrize(
    ("by", "run_type", "text"),
    [
        ("ada", "manual", "ada"),
        (None, "manual", "somebody whom Airflow does not name"),
        (None, "scheduled", "the DAG's schedule"),
        (None, "asset_triggered", "an Asset event"),
        ("ada", "backfill", "ada (a backfill)"),
        (None, None, ""),
    ],
)
def test_who_asked_is_what_airflow_says(by: str | None, run_type: str | None, text: str) -> None:
    report = Report.of(make(requested_by=by, run_type=run_type))
    assert statements.requested(report) == text
    assert ("Asked for by" in reports.render_html(report)) == bool(text)


def test_rows_are_counted_as_published_when_they_are_and_not_before() -> None:
    report = make(suppressed=3)
    undecided = reports.undecided(report)
    rows = report["rows"]
    assert undecided == {key: value for key, value in report.items() if key != "outcome"}
    assert rows == {"input": 113, "published": 110, "suppressed": 3}
    for state in ("waiting", "failed", "refused"):
        reports.conclude(report, state)
        assert report["rows"] == {"input": 113, "published": 0, "suppressed": 3, "checked": 110}
        assert reports.undecided(report) == undecided
    assert reports.conclude(report, "published")["rows"] == rows


def test_a_decision_stays_with_the_release_whatever_becomes_of_it_then() -> None:
    approved = reports.decided("approved", "grace", AT, "w" * 5000)
    report = reports.conclude(make(), "published", decision=approved)
    reports.conclude(report, "failed", "no space left")
    told = Report.of(report).outcome
    assert told is not None
    assert (told.state, told.decision, told.decided_by) == ("failed", "approved", "grace")
    assert told.decision_reason == "w" * 1000
