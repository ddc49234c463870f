"""The report as one HTML page, and the templates that it shares with the pages inside Airflow.

The page runs no script and loads nothing. Templates escape every text.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2.bccache import Bucket
from markupsafe import Markup

from mondrian_ops.report import number_format, sensitive, statements, use
from mondrian_ops.report.document import HTML_NAME, JSON_NAME, Report, json_content
from mondrian_ops.report.sections import achieved, generalization, sections

TEMPLATES = Path(__file__).with_name("templates")
STYLE = TEMPLATES / "report.css"


def files(report: Mapping[str, Any]) -> dict[str, bytes]:
    """The content of ``_report.json`` and ``_report.html``, by name. Raises ReportError."""
    return {JSON_NAME: json_content(report), HTML_NAME: render_html(report).encode()}


def render_html(report: Report | Mapping[str, Any]) -> str:
    """The page, without the parts for which the report has no figures. Raises ReportError."""
    shown = Report.of(report).named()
    return render(
        "report.html",
        report=shown,
        sections=sections(shown, with_conditions=True),
        job=json.dumps(shown.content["job"], indent=2, ensure_ascii=False).split("\n"),
    )


def render(template: str, **shown: Any) -> str:
    """A template of this package as one file, whose policy allows its own style only."""
    css = STYLE.read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    source = environment().get_template(template)
    return source.render(**shown, style=Markup(css), style_hash=digest)  # noqa: S704 - our own


class _CompiledTemplates(jinja2.FileSystemBytecodeCache):
    """Compiled templates where Python keeps compiled modules: beside their sources, or below
    ``PYTHONPYCACHEPREFIX``, which is for packages in folders that their users cannot write.

    Compiling takes 0.13 s in every process that renders a page.
    """

    def __init__(self) -> None:
        prefix = sys.pycache_prefix
        beside = TEMPLATES / "__pycache__"
        folder = beside if prefix is None else Path(prefix, *TEMPLATES.absolute().parts[1:])
        super().__init__(str(folder))

    def dump_bytecode(self, bucket: Bucket) -> None:
        if sys.dont_write_bytecode:
            return
        with suppress(OSError):  # this user may not write where the package is installed
            Path(self.directory).mkdir(parents=True, exist_ok=True)
            super().dump_bytecode(bucket)


@cache
def environment(*folders: Path) -> jinja2.Environment:
    """The environment of the templates in ``folders`` and, after them, of this package."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, TEMPLATES]),
        bytecode_cache=_CompiledTemplates(),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # A control character could hide or reorder text on the page.
        finalize=lambda value: number_format.printable(value) if type(value) is str else value,
    )
    templates.filters |= {
        "number": number_format.number,
        "percent": _or_dash(number_format.percent),
        "seconds": _or_dash(number_format.seconds),
        "size": _or_dash(number_format.size),
        "pct": lambda share: f"{100 * share:.5g}%",
        "px": lambda length: f"{length:.5g}",
    }
    templates.globals |= {
        "achieved": achieved,
        "generalization": generalization,
        "statements": statements,
        "sensitive": sensitive,
        "use": use,
    }
    return templates


def _or_dash(write: Callable[[float], str]) -> Callable[[float | None], str]:
    return lambda value: "–" if value is None else write(value)
