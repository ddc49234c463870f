"""The files of a report: `_report.json` and `_report.html`, from the same dict."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mondrian_ops.report.page import render_html

JSON_NAME = "_report.json"
HTML_NAME = "_report.html"


def files(report: Mapping[str, Any]) -> dict[str, bytes]:
    """The content of both files, by name."""
    return {JSON_NAME: json_content(report), HTML_NAME: render_html(report).encode()}


def json_content(report: Mapping[str, Any]) -> bytes:
    """The content of the JSON file alone."""
    text = json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def parsed(content: bytes) -> dict[str, Any]:
    """The report in the content of its JSON file."""
    report: dict[str, Any] = json.loads(content)
    return report
