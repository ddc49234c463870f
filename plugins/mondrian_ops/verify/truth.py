"""Whether each row of a part of a release is true to the row of the source that it publishes.

The rows as they came from the source, before anything was done to them, are compared with the part
as it is read back: the value of each quasi-identifier must lie within the published label, and
every other column must be that row's. Who wrote the part says which row of the source each of its
rows is. A wrong answer does not pass, because all columns are compared by it, and each row of the
source may be published once only. This module shares no code with encoding, cutting and
generalizing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.data.column_types import same_values
from mondrian_ops.errors import PrivacyError
from mondrian_ops.late_methods import dataclass
from mondrian_ops.verify.loss import columns_of
from mondrian_ops.verify.native.label_pairs import mark_pairs
from mondrian_ops.verify.native.source_rows import distinct_rows, rows_differ
from mondrian_ops.verify.published_labels import PublishedLabels
from mondrian_ops.verify.quoted_texts import as_texts
from mondrian_ops.verify.scales import nulls

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Read = Callable[[Sequence[str]], Iterator[pa.RecordBatch]]
"""Reads some columns of a part, batch by batch."""

_TABLE = 1 << 22  # pairs of a label and a value that are marked in a table
_NARROW = 1 << 16  # whole numbers of a smaller range are numbered from the least one
_REDACTED = "*"
_WIDTHS = (1, 2, 4, 8)  # bytes of a number


@dataclass(frozen=True)
class PartTruth:
    """What a part of a release must be true to.

    Attributes:
        rows: those of the source, as they came.
        order: (published rows,) which of them each row of the part is.
        made_up: (published rows,) the counterfeits; None if there are none.
        missing_rows: how many of ``rows`` are not in the part: they wait, or are suppressed.
        labels: by quasi-identifier.
        identifiers: columns that are published without any value, if at all.
        where: the part, in messages.
    """

    rows: pa.Table
    order: NDArray[np.integer[Any]]
    made_up: Flags | None
    missing_rows: int
    labels: Mapping[str, PublishedLabels]
    identifiers: Collection[str]
    where: str

    def check(
        self, columns: Sequence[str], read: Read, persons: tuple[str, pa.ChunkedArray] | None = None
    ) -> None:
        """Compare the part, which has ``columns``, with the rows.

        ``persons``: the column that tells persons apart, and the person of each row of the part,
        null for a row that is made up.

        Raises PrivacyError where a row is not true, is there twice, or is missing.
        """
        self._check_order()
        seen = set[str]()
        for name, labels in self.labels.items():
            of_label = columns_of(name, columns)
            seen.update(of_label)
            self._check_labels(labels, of_label, read)
        for name in columns:
            if name in self.identifiers:
                self._check_redacted(name, read)
            elif name not in seen:
                self._check_raw(name, (batch.column(0) for batch in read([name])))
        if persons is not None:
            self._check_raw(persons[0], persons[1].chunks)

    @cached_property
    def _order(self) -> NDArray[np.int32]:
        return np.ascontiguousarray(self.order, np.int32)

    def _check_order(self) -> None:
        order, count = self.order, self.rows.num_rows
        if len(order) and not 0 <= int(order.min()) <= int(order.max()) < count:
            raise self._untrue("it has rows that the source has not")
        order = self._order
        if self.made_up is not None:
            order = order[~self.made_up]
        if distinct_rows(order, count) != len(order):
            raise self._untrue("some rows of the source are published more than once")
        if len(order) + self.missing_rows != count:
            raise self._untrue(f"of {count} rows {len(order)} are published")

    def _check_labels(self, labels: PublishedLabels, columns: Sequence[str], read: Read) -> None:
        """Raise where a value is not within its label."""
        codes, values = _coded(self.rows[labels.name])
        pairs, rows = _Pairs(labels, codes, values), 0
        for batch in read(columns):
            place, arrays = _labels_in(batch.columns)
            source = self._slice(labels.name, rows, batch.num_rows)
            real = self._real(rows, batch.num_rows)
            rows += batch.num_rows
            if real is not None:
                place, source = place[real], source[real]
            pairs.add(arrays, place, source)
        self._check_end(labels.name, rows)
        if wrong := pairs.wrong():
            raise self._untrue(
                f"column {labels.name!r}: {wrong} published label(s) do not hold the value of "
                "their row"
            )

    def _check_raw(self, name: str, pieces: Iterable[pa.Array]) -> None:
        """Raise where the column of a row is not that of its row of the source."""
        if name not in self.rows.column_names:
            raise self._untrue(f"column {name!r} is not one of the source")
        values, rows = _combined(self.rows[name]), 0
        numbers = _bytes_of(values)
        for piece in pieces:
            source = self._slice(name, rows, len(piece))
            real = self._real(rows, len(piece))
            rows += len(piece)
            if real is not None:
                piece, source = piece.filter(pa.array(real)), source[real]
            if piece.type == values.type and numbers is not None:
                published = _bytes_of(piece)
                # Values of other bytes may be the same, such as two NaN.
                if published is not None and not rows_differ(published, numbers, source):
                    continue
            if not _are_same(piece, _combined(values.take(pa.array(source)))):
                raise self._untrue(f"column {name!r}: some rows have values of other rows")
        self._check_end(name, rows)

    def _check_redacted(self, name: str, read: Read) -> None:
        for batch in read([name]):
            column = batch.column(0)
            texts = column.dictionary if _is_dictionary(column) else column
            if column.null_count or not pc.all(pc.equal(texts, _REDACTED)).as_py():
                raise self._untrue(f"column {name!r} is published, which is an identifier")

    def _slice(self, name: str, start: int, count: int) -> NDArray[np.int32]:
        """The row of the source of each of some rows of the part."""
        if start + count > len(self._order):
            self._check_end(name, start + count)
        return self._order[start : start + count]

    def _real(self, start: int, count: int) -> Flags | None:
        return None if self.made_up is None else ~self.made_up[start : start + count]

    def _check_end(self, name: str, rows: int) -> None:
        if rows != len(self.order):
            raise self._untrue(
                f"column {name!r} has {rows} values, and {len(self.order)} rows were to be written"
            )

    def _untrue(self, what: str) -> PrivacyError:
        return PrivacyError(
            f"{self.where} is not true to the source: {what}; nothing is published; please report "
            "this error, it is one of mondrian_ops"
        )


class _Pairs:
    """The distinct pairs of a label and a value, and how many of these labels are wrong."""

    def __init__(self, labels: PublishedLabels, codes: NDArray[Any], values: pa.Array) -> None:
        self._labels = labels
        self._codes = codes
        self._values = values
        self._arrays: list[pa.Array] = []
        self._table: Flags | None = None
        self._keys: list[Ints] = []
        self._wrong = 0

    def add(
        self, arrays: list[pa.Array], place: NDArray[np.int32], source: NDArray[np.int32]
    ) -> None:
        """Add some rows: the place of each one's label in ``arrays``, and its row of the source."""
        if not (self._arrays and all(map(pa.Array.equals, arrays, self._arrays))):
            self._finish()
            self._arrays = arrays
            size = len(arrays[0]), len(self._values)
            self._table = np.zeros(size, bool) if size[0] * size[1] <= _TABLE else None
        if self._table is not None:
            mark_pairs(place, source, self._codes, self._table)
        else:
            keys = place.astype(np.int64) * len(self._values) + self._codes[source]
            self._keys.append(np.unique(keys))

    def wrong(self) -> int:
        """How many distinct pairs have a value that is not within the label."""
        self._finish()
        return self._wrong

    def _finish(self) -> None:
        if not self._arrays:
            return
        if self._table is None:
            keys = np.unique(np.concatenate([np.zeros(0, np.int64), *self._keys]))
            label_of, value_of = np.divmod(keys, len(self._values))
            used_labels, label_of = np.unique(label_of, return_inverse=True)
            used_values, value_of = np.unique(value_of, return_inverse=True)
        else:
            used_labels, used_values = (np.flatnonzero(self._table.any(axis)) for axis in (1, 0))
            label_of, value_of = np.nonzero(self._table[used_labels][:, used_values])
        arrays = [array.take(pa.array(used_labels)) for array in self._arrays]
        values = self._values.take(pa.array(used_values))
        self._wrong += int(
            np.count_nonzero(~self._labels.covers(arrays, values, label_of, value_of))
        )
        self._arrays, self._keys = [], []


