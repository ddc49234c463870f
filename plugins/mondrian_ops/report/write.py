"""Putting a report into a directory: `_report.json` and `_report.html`, from the same dict."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mondrian_ops.report.page import render_html

JSON_NAME = "_report.json"
HTML_NAME = "_report.html"


def write(directory: str | Path, report: Mapping[str, Any]) -> None:
    """Write both files into `directory`, which exists; overwrite what an earlier attempt left."""
    folder = Path(directory)
    text = json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False)
    (folder / JSON_NAME).write_text(text + "\n", encoding="utf-8")
    (folder / HTML_NAME).write_text(render_html(report), encoding="utf-8")


def read(directory: str | Path) -> dict[str, Any]:
    """The report in a directory, as `write` put it there."""
    report: dict[str, Any] = json.loads((Path(directory) / JSON_NAME).read_text(encoding="utf-8"))
    return report
