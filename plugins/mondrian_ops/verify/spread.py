"""How close to one another the sensitive numbers and dates of each class are, as written.

Written for the independent check: it measures the published values themselves, and shares no code
with the cutting, which compares codes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.errors import PrivacyError
from mondrian_ops.job.widths import DEFAULT_DATES, DEFAULT_NUMBERS, Width
from mondrian_ops.late_methods import dataclass
from mondrian_ops.verify.native.value_figures import ends_of_ranks

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_ROUNDING = 1e-12  # of a width: 0.4 and 0.1 lie within 0.3


@dataclass(frozen=True)
class SensitiveCount:
    """How often each value of a sensitive column occurs in each class.

    ``values`` are the distinct values in no particular order, as `ColumnValues` lists them; value
    ``i`` has the code ``i + 1``, the missing value 0. ``classes``, ``codes`` and ``counts``
    (pairs,) int64 list the pairs of a class and a code that occur, by ascending class. ``totals``
    (values + 1,) int64 are the counts by code over the whole release.
    """

    values: pa.Array[Any]
    classes: Ints
    codes: Ints
    counts: Ints
    totals: Ints


def default_width(type_: pa.DataType) -> Width | None:
    """The width by which the report measures values of a type; None where there is none."""
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        return DEFAULT_DATES
    is_number = pa.types.is_integer(type_) or pa.types.is_floating(type_)
    return DEFAULT_NUMBERS if is_number or pa.types.is_decimal(type_) else None


def fullest(sensitive: SensitiveCount, classes: int, name: str, width: Width) -> Ints:
    """(classes,) the rows of each class that the fullest interval of a width has.

    The missing value is an interval of its own. Raises PrivacyError where the values of the column
    have no such width.
    """
    line = _line(sensitive.values, name, width)
    most = np.zeros(classes, np.int64)
    present = sensitive.codes.astype(bool)
    most[sensitive.classes[~present]] = sensitive.counts[~present]
    order = np.argsort(line, kind="stable")
    rank = np.empty(len(line), np.int64)
    rank[order] = np.arange(len(line))
    ascending = line[order]
    # Each interval ends at a value, and begins at the least value within the width below it.
    begin = np.searchsorted(ascending, _lowest(ascending, width, sensitive.values.type))
    of_class, counts = sensitive.classes[present], sensitive.counts[present]
    ranks = rank[sensitive.codes[present] - 1]
    keys = of_class * len(line) + ranks
    by_key = np.argsort(keys, kind="stable")
    keys, of_class, ranks = keys[by_key], of_class[by_key], ranks[by_key]
    first = np.searchsorted(keys, keys - ranks + begin[ranks])
    after = np.cumsum(counts[by_key])
    before = np.concatenate([[0], after])[first]
    np.maximum.at(most, of_class, after - before)
    return most


def most_persons(
    values: pa.Array[Any],
    classes: Ints,
    persons: Ints,
    codes: Ints,
    name: str,
    width: Width,
) -> Ints:
    """(classes,) the most persons of a class who have values in one interval of a width.

    ``classes``, ``persons``, ``codes`` (n,): whose persons have which of the ``values``, some may
    be listed more than once; classes are numbered from 0 on. Raises PrivacyError where the values
    of the column have no such width.
    """
    line = _line(values, name, width)
    ascending, rank = np.unique(line, return_inverse=True)
    begin = np.searchsorted(ascending, _lowest(ascending, width, values.type))
    had = np.unique(np.stack([classes, persons, rank[codes]]), axis=1)
    of_class, person, own = had
    # Each interval ends at a value of the class. A person is counted by the highest of the own
    # values in it: from where that is the end, to where the next one is, or it is out of reach.
    after = np.searchsorted(begin, own, side="right")
    follows = np.append((of_class[1:] == of_class[:-1]) & (person[1:] == person[:-1]), False)
    after = np.where(follows, np.minimum(after, np.append(own[1:], 0)), after)
    ends = np.unique(np.stack([of_class, own]), axis=1)
    place = ends[0] * (len(ascending) + 1) + ends[1]
    low, high = (
        np.searchsorted(place, of_class * (len(ascending) + 1) + at) for at in (own, after)
    )
    joins, leaves = (np.bincount(at, minlength=len(place) + 1) for at in (low, high))
    most = np.zeros(int(classes.max(initial=-1)) + 1, np.int64)
    np.maximum.at(most, ends[0], np.cumsum(joins - leaves)[:-1])
    return most


def narrow(sensitive: SensitiveCount, classes: int, name: str, width: Width) -> NDArray[np.bool_]:
    """(classes,) whether all values of a class lie within a width of one another, if it has any."""
    line = _line(sensitive.values, name, width)
    order = np.argsort(line, kind="stable")
    ranks = np.full(len(line) + 1, -1, np.int32)
    ranks[1 + order] = np.arange(len(line))
    low, high = ends_of_ranks(sensitive.classes, sensitive.codes, classes, ranks)
    ascending = line[order]
    lowest = _lowest(ascending, width, sensitive.values.type)
    result = high >= 0
    result[result] = ascending[low[result]] >= lowest[high[result]]
    return result


def _lowest(high: Floats, width: Width, type_: pa.DataType) -> Floats:
    """The lowest number that lies within a width of each of some numbers, and not above it."""
    if width.unit == "share":
        rest = 1 - width.amount * (1 + _ROUNDING)
        return np.minimum(high * rest, high / rest)  # the second is that of a negative number
    lowest: Floats = high - width.amount * _per_unit(type_, width) * (1 + _ROUNDING)
    return lowest


def _line(values: pa.Array[Any], name: str, width: Width) -> Floats:
    """(values,) the values as numbers: days of dates, ticks of times."""
    type_ = values.type
    of_time = pa.types.is_date(type_) or pa.types.is_timestamp(type_) or pa.types.is_time(type_)
    number = pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    if len(values) and not (of_time if width.is_of_time else number):
        raise PrivacyError(
            f"column {name!r} is {type_}, whose values do not have the width {width.text}; the "
            "release cannot be checked"
        )
    if of_time:
        is_short = pa.types.is_date32(type_) or pa.types.is_time32(type_)
        values = values.cast(pa.int32() if is_short else pa.int64())
    line: Floats = np.asarray(values.cast(pa.float64(), safe=False))
    return line


def _per_unit(type_: pa.DataType, width: Width) -> float:
    """How much of the column one of the width's unit is: a second, or 1."""
    if not width.is_of_time:
        return 1.0
    if pa.types.is_date32(type_):
        return 1 / 86_400
    return float(_TICKS["ms" if pa.types.is_date64(type_) else type_.unit])
