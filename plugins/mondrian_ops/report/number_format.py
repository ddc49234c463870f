"""Numbers and names as text, and the bars of a histogram of class sizes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from mondrian_ops.late_methods import dataclass

MAX_BARS = 16
_NARROW = 24
_STEPS = (1, 2, 5)


@dataclass(frozen=True)
class Bin:
    """Classes of `low` to `high` rows; `high` is None for "or more"."""

    low: int
    high: int | None
    classes: int
    rows: int

    @property
    def label(self) -> str:
        if self.high is None:
            return f"{self.low:,} or more"
        if self.high == self.low:
            return f"{self.low:,}"
        return f"{self.low:,}–{self.high:,}"


def bins(class_sizes: Sequence[Sequence[int]], k: int) -> list[Bin]:
    """Group (size, classes) pairs into at most about MAX_BARS bars; sizes below k stay apart.

    One bar per size where sizes are few; else equal widths up to the 99th percentile of the
    classes; else, when sizes span orders of magnitude, each bar twice as wide as the one before.
    """
    pairs = sorted((int(size), int(classes)) for size, classes in class_sizes if classes)
    small = [pair for pair in pairs if pair[0] < k]
    large = [pair for pair in pairs if pair[0] >= k]
    grouped = [bin_of(small[0][0], k - 1, small)] if small else []
    if not large:
        return grouped
    first, last = large[0][0], large[-1][0]
    if last - first < _NARROW:
        steps = [(size, size) for size in range(first, last + 1)]
        return grouped + [bin_of(low, high, large) for low, high in steps]
    edges = _edges(first, _percentile(large, 0.99))
    grouped += [bin_of(low, high - 1, large) for low, high in pairwise(edges)]
    if last >= edges[-1]:
        grouped.append(bin_of(edges[-1], None, large))
    return grouped


def _edges(first: int, most: int) -> list[int]:
    if most >= 16 * first:
        edges = [first]
        while edges[-1] <= most and len(edges) < MAX_BARS:
            edges.append(edges[-1] * 2)
        return edges
    width, step = 1, 0
    while (most - first) // width >= MAX_BARS:
        step += 1
        width = _STEPS[step % 3] * 10 ** (step // 3)
    return list(range(first, most + width + 1, width))


def _percentile(pairs: Sequence[tuple[int, int]], share: float) -> int:
    wanted = share * sum(classes for _, classes in pairs)
    seen = 0
    for size, classes in pairs:
        seen += classes
        if seen >= wanted:
            return size
    return pairs[-1][0]


def bin_of(low: int, high: int | None, pairs: Sequence[Sequence[int]]) -> Bin:
    """The (size, classes) pairs of sizes from `low` to `high` as one bar."""
    inside = [(s, n) for s, n in pairs if s >= low and (high is None or s <= high)]
    return Bin(low, high, sum(n for _, n in inside), sum(s * n for s, n in inside))


def number(value: float | None, digits: int = 2) -> str:
    """`1,234`, `1,234.5`; an en dash for a figure that was not measured."""
    if value is None:
        return "–"
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.{digits}f}"


def percent(share: float, digits: int = 1) -> str:
    """A share as per cent, which is 0 % only for none and 100 % only for all."""
    if share == 0:
        return "0 %"
    low = 10**-digits
    value = 100 * share
    if 0 < value < low / 2:
        return f"< {low:.{digits}f} %"
    if 100 - low / 2 < value < 100:
        return f"> {100 - low:.{digits}f} %"
    return f"{value:.{digits}f} %"


def seconds(value: float) -> str:
    """`0.24 s`, `12.3 s`, `4 min 05 s`."""
    if value < 10:
        return f"{value:.2f} s"
    if value < 120:
        return f"{value:.1f} s"
    return f"{int(value) // 60} min {int(value) % 60:02d} s"


def size(value: float) -> str:
    """A count shortened for a tick or a card: `950`, `12.3 k`, `1.80 M`."""
    for factor, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= max(0.9995 * factor, 1e4):
            return f"{value / factor:.3g} {unit}"
    return number(value)


def printable(text: object) -> str:
    """Text on one line, with control characters written as escapes, such as ``\\x1b``."""
    text = str(text)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
