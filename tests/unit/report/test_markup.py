"""Pieces of a page: every text is escaped, and what is given as markup stays markup."""

from __future__ import annotations

import base64
import hashlib
import re
from html import unescape

import pytest

from html_page import Page
from mondrian_ops.report import markup
from mondrian_ops.report.charts import text
from report_samples import HOSTILE

NAMES = (*HOSTILE, "Größe ≥ 5 💥", "", "a & b < c")


def shown(name: str) -> str:
    """A text as a page shows it."""
    return unescape(text(name))


def document(**changed: object) -> str:
    given = {"heading": "h", "title": "t", "subtitle": ["s"], "body": "<p>b</p>", "footer": "f"}
    return markup.document(**(given | changed))


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_its_texts_and_takes_none_for_markup_or_a_placeholder(name):
    plain, html = document(), document(heading=name, title=name, subtitle=[name] * 3, footer=name)
    tags = re.compile(r"<[a-z][^>]*>")
    assert [tag for tag in tags.findall(html) if tag != "<br>"] == tags.findall(plain)
    escaped = text(name)
    assert f"<title>{escaped}: {escaped}</title>" in html
    assert f"<h1>{escaped}</h1><p>{escaped}<br>{escaped}<br>{escaped}</p>" in html
    assert f"<footer>{escaped}</footer>" in html


def test_a_page_keeps_its_body_and_allows_its_own_style_only():
    body = "<main>$style ä</main>"
    html = document(body=body)
    assert body in html
    style = re.search(r"<style>(.*)</style>", html, re.DOTALL)
    assert style is not None
    assert style[1] == markup.stylesheet()
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in html


@pytest.mark.parametrize("name", NAMES)
def test_titles_captions_and_labels_are_text(name):
    pieces = [
        markup.section(name, "", ""),
        markup.figure(name, name, ""),
        markup.details(name, ""),
        markup.legend([("a", name)]),
        markup.table([name], [[name]]),
    ]
    for piece, times in zip(pieces, (1, 2, 1, 1, 2), strict=True):
        assert Page(piece).text == shown(name) * times


def test_bodies_leads_and_legends_are_markup():
    assert markup.section("t", "<b>l</b>", "<i>x</i>", "wide") == (
        '<section class="wide"><h2>t</h2><p class="lead"><b>l</b></p><i>x</i></section>'
    )
    assert markup.section("t", "", "x") == "<section><h2>t</h2>x</section>"
    assert markup.details("t", "<i>x</i>").endswith("</summary><i>x</i></details>")
    drawn = markup.figure("t", "c", "<svg></svg>", markup.legend([("k", "l")]))
    assert [tag for tag, _ in Page(drawn).elements].count("svg") == 2
    assert Page(drawn).all("rect")[0]["class"] == "k"


def test_a_table_marks_its_columns_of_figures():
    page = Page(markup.table(["name", "rows"], (row for row in (["a", "1"], ["b", "2"])), [1]))
    assert [cell["class"] for cell in page.all("th") + page.all("td")] == ["any", "n"] * 3
    assert [cell["scope"] for cell in page.all("th")] == ["col", "col"]
    assert page.text == "namerowsa1b2"


def test_a_table_may_lack_a_head_or_rows():
    assert "<thead>" not in markup.table([], [["a"]])
    assert "<tbody></tbody>" in markup.table(["a"], [])
