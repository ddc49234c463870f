"""The report of a release: one dict, shown as JSON, as a page and as text.

A module is imported when a name of it is first used: most tasks only hand a report on. Nothing but
the standard library is imported, so the web pages and the command line start quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mondrian_ops.late_names import late_names
from mondrian_ops.report.overview import overview  # by the name of its module

if TYPE_CHECKING:
    from mondrian_ops.report.document import build, merge_attributes
    from mondrian_ops.report.figures import named
    from mondrian_ops.report.frontier import FRONTIER_NAME, frontier_files, frontier_text
    from mondrian_ops.report.markdown import escaped, render_markdown
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

if not TYPE_CHECKING:  # else it would take any name for one
    __getattr__ = late_names(
        __name__,
        {
            "document": ("build", "merge_attributes"),
            "figures": ("named",),
            "frontier": ("FRONTIER_NAME", "frontier_files", "frontier_text"),
            "markdown": ("escaped", "render_markdown"),
            "page": ("render_html",),
            "text": ("render_text",),
            "write": ("HTML_NAME", "JSON_NAME", "files", "json_content", "parsed"),
        },
    )
