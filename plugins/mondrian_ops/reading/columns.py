"""The published columns of a release, read label by label: intervals and categories.

A column of a release has few distinct labels, so each is read once, and the rows by number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.errors import InputError
from mondrian_ops.verify.arrays import in_one
from mondrian_ops.verify.quoted_texts import as_texts, is_set, members_of, values_of
from mondrian_ops.verify.scales import LABELS_OF_INTERVALS, flags
from mondrian_ops.verify.spans import days_of, ends_in_order

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

HIDDEN = "*"
_TYPES = (pa.int64(), pa.float64(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"))


@dataclass(frozen=True)
class Intervals:
    """A column of intervals.

    ``low`` and ``high`` (rows,) are the least and the greatest value that a row may have, of one
    type: int64, float64, date32 or timestamp. Both are null where the value is missing or
    ``hidden`` (rows,); one of them, where the interval has no such end.
    """

    low: pa.Array
    high: pa.Array
    hidden: Flags

    @classmethod
    def of_labels(cls, name: str, labels: pa.ChunkedArray, whole: bool) -> Intervals:
        """The intervals that labels say; ``whole``: the values are whole numbers or days.

        Raises InputError where they are no intervals of numbers, dates or timestamps.
        """
        texts, row = _encoded(labels)
        parts = pc.extract_regex(texts, LABELS_OF_INTERVALS)
        low, high, close = (pc.struct_field(parts, part) for part in ("low", "high", "close"))
        hidden = pc.equal(texts, HIDDEN)
        single = pc.if_else(pc.or_(parts.is_valid(), hidden), None, texts)
        low = pc.coalesce(pc.if_else(pc.equal(low, "-inf"), None, low), single)
        high = pc.coalesce(pc.if_else(pc.equal(high, "inf"), None, high), single)
        lows, highs = _typed(name, low, high)
        if whole:
            lows, highs = _within(lows, highs, flags(pc.equal(close, ")")))
        return cls(lows.take(row), highs.take(row), flags(hidden)[row])

    @classmethod
    def of_calendar(cls, name: str, labels: pa.ChunkedArray) -> Intervals:
        """The days that units of the calendar have, ``2024-Q2``.

        Raises InputError where a label is none.
        """
        texts, row = _encoded(labels)
        hidden = flags(pc.equal(texts, HIDDEN))
        try:
            ends = [
                days_of(text) for text in texts.filter(pa.array(~hidden)).drop_null().to_pylist()
            ]
            days = pa.array(ends, pa.list_(pa.string(), 2)).flatten().cast(pa.date32())
        except (ValueError, pa.ArrowInvalid):
            raise _no_intervals(name) from None
        place = np.cumsum(~hidden & flags(texts.is_valid())) - 1
        shown = pa.array(place, mask=hidden | ~flags(texts.is_valid())).take(row)
        low, high = (days[at::2].take(shown) for at in (0, 1))
        return cls(low, high, hidden[row])

    @classmethod
    def of_bounds(
        cls,
        low: pa.ChunkedArray,
        high: pa.ChunkedArray,
        hidden: pa.ChunkedArray | None,
        whole: bool,
        open_: bool,
    ) -> Intervals:
        """The intervals that two typed columns publish, and a third that says what is ``hidden``.

        Without the third, as in releases of older versions, what is hidden looks as missing.
        ``open_``: they end before the upper end.
        """
        lows, highs = low.combine_chunks(), high.combine_chunks()
        if whole:
            lows, highs = _within(lows, highs, np.full(len(lows), open_))
        if hidden is None:
            return cls(lows, highs, np.zeros(len(lows), bool))
        return cls(lows, highs, flags(hidden.combine_chunks()))

    @property
    def middle(self) -> pa.Array:
        """(rows,) the value half way, float64 or of the type of moments; null without both ends."""
        low, high = _numbers(self.low), _numbers(self.high)
        middle = (low + high) / 2
        empty = pa.array(np.isnan(middle))
        if not pa.types.is_temporal(self.low.type):
            return pa.array(middle, mask=np.isnan(middle))
        return pc.if_else(empty, None, _of_ticks(_integers(np.floor(middle)), self.low.type))

    def drawn(self, draw: np.random.Generator) -> pa.Array:
        """(rows,) a value of each interval, each as likely as any other; null without both ends."""
        empty = pc.or_(self.low.is_null(), self.high.is_null())
        if pa.types.is_floating(self.low.type):
            low, high = (pc.if_else(empty, 0.0, each) for each in (self.low, self.high))
            drawn = pa.array(draw.uniform(low.to_numpy(), high.to_numpy()))
        else:
            low, high = (pc.if_else(empty, 0, _ticks(each)) for each in (self.low, self.high))
            ticks = draw.integers(low.to_numpy(), high.to_numpy(), endpoint=True)
            drawn = _of_ticks(ticks, self.low.type)
        return pc.if_else(empty, None, drawn)


@dataclass(frozen=True)
class Categories:
    """A column of single values, sets, prefixes and nodes of a hierarchy.

    ``domain``: the values, in the order of texts. A row's label is number ``label`` (rows,), -1
    where it is missing. ``members``: (labels,) the numbers of its values; of a hidden one, all.
    """

    domain: pa.Array
    label: Ints
    members: Sequence[Ints]

    @classmethod
    def of_labels(cls, labels: pa.ChunkedArray, kind: str, tree: Hierarchy | None) -> Categories:
        """What labels stand for: ``kind`` is the generalization's name, ``tree`` its hierarchy.

        Without its ``tree`` a node stands for itself, and so does a prefix.
        """
        texts, row = _encoded(labels)
        hidden, present = flags(pc.equal(texts, HIDDEN)), flags(texts.is_valid())
        known = [
            [] if is_hidden else members
            for is_hidden, members in zip(hidden, _values(texts, kind, tree), strict=True)
        ]
        values = sorted({value for members in known for value in members})
        numbers = {value: at for at, value in enumerate(values)}
        domain = pa.array(values, pa.string())
        everything = np.arange(len(domain))
        lists = [
            everything if is_hidden else np.array([numbers[each] for each in members], np.int64)
            for is_hidden, members in zip(hidden, known, strict=True)
        ]
        return cls(domain, np.where(present[row], row, -1), lists)

    @classmethod
    def in_order(cls, labels: pa.ChunkedArray, order: Sequence[str]) -> Categories:
        """Intervals of categories in an ``order``, ``[low, medium]``."""
        texts, row = _encoded(labels)
        place = {text: at for at, text in enumerate(order)}
        members: list[Ints] = []
        for text in texts.to_pylist():
            if text is None or text == HIDDEN:
                members.append(np.arange(len(order) if text else 0))
                continue
            low, high = (place[end] for end in ends_in_order(text))
            members.append(np.arange(low, high + 1))
        present = flags(texts.is_valid())
        return cls(pa.array(order, pa.string()), np.where(present[row], row, -1), members)

    @property
    def lists(self) -> pa.Array:
        """(rows,) lists of the values that each row may have; null where it is missing."""
        texts = self.domain.to_pylist()
        lists = [[texts[each] for each in members] for members in self.members]
        read = pa.array(lists, pa.list_(pa.string()))
        return read.take(pa.array(self.label, mask=self.label < 0))

    def shares(self) -> NDArray[np.float32]:
        """(rows, values): 1 where a row has the value, the share 1/n of a set of n; else 0."""
        of_label = np.zeros((len(self.members) + 1, len(self.domain)), np.float32)
        for at, members in enumerate(self.members):
            of_label[at, members] = 1 / max(1, len(members))
        return of_label[self.label]  # -1: the last, of the missing value

    def drawn(self, draw: np.random.Generator) -> pa.Array:
        """(rows,) a value of each row's; null where it is missing."""
        sizes = np.array([*map(len, self.members), 0])
        if not sizes.any():
            return pa.nulls(len(self.label), pa.string())
        starts = np.cumsum(sizes) - sizes
        size = sizes[self.label]
        place = starts[self.label] + np.floor(draw.random(len(size)) * size).astype(np.int64)
        value = np.concatenate([*self.members, np.zeros(1, np.int64)])[place]
        return self.domain.take(pa.array(value, mask=size == 0))


