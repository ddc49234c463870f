"""Which classes of a release a person may be in: those whose published values cover the person's.

This module shares no code with the cutting and the generalizing. It reads the published values of
the quasi-identifiers back, as whoever knows a person does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.core.errors import InputError
from mondrian_ops.core.hierarchy import Hierarchy
from mondrian_ops.core.quasi_identifier import QuasiIdentifier

__all__ = ["Coverage", "coverage", "fitting"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_ANY = "*"


class Coverage(ABC):
    """The published values of a quasi-identifier, and the values of persons, both numbered.

    ``published`` (classes,) int64: the number of each class' value.
    """

    published: Ints

    @abstractmethod
    def covers(self, value: int, published: Ints) -> Mask:
        """Whether some ``published`` values, by number, may be that of a person's ``value``."""


class _Intervals(Coverage):
    """Numbers, dates and times: the ends of each published value; None for no end."""

    def __init__(self, values: pa.Array, least: pa.Array, greatest: pa.Array, open_: Mask) -> None:
        self._values, self._missing = _numbers(values), _nulls(values)
        self._none = np.zeros(len(least), np.bool_)
        self._all = np.zeros(len(least), np.bool_)
        lowest, highest = _ends(self._values.dtype)
        self._least = np.where(_nulls(least), lowest, _numbers(least))
        self._greatest = np.where(_nulls(greatest), highest, _numbers(greatest))
        self._open = open_ & ~_nulls(greatest)

    def of_texts(self, texts: Sequence[str | None]) -> _Intervals:
        """The same with texts that have no ends: the missing value, and the one for all."""
        self._none = np.array([text is None for text in texts], np.bool_)
        self._all = np.array([text == _ANY for text in texts], np.bool_)
        return self

    def of_bounds(self, least: pa.Array, greatest: pa.Array) -> _Intervals:
        """The same where two missing bounds stand for the missing value, or for all."""
        self._all = _nulls(least) & _nulls(greatest)
        return self

    def covers(self, value: int, published: Ints) -> Mask:
        if self._missing[value]:
            without: Mask = self._none[published] | self._all[published]
            return without
        number, greatest = self._values[value], self._greatest[published]
        within = (self._least[published] <= number) & (number <= greatest)
        within &= ~self._open[published] | (number < greatest)
        fits: Mask = (within & ~self._none[published]) | self._all[published]
        return fits


class _Texts(Coverage):
    """Prefixes, sets and hierarchies: the published texts that each value may be published as."""

    def __init__(self, texts: Sequence[str | None], may_be: Sequence[Iterable[str | None]]) -> None:
        numbers = {text: at for at, text in enumerate(texts)}
        self._size, self._numbers, self._may_be = len(texts), numbers, may_be

    def covers(self, value: int, published: Ints) -> Mask:
        fits = np.zeros(self._size, np.bool_)
        numbers = (self._numbers.get(text) for text in (*self._may_be[value], _ANY))
        fits[[number for number in numbers if number is not None]] = True
        covered: Mask = fits[published]
        return covered


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
            return _of_bounds(published[f"{name}_min"], published[f"{name}_max"], values)
        encoded = published[name].cast(pa.string()).dictionary_encode(null_encoding="encode")
        texts = encoded.dictionary.to_pylist()
        found = _of_texts(quasi, texts, values, tree)
        found.published = encoded.indices.to_numpy().astype(np.int64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, KeyError):
        raise InputError(
            f"column {name!r}: its published values cannot be read as generalized {values.type}"
        ) from None
    return found


def fitting(columns: Sequence[Coverage], places: NDArray[np.int64]) -> Iterator[Ints]:
    """The classes that cover each of some places, given as the numbers of their values.

    ``places`` (places, columns) is sorted, so that what fits the first values is found once.
    """
    everything = np.arange(len(columns[0].published))
    path: list[tuple[int, Ints]] = []
    for place in places.tolist():
        same = 0
        while same < len(path) and path[same][0] == place[same]:
            same += 1
        del path[same:]
        for column, value in zip(columns[same:], place[same:], strict=True):
            classes = path[-1][1] if path else everything
            path.append((value, classes[column.covers(value, column.published[classes])]))
        yield path[-1][1]


