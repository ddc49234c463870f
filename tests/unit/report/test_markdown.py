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