def _values(texts: pa.Array, kind: str, tree: Hierarchy | None) -> list[list[str]]:
    """(labels,) the values that each label says."""
    if tree is not None:
        below = _leaves(tree)
        return [below.get(text, [text]) if text is not None else [] for text in texts.to_pylist()]
    single = values_of(texts).to_pylist()
    lists: list[list[str]] = [[] if text is None else [text] for text in single]
    if kind == "set":
        sets = is_set(texts)
        found = members_of(texts.filter(pa.array(sets))).to_pylist()
        for at, members in zip(np.flatnonzero(sets).tolist(), found, strict=True):
            lists[at] = members
    return lists


def _leaves(tree: Hierarchy) -> dict[str, list[str]]:
    """By label of a hierarchy, the leaves below its nodes."""
    below: dict[str, list[str]] = {}
    for leaf, path in zip(tree.leaves, tree.ancestors.T.tolist(), strict=True):
        for label in dict.fromkeys(tree.labels[node] for node in path):
            below.setdefault(label, []).append(leaf)
    return below


def _encoded(labels: pa.ChunkedArray) -> tuple[pa.Array, Ints]:
    """The distinct labels, a missing one among them, and the number of each row's, (rows,)."""
    whole = in_one(as_texts(labels)).cast(pa.string())
    encoded = whole.dictionary_encode(null_encoding="encode")
    return encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)


