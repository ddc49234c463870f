"""The lines on which the values of columns lie, by which published intervals are read and measured.

A scale reads the ends of intervals as a reader of the release does, says which values lie between
them, and how long an interval is. Like `release_labels`, it shares no code with encoding, cutting
and generalizing.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_STAR = "*"
LABELS_OF_INTERVALS = r"^[\[(](?P<low>.+), (?P<high>.+)(?P<close>[\])])$"
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # per second


class Ends(NamedTuple):
    """The intervals that labels are, (labels,) each; an end is null where it is unlimited.

    ``missing``: the label is the missing value, ``star``: it covers all values, missing or not.
    ``single``: it is one value. ``closed``: the upper end belongs to the interval.
    """

    low: pa.Array
    high: pa.Array
    missing: Flags
    star: Flags
    single: Flags
    closed: Flags


class Scale:
    """The line on which the values of a column lie; intervals are tight, with both ends.

    ``low`` and ``high``: the positions between which the whole dataset lies.
    """

    closed = True  # bounds end with the greatest value, not with the least above it
    closing = 0.0  # by how much a closed interval is longer than the distance of its ends

    def __init__(self, type_: pa.DataType, domain: pa.Array) -> None:
        self.type = type_
        self.low, self.high = self._reach(domain) if len(domain) else (0.0, 0.0)

    @property
    def width(self) -> float:
        """The length of the range of the whole dataset."""
        return self.high - self.low

    def values(self, values: pa.Array) -> pa.Array:
        """Values of the column as they are compared with ends of intervals."""
        return _comparable(values, self.type)

    def ends(self, texts: pa.Array) -> pa.Array:
        """The ends of intervals from their texts; null stays null."""
        return _read(texts, self.type)

    def bounds(self, bounds: pa.Array) -> pa.Array:
        """The ends of intervals from typed bounds."""
        return _comparable(bounds, self.type)

    def positions(self, values: pa.Array) -> Floats:
        """The positions of ends, to measure distances; NaN for null."""
        return _line(values)

    def of_bounds(self, least: pa.Array, greatest: pa.Array, hidden: pa.Array) -> Ends:
        """The intervals between typed bounds, or values that are missing or ``hidden``.

        Raises ArrowInvalid where what is hidden has bounds.
        """
        low, high = self.bounds(least), self.bounds(greatest)
        star, nothing = flags(hidden), nulls(low) & nulls(high)
        if np.any(star & ~nothing):
            raise pa.ArrowInvalid("what is hidden has bounds")
        missing = nothing & ~star
        closed = np.full(len(low), self.closed)
        single = flags(pc.equal(low, high)) & closed
        return Ends(low, high, missing, star, single, closed)

    def of_texts(self, labels: pa.Array) -> Ends:
        """The intervals, or single values, that texts are; raises ArrowInvalid if one is none."""
        missing, star = nulls(labels), flags(pc.equal(labels, _STAR))
        parts = pc.extract_regex(labels, LABELS_OF_INTERVALS)
        is_single = nulls(parts) & ~missing & ~star
        value = _read(pc.if_else(pa.array(is_single), labels, None), self.type)
        value = self.values(value)
        if len(parts) == parts.null_count:
            return Ends(value, value, missing, star, is_single, is_single)
        low, high, close = (pc.struct_field(parts, name) for name in ("low", "high", "close"))
        low = self.ends(pc.if_else(pc.equal(low, "-inf"), None, low))
        high = self.ends(pc.if_else(pc.equal(high, "inf"), None, high))
        single = pa.array(is_single)
        return Ends(
            pc.if_else(single, value, low),
            pc.if_else(single, value, high),
            missing,
            star,
            is_single,
            is_single | flags(pc.equal(close, "]")),
        )

    def _reach(self, domain: pa.Array) -> tuple[float, float]:
        line = self.positions(self.values(domain))
        return float(line[0]), float(line[-1])


class _NumberScale(Scale):
    """Compares numbers as floats, and moments as days since 1970-01-01, whose ends are exact."""

    def values(self, values: pa.Array) -> pa.Array:
        values = _comparable(values, self.type)
        if not pa.types.is_temporal(self.type):
            return values.cast(pa.float64(), safe=False)
        per_day = 1
        if not pa.types.is_date32(self.type):
            per_day = 86_400 * _TICKS[getattr(self.type, "unit", "ms")]
        ticks = values.cast(pa.int32() if pa.types.is_date32(self.type) else pa.int64())
        days = ticks.fill_null(0).to_numpy() // per_day
        return pa.array(days.astype(np.float64), mask=nulls(values))

    def ends(self, texts: pa.Array) -> pa.Array:
        if pa.types.is_temporal(self.type):
            return texts.cast(pa.date32()).cast(pa.int32()).cast(pa.float64())
        return texts.cast(pa.float64())

    def bounds(self, bounds: pa.Array) -> pa.Array:
        days = pa.types.is_date32(bounds.type)
        return (bounds.cast(pa.int32()) if days else bounds).cast(pa.float64())

    def _bins(self, domain: pa.Array, step: float, origin: float) -> tuple[int, int, Fraction]:
        """The numbers of the first and the last interval of a width in use, and where 0 begins."""
        first, last = self.values(domain).to_numpy(zero_copy_only=False)[[0, -1]].tolist()
        wide, start = Fraction(str(step)), Fraction(str(origin))
        low, high = ((Fraction(str(value)) - start) // wide for value in (first, last))
        return int(low), int(high), start


class GridScale(_NumberScale):
    """Half-open intervals between the edges of a grid."""

    closed = False

    def __init__(self, type_: pa.DataType, domain: pa.Array, step: float, origin: float) -> None:
        self._step, self._origin = step, origin
        super().__init__(type_, domain)

    def _reach(self, domain: pa.Array) -> tuple[float, float]:
        low, high, start = self._bins(domain, self._step, self._origin)
        step = Fraction(str(self._step))
        return float(start + low * step), float(start + (high + 1) * step)


class LadderScale(_NumberScale):
    """The intervals of a ladder; the range is that of the widest of them in use."""

    closing = 1.0  # [16, 20] are five whole numbers

    def __init__(self, type_: pa.DataType, domain: pa.Array, widest: float, origin: float) -> None:
        self._widest, self._origin = widest, origin
        super().__init__(type_, domain)

    def _reach(self, domain: pa.Array) -> tuple[float, float]:
        low, high, _ = self._bins(domain, self._widest, self._origin)
        return 0.0, float((high - low + 1) * Fraction(str(self._widest)))


class BoundedScale(Scale):
    """Cells between the boundaries of a series; the first and the last have one end only."""

    def __init__(self, type_: pa.DataType, domain: pa.Array, boundaries: pa.Array) -> None:
        self._boundaries = _comparable(boundaries, type_)
        self.closed = pa.types.is_integer(type_) or pa.types.is_date(type_)
        super().__init__(type_, domain)

    def _reach(self, domain: pa.Array) -> tuple[float, float]:
        ends = self.values(domain)
        low, high = super()._reach(domain)
        edges = self.positions(self._boundaries)
        ranks = ranked(pa.concat_arrays([self._boundaries, ends]))
        of_edges, of_ends = ranks[: len(edges)], ranks[len(edges) :]
        below = int(np.count_nonzero(of_edges <= of_ends[0]))
        upto = int(np.count_nonzero(of_edges <= of_ends[-1]))
        if below:
            low = float(edges[below - 1])
        if upto < len(edges):
            high = float(edges[upto]) - (self._least_step if self.closed else 0.0)
        return low, high

    @property
    def _least_step(self) -> float:
        return 86_400_000.0 if pa.types.is_date64(self.type) else 1.0


# Values


def plain(type_: pa.DataType) -> pa.DataType:
    """The type of values that are compared: no dictionary, no half floats."""
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    return pa.float32() if pa.types.is_float16(type_) else type_


def _comparable(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Values in a type; NaN is missing, and there is one zero."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if values.type != type_:
        values = values.cast(type_)
    if pa.types.is_floating(type_):
        numbers = values.to_numpy(zero_copy_only=False) + type_.to_pandas_dtype()(0.0)
        values = pa.array(numbers, type_, mask=np.isnan(numbers))
    return values


def written(values: pa.Array, pointed: bool = False) -> pa.Array:
    """The values as they are written where a class has one of them.

    ``pointed``: whole floating-point numbers end in ``.0``.
    """
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_floating(values.type):
        texts = _comparable(values, plain(values.type)).cast(pa.string())
        return pc.replace_substring_regex(texts, r"^(-?[0-9]+)$", r"\1.0") if pointed else texts
    return values if pa.types.is_string(values.type) else values.cast(pa.string())


def _read(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    """The values of a type that texts stand for; raises ArrowInvalid if one stands for none."""
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), type_)
    if pa.types.is_time(type_):  # Arrow reads no times of day
        moments = pc.binary_join_element_wise("1970-01-01", texts, " ")
        return moments.cast(pa.timestamp(type_.unit)).cast(type_)
    if pa.types.is_timestamp(type_) and type_.tz:
        return _zoned(texts, type_)
    return _comparable(texts.cast(type_), type_)


def _zoned(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    """Moments with a zone. Before 1900 an offset has seconds, which the text does not show."""
    read = texts.cast(type_)
    if pc.all(pc.equal(read.cast(pa.string()), texts)).as_py() is not False:
        return read
    ticks = read.cast(pa.int64())
    offset = pc.subtract(pc.local_timestamp(read).cast(pa.int64()), ticks)
    minute = 60 * _TICKS[type_.unit]
    offsets = offset.fill_null(0).to_numpy()
    for unseen in (np.fmod(offsets, minute), np.mod(offsets, minute)):
        moved = pc.subtract(ticks, pa.array(unseen)).cast(type_)
        same = pc.fill_null(pc.equal(moved.cast(pa.string()), texts), False)
        read = pc.if_else(same, moved, read)
    return read


def _line(values: pa.Array) -> Floats:
    """Values as numbers, moments as days or ticks."""
    if pa.types.is_date32(values.type) or pa.types.is_time32(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_temporal(values.type):
        values = values.cast(pa.int64())
    numbers: Floats = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def ranked(values: pa.Array) -> Ints:
    """(values,) numbers from 1 that ascend with the values, 0 for the missing one."""
    encoded = values.dictionary_encode(null_encoding="encode")
    order = pc.array_sort_indices(encoded.dictionary, null_placement="at_start").to_numpy()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) + (values.null_count == 0)
    places: Ints = encoded.indices.to_numpy()
    return rank[places]


def nulls(values: pa.Array) -> Flags:
    """Which values are missing."""
    missing: Flags = values.is_null().to_numpy(zero_copy_only=False)
    return missing


def flags(values: pa.Array) -> Flags:
    """Truth values, false where they are unknown."""
    known: Flags = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return known
