"""Charts as inline SVG: static, no script, readable without colour and at any width.

Widths are per cent of the page and text keeps its size, so nothing shrinks on a telephone. Every
chart has a title and a description for screen readers, and every mark says its figure on hover.
Colours come from classes of the page's style sheet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import count, pairwise

from mondrian_ops.report import figures

_ROW = 40
_LABEL_CHARS = 22
# A chart of lines: px from above, and per cent from the left, where the labels of levels stand.
_TOP, _FLOOR, _LEFT = 44, 274, 11
_MARKERS = (
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z",
    "M-4-4h8v8h-8z",
    "M0-5.5L5 4H-5z",
    "M0-5.5L5.5 0 0 5.5-5.5 0z",
)
_STYLES = len(_MARKERS)
_NICE = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


Ticks = Sequence[tuple[float, str]]
"""Places along an axis, as shares of it, and their labels."""


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


@dataclass(frozen=True)
class Spot:
    """A point of a line: shares of the width and the height, and what it says on hover.

    `error` is how far the truth may lie above and below, as a share of the height.
    """

    x: float
    y: float
    says: str
    error: float = 0.0


@dataclass(frozen=True)
class Line:
    """A line through its spots. `style` numbers colour, dashes and marker, the same on every chart.

    Where there is no spot to draw, `crosses` are marks at the upper edge: x and what it says.
    """

    label: str
    style: int
    spots: tuple[Spot, ...]
    crosses: tuple[tuple[float, str], ...] = ()


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

    def lines(
        self,
        title: str,
        description: str,
        lines: Sequence[Line],
        axes: tuple[Ticks, Ticks],
        axis: str,
        bound: Line | None = None,
    ) -> str:
        """Lines over two axes, the horizontal one first and named `axis`; `bound` is a
        thin line to compare with.

        Each line has a colour, a pattern of dashes and a marker of its own.
        """
        across, upward = axes
        shown = [*lines, *([bound] if bound else ())]
        drawn = [_key(line, at, line is bound) for at, line in enumerate(shown)]
        drawn += [_level(share, label) for share, label in upward]
        drawn += [_position(share, label, wide) for share, label, wide in _spaced(across)]
        drawn.append(
            f'<line class="axis" x1="{_LEFT}%" x2="100%" y1="{_FLOOR}" y2="{_FLOOR}"/>'
            f'<text class="tick middle" x="{_x(0.5)}" y="{_FLOOR + 36}">{text(axis)}</text>'
        )
        if bound is not None:
            drawn.append(_polyline(bound, "bound"))
        drawn += [_line(line) for line in lines]
        return self._svg(title, description, _FLOOR + 40, "".join(drawn))

    def _svg(self, title: str, description: str, height: int, body: str) -> str:
        number = next(self._ids)
        return (
            f'<svg class="chart" role="img" aria-labelledby="c{number}t c{number}d" '
            f'width="100%" height="{height}">'
            f'<title id="c{number}t">{text(title)}</title>'
            f'<desc id="c{number}d">{text(description)}</desc>{body}</svg>'
        )


def ticks(most: float) -> list[float]:
    """Round numbers from 0 on, four or a few more steps, the last one not below `most`."""
    most = most or 1.0
    unit = 10.0 ** math.floor(math.log10(most / 4))
    step = next(factor * unit for factor in (1, 2, 2.5, 5, 10) if factor * unit >= most / 5)
    return [step * at for at in range(math.ceil(most / step - 1e-9) + 1)]


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


def _line(line: Line) -> str:
    style = f"series{line.style % _STYLES}"
    drawn = [f'<g class="{style}">', _polyline(line, "")]
    for spot in line.spots:
        mark = f'<path d="{_MARKERS[line.style % _STYLES]}"/>'
        if spot.error > 0:
            reach = spot.error * (_FLOOR - _TOP)
            mark += f'<path class="error" d="M-4 {-reach:.1f}h8m-4 0v{2 * reach:.1f}m-4 0h8"/>'
        drawn.append(_marked(spot.x, _y(spot.y), f"{line.label}: {spot.says}", mark))
    for x, says in line.crosses:
        mark = '<path class="cross" d="M-5-5l10 10M-5 5l10-10"/>'
        y = _TOP + 8 + 15 * (line.style % _STYLES)
        drawn.append(_marked(x, y, f"{line.label}: {says}", mark))
    return "".join(drawn) + "</g>"


def _polyline(line: Line, style: str) -> str:
    """The line piece by piece: the points of a polyline cannot be per cent."""
    return "".join(
        f'<line class="{style or "line"}" x1="{_x(one.x)}" y1="{_y(one.y):.1f}" '
        f'x2="{_x(other.x)}" y2="{_y(other.y):.1f}"/>'
        for one, other in pairwise(line.spots)
    )


def _marked(x: float, y: float, says: str, mark: str) -> str:
    return (
        f'<svg x="{_x(x)}" y="{y:.1f}" overflow="visible"><title>{text(says)}</title>{mark}</svg>'
    )


def _key(line: Line, at: int, is_bound: bool) -> str:
    """The line's entry in the legend; four to a row."""
    x, y = at % 4 * 82, 9 + at // 4 * 16
    style = "bound" if is_bound else "line"
    marker = "" if is_bound else f'<path d="{_MARKERS[line.style % _STYLES]}"/>'
    return (
        f'<g class="series{line.style % _STYLES}"><svg x="{x}" y="{y}" overflow="visible">'
        f'<line class="{style}" x1="0" x2="26" y1="0" y2="0"/>'
        f'<svg x="13" overflow="visible">{marker}</svg></svg></g>'
        f'<text class="tick" x="{x + 32}" y="{y + 4}">{text(line.label)}</text>'
    )


def _level(share: float, label: str) -> str:
    y = _y(share)
    return (
        f'<line class="grid" x1="{_LEFT}%" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="tick" x="0" y="{y + 4:.1f}">{text(label)}</text>'
    )


def _position(share: float, label: str, wide: bool) -> str:
    style = "tick middle wide" if wide else "tick middle"
    return f'<text class="{style}" x="{_x(share)}" y="{_FLOOR + 16}">{text(label)}</text>'


def _spaced(across: Ticks) -> list[tuple[float, str, bool]]:
    """The labels that do not touch, and whether it takes a wide screen for one not to."""
    found: list[tuple[float, str, bool]] = []
    last, last_narrow = -1.0, -1.0
    for share, label in across:
        if share - last < 0.05:
            continue
        wide = share - last_narrow < 0.1
        found.append((share, label, wide))
        last, last_narrow = share, last_narrow if wide else share
    return found


def _x(share: float) -> str:
    """Within the plot, with room for half a marker at both ends."""
    return f"{_LEFT + 2 + (96 - _LEFT) * share:.3f}%"


def _y(share: float) -> float:
    return _FLOOR - share * (_FLOOR - _TOP)


def _gridline(y: float, classes: float) -> str:
    said = figures.size(round(classes))
    return (
        f'<line class="grid" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="tick end narrow" x="100%" y="{y - 4:.1f}">{text(said)}</text>'
    )
