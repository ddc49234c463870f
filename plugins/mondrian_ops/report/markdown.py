"""The report in short, as Markdown: for the person who decides whether a release is published.

It holds no time at which a release began to wait: each try of a task asks the same question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mondrian_ops.report import outcome, statements
from mondrian_ops.report.document import Report
from mondrian_ops.report.number_format import number, percent, printable
from mondrian_ops.report.sensitive import gains, narrow_classes
from mondrian_ops.report.use import figures

_MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-.!|~<>&:/@])")


def escaped(text: object) -> str:
    """The text on one line, with every character escaped that could be Markdown or HTML."""
    return _MARKUP.sub(r"\\\1", printable(text))


def render_markdown(report: Report | Mapping[str, Any]) -> str:
    """What happened, the columns that stay as they are, requirements, figures, and remarks.

    Raises ReportError.
    """
    report = Report.of(report).named()
    first = [*statements.first(report), statements.sensitive_raw(report.columns)]
    blocks = (
        _outcome(report),
        *(f"**{escaped(text)}**" for text in first if text),
        *((_guarantees(report), _figures(report)) if report.is_measured else ()),
        _remarks(report),
    )
    return "\n\n".join(filter(None, blocks))


def _outcome(report: Report) -> str:
    is_waiting = report.state == outcome.WAITING
    lines = [f"**{escaped(statements.headline(report))}**"]
    for name, text in statements.facts(report):
        if not (is_waiting and name == "When"):
            lines.append(f"- {name}: {escaped(text)}")
    return "\n".join([*lines[:1], *([""] if lines[1:] else []), *lines[1:]])


def _guarantees(report: Report) -> str:
    lines = ["| | required | achieved |", "|---|---:|---:|"]
    for each in statements.guarantees(report):
        lines.append(f"| {each.name} | {number(each.required)} | {number(each.achieved)} |")
    return "\n".join(lines)


def _figures(report: Report) -> str:
    rows, metrics, risk = report.rows, report.metrics, report.risk
    lost = ", ".join(
        f"{escaped(name)} {percent(attribute.NCP)}" for name, attribute in report.attributes.items()
    )
    lines = (
        ("Rows", f"{number(rows.in_classes)} of {number(rows.input)}, "
                 f"{number(rows.suppressed)} suppressed"),
        ("Classes", number(report.equivalence_classes)),
        ("Information lost (GCP)", percent(metrics.GCP)),
        *((name, percent(lost)) for name, lost in (
            ("Robust GCP", metrics.GCP_robust), ("Bits lost", metrics.information_lost)
        ) if lost is not None),
        ("Lost per column", lost),
        ("Risk", f"at most {percent(risk.prosecutor_max)}, on average "
                 f"{percent(risk.prosecutor_avg)}"),
        *((f"Similar values of {escaped(name)}", f"{share} {escaped(note)}")
          for name, share, note in narrow_classes(report)),
        *((f"Highest gain of {escaped(name)}", f"{gain}: {escaped(note)}")
          for name, gain, note in gains(report)),
        *((escaped(name), f"{value}: {escaped(note)}")
          for name, value, note in figures(report.use)),
    )  # fmt: skip
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in lines)])


def _remarks(report: Report) -> str:
    remarks = [*report.notes, statements.warning(report), statements.replaced(report)]
    return "\n".join(f"- {escaped(each)}" for each in remarks if each)
