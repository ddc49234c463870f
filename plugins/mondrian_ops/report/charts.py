"""Charts as geometry; ``templates/charts.html`` draws them as inline SVG, for files and pages.

Widths are shares of the page and heights are pixels, so that text keeps its size on a telephone.
``says`` is the text of a mark for the pointer and for screen readers. Styles are classes of
``templates/report.css``: ``s0`` to ``s4`` for series, ``q0`` to ``q7`` for an ordered scale,
``good`` and ``bad``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import ClassVar

from mondrian_ops.late_methods import dataclass

_NICE = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)

Ticks = Sequence[tuple[float, str]]
"""Places along an axis, as shares of it, and their labels."""

Piece = tuple[float, float, str]
"""A coloured piece of a bar: its start and its width, as shares of the whole width, and style."""

Box = tuple[float, float, float, float]
"""x, y, width and height, as shares of the whole."""


@dataclass(frozen=True)
class Row:
    """A label and a value above some bars.

    ``line`` is the place of a line across them; ``more`` follows the value on a wide screen.
    """

    label: str
    value: str
    bars: tuple[tuple[Piece, ...], ...]
    says: str
    more: str = ""
    line: float | None = None


@dataclass(frozen=True)
class Bars:
    """Horizontal bars; ``ends`` are the labels of both ends of their axis."""

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
    """Upright bars; ``axis`` is the name of the horizontal axis, ``levels`` are the grid.

    ``most_labels`` is how many labels of columns have room on a wide screen.
    """

    description: str
    columns: tuple[Column, ...]
    levels: Ticks
    axis: str
    most_labels: int
    kind: ClassVar[str] = "columns"


@dataclass(frozen=True)
class Spot:
    """A point, in shares of the width and the height.

    ``error`` is the standard error, as a share of the height.
    """

    x: float
    y: float
    says: str
    error: float = 0.0
    marked: bool = False


@dataclass(frozen=True)
class Line:
    """A line through spots; ``style`` chooses its colour, dashes and marker.

    ``crosses`` (x and ``says``) mark unattainable points at the upper edge.
    """

    label: str
    style: int
    spots: tuple[Spot, ...]
    crosses: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class Lines:
    """Lines over two axes; ``bound`` is a thin reference line, ``pins`` are named points."""

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
        """Pixels above the plot, for the legend: three entries to a row."""
        entries = len(self.lines) + (self.bound is not None) + len(self.pin_names)
        return 28 + 16 * math.ceil(entries / 3)

    @property
    def pin_names(self) -> list[str]:
        """The names of the pins, each once."""
        return list(dict.fromkeys(name for name, _ in self.pins))

    @property
    def is_dense(self) -> bool:
        """Whether spots are so many that each is drawn as a dot."""
        return max((len(line.spots) for line in self.lines), default=0) > 30

    @property
    def across_wide(self) -> list[tuple[float, str, bool]]:
        """The labels that do not touch: place, text, and whether one needs a wide screen for it."""
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
    """A rectangle of a map, in shares of it; ``lines`` are its text where there is room."""

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


def stacked(shares: Iterable[tuple[float, str]]) -> tuple[Piece, ...]:
    """Pairs (share, style) as the pieces of one bar; the bar cuts off what reaches beyond it."""
    pieces, start = [], 0.0
    for share, style in shares:
        width = min(max(share, 0.0), 1.0 - start)
        if width > 0:
            pieces.append((start, width, style))
        start += width
    return tuple(pieces)


def ticks(most: float) -> list[float]:
    """Four to seven round numbers, from 0 to `most` or a little more."""
    most = most or 1.0
    unit = 10.0 ** math.floor(math.log10(most / 4))
    step = next(factor * unit for factor in (1, 2, 2.5, 5, 10) if factor * unit >= most / 5)
    return [step * at for at in range(math.ceil(most / step - 1e-9) + 1)]


def decimals(step: float) -> int:
    """The decimals of a per cent that levels at this distance need to be exact, as 2.5 % does."""
    digits = max(0, math.ceil(-math.log10(100 * step) - 1e-9))
    scaled = 100 * step * 10**digits
    return digits + int(abs(scaled - round(scaled)) > 1e-6)


def nice_limit(shares: Iterable[float]) -> float:
    """The end of an axis of shares: the first of 1, 2, 5, 10, 20, 50, 100 % that holds them."""
    most = max(shares, default=0.0)
    return next((limit for limit in _NICE if most <= limit), most)


def treemap(areas: Sequence[float], ratio: float, box: Box = (0.0, 0.0, 1.0, 1.0)) -> list[Box]:
    """Tiles of these areas that fill a box; the whole is ``ratio`` times as wide as high.

    The areas are divided into two halves of about the same sum, the box likewise across its longer
    side, and each half in the same way (the binary tiling of d3-hierarchy).
    """
    x, y, width, height = box
    if len(areas) == 1:
        return [box if areas[0] else (x, y, 0.0, 0.0)]
    sums, middle = list(accumulate(areas)), len(areas) / 2
    cut = min(
        range(1, len(areas)),
        key=lambda at: (abs(sums[at - 1] - sums[-1] / 2), abs(at - middle)),
    )
    share = sums[cut - 1] / (sums[-1] or 1)
    if width * ratio >= height:
        first = (x, y, width * share, height)
        second = (x + width * share, y, width * (1 - share), height)
    else:
        first = (x, y, width, height * share)
        second = (x, y + height * share, width, height * (1 - share))
    return treemap(areas[:cut], ratio, first) + treemap(areas[cut:], ratio, second)
