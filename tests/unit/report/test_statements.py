"""What a report says in sentences: guarantees, warnings and limits."""

from __future__ import annotations

import re

import pytest

from mondrian_ops import report as reports
from mondrian_ops.report import Report, statements
from report_samples import make


def test_what_columns_undo_is_said_once_for_each_of_them() -> None:
    def finding(column: str, how: str, share: float, **keys: object) -> dict[str, object]:
        return {"column": column, "how": how, "share": share, "quasi_identifier": None,
                "fewer_than": 0, **keys}  # fmt: skip

    findings = [
        finding("log", "alone", 0.94, fewer_than=5),
        finding("log", "order", 0.9996, quasi_identifier="age"),
        finding("income", "alone", 0.6, fewer_than=2),
        finding("city", "value", 0.97, quasi_identifier="zip"),
        finding("visits", "unknown", 0.0),
    ]
    log, income, city, visits = make(dependencies=findings)["dependencies"]["notes"]
    assert log == (
        "'log' stays as it is and singles out 94 % of the rows (fewer than k = 5 have their "
        "value) and gives away 'age' (by its order, > 99 %); make it a quasi-identifier or an "
        "identifier, or leave it out"
    )
    assert "singles out 60 % of the rows (nobody else has their value);" in income
    assert "gives away 'zip' (in 97 % of the rows);" in city
    assert "has a type whose values cannot be compared (flatten it, " in visits
    assert statements.first(Report.of(make(dependencies=findings)))[1:] == [
        log, income, city, visits
    ]  # fmt: skip
    assert "dependencies" not in make()


def test_the_first_lines_name_some_of_very_many_raw_columns() -> None:
    names = [f"c{at}" for at in range(10_000)]
    columns = {**make()["columns"], "unlisted": names}
    report = make(columns=columns)
    note = report["published_raw"]["note"]
    assert note.startswith("The job publishes 10,000 columns raw (unlisted: publish): c0, c1, ")
    assert "c19 and 9,980 more." in note and "c20" not in note
    assert report["published_raw"]["columns"] == names
    assert "published_raw" not in make(columns={**columns, "unlisted": []})
    assert "published_raw" not in make(columns={**columns, "unlisted_policy": "drop"})


@pytest.mark.parametrize(
    ("made_by", "name"),
    [
        (None, "the command line or Python"),
        ("hospital", "the DAG 'hospital'"),
        ("hospital/a.b", "the DAG 'hospital' (group 'a.b')"),
    ],
)
def test_who_made_a_release_and_what_it_replaces(made_by: str | None, name: str) -> None:
    report = make(made_by=made_by)
    assert report["made_by"] == made_by
    page = re.sub("&#x27;|&#39;", "'", reports.render_html(report))
    assert name in page and "Replaces" not in page
    replaced = {"made_by": made_by, "k": 3, "created": "2025-06-01T10:00:00+00:00"}
    sentence = f"It replaces the release of {name}, k = 3, no l, made 2025-06-01 10:00:00 UTC"
    other = report | {"replaces": replaced}
    assert statements.replaced(Report.of(other)) == sentence
    assert sentence in re.sub("&#x27;|&#39;", "'", reports.render_html(other))
    assert "It replaces" in reports.render_markdown(other)
    of_unknown = report | {"replaces": {"k": 3, "l": 2, "t": 0.25}}
    assert (
        statements.replaced(Report.of(of_unknown))
        == "It replaces the release, k = 3, l = 2, t = 0.25"
    )


def test_guarantees_of_every_kind() -> None:
    report = make(
        job={"k": 2, "l": 1.5, "diversity": "entropy", "t": 0.2},
        achieved={"k": 2, "l": {"a": 1.4, "b": 3}, "t": 0.2},
    )
    assert [(g.name, g.met) for g in statements.guarantees(Report.of(report))] == [
        ("k-anonymity", True), ("l-diversity (entropy)", False), ("t-closeness", True),
    ]  # fmt: skip
    assert statements.guarantees(Report.of(make(achieved={})))[0].met is None


def test_a_class_of_one_sensitive_value_is_pointed_out() -> None:
    report = make(job={"l": None}, achieved={"k": 5, "l": 1})
    assert "does not require l-diversity" in reports.render_html(report)
    assert "warning" in reports.render_text(report)
    for harmless in (make(), make(job={"l": None}, achieved={"k": 5, "l": 2})):
        assert "does not require" not in reports.render_html(harmless)
