"""The equivalence classes of a release: runs of equal rows, grouped by sorting their keys.

The count is exact. Equal values have equal codes, and each combination of codes has its own 64-bit
key by mixed radix; where the radices would overflow 64 bits, the keys so far are replaced by their
ranks. Nothing is hashed, so different combinations never count as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.verify.values import ColumnValues, places

Ints = NDArray[np.int64]

_KEYS = 1 << 64
_TABLE = 1 << 22  # entries of a table of counts


class CountedPairs(NamedTuple):
    """How often each code of a sensitive column occurs in each class: three arrays (pairs,)."""

    classes: Ints
    codes: NDArray[Any]
    counts: Ints


class CountedClasses(NamedTuple):
    """Sets of rows with equal codes; a combination may occur more than once.

    ``codes`` has one unsigned array (classes,) per quasi-identifier, ``pairs`` one entry per
    sensitive column.
    """

    codes: list[NDArray[Any]]
    sizes: Ints
    first_rows: Ints
    pairs: list[CountedPairs]


def entries(classes: CountedClasses) -> int:
    """Classes and pairs, which take about the same memory each."""
    return len(classes.sizes) + sum(len(pairs.counts) for pairs in classes.pairs)


def classes_of(
    values: Sequence[ColumnValues], quasi: int, columns: Sequence[pa.Array[Any]], first_row: int
) -> CountedClasses:
    """Runs of equal neighbours among some rows: a release, which is sorted by class, has few.

    The first ``quasi`` of the columns are quasi-identifiers.
    """
    rows = len(columns[0])
    encoded = [of.encoded(column) for of, column in zip(values, columns, strict=True)]
    place_of = [places(column) for column in encoded]
    differs = np.zeros(rows, bool)
    differs[0] = True
    for column_places in place_of[:quasi]:
        differs[1:] |= column_places[1:] != column_places[:-1]
    starts = np.flatnonzero(differs)
    sizes = np.diff(starts, append=rows)
    run_of = np.repeat(np.arange(len(starts)), sizes)
    codes_of = [of.codes_of(column.dictionary) for of, column in zip(values, encoded, strict=True)]
    return CountedClasses(
        [codes[row[starts]] for codes, row in zip(codes_of, place_of[:quasi], strict=False)],
        sizes,
        first_row + starts,
        [
            _counted_pairs(run_of, codes[row], None, len(starts), of.size)
            for codes, row, of in zip(
                codes_of[quasi:], place_of[quasi:], values[quasi:], strict=True
            )
        ],
    )


def group_classes(
    pieces: list[CountedClasses], radices: Sequence[int], pair_radices: Sequence[int]
) -> CountedClasses:
    """Join the classes whose codes are all equal; the result has ascending codes.

    Empties the list and frees its arrays column by column: the classes of 100 million rows take
    gigabytes, which must not be in memory several times.
    """
    if not any(len(piece.sizes) for piece in pieces):
        return pieces[0]
    of_codes, of_sizes, of_rows, of_pairs = map(list, zip(*pieces, strict=True))
    pieces.clear()
    ends = np.cumsum([len(sizes) for sizes in of_sizes])
    columns = [list(codes) for codes in zip(*of_codes, strict=True)]
    del of_codes
    order, starts = _runs(_keys(map(np.concatenate, columns), radices, int(ends[-1])))
    first = order[starts]
    codes = [_concatenated(column)[first] for column in columns]
    del first
    sizes = _reduced(np.add, _concatenated(of_sizes), order, starts)
    first_rows = _reduced(np.minimum, _concatenated(of_rows), order, starts)
    pairs = [list(column) for column in zip(*of_pairs, strict=True)]
    del of_pairs
    return CountedClasses(
        codes,
        sizes,
        first_rows,
        [
            _group_pairs(column, ends, order, starts, radix)
            for column, radix in zip(pairs, pair_radices, strict=True)
        ],
    )


def _group_pairs(
    pieces: list[CountedPairs], ends: Ints, order: Ints, starts: Ints, radix: int
) -> CountedPairs:
    """The pairs of joined classes. Empties the list.

    ``ends`` (pieces,): where the classes of each piece end, numbered through. ``order`` (classes,)
    sorts them; those from one of ``starts`` to the next are joined.
    """
    before = np.concatenate([[0], ends[:-1]])
    of_class = np.concatenate(
        [piece.classes + start for piece, start in zip(pieces, before, strict=True)]
    )
    codes = np.concatenate([piece.codes for piece in pieces])
    counts = np.concatenate([piece.counts for piece in pieces])
    pieces.clear()
    # Every class has rows, so it has pairs, which are adjacent.
    firsts = np.flatnonzero(np.diff(of_class, prepend=-1))
    del of_class
    lengths = np.diff(firsts, append=len(codes))[order]
    moved = np.repeat(firsts[order] - (np.cumsum(lengths) - lengths), lengths)
    del firsts
    moved += np.arange(len(codes))
    codes, counts = codes[moved], counts[moved]
    del moved
    joined = np.diff(starts, append=len(order))
    of_class = np.repeat(np.repeat(np.arange(len(starts)), joined), lengths)
    if len(starts) == len(order):  # no two were equal
        return CountedPairs(of_class, codes, counts)
    return _counted_pairs(of_class, codes, counts, len(starts), radix)


def _counted_pairs(
    class_of: Ints, codes: NDArray[Any], counts: Ints | None, classes: int, radix: int
) -> CountedPairs:
    """Sum the ``counts`` (by default 1 each) of equal pairs of a class and a code."""
    if classes * radix <= max(_TABLE, 4 * len(codes)):  # a table of all pairs is small
        table = np.bincount(class_of * radix + codes, weights=counts, minlength=classes * radix)
        pairs = np.flatnonzero(table)
        return CountedPairs(
            pairs // radix, (pairs % radix).astype(codes.dtype), table[pairs].astype(np.int64)
        )
    counts = np.ones(len(codes), np.int64) if counts is None else counts
    order, starts = _runs(_keys([class_of, codes], [classes, radix], len(codes)))
    counts = _reduced(np.add, counts, order, starts)
    first = order[starts]
    del order, starts
    return CountedPairs(class_of[first], codes[first], counts)


def _concatenated(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    """The pieces one after another. Empties the list."""
    whole = np.concatenate(pieces)
    pieces.clear()
    return whole


def _reduced(by: np.ufunc, numbers: Ints, order: Ints, starts: Ints) -> Ints:
    """(runs,) the numbers of each run of the order, reduced by ``by``."""
    reduced: Ints = by.reduceat(numbers[order], starts)
    return reduced


def _keys(columns: Iterable[NDArray[Any]], radices: Sequence[int], rows: int) -> NDArray[np.uint64]:
    """(rows,) a number per row; numbers are equal exactly where all codes are."""
    keys = np.zeros(rows, np.uint64)
    span = 1
    for codes, radix in zip(columns, radices, strict=True):
        if span * radix > _KEYS:
            distinct, ranks = np.unique(keys, return_inverse=True)
            keys, span = ranks.astype(np.uint64), len(distinct)
        # Ranks are below the number of rows, codes below that of values: their product fits.
        keys *= np.uint64(radix)
        keys += codes.astype(np.uint64)
        span *= radix
    return keys


def _runs(keys: NDArray[np.uint64]) -> tuple[Ints, Ints]:
    """The order that sorts the keys, and where in it each run of equal keys starts.

    A stable sort merges pieces that are sorted already, such as the parts.
    """
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    return order, np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
