"""The frequency set: every distinct combination of codes in a dataset, and how many rows have it.

What generalizes a whole column alike (full-domain levels, cuts through taxonomies) depends on the
rows only through it (LeFevre, DeWitt and Ramakrishnan 2005, section 1.1), so that once it is
counted the cost of a search hardly depends on the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["FrequencySet", "group"]

Words = NDArray[np.uint64]
_BITS = 64


@dataclass(frozen=True)
class FrequencySet:
    """Distinct combinations in ascending order, so that it tells nothing of the order of rows.

    sizes
        codes of each column: quasi-identifiers first, then sensitive columns.
    words
        (words, m) uint64, each combination packed, the first column in the highest bits.
    rows
        (m,) int64, rows that have the combination.
    """

    sizes: tuple[int, ...]
    words: Words
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, columns: Sequence[NDArray[np.generic]], sizes: Sequence[int]) -> FrequencySet:
        """Count the rows of ``columns``, each (rows,) integers from 0 to its size less one."""
        words = np.zeros((len(_widths(sizes)), len(columns[0])), np.uint64)
        for column, (word, shift, _) in zip(columns, _places(sizes), strict=True):
            words[word] |= column.astype(np.uint64) << np.uint64(shift)
        return cls(tuple(sizes), words, np.ones(words.shape[1], np.int64))._counted()

    @classmethod
    def merged(cls, parts: Sequence[FrequencySet]) -> FrequencySet:
        """What several parts of a dataset hold together."""
        if len(parts) == 1:
            return parts[0]
        words = np.concatenate([part.words for part in parts], axis=1)
        rows = np.concatenate([part.rows for part in parts])
        return cls(parts[0].sizes, words, rows)._counted()

    @property
    def total(self) -> int:
        """Rows of the dataset."""
        return int(self.rows.sum())

    def codes(self) -> NDArray[np.int32]:
        """(columns, m): the codes of each combination."""
        return np.stack([self.column(at) for at in range(len(self.sizes))])

    def column(self, at: int) -> NDArray[np.int32]:
        """(m,): the codes of one column."""
        word, shift, bits = self.places()[at]
        codes = (self.words[word] >> np.uint64(shift)) & np.uint64((1 << bits) - 1)
        return codes.astype(np.int32)

    def places(self) -> list[tuple[int, int, int]]:
        """Where each column lies: word, bits to shift it down by, and bits it has."""
        return _places(self.sizes)

    def _counted(self) -> FrequencySet:
        order, starts = group(self.words)
        rows = np.add.reduceat(self.rows[order], starts) if len(starts) else self.rows
        return FrequencySet(self.sizes, self.words[:, order[starts]], rows)

    def to_table(self) -> pa.Table:
        """For Arrow IPC; `from_table` reads it back."""
        columns = {f"word:{at}": word for at, word in enumerate(self.words)}
        sizes = ",".join(map(str, self.sizes))
        return pa.table({"rows": self.rows, **columns}).replace_schema_metadata({"sizes": sizes})

    @classmethod
    def from_table(cls, table: pa.Table) -> FrequencySet:
        """The frequency set that `to_table` gave."""
        sizes = tuple(map(int, table.schema.metadata[b"sizes"].decode().split(",")))
        words = np.stack([column.to_numpy() for column in table.columns[1:]])
        return cls(sizes, words, table["rows"].to_numpy())


def group(words: Words) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """A stable order of ``words`` (words, n) that brings equal ones together; where each begins."""
    order = np.lexsort(words[::-1]) if len(words) > 1 else np.argsort(words[0], kind="stable")
    changes = np.zeros(len(order), bool)
    changes[:1] = True
    for word in words:
        ordered = word[order]
        changes[1:] |= ordered[1:] != ordered[:-1]
    return order, np.flatnonzero(changes)


def _widths(sizes: Sequence[int]) -> list[list[int]]:
    """The bits of each column, word by word."""
    words: list[list[int]] = [[]]
    for size in sizes:
        bits = max(1, int(size - 1).bit_length())
        if sum(words[-1]) + bits > _BITS:
            words.append([])
        words[-1].append(bits)
    return words


def _places(sizes: Sequence[int]) -> list[tuple[int, int, int]]:
    """Word, shift and bits of each column."""
    found = []
    for number, widths in enumerate(_widths(sizes)):
        ends = np.cumsum([0, *widths])
        found += [
            (number, int(ends[-1] - stop), int(stop - start)) for start, stop in pairwise(ends)
        ]
    return found
