"""A column of the inspected rows, in codes, and what is counted of it alone."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.data.encoding import as_array, encode_ranks
from mondrian_ops.data.named_types import is_text
from mondrian_ops.data.values import text_of
from mondrian_ops.late_methods import dataclass

Codes: TypeAlias = NDArray[np.integer[Any]]
Counts: TypeAlias = NDArray[np.int64]

MANY = 50
"""A column with more values is described by where they lie, not by its most frequent ones."""

_LOOKED_AT = 5_000
"""Texts of a column that are compared with patterns: those of most rows."""


@dataclass(frozen=True)
class Column:
    """A column of the inspected rows.

    ``codes`` (rows,): 0 for the missing value, 1, 2, … for the ``values``, which ascend unless they
    are texts. ``counts`` (values + 1,): the rows of each code.
    """

    name: str
    type: pa.DataType
    codes: Codes
    values: pa.Array
    counts: Counts

    @classmethod
    def of(cls, name: str, column: pa.ChunkedArray, type_: pa.DataType) -> Column:
        """A column in codes; Arrow has to be able to compare its values."""
        codes, values = _unsorted(column) if is_text(type_) else encode_ranks(column)
        return cls(name, type_, codes, values, np.bincount(codes, minlength=len(values) + 1))

    def taken(self, rows: NDArray[np.integer[Any]]) -> Column:
        """The same of some of the rows, by their numbers (rows,)."""
        codes = self.codes[rows]
        counts = np.bincount(codes, minlength=len(self.counts))
        met = counts > 0
        met[0] = True
        ranks = (np.cumsum(met) - 1).astype(self.codes.dtype)
        values = self.values.filter(pa.array(met[1:]))
        return Column(self.name, self.type, ranks[codes], values, counts[met])

    @property
    def rows(self) -> int:
        return len(self.codes)

    @property
    def present(self) -> int:
        """The rows with a value."""
        return self.rows - int(self.counts[0])

    @property
    def distinct(self) -> int:
        return len(self.values)

    @property
    def fewest(self) -> int:
        """The rows of the rarest value."""
        return int(self.counts[1:].min(initial=self.rows))

    @property
    def single(self) -> float:
        """The share of rows whose value no other row has."""
        return int(np.count_nonzero(self.counts == 1)) / max(1, self.rows)

    @property
    def is_number(self) -> bool:
        kinds = pa.types
        return bool(
            kinds.is_integer(self.type) or kinds.is_floating(self.type)
            or kinds.is_decimal(self.type)
        )  # fmt: skip

    @property
    def is_integer(self) -> bool:
        return bool(pa.types.is_integer(self.type))

    @property
    def is_text(self) -> bool:
        return is_text(self.type)

    @property
    def is_moment(self) -> bool:
        """Whether the values are dates or timestamps."""
        return bool(pa.types.is_date(self.type) or pa.types.is_timestamp(self.type))

    @cached_property
    def distinction(self) -> float:
        """Distinct values, the missing one among them, by row (Motwani and Xu 2007)."""
        return int(np.count_nonzero(self.counts)) / max(1, self.rows)

    @cached_property
    def separation(self) -> float:
        """The share of pairs of rows that differ (Motwani and Xu 2007)."""
        return separation(self.counts)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of the column's name, in small letters: ``HomePhone_2`` has three."""
        apart = re.sub("(?<=[^\\W\\dA-Z_])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", self.name)
        parts = re.findall("[^\\W\\d_]+|\\d+", apart)
        return tuple(part.lower() for part in parts)

    @cached_property
    def _most(self) -> NDArray[np.int64]:
        """Codes of the values that most rows have."""
        counts = self.counts[1:]
        if len(counts) <= _LOOKED_AT:
            return np.arange(1, len(counts) + 1)
        return 1 + np.argpartition(counts, -_LOOKED_AT)[-_LOOKED_AT:].astype(np.int64)

    @cached_property
    def texts(self) -> pa.Array:
        """The values of most rows as text."""
        values = self.values.take(pa.array(self._most - 1))
        return (values if self.is_text else text_of(values)).cast(pa.string())

    def share(self, holds: pa.Array) -> float:
        """The share of the rows of :attr:`texts` for which ``holds`` (texts,) is true."""
        weights = self.counts[self._most]
        if not weights.sum():
            return 0.0
        chosen = pc.fill_null(holds, False).to_numpy(zero_copy_only=False)
        return float(weights[chosen].sum() / weights.sum())

    def matching(self, pattern: str) -> float:
        """The share of rows whose text is one of a pattern, in the syntax of RE2."""
        return self.share(pc.match_substring_regex(self.texts, f"^(?:{pattern})$"))


def _unsorted(column: pa.ChunkedArray) -> tuple[Codes, pa.Array]:
    """Codes and values in the order of the rows: many different texts take long to sort."""
    encoded = as_array(column).dictionary_encode()
    return pc.fill_null(pc.add(encoded.indices, 1), 0).to_numpy(), encoded.dictionary


def pair_keys(one: Column, other: Column) -> NDArray[np.uint64]:
    """(rows,) equal where both columns are."""
    keys = one.codes.astype(np.uint64) * np.uint64(len(other.counts))
    return keys + other.codes.astype(np.uint64)


def separation(counts: Counts) -> float:
    """The share of pairs of rows that differ, by the rows of each value."""
    rows = int(counts.sum())
    pairs = rows * (rows - 1)
    same = float((counts.astype(np.float64) * (counts - 1)).sum())
    return 1 - same / pairs if pairs else 0.0
