"""The report as Markdown, in which no name is markup."""

from __future__ import annotations

from mondrian_ops.report import escaped, render_markdown
from report_samples import make


def test_a_name_in_the_question_is_never_markup():
    hostile = "a|b](javascript:alert(1)) <img src=x> `c` **d**\n# e"
    name = escaped(hostile)
    assert "\n" not in name
    for sign in "|](<`*#":
        assert f"\\{sign}" in name
    report = make()
    report["attributes"] = {hostile: next(iter(report["attributes"].values()))}
    assert name in render_markdown(report)


def test_the_question_begins_with_the_columns_that_are_published_as_they_are():
    report = make()
    report["columns"] |= {
        "sensitive": ["ill"],
        "unlisted": ["note", "row"],
        "unlisted_policy": "publish",
    }
    head, _, first, second, *_ = render_markdown(report).split("\n\n")
    assert head == "**Published**"
    assert first.startswith("**The job publishes 2 columns raw")
    assert "note, row" in first
    assert second == "**To publish as they are, because they are sensitive\\: ill\\.**"
