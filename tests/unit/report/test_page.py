"""The page: it loads nothing, escapes every name, and draws all charts."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from html_page import Page
from mondrian_ops import report as reports
from mondrian_ops.report import number_format, sections
from report_samples import HOSTILE, make


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    html = reports.render_html(make())
    tags = Page(html, is_file=True).elements
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
    page = Page(reports.render_html(make()), is_file=True)
    kinds = [chart.kind for chart in page.charts]
    assert kinds == ["bars", "columns", "bars", "bars", "map", "bars"]
    assert all(len(chart.label) > 10 for chart in page.charts)
    assert len(page.all("table")) == len(page.charts) + 1
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
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
    harmless = Page(reports.render_html(make(["a", "zip"], passed=False)), is_file=True).elements
    elements = Page(html, is_file=True).elements
    assert {tag for tag, _ in elements} <= {tag for tag, _ in harmless}
    assert name not in html or name == HOSTILE[-1]
    for text in (html, plain):
        assert "\x1b" not in text and "\u202e" not in text
    assert all(line == number_format.printable(line) for line in plain.split("\n"))


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
    for report in (make(passed=False), make(state="waiting")):
        note = "The job publishes 1 column raw (unlisted: publish): comment."
        assert note in reports.render_text(report, 120).partition("achieved")[0]
        html = reports.render_html(report)
        assert html.index(note) < html.index("Required and achieved")
        assert (
            reports.render_markdown(report)
            .partition("| | required")[0]
            .count("**The job publishes 1 ")
            == 1
        )


def test_full_domain_levels_are_shown() -> None:
    html = reports.render_html(
        make(recoding={"levels": {"age": 1, "zip": 2}, "summary": "the least height"})
    )
    assert "generalized: interval, level 2" in html and "the least height" in html


def test_many_fragments_are_cut_in_the_chart_and_kept_in_the_table(monkeypatch) -> None:
    monkeypatch.setattr(sections, "MAX_FRAGMENTS", 16)
    report = make(fragments=40)
    html, plain = reports.render_html(report), reports.render_text(report)
    assert "The chart shows the 16 largest of 40" in html
    assert html.count("<title>fragment ") == 16
    assert html.count("age &lt;= ") == 40
    assert "… and 24 more" in plain


def test_templates_are_compiled_once_where_python_keeps_compiled_modules(tmp_path: Path) -> None:
    """So that whoever cannot write where the package is can name another folder for both."""
    render = "import report_samples, mondrian_ops.report as r; r.render_html(report_samples.make())"
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONPYCACHEPREFIX": str(tmp_path / "not" / "there"),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    for forbidden in ("", "import jinja2; jinja2.Environment.compile = None; "):
        command = [sys.executable, "-c", forbidden + render]
        subprocess.run(command, check=True, env=environment)
    assert [*tmp_path.rglob("__jinja2_*.cache")]
