"""The frequency set: every distinct combination of codes in a dataset, and how many rows have it.

Algorithms that recode whole columns need nothing else of the rows (LeFevre, DeWitt and Ramakrishnan
2005, section 1.1): once it is counted, the cost of a search hardly depends on the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.data.native import counting
from mondrian_ops.late_methods import dataclass

Words = NDArray[np.uint64]
_BITS = 64


@dataclass(frozen=True)
class FrequencySet:
    """Distinct combinations. `of` sorts them, so that they disclose nothing of the rows' order.

    sizes
        codes of each column: quasi-identifiers first, then sensitive columns.
    words
        (words, m) uint64, each combination packed, the first column in the highest bits.
    rows
        (m,) int64, rows that have each combination.
    """

    sizes: tuple[int, ...]
    words: Words
    rows: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        columns: Iterable[NDArray[np.generic]],
        sizes: Sequence[int],
        rows: NDArray[np.int64] | None = None,
    ) -> FrequencySet:
        """Count the combinations in ``columns``, each (n,) integers from 0 to its size less one.

        ``rows`` (n,) int64: how many rows each entry stands for, one by default.
        """
        counted = cls.unordered(columns, sizes, rows)
        words = counted.words
        order = np.lexsort(words[::-1]) if len(words) > 1 else np.argsort(words[0])
        return cls(counted.sizes, words.take(order, axis=1), counted.rows[order])

    @classmethod
    def unordered(
        cls,
        columns: Iterable[NDArray[np.generic]],
        sizes: Sequence[int],
        rows: NDArray[np.int64] | None = None,
    ) -> FrequencySet:
        """Like `of`, with the combinations in the order of their first occurrence."""
        words = packed(columns, sizes)
        rows = np.ones(words.shape[1], np.int64) if rows is None else rows
        return cls(tuple(sizes), words, rows).recoded({})

    @property
    def total(self) -> int:
        """Rows of the dataset."""
        return int(self.rows.sum())

    def codes(self, first: int = 0) -> NDArray[np.int32]:
        """(columns, m): the codes of each combination, from column ``first`` on."""
        codes = np.empty((len(self.sizes) - first, self.words.shape[1]), np.int32)
        for at in range(first, len(self.sizes)):
            codes[at - first] = self.column(at)
        return codes

    def column(self, at: int) -> NDArray[np.int32]:
        """(m,): the codes of one column."""
        word, shift, bits = places(self.sizes)[at]
        codes: NDArray[np.uint64] = (self.words[word] >> np.uint64(shift)) & _mask(bits)
        return codes.astype(np.int32)

    def grouped(self, columns: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Group the combinations whose first ``columns`` columns are equal.

        Returns an index of the combinations group by group, and where each group begins in it.
        """
        keys = np.zeros(len(self.words), np.uint64)
        for word, shift, bits in places(self.sizes)[:columns]:
            keys[word] |= _mask(bits) << np.uint64(shift)
        return counting.group_by_bits(np.ascontiguousarray(self.words), keys)

    def recoded(self, tables: Mapping[int, NDArray[np.integer[Any]]]) -> FrequencySet:
        """The counts after each code of a column is replaced by ``tables[column][code]``.

        The roll-up of LeFevre et al. 2005, section 3.1: coarser counts are sums of finer ones. The
        new codes are below the column's size. Combinations come in the order of their first
        occurrence.
        """
        of_columns = places(self.sizes)
        where = [
            (word, shift, (1 << bits) - 1)
            for word, shift, bits in map(of_columns.__getitem__, tables)
        ]
        words, rows = counting.recode(
            np.ascontiguousarray(self.words),
            self.rows,
            np.array(where, np.uint64).reshape(-1, 3),
            np.concatenate([np.zeros(0), *tables.values()]).astype(np.uint64),
            np.cumsum([0, *map(len, tables.values())])[:-1],
        )
        return FrequencySet(self.sizes, words, rows)

    def to_table(self) -> pa.Table:
        """For Arrow IPC; `from_table` reads it back."""
        columns = {f"word:{at}": word for at, word in enumerate(self.words)}
        sizes = ",".join(map(str, self.sizes))
        return pa.table({"rows": self.rows, **columns}).replace_schema_metadata({"sizes": sizes})

    @classmethod
    def from_table(cls, table: pa.Table) -> FrequencySet:
        """The frequency set that `to_table` wrote."""
        sizes = tuple(map(int, table.schema.metadata[b"sizes"].decode().split(",")))
        words = np.stack([column.to_numpy() for column in table.columns[1:]])
        return cls(sizes, words, table["rows"].to_numpy())


def packed(columns: Iterable[NDArray[np.generic]], sizes: Sequence[int]) -> Words:
    """(words, rows): columns of integers, each packed into as many bits as it needs."""
    words: list[NDArray[np.uint64]] = []
    for column, (word, shift, _) in zip(columns, places(sizes), strict=True):
        if word == len(words):
            words.append(np.zeros(len(column), np.uint64))
        words[word] |= column.astype(np.uint64) << np.uint64(shift)
    return np.stack(words)


def group(words: Words) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """A stable order that groups equal columns of ``words`` (words, n), and where groups begin."""
    order = np.lexsort(words[::-1]) if len(words) > 1 else np.argsort(words[0], kind="stable")
    changes = np.zeros(len(order), bool)
    changes[:1] = True
    for word in words:
        ordered = word[order]
        changes[1:] |= ordered[1:] != ordered[:-1]
    return order, np.flatnonzero(changes)


def places(sizes: Sequence[int]) -> list[tuple[int, int, int]]:
    """The word of each column, the bits to shift it down by, and the bits that it has."""
    words: list[list[int]] = [[]]
    for size in sizes:
        bits = max(1, int(size - 1).bit_length())
        if sum(words[-1]) + bits > _BITS:
            words.append([])
        words[-1].append(bits)
    return [
        (number, sum(widths[at + 1 :]), bits)
        for number, widths in enumerate(words)
        for at, bits in enumerate(widths)
    ]


def _mask(bits: int) -> np.uint64:
    return np.uint64((1 << bits) - 1)
