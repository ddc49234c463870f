"""Which classes of a release a person may be in: those whose published values cover the person's.

This module shares no code with the cutting and the generalizing. It compares the published values
of the quasi-identifiers with those of a person.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, takewhile
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.errors import InputError
from mondrian_ops.job.quasi_identifier import QuasiIdentifier
from mondrian_ops.verify import spans
from mondrian_ops.verify.arrays import decoded
from mondrian_ops.verify.loss import columns_of
from mondrian_ops.verify.quoted_texts import as_texts, is_set, members_of, values_of
from mondrian_ops.verify.scales import flags

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_ANY = "*"


class _Intervals:
    """Numbers, dates and times: the ends of each published value; None for no end.

    ``open_``: the interval ends before the second; ``missing``: it stands for the missing value;
    ``all_``: for all values, the missing one too.
    """

    published: Ints

    def __init__(
        self,
        values: pa.Array,
        least: pa.Array,
        greatest: pa.Array,
        *,
        open_: Mask,
        missing: Mask,
        all_: Mask,
    ) -> None:
        self._values, self._is_missing = _numbers(values), _nulls(values)
        self._least, self._no_least = _numbers(least), _nulls(least)
        self._greatest, self._no_greatest = _numbers(greatest), _nulls(greatest)
        self._open, self._missing, self._all = open_, missing, all_

    def covers(self, value: int, published: Ints) -> Mask:
        """Whether some ``published`` values, by number, may be that of a person's ``value``."""
        missing, all_ = self._missing[published], self._all[published]
        if self._is_missing[value]:
            either: Mask = missing | all_
            return either
        number, greatest = self._values[value], self._greatest[published]
        begins = self._no_least[published] | (self._least[published] <= number)
        ends = np.where(self._open[published], number < greatest, number <= greatest)
        ends |= self._no_greatest[published]
        within: Mask = (begins & ends & ~missing) | all_
        return within


class _Texts:
    """Prefixes, sets and hierarchies: the texts that each value may be published as."""

    published: Ints

    def __init__(self, texts: Sequence[str | None], may_be: Sequence[Iterable[str | None]]) -> None:
        numbers = {text: at for at, text in enumerate(texts)}
        self._size, self._numbers, self._may_be = len(texts), numbers, may_be

    def covers(self, value: int, published: Ints) -> Mask:
        """Whether some ``published`` values, by number, may be that of a person's ``value``."""
        fits = np.zeros(self._size, np.bool_)
        numbers = (self._numbers.get(text) for text in (*self._may_be[value], _ANY))
        fits[[number for number in numbers if number is not None]] = True
        covered: Mask = fits[published]
        return covered


Coverage: TypeAlias = _Intervals | _Texts
"""The published values of a quasi-identifier, and the values of persons, both numbered.

``published`` (classes,) int64: the number of each class' value.
"""


def coverage(
    quasi: QuasiIdentifier,
    published: Mapping[str, pa.Array],
    values: pa.Array,
    tree: Hierarchy | None = None,
) -> Coverage:
    """The classes' ``published`` values, (classes,) by column, and some distinct ``values``.

    Raises InputError where the published values cannot be read as values of this type.
    """
    name = quasi.name
    try:
        if name not in published:
            schema = pa.schema({each: labels.type for each, labels in published.items()})
            ends = (published[each] for each in columns_of(name, schema))
            return _of_bounds(values, *ends)
        encoded = (
            as_texts(published[name]).cast(pa.string()).dictionary_encode(null_encoding="encode")
        )
        texts = encoded.dictionary.to_pylist()
        found = _of_texts(quasi, texts, values, tree)
        found.published = encoded.indices.to_numpy().astype(np.int64)
    except (pa.ArrowException, KeyError, ValueError):
        raise InputError(
            f"column {name!r}: its published values cannot be read as generalized {values.type}"
        ) from None
    return found


