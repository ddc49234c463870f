"""The report in short, as Markdown: what somebody is shown who is asked to approve a release."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mondrian_ops.report import statements
from mondrian_ops.report.document import Report
from mondrian_ops.report.figures import number, percent, printable

_MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-.!|~<>&:/@])")


def escaped(text: object) -> str:
    """Text in which nothing is markup, HTML or the end of a line."""
    return _MARKUP.sub(r"\\\1", printable(text))


def render_markdown(report: Report | Mapping[str, Any]) -> str:
    """What was asked and achieved, the figures, and what to look at before deciding.

    Raises ReportError.
    """
    report = Report.of(report).named()
    raw = escaped(statements.published_raw(report.columns))
    blocks = (raw and f"**{raw}**", _guarantees(report), _figures(report), _to_mind(report))
    return "\n\n".join(filter(None, blocks))


def _guarantees(report: Report) -> str:
    lines = ["| | asked | achieved |", "|---|---:|---:|"]
    for each in statements.guarantees(report):
        lines.append(f"| {each.name} | {number(each.asked)} | {number(each.achieved)} |")
    return "\n".join(lines)


def _figures(report: Report) -> str:
    rows, metrics, risk = report.rows, report.metrics, report.risk
    lost = ", ".join(
        f"{escaped(name)} {percent(attribute.NCP)}" for name, attribute in report.attributes.items()
    )
    lines = (
        ("Rows", f"{number(rows.published)} of {number(rows.input)}, "
                 f"{number(rows.suppressed)} suppressed"),
        ("Classes", number(report.equivalence_classes)),
        ("Information lost (GCP)", percent(metrics.GCP)),
        ("Of which in", lost),
        ("Risk", f"at most {percent(risk.prosecutor_max)}, on average "
                 f"{percent(risk.prosecutor_avg)}"),
    )  # fmt: skip
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in lines)])


def _to_mind(report: Report) -> str:
    remarks = [*report.notes, statements.warning(report), statements.replaced(report)]
    return "\n".join(f"- {escaped(each)}" for each in remarks if each)
