"""The spans of columns of numbers and moments, which single extreme values do not widen.

The ends of a column's range are the values of two people; one age of 9999 makes every interval of
ages look narrow. A robust span reaches from the 1st to the 99th percentile instead. Values that lie
far beyond the middle 90 % are no part of the percentiles, so that a code for "unknown" may stand in
more than one of a hundred rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.data.encoding import as_array, positions

Floats = NDArray[np.float64]

POINTS = 1001
"""Quantiles of a column that are kept: every thousandth of its rows."""

STRETCHED = 2.0
"""A range of more than so many robust spans is stretched by extreme values."""

_APART = 0.2  # of the robust span, between a code for "unknown" and all other values
_MANY = 10  # different values, none of them negative, beside a negative code
_FAR = 3.0  # times the middle 90 %, beyond it: Tukey's fences reach 3 times the middle 50 %


def quantiles_of(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """At most `POINTS` values of a sample in order, the missing ones first, at equal distances."""
    values = as_array(column)
    if not len(values):
        return values
    order = pc.array_sort_indices(values, null_placement="at_start").to_numpy()
    places = np.linspace(0, len(order) - 1, min(POINTS, len(order)))
    return values.take(pa.array(order[np.rint(places).astype(np.int64)]))


def robust_ends(quantiles: pa.Array, name: str) -> pa.Array:
    """The two values that a robust span reaches between; none where there are no `quantiles_of`.

    Where nearly all rows have one value, it reaches from this to the percentiles of the others.
    """
    quantiles = quantiles.drop_null()
    if not len(quantiles):
        return quantiles
    line = positions(quantiles, name)
    near = np.flatnonzero(_is_near(line))
    first, last = _trimmed(line[near], 0.01)
    if line[near[first]] == line[near[last]]:
        others = near[line[near] != line[near[first]]]
        if len(others):
            of_others = others[list(_trimmed(line[others], 0.01))]
            ends = sorted([int(near[first]), *of_others.tolist()])
            return quantiles.take(pa.array([ends[0], ends[-1]]))
    return quantiles.take(pa.array(near[[first, last]]))


def cut_width(whole: float, robust: float) -> float:
    """The width of a column by which cuts are weighed: its range, unless it is stretched."""
    return robust if 0 < STRETCHED * robust < whole else whole


def extreme_values(name: str, domain: pa.Array, quantiles: pa.Array) -> str:
    """A note on values far from the others, or that seem to stand for "unknown"; empty if none.

    ``domain``: the values of the column, or the ends of its range. The note tells no value.
    """
    present = quantiles.drop_null()
    if not len(present) or not len(domain):
        return ""
    ends = pa.concat_arrays([domain[:1], domain[len(domain) - 1 :]])
    low, high = positions(ends, name)
    inner = positions(robust_ends(quantiles, name), name)
    line, robust = positions(present, name), float(inner[1] - inner[0])
    if 0 < STRETCHED * robust < high - low:
        far = float(np.mean(~_is_near(line)))
        times = next(each for most, each in _TIMES if high - low > most * robust)
        return (
            f"column {name!r}: extreme values, in {_bucket(far)} of the rows, make its range more "
            f"than {times} as wide as the span from its 1st to its 99th percentile; cuts and "
            f"GCP_robust go by this span. {_REMEDY}"
        )
    pairs = zip(ends, (low, high), strict=True)
    if any(_stands_apart(end, at, line, robust) for end, at in pairs):
        return (
            f"column {name!r}: its lowest or its highest value often stands for 'unknown', and "
            f"lies apart from the others. {_REMEDY}"
        )
    return ""


_REMEDY = (
    "If such values mean 'unknown', as 9999, -1 and 1900-01-01 often do, make them missing before "
    "anonymizing"
)
_TIMES = ((100, "100 times"), (10, "ten times"), (STRETCHED, "twice"))
_NINES = [float("9" * digits) for digits in range(2, 13)]
_CODES = frozenset([-1.0, -9.0, *_NINES, *(-each for each in _NINES)])
_MOMENTS = ("1900-01-01", "1970-01-01", "1899-12-3", "1753-01-01", "0001-01-01", "9999-12-31")


def _stands_apart(end: pa.Scalar, at: float, line: Floats, robust: float) -> bool:
    """Whether an end of a range is a usual code for "unknown", and far from all other values."""
    others = line[line != at]
    if not len(others):
        return False
    apart = np.abs(others - at).min() > _APART * robust
    if pa.types.is_temporal(end.type):
        return apart and str(end.cast(pa.string())).startswith(_MOMENTS)
    alone = at < 0 <= others.min() and len(np.unique(others)) >= _MANY
    return (apart or alone) and float(end.as_py()) in _CODES


def _bucket(share: float) -> str:
    """A share of rows, as far as a note tells it."""
    if share <= 2 / POINTS:
        return "at most 0.2 %"
    return "at most 1 %" if share <= 0.01 else "more than 1 %"


def _is_near(line: Floats) -> NDArray[np.bool_]:
    """Which of some ascending positions do not lie far beyond the middle 90 %."""
    low, high = line[list(_trimmed(line, 0.05))]
    if low == high:
        others = line[line != low]
        if not len(others):
            return np.ones(len(line), bool)
        ends = others[list(_trimmed(others, 0.25))]  # there may be few
        low, high = min(low, ends[0]), max(high, ends[1])
    with np.errstate(over="ignore"):
        reach = _FAR * (high - low)
    near: NDArray[np.bool_] = (line >= low - reach) & (line <= high + reach)
    return near


def _trimmed(line: Floats, share: float) -> tuple[int, int]:
    """The places of the first and the last position without a ``share`` on either side."""
    beyond = int(share * (len(line) - 1))
    return beyond, len(line) - 1 - beyond
