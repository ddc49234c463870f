"""The files of a report."""

from __future__ import annotations

import json
from pathlib import Path

from mondrian_ops import report as reports
from report_samples import make


def test_write_makes_both_files_from_one_dict(tmp_path: Path) -> None:
    report = make(["a\u00e9", "b"])
    [(tmp_path / name).write_bytes(content) for name, content in reports.files(report).items()]
    assert json.loads((tmp_path / reports.JSON_NAME).read_text("utf-8")) == report
    assert (tmp_path / reports.HTML_NAME).read_text("utf-8") == reports.render_html(report)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["_report.html", "_report.json"]
