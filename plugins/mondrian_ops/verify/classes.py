"""The equivalence classes of a release: runs of equal rows, joined where their keys are equal.

The count is exact. Equal values have equal codes, and each combination of codes has its own 64-bit
key by mixed radix; where the radices would overflow 64 bits, the keys so far are replaced by the
numbers of their groups. A hash finds equal keys and decides nothing: different combinations never
count as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.verify.native.equal_rows import (
    Codes,
    equal_runs,
    group_keys,
    join_codes,
)
from mondrian_ops.verify.native.value_counts import CountedPairs, count_values, sum_values
from mondrian_ops.verify.values import ColumnCodes

Ints = NDArray[np.int64]

_KEYS = 1 << 64
_NARROW = 2  # bytes of the codes of a column of few values
_LIGHT = 1 / 8  # of a class, for a pair of such a column


class CountedClasses(NamedTuple):
    """Sets of rows with equal codes; a combination may occur more than once.

    ``codes`` has one unsigned array (classes,) per quasi-identifier, ``sizes`` and ``first_rows``
    are (classes,) int64, ``pairs`` has one entry per sensitive column.
    """

    codes: list[Codes]
    sizes: Ints
    first_rows: Ints
    pairs: list[CountedPairs]


def entries(classes: CountedClasses) -> float:
    """What some classes and their pairs take in memory, by what a class takes."""
    return len(classes.sizes) + sum(
        pair_weight(pairs) * len(pairs.codes) for pairs in classes.pairs
    )


def pair_weight(pairs: CountedPairs) -> float:
    """What a pair takes in memory, by what a class takes.

    With a column of many values, each pair may bring a value of its own.
    """
    return _LIGHT if pairs.codes.itemsize <= _NARROW else 1.0


def classes_of(
    encoders: Sequence[ColumnCodes], quasi: int, columns: Sequence[pa.Array[Any]], first_row: int
) -> CountedClasses:
    """Runs of equal neighbours among some rows: a release, which is sorted by class, has few.

    The first ``quasi`` of the columns are quasi-identifiers. Each column's encoder then has the
    values that the codes stand for.
    """
    rows = len(columns[0])
    places = [encoder.places(column) for encoder, column in zip(encoders, columns, strict=True)]
    starts = equal_runs(places[:quasi], rows)
    sizes = np.diff(np.append(starts.astype(np.int64), rows))
    return CountedClasses(
        [
            of.codes.take(row.take(starts))
            for of, row in zip(encoders, places[:quasi], strict=False)
        ],
        sizes,
        first_row + starts.astype(np.int64),
        [
            count_values(row, starts, of.codes, of.values.size)
            for of, row in zip(encoders[quasi:], places[quasi:], strict=True)
        ],
    )


def group_classes(
    pieces: list[CountedClasses], radices: Sequence[int], pair_radices: Sequence[int]
) -> CountedClasses:
    """Join the classes whose codes are all equal; they are in the order of the first of each.

    Empties the list and frees its arrays column by column: the classes of 100 million rows take
    gigabytes, which must not be in memory several times.
    """
    if not any(len(piece.sizes) for piece in pieces):
        return pieces[0]
    of_codes, of_sizes, of_rows, of_pairs = map(list, zip(*pieces, strict=True))
    pieces.clear()
    columns = [list(codes) for codes in zip(*of_codes, strict=True)]
    del of_codes
    codes = [_concatenated(column) for column in columns]
    sizes, first_rows = _concatenated(of_sizes), _concatenated(of_rows)
    pairs = [list(column) for column in zip(*of_pairs, strict=True)]
    del of_pairs
    order, starts = group_keys(_keys(codes, radices, len(sizes)))
    if len(starts) == len(order):  # no two are equal
        return CountedClasses(codes, sizes, first_rows, [_following(each) for each in pairs])
    first = order[starts]
    for at, column in enumerate(codes):
        codes[at] = column.take(first)
    return CountedClasses(
        codes,
        np.add.reduceat(sizes[order], starts),
        np.minimum.reduceat(first_rows[order], starts),
        [
            sum_values(_following(each), order, starts, radix)
            for each, radix in zip(pairs, pair_radices, strict=True)
        ],
    )


def divided(classes: CountedClasses, most: int) -> Iterator[CountedClasses]:
    """The classes, about so many of them and of their pairs at a time; the arrays are shared."""
    pairs = sum(len(each.codes) for each in classes.pairs)
    parts = 1 + max(pairs, len(classes.sizes)) // most
    ends = len(classes.sizes) * np.arange(parts + 1) // parts
    for start, stop in pairwise(ends.tolist()):
        yield CountedClasses(
            [codes[start:stop] for codes in classes.codes],
            classes.sizes[start:stop],
            classes.first_rows[start:stop],
            [_pairs_between(each, start, stop) for each in classes.pairs],
        )


def recoded(codes: Codes, other: Codes) -> Codes:
    """The codes in another numbering, ``other`` (codes,): the same array if it is the same one."""
    if len(other) <= len(codes) and np.array_equal(other, np.arange(len(other))):
        return codes
    return other.take(codes)


def one_by_one(pairs: CountedPairs) -> tuple[Ints, Ints, Ints]:
    """The class, the code and the count of each pair, three (pairs,) int64."""
    classes = np.repeat(np.arange(len(pairs.first) - 1), np.diff(pairs.first))
    return classes, pairs.codes.astype(np.int64), pairs.counts.astype(np.int64)


def rows_without(pairs: CountedPairs) -> Ints:
    """(classes,) the rows of each class that have no value."""
    rows = np.zeros(len(pairs.first) - 1, np.int64)
    (missing,) = np.nonzero(pairs.codes == 0)  # one pair of a class at most
    rows[np.searchsorted(pairs.first, missing, side="right") - 1] = pairs.counts[missing]
    return rows


def _pairs_between(pairs: CountedPairs, start: int, stop: int) -> CountedPairs:
    first, end = pairs.first[start], pairs.first[stop]
    return CountedPairs(
        pairs.first[start : stop + 1] - first, pairs.codes[first:end], pairs.counts[first:end]
    )


def _following(pieces: list[CountedPairs]) -> CountedPairs:
    """The pairs of the classes of all pieces, one piece after another. Empties the list."""
    before = np.cumsum([0, *(len(piece.codes) for piece in pieces)])
    firsts = [piece.first[:-1] + start for piece, start in zip(pieces, before, strict=False)]
    pairs = CountedPairs(
        np.concatenate([*firsts, before[-1:]]),
        np.concatenate([piece.codes for piece in pieces]),
        np.concatenate([piece.counts for piece in pieces]),
    )
    pieces.clear()
    return pairs


def _concatenated(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    """The pieces one after another. Empties the list."""
    whole = np.concatenate(pieces)
    pieces.clear()
    return whole


def _keys(columns: Sequence[Codes], radices: Sequence[int], rows: int) -> NDArray[np.uint64]:
    """(rows,) a number per row; numbers are equal exactly where all codes are."""
    keys = np.zeros(rows, np.uint64)
    first, span = 0, 1
    for at, radix in enumerate(radices):
        if span * radix > _KEYS:
            join_codes(columns[first:at], radices[first:at], keys)
            # Groups are at most as many as rows, codes as values: their product fits.
            first, span = at, _number_groups(keys)
        span *= radix
    join_codes(columns[first:], radices[first:], keys)
    return keys


def _number_groups(keys: NDArray[np.uint64]) -> int:
    """Replace each key by the number of its group; returns how many there are."""
    order, starts = group_keys(keys)
    lengths = np.diff(starts, append=len(order))
    keys[order] = np.repeat(np.arange(len(starts), dtype=np.uint64), lengths)
    return len(starts)
