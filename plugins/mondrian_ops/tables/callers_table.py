"""A table as its caller has it: what every kind of table does.

What is given back is read as Arrow once more, as the caller's table was, and that is checked: so a
conversion that loses a value is noticed before anything is returned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mondrian_ops.data.column_types import (
    nested,
    plain_type,
    same_values,
    without_dictionaries,
)
from mondrian_ops.data.encoding import combined
from mondrian_ops.errors import InputError, MondrianOpsError, PrivacyError

ROW = "mondrian_ops_row"
"""The number of a row of the caller's table; never returned."""

_DECODED = (pa.types.is_nested, pa.types.is_null, pa.types.is_dictionary)
"""Dictionaries of such values are decoded."""
_MOST_BYTES = 2**31 - 1  # of a column of text with 32-bit offsets


class CallersTable(ABC):
    """A table as its caller has it.

    Attributes:
        kind: what it is, for messages.
        names: what a job calls its columns.
        index: levels of a pandas index, which the job does not name: no part of the data.
        rows: their number.
        declared: columns whose type is not plain, in that type.
        by_rows: whether `returned` needs the number of each row, in a column `ROW`.
    """

    kind = "table"
    by_rows = False
    names: list[str]
    index: list[str]
    rows: int
    declared = pa.schema([])

    def read(self, columns: Collection[str]) -> pa.Table:
        """All columns in plain types; those that are not among ``columns`` have no values.

        Raises InputError where a column cannot be read.
        """
        read = [
            self._checked(name) if name in columns else pa.chunked_array([pa.nulls(self.rows)])
            for name in self.names
        ]
        return pa.table(read, names=self.names)

    def hand_out(self, released: pa.Table, raw: Collection[str]) -> tuple[Any, pa.Table]:
        """The released rows as a table of the caller's kind, and that one read as Arrow.

        ``raw``: the columns with values of the caller's table; the others were made.

        Raises PrivacyError where a value was lost on the way, InputError where the kind of table
        cannot hold a column.
        """
        numbers = None
        if self.by_rows:
            numbers = released[ROW].to_numpy()
            released = released.drop_columns([ROW])
        columns = [without_dictionaries(column) for column in released.columns]
        expected = pa.table(columns, names=released.column_names)
        returned = self._converted(released, raw, numbers)
        read = self._read_back(returned, expected.schema)
        _refuse_change(expected, read, self.kind)
        return returned, read

    def _converted(self, released: pa.Table, raw: Collection[str], numbers: Any) -> Any:
        try:
            return self.returned(released, raw, numbers)
        except (MondrianOpsError, MemoryError):
            raise
        except Exception as error:  # the text of another library's error may quote a value
            raise InputError(
                f"the release cannot be made a {self.kind} ({type(error).__name__}); pass a "
                "pyarrow.Table"
            ) from None

    def _read_back(self, returned: Any, schema: pa.Schema) -> pa.Table:
        try:
            return self.read_back(returned, schema)
        except MemoryError:
            raise
        except Exception as error:
            cause = error if isinstance(error, MondrianOpsError) else type(error).__name__
            raise PrivacyError(
                f"the release is refused: as a {self.kind} it cannot be checked ({cause}); pass a "
                "pyarrow.Table"
            ) from None

    def _checked(self, name: str) -> pa.ChunkedArray:
        column = self.column(name)
        short = pa.types.is_string(column.type) or pa.types.is_binary(column.type)
        if short and column.nbytes > _MOST_BYTES:
            raise InputError(
                f"column {name!r}: has more than 2 GiB of text; run the job on files, which are "
                "read in parts"
            )
        return column

    @abstractmethod
    def column(self, name: str) -> pa.ChunkedArray:
        """A column in a plain type; raises InputError where it cannot be read."""

    @abstractmethod
    def returned(self, released: pa.Table, raw: Collection[str], numbers: Any) -> Any:
        """The released rows as a table of the caller's kind; ``raw`` as in `hand_out`.

        ``numbers``: (rows,) the row of the caller's table that each was; None without `by_rows`.
        """

    @abstractmethod
    def read_back(self, returned: Any, schema: pa.Schema) -> pa.Table:
        """What `returned` gave, as Arrow of these types."""


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in the type in which it is handled; a dictionary of plain values stays one.

    Raises ArrowNotImplementedError where Arrow cannot decode it, such as run ends in a list.
    """
    chunks = [_plain(chunk) for chunk in column.chunks]
    return pa.chunked_array(chunks, chunks[0].type if chunks else plain_type(column.type))


def _plain(values: pa.Array) -> pa.Array:
    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(values.storage)
    if pa.types.is_run_end_encoded(kind):
        places = pa.array(np.arange(len(values.values)))
        runs = pa.RunEndEncodedArray.from_arrays(values.run_ends, places)
        runs = pc.run_end_decode(runs.slice(values.offset, len(values)))
        return _plain(values.values).take(runs)
    if pa.types.is_dictionary(kind):
        dictionary = _plain(values.dictionary)
        if not any(is_kind(dictionary.type) for is_kind in _DECODED):
            indices = values.indices.cast(pa.int64())  # NumPy adds no unsigned ones to others
            return pa.DictionaryArray.from_arrays(indices, dictionary, ordered=kind.ordered)
        return dictionary.take(values.indices)
    if is_list_view(kind):
        return _plain(_list_of(values))
    nested(kind, _refuse_within)
    return without_dictionaries(pa.chunked_array([values.cast(plain_type(kind))])).chunk(0)


def _list_of(values: pa.Array) -> pa.Array:
    """The lists of a list view, whose cast to a list loses values in Arrow 26."""
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy()
    ends = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int64())
    mask = values.is_null() if values.null_count else None
    return pa.LargeListArray.from_arrays(ends, pc.list_flatten(values), mask=mask)


def is_list_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


def _refuse_within(field: pa.Field) -> pa.Field:
    """Refuse what Arrow 26 cannot decode within a list or struct, or decodes with a loss."""
    if pa.types.is_run_end_encoded(field.type) or is_list_view(field.type):
        raise pa.ArrowNotImplementedError("in a list or struct")
    nested(field.type, _refuse_within)
    return field


@contextmanager
def readable(name: str, kind: object) -> Iterator[None]:
    """Raise InputError, which names the column but no value, where it cannot be read as Arrow."""
    try:
        yield
    except (MondrianOpsError, MemoryError):
        raise
    except Exception:  # Arrow's, NumPy's and each library's own: they may quote a value
        raise unreadable(name, kind) from None


def unreadable(name: str, kind: object) -> InputError:
    """The error about a column that cannot be read."""
    return InputError(
        f"column {name!r} of type {kind}: its values have several types, or one that Arrow does "
        "not support; convert them to one type, such as text, a number or a date"
    )


def name_of(label: Hashable) -> str:
    """What a job calls a column with this label."""
    if isinstance(label, tuple):  # whose numbers may be NumPy's, which are written otherwise
        label = tuple(part.item() if isinstance(part, np.generic) else part for part in label)
    return str(label)


def refuse_duplicates(names: Sequence[str]) -> None:
    """Raise InputError where two columns have one name."""
    for name, times in Counter(names).items():
        if times > 1:
            raise InputError(f"duplicate column {name!r}; rename one of the two")


def _refuse_change(expected: pa.Table, read: pa.Table, kind: str) -> None:
    """Raise PrivacyError where the table that is handed out is not the one that was made."""
    for name, before in zip(expected.column_names, expected.columns, strict=True):
        if not _same(before, read[name]):
            raise PrivacyError(
                f"the release is refused: column {name!r} has other values once it is a column of "
                f"a {kind}; pass a pyarrow.Table, or convert the column to a plain type"
            )


def _same(before: pa.ChunkedArray, after: pa.ChunkedArray) -> bool:
    return before.equals(after) or same_values(combined(before), combined(after))