def _of_texts(
    quasi: QuasiIdentifier, texts: list[str | None], values: pa.Array, tree: Hierarchy | None
) -> Coverage:
    kind = quasi.generalization
    is_text = pa.types.is_string(values.type) or pa.types.is_boolean(values.type)
    if quasi.ladder is not None or kind == "interval" or (kind is None and not is_text):
        least, greatest, open_ = _read(texts, values.type)
        return _Intervals(values, least, greatest, open_).of_texts(texts)
    own = values.cast(pa.string()).to_pylist()
    if tree is not None:
        return _Texts(texts, _nodes(own, tree))
    if kind == "prefix":
        return _Texts(texts, _prefixes(own, texts))
    return _Texts(texts, _sets(own, texts))


def _of_bounds(least: pa.Array, greatest: pa.Array, values: pa.Array) -> Coverage:
    closed = np.zeros(len(least), np.bool_)
    low, high = (each.cast(values.type) for each in (least, greatest))
    found = _Intervals(values, low, high, closed).of_bounds(low, high)
    found.published = np.arange(len(least))
    return found


def _read(texts: Sequence[str | None], type_: pa.DataType) -> tuple[pa.Array, pa.Array, Mask]:
    """The ends of published intervals, and whether they end before the second."""
    least, greatest, open_ = [], [], []
    for text in texts:
        low, comma, high = (text or _ANY).partition(", ")
        is_value = not comma and low != _ANY
        least.append(low.removeprefix("[") if is_value or low.startswith("[") else None)
        greatest.append(low if is_value else high[:-1] if comma and high != "inf)" else None)
        open_.append(high.endswith(")"))
    return _values(least, type_), _values(greatest, type_), np.array(open_, np.bool_)


def _values(texts: list[str | None], type_: pa.DataType) -> pa.Array:
    found = pa.array(texts, pa.string())
    if not pa.types.is_integer(type_):
        return found.cast(type_)
    try:
        return found.cast(type_)
    except pa.ArrowInvalid:  # the edges of a grid are no whole numbers
        return found.cast(pa.float64())


def _numbers(values: pa.Array) -> NDArray[Any]:
    """Numbers in the order of the values: int64 of moments and whole numbers, else float64."""
    if pa.types.is_temporal(values.type):
        values = values.view(_TICKS[values.type.bit_width])
    if pa.types.is_decimal(values.type) or pa.types.is_uint64(values.type):
        values = values.cast(pa.float64())
    dtype = np.int64 if pa.types.is_integer(values.type) else np.float64
    numbers: NDArray[Any] = values.fill_null(0).to_numpy(zero_copy_only=False).astype(dtype)
    return numbers


_TICKS = {32: pa.int32(), 64: pa.int64()}


def _ends(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    if dtype == np.int64:
        return np.iinfo(dtype).min, np.iinfo(dtype).max
    return -np.inf, np.inf


def _nulls(values: pa.Array) -> Mask:
    nulls: Mask = pc.is_null(values, nan_is_null=True).to_numpy(zero_copy_only=False)
    return nulls


def _nodes(own: Sequence[str | None], tree: Hierarchy) -> list[Iterable[str | None]]:
    leaf = {text: at for at, text in enumerate(tree.leaves)}
    above = tree.ancestors.T
    return [
        [tree.labels[node] for node in above[leaf[text]]] if text in leaf else [text]
        for text in own
    ]


def _prefixes(own: Sequence[str | None], texts: Sequence[str | None]) -> list[Iterable[str | None]]:
    by_stem: dict[str, list[str]] = {}
    for text in texts:
        if text is not None and text.endswith(_ANY):
            by_stem.setdefault(text.rstrip(_ANY), []).append(text)
    found: list[Iterable[str | None]] = []
    for value in own:
        stems = [] if value is None else [value[:size] for size in range(len(value) + 1)]
        wild = (text for stem in stems for text in by_stem.get(stem, ()))
        found.append([value, *(text for text in wild if len(text) >= len(str(value)))])
    return found


def _sets(own: Sequence[str | None], texts: Sequence[str | None]) -> list[Iterable[str | None]]:
    by_member: dict[str, list[str]] = {}
    for text in texts:
        if text is not None and text.startswith("{") and text.endswith("}"):
            for member in text[1:-1].split(", "):
                by_member.setdefault(member, []).append(text)
    first = ("" if value is None else value.split(", ")[0] for value in own)
    return [[value, *by_member.get(member, ())] for value, member in zip(own, first, strict=True)]
