"""The figures of a part of the benchmarks: a table with a note, as text and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Table:
    """A titled table; cells are text already. `note` says how it was measured."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def markdown(self) -> str:
        lines = [f"## {self.title}", ""]
        if self.note:
            lines += [self.note, ""]
        lines.append("| " + " | ".join(self.head) + " |")
        lines.append("|---|" + "---:|" * (len(self.head) - 1))
        lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in self.rows]
        return "\n".join(lines) + "\n"

    def text(self) -> str:
        widths = [max(len(line[i]) for line in (self.head, *self.rows)) for i in range(self._wide)]
        lines = [self.title, "=" * len(self.title)]
        for row in (self.head, ["-" * width for width in widths], *self.rows):
            first, *others = row
            cells = [first.ljust(widths[0])]
            cells += [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
            lines.append("  ".join(cells).rstrip())
        if self.note:
            lines += ["", self.note]
        return "\n".join(lines) + "\n"

    @property
    def _wide(self) -> int:
        return len(self.head)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def seconds(value: float) -> str:
    return f"{value:.2f} s" if value < 100 else f"{value:.0f} s"


def times(value: float) -> str:
    return f"{value:.2f} ×"


def millions(value: float) -> str:
    return f"{value / 1e6:.3f}e6"


def change(value: float, reference: float) -> str:
    """`+1.2 %` of value against reference."""
    return f"{100 * (value / reference - 1):+.2f} %"


def mib(value: float) -> str:
    return f"{value:,.0f} MiB"


def gib(mib: float) -> str:
    """Of mebibytes."""
    return f"{mib / 1024:,.2f} GiB"


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3.4 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def verdict(met: bool) -> str:
    return "met" if met else "missed"