def _coded(column: pa.ChunkedArray) -> tuple[NDArray[Any], pa.Array]:
    """(rows,) the place of each row's value among the values, the missing one last.

    The places are uint8, uint16 or int32.
    """
    array = _combined(column)
    if pa.types.is_integer(array.type):
        ends = pc.min_max(array).as_py()
        least, most = ends["min"], ends["max"]
        if least is not None and most - least < _NARROW - 1:
            return _distances(array, least, most)
    encoded = array if _is_dictionary(array) else array.dictionary_encode()
    values = encoded.dictionary
    return _places(encoded, _narrow(len(values))), _with_null(values)


def _narrow(count: int) -> Any:
    """The type of places among so many values and the missing one."""
    return np.min_scalar_type(count) if count < _NARROW else np.int32


def _distances(array: pa.Array, least: int, most: int) -> tuple[NDArray[Any], pa.Array]:
    count = most - least + 1
    missing = nulls(array) if array.null_count else None
    numbers = (array.fill_null(least) if array.null_count else array).to_numpy()
    # Subtraction of unsigned numbers wraps around, so that the distance is right.
    unsigned = numbers.view(f"u{numbers.itemsize}")
    distances = unsigned - np.array(least, numbers.dtype).view(unsigned.dtype)
    codes = distances.astype(_narrow(count), copy=False)
    if missing is not None:
        codes[missing] = count
    return codes, pa.array([*range(least, most + 1), None], array.type)


