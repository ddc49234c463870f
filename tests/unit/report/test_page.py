"""The page: it asks nothing from outside, escapes every name, and draws all shapes."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from mondrian_ops import report as reports
from mondrian_ops.report import figures, sections
from report_samples import HOSTILE, make


class Checker(HTMLParser):
    """Collects tags and attributes; fails on a wrongly nested element."""

    VOID = frozenset({"meta", "br", "rect", "line", "path"})

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def finish(self) -> None:
        self.close()
        assert self._open == []


def parsed(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    checker.finish()
    return checker


def test_page_asks_nothing_from_outside_and_runs_nothing() -> None:
    html = reports.render_html(make())
    tags = parsed(html).tags
    assert not {"script", "link", "img", "iframe", "form", "object"} & {tag for tag, _ in tags}
    for tag, attributes in tags:
        assert not {"href", "src", "style", "srcset"} & attributes.keys(), (tag, attributes)
        assert not [name for name in attributes if name.startswith("on")]
    assert "url(" not in html and "@import" not in html
    policy = next(a["content"] for t, a in tags if a.get("http-equiv"))
    style = re.search(r"<style>(.*)</style>", html, re.DOTALL)
    assert policy is not None and style is not None
    digest = base64.b64encode(hashlib.sha256(style.group(1).encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'")


def test_every_chart_has_a_description_and_a_table() -> None:
    checker = parsed(reports.render_html(make()))
    charts = [a for tag, a in checker.tags if tag == "svg" and a.get("role") == "img"]
    assert [(chart["class"] or "").split()[-1] for chart in charts] == [
        *("bars", "columns", "bars", "bars", "map", "bars"),
    ]
    assert all(len(chart["aria-label"] or "") > 10 for chart in charts)
    assert [tag for tag, _ in checker.tags].count("table") == len(charts) + 1
    ids = [a["id"] for _, a in checker.tags if "id" in a]
    assert len(ids) == len(set(ids))


def test_both_files_come_from_one_dict() -> None:
    report = make(["a\u00e9", "b"])
    content = reports.files(report)
    assert list(content) == [reports.JSON_NAME, reports.HTML_NAME]
    assert json.loads(content[reports.JSON_NAME]) == report
    assert content[reports.HTML_NAME].decode() == reports.render_html(report)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(name: str) -> None:
    report = make(
        [name, "zip"],
        job={"output": name, "input": name, "quasi_identifiers": [name]},
        notes=[name],
        columns={"identifiers": [name], "quasi_identifiers": [name], "sensitive": [name],
                 "unlisted": [name], "unlisted_policy": "publish"},
        partitioning={"strategy": name, "note": name},
        cut={"asked": name, "used": name, "reason": name},
        verification={"passed": False, "checked": [name], "failures": [name], "files": 1},
    )  # fmt: skip
    html, plain = reports.render_html(report), reports.render_text(report)
    harmless = parsed(reports.render_html(make(["a", "zip"], passed=False))).tags
    assert {tag for tag, _ in parsed(html).tags} <= {tag for tag, _ in harmless}
    assert name not in html or name == HOSTILE[-1]
    for text in (html, plain):
        assert "\x1b" not in text and "\u202e" not in text
    assert all(line == figures.printable(line) for line in plain.split("\n"))


def test_refused_report_says_so_and_why() -> None:
    report = make(passed=False, achieved={"k": 3, "l": 2}, class_sizes=[(3, 3), (5, 20)])
    html, plain = reports.render_html(report), reports.render_text(report)
    assert "Refused: nothing was published" in html and ">Published<" not in html
    assert "3 of 22 classes have fewer than 5 rows" in html
    assert plain.startswith("REFUSED") and "NOT MET" in plain
    assert "fill bad" in html


def test_unlisted_columns_are_pointed_out() -> None:
    assert "Check these:" in reports.render_html(make())
    assert "comment: published unchanged" in reports.render_text(make())


def test_a_release_that_is_refused_or_waits_begins_with_its_raw_columns_too() -> None:
    for report in (make(passed=False), make() | {"approval": {"decision": "asked"}}):
        said = "1 column goes out raw, as unlisted: publish asks: comment."
        assert said in reports.render_text(report, 120).partition("achieved")[0]
        html = reports.render_html(report)
        assert html.index(said) < html.index("Asked and achieved")
        assert reports.render_markdown(report).startswith("**1 column goes out raw")


def test_full_domain_levels_are_shown() -> None:
    html = reports.render_html(
        make(recoding={"levels": {"age": 1, "zip": 2}, "summary": "the least height"})
    )
    assert "generalized: interval, level 2" in html and "the least height" in html


def test_many_fragments_are_cut_in_the_chart_and_kept_in_the_table(monkeypatch) -> None:
    monkeypatch.setattr(sections, "MAX_FRAGMENTS", 16)
    report = make(fragments=40)
    html, plain = reports.render_html(report), reports.render_text(report)
    assert "The 16 largest of 40 are drawn" in html
    assert html.count("<title>fragment ") == 16
    assert html.count("age &lt;= ") == 40
    assert "… and 24 more" in plain
