"""Charts as inline SVG: static, no script, readable without colour and at any width.

Widths are per cent of the page and text keeps its size, so nothing shrinks on a telephone. Every
chart has a title and a description for screen readers, and every mark says its figure on hover.
Colours come from classes of the page's style sheet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import count

from mondrian_ops.report import figures

_ROW = 40
_LABEL_CHARS = 22
_NICE = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True)
class Part:
    """One coloured piece of a bar: its share of the full width and its style class."""

    share: float
    style: str
    says: str


@dataclass(frozen=True)
class Bar:
    """A labelled bar of one or more parts.

    `mark` is a line across it, as a share of the width; `more` follows the value where there is
    room.
    """

    label: str
    value: str
    parts: tuple[Part, ...]
    mark: float | None = None
    more: str = ""


def text(value: object) -> str:
    """Escape for HTML, with control and direction characters made visible."""
    return escape(figures.printable(value), quote=True)


class Drawing:
    """Draws charts for one page, with ids that are unique in it."""

    def __init__(self) -> None:
        self._ids = count(1)

    def bars(
        self, title: str, description: str, bars: Sequence[Bar], axis: tuple[str, str] | None = None
    ) -> str:
        """Horizontal bars, the label and the figure above each; `axis` names its two ends."""
        drawn = "".join(_bar(bar, row * _ROW) for row, bar in enumerate(bars))
        height = _ROW * len(bars)
        if axis is not None:
            height += 18
            drawn += (
                f'<text class="tick" x="0" y="{height - 4}">{text(axis[0])}</text>'
                f'<text class="tick end" x="100%" y="{height - 4}">{text(axis[1])}</text>'
            )
        return self._svg(title, description, height, drawn)

    def histogram(self, title: str, description: str, bins: Sequence[figures.Bin], k: int) -> str:
        """Columns: classes per size; sizes below `k` are drawn as failures."""
        top, floor, height = 26, 206, 246
        most = max((b.classes for b in bins), default=1) or 1
        total = sum(b.classes for b in bins) or 1
        width = 100 / max(len(bins), 1)
        drawn = [_gridline(floor - share * (floor - top), share * most) for share in (0.5, 1.0)]
        for index, b in enumerate(bins):
            tall = max((floor - top) * b.classes / most, 1.5 if b.classes else 0)
            middle = f"{(index + 0.5) * width:.3f}%"
            says = (
                f"{b.label} rows: {b.classes:,} classes ({figures.percent(b.classes / total)}), "
                f"{b.rows:,} rows"
            )
            style = "bad" if b.low < k else "main"
            thin = "" if len(bins) <= 8 or index % 4 == 0 else " wide"
            drawn.append(
                f"<g><title>{text(says)}</title>"
                f'<rect class="{style}" x="{(index + 0.1) * width:.3f}%" y="{floor - tall:.1f}" '
                f'width="{0.8 * width:.3f}%" height="{tall:.1f}" rx="2"/>'
                f'<text class="tick middle wide" x="{middle}" y="{floor - tall - 6:.1f}">'
                f"{text(figures.size(b.classes))}</text>"
                f'<text class="tick middle{thin}" x="{middle}" y="{floor + 16}">'
                f"{text(b.label)}</text></g>"
            )
        drawn.append(f'<line class="axis" x1="0" x2="100%" y1="{floor}" y2="{floor}"/>')
        drawn.append(f'<text class="tick middle" x="50%" y="{height - 4}">rows in a class</text>')
        return self._svg(title, description, height, "".join(drawn))

    def _svg(self, title: str, description: str, height: int, body: str) -> str:
        number = next(self._ids)
        return (
            f'<svg class="chart" role="img" aria-labelledby="c{number}t c{number}d" '
            f'width="100%" height="{height}">'
            f'<title id="c{number}t">{text(title)}</title>'
            f'<desc id="c{number}d">{text(description)}</desc>{body}</svg>'
        )


def nice_limit(shares: Sequence[float]) -> float:
    """The end of an axis of shares: the first of 1, 2, 5, 10, 20, 50, 100 % that holds them."""
    most = max(shares, default=0.0)
    return next((limit for limit in _NICE if most <= limit), most)


def _bar(bar: Bar, top: int) -> str:
    label = bar.label if len(bar.label) <= _LABEL_CHARS else bar.label[: _LABEL_CHARS - 1] + "…"
    says = ", ".join(part.says for part in bar.parts)
    pieces = [
        f"<g><title>{text(bar.label)}: {text(says)}</title>"
        f'<text class="label" x="0" y="{top + 15}">{text(label)}</text>'
        f'<text class="value end" x="100%" y="{top + 15}">{text(bar.value)}'
        f'<tspan class="wide">{text(bar.more)}</tspan></text>'
        f'<rect class="track" x="0" y="{top + 21}" width="100%" height="11" rx="2"/>'
    ]
    left = 0.0
    for part in bar.parts:
        wide = 100 * min(max(part.share, 0.0), 1.0 - left / 100)
        if wide > 0:
            pieces.append(
                f'<rect class="{part.style}" x="{left:.3f}%" y="{top + 21}" '
                f'width="{wide:.3f}%" height="11" rx="2"/>'
            )
        left += wide
    if bar.mark is not None:
        x = f"{100 * min(max(bar.mark, 0.0), 1.0):.3f}%"
        pieces.append(f'<line class="mark" x1="{x}" x2="{x}" y1="{top + 18}" y2="{top + 35}"/>')
    return "".join(pieces) + "</g>"


def _gridline(y: float, classes: float) -> str:
    said = figures.size(round(classes))
    return (
        f'<line class="grid" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="tick end narrow" x="100%" y="{y - 4:.1f}">{text(said)}</text>'
    )
