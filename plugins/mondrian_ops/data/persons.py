"""Persons, by the job's ``entity_id``: their codes, and their number in each leaf of a plan.

A plan needs to know only whether the rows of some leaves belong to k persons. So at most k persons
are kept per leaf: counts over several leaves are exact up to k, and memory grows with k times the
leaves, not with the rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.data.encoding import as_array, encode_ranks
from mondrian_ops.data.sensitive_domain import SensitiveDomain
from mondrian_ops.late_methods import dataclass

Ints = NDArray[np.int64]

_MISSING = 0
_FIRST_ROWS = 1 << 12


@dataclass(frozen=True)
class LeafPersons:
    """The persons of each leaf of a plan, up to ``enough`` of them.

    ``leaf`` and ``person`` (pairs,) int64 list distinct pairs by ascending leaf. A person is a
    digest of the ``entity_id``, the same in every process. All rows without a value count as one
    person, and so do persons with equal digests: the count is never too high.
    """

    enough: int
    leaf: Ints
    person: Ints

    @classmethod
    def nobody(cls, enough: int) -> LeafPersons:
        """No persons."""
        return cls(enough, np.zeros(0, np.int64), np.zeros(0, np.int64))

    @classmethod
    def of_each(cls, enough: int, leaves: Iterable[Ints], column: pa.Array) -> Iterator[Self]:
        """The persons of some rows in each of several trees, whose ``leaves`` are (rows,) each."""
        codes, persons = _coded(column)
        size = len(persons) + 1
        for leaf in leaves:
            pairs = _pairs(leaf, codes, size, enough)
            distinct, place = np.unique(pairs % size, return_inverse=True)
            yield cls(enough, pairs // size, _digests(persons, distinct)[place])

    def added(self, others: Sequence[LeafPersons]) -> LeafPersons:
        """The persons of this and of others."""
        leaf = np.concatenate([self.leaf, *(other.leaf for other in others)])
        person = np.concatenate([self.person, *(other.person for other in others)])
        order = np.lexsort((person, leaf))
        leaf, person = leaf[order], person[order]
        is_new = np.ones(len(order), bool)
        is_new[1:] = (leaf[1:] != leaf[:-1]) | (person[1:] != person[:-1])
        leaf, person = leaf[is_new], person[is_new]
        kept = _first(leaf, self.enough)
        return LeafPersons(self.enough, leaf[kept], person[kept])

    def between(self, first: int, stop: int) -> int:
        """Persons of leaves ``first`` to ``stop`` - 1, exact below ``enough``."""
        start, end = np.searchsorted(self.leaf, [first, stop])
        return len(np.unique(self.person[start:end]))

    def within(self, leaves: Sequence[int]) -> int:
        """Persons of ``leaves``, exact below ``enough``."""
        return len(np.unique(self.person[np.isin(self.leaf, list(leaves))]))


def digests(column: pa.Array) -> Ints:
    """The person of each row, as :class:`LeafPersons` has it, (rows,) int64."""
    codes, persons = _coded(column)
    return _digests(persons, np.arange(len(persons) + 1))[codes]


def encode_persons(
    name: str, column: pa.ChunkedArray | pa.Array
) -> tuple[SensitiveDomain, NDArray[np.int32]]:
    """The persons of some rows by column ``name``, and a code per row, (rows,) int32.

    The missing value is one person. Codes ascend with values, so that the rows of a fragment have
    the same order as in the whole dataset.
    """
    codes, values = encode_ranks(as_array(column))
    counts = np.bincount(codes, minlength=len(values) + 1)
    is_missing = bool(counts[_MISSING])
    domain = SensitiveDomain(name, values, counts if is_missing else counts[1:], as_written=True)
    return domain, codes.astype(np.int32) - np.int32(not is_missing)


def _coded(column: pa.Array) -> tuple[Ints, pa.Array]:
    """A code for each row, (rows,) int64, and the persons of the codes from 1 on."""
    encoded = as_array(column).dictionary_encode()
    codes = pc.fill_null(pc.add(encoded.indices.cast(pa.int64()), 1), _MISSING).to_numpy()
    return codes, encoded.dictionary


def _pairs(leaf: Ints, codes: Ints, size: int, enough: int) -> Ints:
    """Ascending keys ``leaf * size + code`` of distinct pairs, up to ``enough`` of each leaf.

    Most leaves reach ``enough`` with the first rows; the other rows of these are left out.
    """
    pairs = np.unique(leaf[:_FIRST_ROWS] * size + codes[:_FIRST_ROWS])
    if len(leaf) > _FIRST_ROWS:
        is_full = np.bincount(pairs // size, minlength=int(leaf.max()) + 1) >= enough
        left = _FIRST_ROWS + np.flatnonzero(~is_full[leaf[_FIRST_ROWS:]])
        pairs = np.unique(np.concatenate([pairs, leaf[left] * size + codes[left]]))
    return pairs[_first(pairs // size, enough)]


def _first(leaf: Ints, enough: int) -> NDArray[np.bool_]:
    """Which of ascending leaves are among the first ``enough`` equal ones."""
    rank: NDArray[np.bool_] = np.arange(len(leaf)) - np.searchsorted(leaf, leaf) < enough
    return rank


def _digests(values: pa.Array, codes: Ints) -> Ints:
    """A digest of the value of each code; 0 for the missing one."""
    is_present = codes != _MISSING
    present = values.take(pa.array(codes[is_present] - 1))
    is_bytes = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    if not any(of_type(present.type) for of_type in is_bytes):
        present = present.cast(pa.string()).cast(pa.binary())
    digests = [hashlib.blake2b(value, digest_size=8).digest() for value in present.to_pylist()]
    digest_of = np.zeros(len(codes), np.int64)
    digest_of[is_present] = np.frombuffer(b"".join(digests), "<i8")
    return digest_of
