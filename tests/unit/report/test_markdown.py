"""The report as Markdown, in which no name is markup."""

from __future__ import annotations

from mondrian_ops.report import escaped, render_markdown
from report_samples import make


def test_a_name_in_the_question_is_never_markup():
    hostile = "a|b](javascript:alert(1)) <img src=x> `c` **d**\n# e"
    told = escaped(hostile)
    assert "\n" not in told
    for sign in "|](<`*#":
        assert f"\\{sign}" in told
    report = make()
    report["attributes"] = {hostile: next(iter(report["attributes"].values()))}
    assert told in render_markdown(report)