def _labels_in(columns: Sequence[pa.Array]) -> tuple[NDArray[np.int32], list[pa.Array]]:
    """(rows,) the place of each row's label, and the labels: texts, or bounds."""
    texts = map(as_texts, columns)
    encoded = [each if _is_dictionary(each) else each.dictionary_encode() for each in texts]
    first, *others = encoded
    if not others:
        return _places(first, np.int32), [_with_null(first.dictionary)]
    keys, sizes = _places(first, np.int64), [len(each.dictionary) + 1 for each in encoded]
    for each, size in zip(others, sizes[1:], strict=True):
        keys = keys * size + _places(each, np.int64)
    distinct, place = np.unique(keys, return_inverse=True)
    labels = []
    for each, size in zip(reversed(encoded), reversed(sizes), strict=True):
        distinct, of_column = np.divmod(distinct, size)
        labels.append(_with_null(each.dictionary).take(pa.array(of_column)))
    return place.astype(np.int32), labels[::-1]


def _places(encoded: pa.DictionaryArray, kind: Any) -> NDArray[Any]:
    """(rows,) the place of each row's value in the dictionary; that of a missing one follows it."""
    indices = encoded.indices
    if indices.null_count:
        indices = indices.cast(pa.int64()).fill_null(len(encoded.dictionary))
    places: NDArray[Any] = indices.to_numpy().astype(kind, copy=False)
    return places


def _with_null(values: pa.Array) -> pa.Array:
    return pa.concat_arrays([values, pa.nulls(1, values.type)])


def _combined(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """One array."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # zero chunks, or too long for one
            parts = column.chunks
            column = pa.concat_arrays(parts) if parts else pa.nulls(0, column.type)
    return column


def _is_dictionary(column: pa.Array) -> bool:
    return bool(pa.types.is_dictionary(column.type))


def _are_same(published: pa.Array, source: pa.Array) -> bool:
    """Whether two columns have the same values, though a file may hold them in another type."""
    published, source = _decoded(published), _decoded(source)
    try:
        if published.type != source.type:
            published = published.cast(source.type)
        return same_values(published, source)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return False  # a value of another kind; no type that a part can have is among these


def _bytes_of(column: pa.Array) -> NDArray[Any] | None:
    """(rows,) numbers and times as unsigned numbers of their bytes.

    None for other types, without rows, and where a value is missing.
    """
    kind, rows = column.type, len(column)
    if not rows or column.null_count or not pa.types.is_primitive(kind):
        return None
    width = kind.bit_width // 8
    if width * 8 != kind.bit_width or width not in _WIDTHS:
        return None
    numbers = np.frombuffer(column.buffers()[1], f"u{width}", rows, column.offset * width)
    return numbers if numbers.flags.aligned else None


def _decoded(column: pa.Array) -> pa.Array:
    """The values without a dictionary, or a type that gives them a name only."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    return column.dictionary_decode() if _is_dictionary(column) else column