def fitting(columns: Sequence[Coverage], places: NDArray[np.int64]) -> Iterator[Ints]:
    """The classes that cover each of some places, given as the numbers of their values.

    Sort the ``places`` (places, columns): what fits the first values is kept for the next place.
    """
    path: list[tuple[int, Ints]] = []
    for place in places.tolist():
        pairs = zip(path, place, strict=False)
        same = len([*takewhile(bool, (known == value for (known, _), value in pairs))])
        del path[same:]
        for column, value in zip(columns[same:], place[same:], strict=True):
            classes = path[-1][1] if path else np.arange(len(column.published))
            path.append((value, classes[column.covers(value, column.published[classes])]))
        yield path[-1][1]


def _of_texts(
    quasi: QuasiIdentifier, texts: list[str | None], values: pa.Array, tree: Hierarchy | None
) -> Coverage:
    kind = quasi.generalization
    if quasi.named_ladder in spans.KINDS:
        return _Texts(texts, _spans(values.cast(pa.string()), texts, quasi.named_ladder))
    if quasi.order is not None:
        return _Texts(texts, _in_order(values.cast(pa.string()).to_pylist(), texts, quasi.order))
    is_text = any(is_one(values.type) for is_one in _TEXTS)
    is_widths = quasi.widths and kind != "prefix"
    if is_widths or kind == "interval" or (kind is None and not is_text):
        least, greatest, open_ = _read(texts, values.type)
        missing = np.array([text is None for text in texts], np.bool_)
        all_ = np.array([text == _ANY for text in texts], np.bool_)
        return _Intervals(values, least, greatest, open_=open_, missing=missing, all_=all_)
    own = values.cast(pa.string()).to_pylist()
    if tree is not None:
        return _Texts(texts, _nodes(own, tree))
    if kind == "prefix" or (kind is None and any(map(_is_prefix, texts))):  # see Profile.resolved
        return _Texts(texts, _prefixes(own, texts))
    return _Texts(texts, _sets(own, texts))


def _of_bounds(
    values: pa.Array, least: pa.Array, greatest: pa.Array, hidden: pa.Array | None = None
) -> Coverage:
    """In releases of older versions two missing bounds stand for the missing value, or for all."""
    low, high = (each.cast(values.type) for each in (least, greatest))
    never = np.zeros(len(least), np.bool_)
    nothing = _nulls(low) & _nulls(high)
    all_ = nothing if hidden is None else nothing & flags(decoded(hidden))
    found = _Intervals(values, low, high, open_=never, missing=nothing & ~all_, all_=all_)
    found.published = np.arange(len(least))
    return found


def _read(texts: Sequence[str | None], type_: pa.DataType) -> tuple[pa.Array, pa.Array, Mask]:
    """The ends of published intervals, and whether they end before the second."""
    least, greatest, open_ = zip(*map(_ends_of, texts), strict=True)
    return _values(least, type_), _values(greatest, type_), np.array(open_, np.bool_)


_NO_END = {"(-inf": None, "inf)": None}


def _ends_of(text: str | None) -> tuple[str | None, str | None, bool]:
    if text is None or text == _ANY:
        return None, None, False
    low, comma, high = text.partition(", ")
    if not comma:
        return text, text, False
    return _NO_END.get(low, low[1:]), _NO_END.get(high, high[:-1]), high.endswith(")")


def _values(texts: Sequence[str | None], type_: pa.DataType) -> pa.Array:
    if pa.types.is_time(type_):  # Arrow casts texts to timestamps, but not to times of day
        moments = pa.array([text and f"1970-01-01 {text}" for text in texts], pa.string())
        return moments.cast(pa.timestamp(type_.unit)).cast(type_)
    found = pa.array(texts, pa.string())
    try:
        return found.cast(type_)
    except pa.ArrowInvalid:  # the edges of a grid are no whole numbers
        return found.cast(pa.float64())


