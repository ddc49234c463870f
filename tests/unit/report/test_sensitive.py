"""What a report says about sensitive columns: similar values, and the gain on rare ones."""

from __future__ import annotations

import pytest

from mondrian_ops import report as reports
from mondrian_ops.report import Report, statements
from mondrian_ops.report.sensitive import gains, narrow_classes, similar
from report_samples import make, make_in

INCOME = {"width": "10 %", "narrow": 0.7234}
ILL = {"gain": 11.26, "gain_from": 0.02, "gain_to": 0.245}


def a_report(sensitive: dict, state: str = "published", **job) -> Report:
    job = {"l": 5, "sensitive": list(sensitive), **job}
    return Report.of(make_in(state, make(job=job) | {"sensitive": sensitive}))


def test_a_warning_where_l_counts_similar_numbers():
    report = a_report({"income": INCOME, "ill": ILL})
    (text,) = similar(report)
    assert text == (
        "l counts the different values of 'income', however close to one another: 72.3 % of the "
        "people are in classes whose values all lie within 10 %. Set l_width to prevent this."
    )
    assert text in statements.first(report)
    assert text in " ".join(reports.render_text(report, 120).replace("\n", " ").split())
    assert "72\\.3 % of the people" in reports.render_markdown(report)


@pytest.mark.parametrize(
    ("sensitive", "job"),
    [
        ({"income": INCOME}, {"l_width": {"income": "5 %"}}),
        ({"income": INCOME}, {"l": None, "t": 0.2}),
        ({"income": INCOME | {"narrow": 0.0}}, {}),
        ({"ill": ILL}, {}),
        ({}, {}),
    ],
)
def test_no_warning_otherwise(sensitive, job):
    assert similar(a_report(sensitive, **job)) == []


def test_both_figures_are_on_page_and_terminal():
    report = a_report({"income": INCOME, "ill": ILL})
    ((name, share, note),) = narrow_classes(report)
    assert (name, share) == ("income", "72.3 %")
    assert note == "of the people are in classes whose values all lie within 10 %"
    ((name, gain, of),) = gains(report)
    assert (name, gain) == ("ill", "11.3")
    assert of == "a class raises the share of a value from 2.0 % to 24.5 % at most"
    lines, markdown = reports.render_text(report, 120), reports.render_markdown(report)
    page = reports.render_html(report)
    assert f"similar income    {share} {note}" in lines
    assert f"gain, ill         {gain}: {of}" in lines
    assert "| Similar values of income | 72.3 % " in markdown
    assert "| Highest gain of ill | 11.3: " in markdown
    assert "<dt>Similar income</dt><dd>72.3 %</dd>" in page and note in page
    assert "<dt>Highest gain of ill</dt><dd>11.3</dd>" in page


def test_names_are_printable_and_escaped():
    report = a_report({"<i>\x1b[31m": INCOME | ILL})
    for text in (reports.render_text(report), reports.render_html(report)):
        assert "\x1b" not in text
    assert "<i>" not in reports.render_html(report)


def test_a_guarantee_says_what_a_width_means():
    (_, diversity) = statements.guarantees(a_report({"income": {}}, l_width={"income": "10 %"}))
    assert diversity.meaning.endswith(
        " At most 1/5 of a class have values of income within 10 % of one another."
    )
