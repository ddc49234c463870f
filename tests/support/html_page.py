"""A page of HTML as a browser would take it."""

from __future__ import annotations

import json
from html.parser import HTMLParser

__all__ = ["Page", "page_at"]

VOID = {"meta", "link", "input", "br", "hr"}


class Page(HTMLParser):
    """The elements of a page and its text; refuses what its Content-Security-Policy would."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        assert tag != "style"
        assert tag != "script" or "src" in given
        assert not [name for name in given if name == "style" or name.startswith("on")]
        self.elements.append((tag, given))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        assert self._open[-1:] != ["script"] or not data.strip()
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [given for each, given in self.elements if each == tag]

    @property
    def charts(self) -> list[dict]:
        told = [given["data-chart"] for _, given in self.elements if "data-chart" in given]
        return [json.loads(each) for each in told]


def page_at(client, path: str, status: int = 200) -> Page:
    """The page at an address of ours, with the headers that all of them have."""
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "private, no-store"
    return Page(answer.text)