def _numbers(values: pa.Array) -> NDArray[Any]:
    """Numbers in the order of the values: integers of moments, floats of decimals."""
    if pa.types.is_temporal(values.type):
        values = values.view(_TICKS[values.type.bit_width])
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    numbers: NDArray[Any] = values.fill_null(0).to_numpy()
    return numbers


_TEXTS = pa.types.is_string, pa.types.is_large_string, pa.types.is_boolean, pa.types.is_null
_TICKS = {32: pa.int32(), 64: pa.int64()}


def _nulls(values: pa.Array) -> Mask:
    nulls: Mask = pc.is_null(values, nan_is_null=True).to_numpy(zero_copy_only=False)
    return nulls


def _nodes(own: Sequence[str | None], tree: Hierarchy) -> list[Iterable[str | None]]:
    leaf = {text: at for at, text in enumerate(tree.leaves)}
    parent = tree.parent.tolist()
    found: list[Iterable[str | None]] = []
    for text in own:
        node = leaf.get(text or "", -1)
        labels = [tree.labels[node]] if node >= 0 else [text]
        while node >= 0 and (node := parent[node]) >= 0:
            labels.append(tree.labels[node])
        found.append(labels)
    return found


def _spans(own: pa.Array, texts: Sequence[str | None], kind: str) -> Sequence[Iterable[str | None]]:
    keys = np.array([spans.key_of(text or "", kind) for text in own.to_pylist()])
    found: list[list[str | None]] = [[None] if text is None else [] for text in own.to_pylist()]
    for text in texts:
        if text is None or text == _ANY:
            continue
        first, last = spans.KINDS[kind](text)
        for value in np.flatnonzero((first <= keys) & (keys <= last)).tolist():
            found[value].append(text)
    return found


def _in_order(
    own: Sequence[str | None], texts: Sequence[str | None], order: Sequence[str]
) -> Sequence[Iterable[str | None]]:
    place = {text: at for at, text in enumerate(order)}
    covering: dict[str | None, list[str | None]] = {None: [None]}
    for text in texts:
        if text is not None and text != _ANY:
            low, high = map(place.__getitem__, spans.ends_in_order(text))
            for value in order[low : high + 1]:
                covering.setdefault(value, []).append(text)
    return [covering.get(value, []) for value in own]


def _is_prefix(text: str | None) -> bool:
    return text is not None and text != _ANY and text.endswith(_ANY)


def _prefixes(own: Sequence[str | None], texts: Sequence[str | None]) -> list[Iterable[str | None]]:
    by_stem: dict[str, list[str]] = {}
    for text in texts:
        if text is not None and text.endswith(_ANY):
            by_stem.setdefault(text.rstrip(_ANY), []).append(text)
    single = _single(texts)
    found: list[Iterable[str | None]] = []
    for value in own:
        stems = [] if value is None else accumulate(value, initial="")
        wild = (text for stem in stems for text in by_stem.get(stem, ()))
        wide_enough = (text for text in wild if len(text) >= len(str(value)))
        found.append([*single.get(value, ()), *wide_enough])
    return found


def _sets(own: Sequence[str | None], texts: Sequence[str | None]) -> list[Iterable[str | None]]:
    published = pa.array(texts, pa.string())
    sets = published.filter(pa.array(is_set(published)))
    by_member: dict[str | None, list[str]] = {}
    for text, members in zip(sets.to_pylist(), members_of(sets).to_pylist(), strict=True):
        for member in members:
            by_member.setdefault(member, []).append(text)
    single = _single(texts)
    return [[*single.get(value, ()), *by_member.get(value, ())] for value in own]


def _single(texts: Sequence[str | None]) -> dict[str | None, list[str | None]]:
    """By value, the text that publishes it alone, if there is one."""
    values = values_of(pa.array(texts, pa.string())).to_pylist()
    return {value: [text] for value, text in zip(values, texts, strict=True) if text != _ANY}
