"""The report in short, as Markdown: what somebody is shown who is asked to approve a release."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mondrian_ops.report import figures
from mondrian_ops.report.figures import number, percent

_MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-.!|~<>&:/@])")


def escaped(said: object) -> str:
    """Text in which nothing is markup, HTML or the end of a line."""
    return _MARKUP.sub(r"\\\1", figures.printable(said))


def render_markdown(report: Mapping[str, Any]) -> str:
    """Return what was asked and reached, the figures, and what to look at before deciding."""
    report = figures.named(report)
    raw = escaped(figures.published_raw(report.get("columns", {})))
    blocks = (raw and f"**{raw}**", _guarantees(report), _figures(report), _mind(report))
    return "\n\n".join(filter(None, blocks))


def _guarantees(report: Mapping[str, Any]) -> str:
    lines = ["| | asked | achieved |", "|---|---:|---:|"]
    for found in figures.guarantees(report):
        lines.append(f"| {found.name} | {number(found.asked)} | {number(found.achieved)} |")
    return "\n".join(lines)


def _figures(report: Mapping[str, Any]) -> str:
    rows, metrics, risk = report["rows"], report["metrics"], report["risk"]
    lost = ", ".join(
        f"{escaped(name)} {percent(attribute['NCP'])}"
        for name, attribute in report["attributes"].items()
    )
    said = (
        ("Rows", f"{number(rows['published'])} of {number(rows['input'])}, "
                 f"{number(rows['suppressed'])} suppressed"),
        ("Classes", number(report["equivalence_classes"])),
        ("Information lost (GCP)", percent(metrics["GCP"])),
        ("Of which in", lost),
        ("Risk", f"at most {percent(risk['prosecutor_max'])}, on average "
                 f"{percent(risk['prosecutor_avg'])}"),
    )  # fmt: skip
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {told} |" for name, told in said)])


def _mind(report: Mapping[str, Any]) -> str:
    said = [*report.get("notes", ()), figures.warning(report), figures.replaced(report)]
    return "\n".join(f"- {escaped(each)}" for each in said if each)
