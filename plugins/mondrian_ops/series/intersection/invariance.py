"""Classes of a night that, with those of all nights before, leave l values to an attacker.

After X. Xiao and Y. Tao, "m-invariance: towards privacy preserving re-publication of dynamic
datasets", SIGMOD 2007: whoever intersects the classes that a person was in must be left with m
sensitive values. There, a signature of m values is fixed for each person, and a class has rows of
one signature only, as many of each value. Here a person's signature is what the classes had in
common so far, and a class may mix signatures: it needs l values of each member's signature. So a
class can be of the people next to each other, and rarely a row is without a partner.

People stay with the people of the night before, as far as that is possible: so their classes keep
having the same values. `native.invariance` says how the classes of a night are found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.cut.algorithms.mondrian import CodedRows, CutPolicy
from mondrian_ops.cut.native import mondrian as native
from mondrian_ops.generalize.attributes import Classes
from mondrian_ops.late_methods import dataclass
from mondrian_ops.series.intersection.native import invariance as kernel

NEW, NOT_TONIGHT = -1, -2
"""In place of a class: who had none in the night before; whose row must not be published."""

_RISK, _RISK_MADE_UP = 3.0, 2.0
"""The risk that a person's common values fall to fewer than l is worth so many rows' mean loss; the
second if rows may be made up then."""

_PRICE = 1.0
"""To make up the l - 1 values that a person needs costs as much as so many rows lose on average."""

_LEAST = 1e-6
"""A row loses that much on average at least, so that made-up rows are never free."""

_MOST = 16
"""A class of so many times k rows is joined with no other one to have enough values."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class History:
    """What the releases before have told of the persons of some rows.

    values
        (rows,) int32, the code of the sensitive value, -1 for a missing one.
    common
        (rows, words) uint64, bit by bit the values that all classes of the person had; every bit
        for who is new, and every other bit for who has a value that they had not in common.
    class_of
        (rows,) int32, the class of the night before, NEW or NOT_TONIGHT.
    """

    values: NDArray[np.int32]
    common: NDArray[np.uint64]
    class_of: NDArray[np.int32]

    def to_array(self) -> pa.Array:
        """One binary value per row."""
        pairs = np.stack([self.values, self.class_of], axis=1).astype("<i4").view("<u8")
        return words_to_arrow(np.hstack([pairs, self.common.astype("<u8")]))

    @classmethod
    def from_array(cls, column: pa.ChunkedArray) -> History:
        """The history that :meth:`to_array` packed."""
        packed = np.frombuffer(b"".join(column.to_pylist()), "<u8")
        packed = packed.reshape(len(column), -1)
        pairs = np.ascontiguousarray(packed[:, 0]).view("<i4").reshape(-1, 2).astype(np.int32)
        common = np.ascontiguousarray(packed[:, 1:].astype(np.uint64))
        return cls(np.ascontiguousarray(pairs[:, 0]), common, np.ascontiguousarray(pairs[:, 1]))


def words_to_arrow(words: NDArray[np.uint64]) -> pa.Array:
    """(rows, words) as one binary value per row."""
    packed = np.ascontiguousarray(words.astype("<u8"))
    kind = pa.binary(8 * packed.shape[1])
    return pa.FixedSizeBinaryArray.from_buffers(kind, len(packed), [None, pa.py_buffer(packed)])


class Kept(NamedTuple):
    """The classes of a night.

    ``unmatched`` (rows,) bool: rows that are in none of them. ``counterfeits`` (n, 2) int64: the
    number of a class and the code of a value that nobody in it has, of each row that it needs.
    """

    classes: Classes
    unmatched: NDArray[np.bool_]
    counterfeits: Ints


def kept_classes(
    coded: CodedRows,
    history: History,
    l: int,  # noqa: E741
    cores: int = 1,
    *,
    counterfeits: bool = False,
) -> Kept:
    """Classes of at least k rows, each with at least ``l`` common values of every member.

    With ``counterfeits`` a class may lack one or two values, if people who have them would lose
    more than rows that are made up. Only values are made up that some row has tonight, and only
    where nobody can tell which rows these are: native/counterfeits.c has the rule. Chance decides
    which of several values it is. Each row is another person. The rows as a whole must satisfy the
    criteria of ``coded``.
    """
    tonight = np.flatnonzero(history.class_of != NOT_TONIGHT).astype(np.int32)
    unordered = coded.taken(tonight)
    policy = CutPolicy("widest gain").kernel()
    index, starts = native.classes(unordered.rows, unordered.criteria, policy, cores)
    loss = native.loss(unordered.rows, unordered.criteria, policy, index, starts)
    mean = max(_LEAST, loss / max(1, len(tonight)))
    tonight = tonight[index]  # so that neighbours are side by side in memory, too
    rows = coded.taken(tonight)
    class_of = history.class_of[tonight]
    if np.count_nonzero(class_of == NEW) > len(class_of) // 2:
        class_of = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(index)))
    found, made_up = kernel.kept_classes(
        rows.rows,
        history.values[tonight],
        history.common[tonight],
        _numbered(class_of),
        np.stack([np.arange(len(tonight), dtype=np.int32), *_orders(rows.rows.codes)]),
        k=coded.criteria.k,
        l=l,
        most=_MOST * coded.criteria.k,
        weight=(_RISK_MADE_UP if counterfeits else _RISK) * mean,
        price=_PRICE / max(1, l - 1) * mean if counterfeits else None,
    )
    placed = np.flatnonzero(found >= 0)
    placed = placed[np.argsort(found[placed], kind="stable")]
    unmatched = np.ones(coded.count, np.bool_)
    unmatched[tonight[placed]] = False
    numbers, starts = np.unique(found[placed], return_index=True)
    of_row, which = np.nonzero(made_up >= 0)
    pairs = np.stack([np.searchsorted(numbers, found[of_row]), made_up[of_row, which]], axis=1)
    return Kept(Classes(tonight[placed], starts), unmatched, pairs)


def _numbered(class_of: NDArray[np.int32]) -> NDArray[np.int32]:
    """The classes, numbered from 0 without gaps; NEW stays."""
    distinct, numbers = np.unique(class_of, return_inverse=True)
    return (numbers - int(distinct[:1].tolist() == [NEW])).astype(np.int32)


def _orders(codes: NDArray[np.unsignedinteger]) -> list[NDArray[np.int32]]:
    """Orders in which neighbours differ in one attribute first, one order per attribute."""
    attributes = range(len(codes))
    return [
        np.lexsort([codes[last], *(codes[a] for a in attributes if a != last)]).astype(np.int32)
        for last in attributes
    ]
