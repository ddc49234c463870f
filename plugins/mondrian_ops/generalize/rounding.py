"""Round numbers and dates between two values, which may be shown in place of a cut.

A value is round if it lies on a coarse grid: multiples of a power of ten, first days of centuries,
decades, years and months, midnights, full hours, minutes and seconds. Every grid contains the
coarser ones of its kind. `mondrian_ops.cut.shown_conditions` relies on it: two different round
values are at least the smaller of their steps apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from mondrian_ops.data.encoding import ticks_per_day
from mondrian_ops.data.values import json_value, read_value

_SECONDS_PER_DAY = 86_400
_CENTURY, _DECADE = 100, 10
_HOUR, _MINUTE = 3_600, 60
# The years 1 to 9999, whose text Arrow reads.
_FIRST_SECOND = int(np.datetime64("0001-01-01", "s").astype(np.int64))
_LAST_SECOND = int(np.datetime64("9999-12-31T23:59:59", "s").astype(np.int64))

Json: TypeAlias = int | float | str


class Round(NamedTuple):
    """A value on a grid, and its neighbours there; all as JSON.

    ``low`` and ``high`` are one step below and above ``value``; None where the range of the
    column's type ends before.
    """

    value: Json
    low: Json | None
    high: Json | None


def round_between(low: pa.Scalar, high: pa.Scalar) -> Round | None:
    """The value above ``low`` and below ``high`` on the coarsest grid; of several the least.

    Both are of one type. None where there is no such value, or they are neither numbers, dates nor
    timestamps.
    """
    type_ = low.type
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        return _moment_between(low, high)
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return _number_between(low, high)
    return None


def _number_between(low: pa.Scalar, high: pa.Scalar) -> Round | None:
    ends = low.as_py(), high.as_py()
    if not all(map(math.isfinite, ends)):
        return None
    above, below = map(Fraction, ends)
    if above >= below:
        return None
    if above < 0 < below:  # 0 lies on every grid
        return Round(_number("0", low.type), None, None)
    for power in _powers(above, below, low.type):
        least = above // Fraction(10) ** power + 1
        for times in (least, least + 1):  # rounded to the type, the first may be `low`
            value, *beside = (_number(f"{times + by}e{power}", low.type) for by in (0, -1, 1))
            if value is not None and above < _exact(value, low.type) < below:
                return Round(value, *beside)
    return None


def _exact(value: Json, type_: pa.DataType) -> Fraction:
    return Fraction(read_value(value, type_).as_py())


def _powers(above: Fraction, below: Fraction, type_: pa.DataType) -> Iterator[int]:
    """The powers of ten to try, the largest first; the last have several multiples in range."""
    first = _magnitude(max(abs(above), abs(below)))
    last = _magnitude(below - above) - 2
    if pa.types.is_decimal(type_):
        last = max(last, -type_.scale)
    yield from range(first, last - 1, -1)


def _magnitude(value: Fraction) -> int:
    """The largest power of ten that is at most ``value``, or the one above it."""
    return math.floor(math.log10(value.numerator) - math.log10(value.denominator)) + 1


def _number(text: str, type_: pa.DataType) -> Any:
    """A decimal number as JSON; None where the type does not hold it."""
    if pa.types.is_floating(type_):
        value = float(text)
        return value if abs(value) <= float(np.finfo(type_.to_pandas_dtype()).max) else None
    if pa.types.is_integer(type_):
        value, limits = int(Decimal(text)), np.iinfo(type_.to_pandas_dtype())
        return value if limits.min <= value <= limits.max else None
    exact = Fraction(text)
    holds = abs(exact) < 10 ** (type_.precision - type_.scale)
    return format(Decimal(text), "f") if holds else None


def _moment_between(low: pa.Scalar, high: pa.Scalar) -> Round | None:
    type_ = low.type
    days = pa.types.is_date32(type_)
    ticks = pa.int32() if days else pa.int64()
    above, below = (end.cast(ticks).as_py() for end in (low, high))
    per_day = 1 if days else ticks_per_day(type_)
    second = Fraction(per_day, _SECONDS_PER_DAY)  # in ticks

    def moment(seconds: int) -> Any:
        if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
            return None
        try:
            return json_value(pa.scalar(int(seconds * second), ticks).cast(type_))
        except OverflowError:  # nanoseconds end in 2262
            return None

    for value, *ends in _moments(above // second, not pa.types.is_timestamp(type_)):
        if value * second < below:
            return Round(moment(value), *map(moment, ends))
    return None


def _moments(above: int, days_only: bool) -> Iterator[tuple[int, int, int]]:
    """The first moment after a second on each grid, coarsest first, with its neighbours.

    All in seconds since 1970-01-01.
    """
    at = np.datetime64(above, "s")
    for years in (_CENTURY, _DECADE, 1):
        number = (int(at.astype("M8[Y]").astype(np.int64)) + 1970) // years + 1
        starts = [np.datetime64((number + by) * years - 1970, "Y") for by in (0, -1, 1)]
        yield _seconds(starts)
    month = int(at.astype("M8[M]").astype(np.int64)) + 1
    yield _seconds([np.datetime64(month + by, "M") for by in (0, -1, 1)])
    for unit in (_SECONDS_PER_DAY, *(() if days_only else (_HOUR, _MINUTE, 1))):
        start = (above // unit + 1) * unit
        yield start, start - unit, start + unit


def _seconds(moments: Sequence[np.datetime64]) -> tuple[int, int, int]:
    value, low, high = (int(moment.astype("M8[s]").astype(np.int64)) for moment in moments)
    return value, low, high
