"""The report of a release: one frozen value, shown as JSON, as a page and as text.

Each module is imported when one of its names is first used, so that the command line and most
tasks start without Jinja2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mondrian_ops.late_names import late_names

if TYPE_CHECKING:
    from mondrian_ops.report.builder import build, merge_attributes
    from mondrian_ops.report.document import (
        HTML_NAME,
        JSON_NAME,
        Report,
        json_content,
        parsed,
        unmeasured,
    )
    from mondrian_ops.report.frontier import FRONTIER_NAME, frontier_files, frontier_text
    from mondrian_ops.report.json_reading import ReportError
    from mondrian_ops.report.markdown import escaped, render_markdown
    from mondrian_ops.report.outcome import conclude, decided, now, state_of, undecided
    from mondrian_ops.report.page import files, render_html
    from mondrian_ops.report.text import render_text

__all__ = [
    "FRONTIER_NAME",
    "HTML_NAME",
    "JSON_NAME",
    "Report",
    "ReportError",
    "build",
    "conclude",
    "decided",
    "escaped",
    "files",
    "frontier_files",
    "frontier_text",
    "json_content",
    "merge_attributes",
    "now",
    "parsed",
    "render_html",
    "render_markdown",
    "render_text",
    "state_of",
    "undecided",
    "unmeasured",
]

if not TYPE_CHECKING:  # or mypy would accept any name
    __getattr__ = late_names(
        __name__,
        {
            "builder": ("build", "merge_attributes"),
            "document": ("HTML_NAME", "JSON_NAME", "Report", "json_content", "parsed",
                         "unmeasured"),
            "frontier": ("FRONTIER_NAME", "frontier_files", "frontier_text"),
            "json_reading": ("ReportError",),
            "markdown": ("escaped", "render_markdown"),
            "outcome": ("conclude", "decided", "now", "state_of", "undecided"),
            "page": ("files", "render_html"),
            "text": ("render_text",),
        },
    )  # fmt: skip
