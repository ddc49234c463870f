"""The pieces of a page: sections, figures, tables. No script, every text escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from string import Template

from mondrian_ops.report.charts import text

__all__ = ["details", "document", "figure", "legend", "section", "stylesheet", "table"]


@cache
def _resource(name: str) -> str:
    return files(__package__ or "").joinpath(name).read_text(encoding="utf-8")


def stylesheet() -> str:
    """The style sheet of pages and pictures, light and dark."""
    return _resource("page.css")


def document(*, heading: str, title: str, subtitle: Sequence[str], body: str, footer: str) -> str:
    """The page; all but ``body`` is escaped here. ``subtitle`` is shown line by line."""
    css = stylesheet()
    return Template(_resource("page.html")).substitute(
        style=css,
        style_hash=base64.b64encode(hashlib.sha256(css.encode()).digest()).decode(),
        heading=text(heading),
        title=f"{text(heading)}: {text(title)}",
        subtitle="<br>".join(map(text, subtitle)),
        body=body,
        footer=text(footer),
    )


def section(title: str, lead: str, body: str, style: str = "") -> str:
    """A section; ``lead`` and ``body`` are markup."""
    kind = f' class="{style}"' if style else ""
    lead = f'<p class="lead">{lead}</p>' if lead else ""
    return f"<section{kind}><h2>{text(title)}</h2>{lead}{body}</section>"


def figure(title: str, caption: str, body: str, legend: str = "") -> str:
    """A figure under its heading and caption; ``body`` and ``legend`` are markup."""
    return (
        f"<figure><figcaption><h3>{text(title)}</h3><p>{text(caption)}</p>{legend}</figcaption>"
        f"<div>{body}</div></figure>"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """A table; cells are escaped here, `right` names the columns of figures."""

    def cell(tag: str, index: int, value: str) -> str:
        scope = ' scope="col"' if tag == "th" else ""
        style = "n" if index in right else "any"
        return f'<{tag}{scope} class="{style}">{text(value)}</{tag}>'

    top = "".join(cell("th", index, value) for index, value in enumerate(head))
    body = "".join(
        "<tr>" + "".join(cell("td", index, value) for index, value in enumerate(row)) + "</tr>"
        for row in rows
    )
    top = f"<thead><tr>{top}</tr></thead>" if head else ""
    return f'<div class="scroll"><table>{top}<tbody>{body}</tbody></table></div>'


def details(summary: str, body: str) -> str:
    """Markup that opens when it is asked for."""
    return f"<details><summary>{text(summary)}</summary>{body}</details>"


def legend(entries: Iterable[tuple[str, str]]) -> str:
    """What the colours of a chart stand for: style class and label."""
    items = "".join(
        f'<li><svg aria-hidden="true"><rect class="{style}" width="12" height="12" rx="2"/></svg>'
        f"{text(label)}</li>"
        for style, label in entries
    )
    return f'<ul class="legend">{items}</ul>'
