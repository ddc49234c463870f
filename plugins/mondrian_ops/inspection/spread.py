"""Where the numbers and dates of a column lie: most of them, outliers, and sentinels."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.data.encoding import positions
from mondrian_ops.data.values import text_of
from mondrian_ops.errors import InputError
from mondrian_ops.inspection.columns import MANY, Column
from mondrian_ops.inspection.vocabulary import MISSING
from mondrian_ops.late_methods import dataclass

_SENTINEL = re.compile(r"-?9+(\.9*|\.0+)?|-[12](\.0+)?|(1900-01-01|1970-01-01|9999-12-31).*")
_PARTS = 5
_ENDS = 0.05
"""The share of the rows on each side of what is shown of a column's range."""

Line = NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """Where the values of a column lie.

    ``mostly``: two rounded ends, beyond each of which one row in twenty lies; None for few rows, or
    few values.
    ``sentinels``: values apart from all others that look like codes for a missing one, of at least
    k people each. ``outliers``: the share of rows further from the middle nine tenths than four
    times their width.
    """

    mostly: tuple[str, str] | None = None
    sentinels: Sequence[str] = ()
    outliers: float = 0.0


def spread(column: Column, k: int) -> Spread:
    """The spread of a column of numbers, dates or timestamps, with a row for each person.

    Nothing of other columns. No value of fewer than ``k`` people is shown.
    """
    if not (column.is_number or column.is_moment) or column.distinct < 3:
        return Spread()
    try:
        line = positions(column.values, column.name)
    except InputError:  # infinite ones, which a run refuses by name
        return Spread()
    rows = column.counts[1:].copy()
    apart = _sentinels(column, line, rows)
    rows[[*apart]] = 0
    low, high = _quantile(line, rows, _ENDS), _quantile(line, rows, 1 - _ENDS)
    far = np.abs(line - (low + high) / 2) > 4.5 * (high - low)
    far[[*apart]] = False
    is_shown = high > low and column.distinct > MANY and _ENDS * rows.sum() >= k
    return Spread(
        _ends(column, low, high) if is_shown else None,
        [text for place, text in apart.items() if column.counts[1 + place] >= k],
        float(rows[far].sum() / column.present) if high > low else 0.0,
    )


def missing_texts(column: Column, k: int) -> list[str]:
    """Texts of a column, each of at least ``k`` people, that may stand for a missing value."""
    if not column.is_text:
        return []
    listed = pc.is_in(pc.utf8_lower(column.values), value_set=pa.array(sorted(MISSING)))
    places = np.nonzero(listed.to_numpy(zero_copy_only=False))[0]
    return [column.values[int(at)].as_py() for at in places if column.counts[1 + at] >= k]


def _sentinels(column: Column, line: Line, rows: NDArray[np.int64]) -> dict[int, str]:
    """Places and texts of values at the ends that look like codes, and lie apart from the others.

    A value lies apart if the next one is further away than the middle nine tenths of the others are
    wide, or if it alone is below 0.
    """
    found: dict[int, str] = {}
    low, high = 0, len(line) - 1
    while high - low > 1:
        for end, inner in ((low, low + 1), (high, high - 1)):
            text = text_of(column.values.slice(end, 1))[0].as_py()
            others = rows.copy()
            others[[*found, end]] = 0
            width = _quantile(line, others, 1 - _ENDS) - _quantile(line, others, _ENDS)
            apart = abs(line[end] - line[inner]) > width or line[end] < 0 <= line[inner]
            if apart and _SENTINEL.fullmatch(text):
                found[end] = text
                low, high = (inner, high) if end == low else (low, inner)
                break
        else:
            return found
    return found


def _quantile(line: Line, rows: NDArray[np.int64], share: float) -> float:
    below = np.cumsum(rows)
    return float(line[np.searchsorted(below, share * below[-1])])


def _ends(column: Column, low: float, high: float) -> tuple[str, str]:
    """Both ends, rounded outward: to months, or by a part of the range."""
    if column.is_moment:
        return _month(column, low), _month(column, high)
    unit = 10.0 ** math.floor(math.log10(high - low)) / _PARTS
    return f"{math.floor(low / unit) * unit:,.6g}", f"{math.ceil(high / unit) * unit:,.6g}"


def _month(column: Column, position: float) -> str:
    whole = pa.scalar(int(position), pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    return str(text_of(pa.array([whole.cast(column.type)]))[0].as_py())[:7]
