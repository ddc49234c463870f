"""A page of HTML as a browser reads it."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "hr"}


@dataclass
class Chart:
    """A chart of a page: its kind, its description, and what each mark says."""

    kind: str
    label: str
    says: list[str] = field(default_factory=list)


class Page(HTMLParser):
    """The elements of a page and its text; fails on content that the page's policy forbids.

    ``is_file``: a report as one file, whose policy allows its own ``<style>``.
    """

    def __init__(self, html: str, is_file: bool = False) -> None:
        super().__init__()
        self._is_file = is_file
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.charts: list[Chart] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        assert tag != "style" or self._is_file
        assert tag != "script" or "src" in given
        assert not [name for name in given if name == "style" or name.startswith("on")]
        self.elements.append((tag, given))
        if tag == "svg" and given.get("role") == "img":
            self.charts.append(Chart(given["class"].split()[-1], given["aria-label"]))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        assert self._open[-1:] != ["script"] or not data.strip()
        self.text += data
        if self._open[-1:] == ["title"] and "svg" in self._open:
            self.charts[-1].says.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [given for each, given in self.elements if each == tag]


def page_at(client, path: str, status: int = 200) -> Page:
    """The page at a path, after a check of its headers."""
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "private, no-store"
    return Page(answer.text)