def _typed(name: str, low: pa.Array, high: pa.Array) -> tuple[pa.Array, pa.Array]:
    for type_ in _TYPES:
        try:
            return low.cast(type_), high.cast(type_)
        except pa.ArrowInvalid:
            continue
    raise _no_intervals(name)


def _no_intervals(name: str) -> InputError:
    return InputError(
        f"column {name!r}: its labels are no intervals of numbers, dates or timestamps; leave it "
        "out, or read the release's files as they are"
    )


def _within(low: pa.Array, high: pa.Array, open_: Flags) -> tuple[pa.Array, pa.Array]:
    """The least and the greatest whole number or day of intervals, ``open_`` where they end before
    the upper end."""
    if pa.types.is_timestamp(low.type):
        return low, high
    if not pa.types.is_floating(low.type):  # exact, also beyond 2^53
        last = pc.subtract(_ticks(high), pa.array(open_.astype(np.int64)))
        return low, last.cast(_width(high.type)).cast(high.type)
    first, last = np.ceil(_numbers(low)), np.floor(_numbers(high))
    last = np.where(open_, np.ceil(_numbers(high)) - 1, last)
    least, greatest = (
        pc.if_else(pa.array(np.isnan(line)), None, pa.array(_integers(line)))
        for line in (first, last)
    )
    return least, greatest


def _integers(line: NDArray[np.float64]) -> Ints:
    return np.nan_to_num(line).astype(np.int64)


def _numbers(values: pa.Array) -> NDArray[np.float64]:
    """Values as float64, moments as their ticks; NaN where there is none."""
    if not pa.types.is_floating(values.type):
        values = _ticks(values)
    numbers: NDArray[np.float64] = values.cast(pa.float64(), safe=False).to_numpy(
        zero_copy_only=False
    )
    return numbers


def _ticks(values: pa.Array) -> pa.Array:
    """Whole numbers, dates or timestamps as int64."""
    return values.cast(_width(values.type)).cast(pa.int64())


def _of_ticks(ticks: Ints, type_: pa.DataType) -> pa.Array:
    """Whole numbers as values of a type: int64, or that of moments."""
    return pa.array(ticks).cast(_width(type_)).cast(type_)


def _width(type_: pa.DataType) -> pa.DataType:
    """The type of whole numbers that Arrow casts a type to, and back."""
    return pa.int32() if pa.types.is_date32(type_) else pa.int64()
