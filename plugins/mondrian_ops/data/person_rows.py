"""Persons with all of their rows in each leaf of a plan, of as many persons as memory allows.

A plan has to know which sensitive values each person has within a fragment, and these become known
only with the last row. So persons are sampled, not rows: the persons of least hashes are kept, as
by K. Beyer et al., "On synopses for distinct-value estimation under multiset operations", SIGMOD
2007. Whoever is among them in a leaf is among them in each part of its rows, so that no row is
lost when parts are added up in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.data.encoding import Column, as_array

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

MOST_ROWS = 1 << 21
"""Rows that are kept; of more different ones, the persons of each leaf are halved."""

_MOST_PERSONS = 1 << 30
_LEAF, _PERSON, _COMBINATION = 0, 1, 2
_CODES = 3  # the first of the sensitive columns
_LONG = 64  # bytes of a value that are hashed one by one


class KnownPersons(NamedTuple):
    """The persons of some leaves: a number for each row's person, (rows,), and its codes.

    ``units`` (rows,) number the persons' combinations of quasi-identifiers; ``codes`` (columns,
    rows). ``complete``: whether these are all persons, not a sample of them.
    """

    persons: Ints
    units: Ints
    codes: list[Ints]
    complete: bool


class PersonRows:
    """The rows of up to ``most`` persons in each leaf.

    A row is known by its person, its combination of quasi-identifiers and the codes of its
    sensitive values, of ``columns`` columns.
    """

    def __init__(self, columns: int, most: int = _MOST_PERSONS) -> None:
        self.most = most
        self._columns = columns
        self._pieces = [np.zeros((_CODES + columns, 0), np.int64)]
        self._limits: Ints | None = None

    @classmethod
    def of(
        cls,
        leaf: Ints,
        persons: Ints,
        combinations: Ints,
        codes: Sequence[NDArray[np.integer[Any]]],
    ) -> PersonRows:
        """Some rows, (rows,) each; ``persons`` and ``combinations`` as :func:`hashed`."""
        made = cls(len(codes))
        made._pieces.append(np.stack([leaf, persons, combinations, *codes]).astype(np.int64))
        return made

    def add(self, other: PersonRows) -> None:
        """Add the rows of another part of the dataset."""
        self.most = min(self.most, other.most)
        self._pieces += other._pieces
        pending = sum(piece.shape[1] for piece in self._pieces[1:])
        if pending > max(MOST_ROWS, self._pieces[0].shape[1]):
            self._settle()

    def limits(self, leaves: int) -> Ints | None:
        """(leaves,): the greatest hash of a person who may still be kept in each leaf.

        None where nobody was left out so far.
        """
        if self.most == _MOST_PERSONS:
            return None
        if self._limits is None:
            settled = self._pieces[0]
            self._limits = np.array([self._limit(settled, leaf) for leaf in range(leaves)])
        return self._limits

    def within(self, leaves: list[int]) -> KnownPersons:
        """The persons of ``leaves`` of whom all rows there are known."""
        rows = self._settle()
        bounds = [self._limit(rows, leaf) for leaf in leaves]
        most = min(bounds, default=np.iinfo(np.int64).max)
        parts = [rows[:, slice(*self._places(rows, leaf))] for leaf in leaves]
        chosen = np.concatenate([rows[:, :0], *parts], axis=1)
        complete = most == np.iinfo(np.int64).max
        if not complete:
            chosen = chosen[:, chosen[_PERSON] <= most]
        persons = _numbered(chosen[_PERSON])
        units = _numbered(mixed(chosen[_PERSON], chosen[_COMBINATION]))
        return KnownPersons(persons, units, list(chosen[_CODES:]), complete)

    def to_table(self) -> pa.Table:
        """For Arrow IPC; `from_table` reads it back."""
        columns = {str(at): column for at, column in enumerate(self._settle())}
        return pa.table(columns).replace_schema_metadata({"most": str(self.most)})

    @classmethod
    def from_table(cls, table: pa.Table) -> PersonRows:
        """What `to_table` wrote."""
        made = cls(table.num_columns - _CODES, int(table.schema.metadata[b"most"]))
        made._pieces.append(np.stack([column.to_numpy() for column in table.columns]))
        return made

    def _settle(self) -> Ints:
        """All rows in one array, by leaf, then by person; each once if there are many."""
        if len(self._pieces) == 1:
            return self._pieces[0]
        rows = np.concatenate(self._pieces, axis=1)
        if rows.shape[1] <= MOST_ROWS:
            rows = rows[:, np.lexsort(rows[_PERSON::-1])]
        else:
            rows = rows[:, np.lexsort(rows[::-1])]
            differs = np.ones(rows.shape[1], np.bool_)
            differs[1:] = (rows[:, 1:] != rows[:, :-1]).any(axis=0)
            rows = rows[:, differs]
        rows = _first_persons(rows, self.most)
        while rows.shape[1] > MOST_ROWS and self.most > 1:
            self.most = max(1, min(self.most, _largest(rows)) // 2)
            rows = _first_persons(rows, self.most)
        self._pieces, self._limits = [rows], None
        return rows

    def _limit(self, rows: Ints, leaf: int) -> int:
        """The hash of the last person who may be in the leaf; the greatest if anybody may."""
        start, stop = self._places(rows, leaf)
        persons = rows[_PERSON, start:stop]
        if np.count_nonzero(np.diff(persons)) + (stop > start) < self.most:
            return int(np.iinfo(np.int64).max)
        return int(persons[-1])

    @staticmethod
    def _places(rows: Ints, leaf: int) -> tuple[int, int]:
        start, stop = np.searchsorted(rows[_LEAF], [leaf, leaf + 1]).tolist()
        return start, stop


def hashed(column: Column) -> Ints:
    """A hash of each value, (rows,) int64, the same in every process; missing is the greatest.

    So rows without a person, of which there may be many, are the first to be left out.
    """
    encoded = as_array(column).dictionary_encode()
    hashes = np.append(_hashes(encoded.dictionary), np.iinfo(np.int64).max)
    codes = encoded.indices.fill_null(len(hashes) - 1).to_numpy(zero_copy_only=False)
    of_rows: Ints = hashes[codes]
    return of_rows


def mixed(one: Ints, other: Ints) -> Ints:
    """A hash of each pair of hashes."""
    words = _scattered(one.view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15) + other.view(np.uint64)
    return _scattered(words).view(np.int64)


def _hashes(values: pa.Array[Any]) -> Ints:
    if pa.types.is_integer(values.type):
        words = values.cast(pa.int64(), safe=False).to_numpy(zero_copy_only=False)
        hashes = _scattered(words.astype(np.int64).view(np.uint64))
    else:
        hashes = _scattered(_of_texts(values))
    # One less than the greatest, which is the missing value's.
    return np.minimum(hashes.view(np.int64), np.iinfo(np.int64).max - 1)


def _of_texts(values: pa.Array[Any]) -> Words:
    """FNV-1a of the bytes of each value, or of its text; all values byte by byte together."""
    import hashlib

    if pa.types.is_fixed_size_binary(values.type):
        values = values.cast(pa.binary())
    elif not (pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type)):
        values = values.cast(pa.string())
    values = values.cast(pa.large_binary())
    _, offsets, content = values.buffers()
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(content or b"", np.uint8)
    lengths = np.diff(ends)
    words = np.uint64(0xCBF29CE484222325) ^ lengths.astype(np.uint64)
    rest = np.flatnonzero((lengths > 0) & (lengths <= _LONG))
    for at in range(int(lengths[rest].max(initial=0))):
        rest = rest[lengths[rest] > at]
        words[rest] = (words[rest] ^ data[ends[rest] + at]) * np.uint64(0x100000001B3)
    for place in np.flatnonzero(lengths > _LONG).tolist():
        digest = hashlib.blake2b(data[ends[place] : ends[place + 1]].tobytes(), digest_size=8)
        words[place] = int.from_bytes(digest.digest(), "little")
    return words


def _scattered(z: Words) -> Words:
    """The finalizer of the generator splitmix64."""
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return z ^ z >> np.uint64(31)


def _numbered(words: Ints) -> Ints:
    return np.unique(words, return_inverse=True)[1].astype(np.int64)


def _rank_of_person(rows: Ints) -> Ints:
    """(rows,): how many persons come before each row's person in its leaf."""
    begins = np.ones(rows.shape[1], np.bool_)
    begins[1:] = (rows[: _PERSON + 1, 1:] != rows[: _PERSON + 1, :-1]).any(axis=0)
    number = np.cumsum(begins) - 1
    rank: Ints = number - number[np.searchsorted(rows[_LEAF], rows[_LEAF])]
    return rank


def _first_persons(rows: Ints, most: int) -> Ints:
    return rows if most >= rows.shape[1] else rows[:, _rank_of_person(rows) < most]


def _largest(rows: Ints) -> int:
    """The persons of the leaf that has most."""
    return int(_rank_of_person(rows).max(initial=-1)) + 1
