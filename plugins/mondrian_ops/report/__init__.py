"""The report of a release: one dict, shown as JSON, as a page and as text.

Only the standard library is imported here, so the web pages and the command line start quickly.
"""

from __future__ import annotations

from mondrian_ops.report.document import build, merge_attributes
from mondrian_ops.report.figures import named
from mondrian_ops.report.frontier import KEPT_NAME as FRONTIER_NAME
from mondrian_ops.report.frontier import frontier_files, frontier_text
from mondrian_ops.report.markdown import escaped, render_markdown
from mondrian_ops.report.overview import overview
from mondrian_ops.report.page import render_html
from mondrian_ops.report.text import render_text
from mondrian_ops.report.write import HTML_NAME, JSON_NAME, files, json_content, parsed

__all__ = [
    "FRONTIER_NAME",
    "HTML_NAME",
    "JSON_NAME",
    "build",
    "escaped",
    "files",
    "frontier_files",
    "frontier_text",
    "json_content",
    "merge_attributes",
    "named",
    "overview",
    "parsed",
    "render_html",
    "render_markdown",
    "render_text",
]
