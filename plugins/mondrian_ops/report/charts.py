"""Charts as geometry; ``templates/charts.html`` draws them as inline SVG, in files and pages alike.

Widths are shares of the page and heights are pixels, so that text keeps its size on a telephone.
``says`` is what a mark says on hover and to screen readers. Styles are classes of
``templates/report.css``: ``s0`` to ``s4`` for series, ``q0`` to ``q7`` for an ordered scale,
``good`` and ``bad``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

__all__ = ["Bars", "Column", "Columns", "Line", "Lines", "Map", "Part", "Row", "Spark", "Spot",
           "Tile", "decimals", "nice_limit", "squarified", "stacked", "ticks"]  # fmt: skip

_NICE = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)

Ticks = Sequence[tuple[float, str]]
"""Places along an axis, as shares of it, and their labels."""


@dataclass(frozen=True)
class Part:
    """A coloured piece of a bar: where it starts, its width, both shares of the whole width."""

    start: float
    share: float
    style: str


@dataclass(frozen=True)
class Row:
    """A label and a value above some bars; ``line`` crosses them, ``more`` needs a wide screen."""

    label: str
    value: str
    bars: tuple[tuple[Part, ...], ...]
    says: str
    more: str = ""
    line: float | None = None


@dataclass(frozen=True)
class Bars:
    """Horizontal bars; ``ends`` names both ends of their axis."""

    description: str
    rows: tuple[Row, ...]
    ends: tuple[str, str] | None = None
    kind: ClassVar[str] = "bars"


@dataclass(frozen=True)
class Column:
    """Upright bars side by side: pairs (share of the height, style) and the value above them."""

    label: str
    bars: tuple[tuple[float, str], ...]
    says: str
    value: str = ""


@dataclass(frozen=True)
class Columns:
    """Upright bars over an axis with a name; ``levels`` are the grid."""

    description: str
    columns: tuple[Column, ...]
    levels: Ticks
    axis: str
    kind: ClassVar[str] = "columns"


@dataclass(frozen=True)
class Spot:
    """A point: shares of the width and the height, and what it says.

    ``error`` is how far the truth may lie above and below, as a share of the height.
    """

    x: float
    y: float
    says: str
    error: float = 0.0
    marked: bool = False


@dataclass(frozen=True)
class Line:
    """A line through spots, with a colour, dashes and marker of its own by ``style``.

    ``crosses`` stand at the upper edge for points that cannot be had: x and what it says.
    """

    label: str
    style: int
    spots: tuple[Spot, ...]
    crosses: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class Lines:
    """Lines over two axes; ``bound`` is a thin line to compare with, ``pins`` are named points."""

    description: str
    lines: tuple[Line, ...]
    across: Ticks
    levels: Ticks
    axis: str
    bound: Line | None = None
    pins: tuple[tuple[str, Spot], ...] = ()
    kind: ClassVar[str] = "lines"

    @property
    def top(self) -> int:
        """Pixels above the plot, for the key: three entries to a row."""
        entries = len(self.lines) + (self.bound is not None) + len(self.pins)
        return 28 + 16 * math.ceil(entries / 3)

    @property
    def across_wide(self) -> list[tuple[float, str, bool]]:
        """The labels that do not touch, and whether it takes a wide screen for one not to."""
        shown: list[tuple[float, str, bool]] = []
        last, last_narrow = -1.0, -1.0
        for share, label in self.across:
            if share - last < 0.05:
                continue
            wide = share - last_narrow < 0.1
            shown.append((share, label, wide))
            last, last_narrow = share, last_narrow if wide else share
        return shown


@dataclass(frozen=True)
class Tile:
    """A rectangle of a map, in shares of it; ``lines`` are written in it where there is room."""

    x: float
    y: float
    width: float
    height: float
    style: str
    lines: tuple[str, ...]
    says: str


@dataclass(frozen=True)
class Map:
    """Tiles whose areas are figures."""

    description: str
    tiles: tuple[Tile, ...]
    kind: ClassVar[str] = "map"


@dataclass(frozen=True)
class Spark:
    """A small line without axes."""

    description: str
    spots: tuple[Spot, ...]
    kind: ClassVar[str] = "spark"


def stacked(shares: Iterable[tuple[float, str]]) -> tuple[Part, ...]:
    """Pairs (share, style) as the pieces of one bar, none of which reaches beyond its end."""
    parts, start = [], 0.0
    for share, style in shares:
        width = min(max(share, 0.0), 1.0 - start)
        parts.append(Part(start, width, style))
        start += width
    return tuple(part for part in parts if part.share > 0)


def ticks(most: float) -> list[float]:
    """Round numbers from 0 on, four or a few more steps, the last one not below `most`."""
    most = most or 1.0
    unit = 10.0 ** math.floor(math.log10(most / 4))
    step = next(factor * unit for factor in (1, 2, 2.5, 5, 10) if factor * unit >= most / 5)
    return [step * at for at in range(math.ceil(most / step - 1e-9) + 1)]


def decimals(step: float) -> int:
    """Decimals of a per cent that tell levels of this distance apart."""
    return max(0, math.ceil(-math.log10(100 * step) - 1e-9))


def nice_limit(shares: Iterable[float]) -> float:
    """The end of an axis of shares: the first of 1, 2, 5, 10, 20, 50, 100 % that holds them."""
    most = max(shares, default=0.0)
    return next((limit for limit in _NICE if most <= limit), most)


def squarified(areas: Sequence[float], ratio: float) -> list[tuple[float, float, float, float]]:
    """Tiles of these areas, descending, that fill a rectangle ``ratio`` times as wide as high.

    Returns x, y, width and height of each as shares of the rectangle. Rows are added along the
    shorter side for as long as their tiles come nearer to squares (Bruls, Huizing and van Wijk,
    "Squarified Treemaps", 2000).
    """
    whole = sum(areas) or 1.0
    scaled = [area / whole * ratio for area in areas]
    x, y, width, height = 0.0, 0.0, ratio, 1.0
    tiles, at = [], 0
    while at < len(scaled):
        side, end = min(width, height), at + 1
        while end < len(scaled) and _worst(scaled[at : end + 1], side) <= _worst(
            scaled[at:end], side
        ):
            end += 1
        row = scaled[at:end]
        depth, along = (sum(row) / side if side else 0.0), 0.0
        for area in row:
            length = area / depth if depth else 0.0
            if width >= height:
                tiles.append((x / ratio, y + along, depth / ratio, length))
            else:
                tiles.append(((x + along) / ratio, y, length / ratio, depth))
            along += length
        if width >= height:
            x, width = x + depth, max(width - depth, 0.0)
        else:
            y, height = y + depth, max(height - depth, 0.0)
        at = end
    return tiles


def _worst(row: Sequence[float], side: float) -> float:
    """The largest ratio of the sides of a row's tiles; infinite where one has no area."""
    total = sum(row)
    if not side or not row[-1]:
        return math.inf
    return max(side**2 * row[0] / total**2, total**2 / (side**2 * row[-1]))
