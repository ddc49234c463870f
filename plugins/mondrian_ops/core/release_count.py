"""Counting a release as it was written: its equivalence classes, and the values within them.

The rows of the parts are all that is looked at; nothing is known here of how they were cut. The
count is exact: equal values get equal ids, equal combinations of ids get equal 64-bit keys by mixed
radix, and where the radices would overflow 64 bits, the keys so far are replaced by their ranks.
There is no hashing of rows, so no two combinations are ever taken for one. Texts of sensitive
columns are equal if a reader sees the same text, and missing if a reader sees none.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.core.errors import PrivacyError

__all__ = ["PartCount", "ReleaseCount", "ReleaseCounter", "SensitiveCount", "as_read"]

Ints = NDArray[np.int64]

_MISSING = 0
_KEYS = 1 << 64
_PENDING = 1_000_000  # classes of parts kept apart before they are merged


@dataclass(frozen=True)
class PartCount:
    """One part by itself: rows, equivalence classes, and DP, the sum of squared class sizes."""

    rows: int
    classes: int
    dp: int


@dataclass(frozen=True)
class SensitiveCount:
    """How often each value of a sensitive column occurs in each class.

    ``values`` are the distinct values in no particular order, texts `as_read`; value ``i`` has the
    code ``i + 1``, the missing value 0. ``classes``, ``codes`` and ``counts`` (pairs,) int64 list
    the pairs of a class and a code that occur, by ascending class and code. ``totals``
    (values + 1,) int64 are the counts by code over the whole release.
    """

    values: pa.Array[Any]
    classes: Ints
    codes: Ints
    counts: Ints
    totals: Ints


@dataclass(frozen=True)
class ReleaseCount:
    """A whole release.

    Attributes:
        rows: of all parts.
        class_sizes: (classes,) int64, rows of each equivalence class.
        first_rows: (classes,) int64, a row of each class, counted through the parts.
        quasi_identifiers: the columns that define the classes.
        sensitive: by sensitive column.
        persons: (classes,) int64, distinct persons of each class; None where they were not told.
        identifiers: by identifier found, whether it has one value, or none, in all rows.
        columns: all columns of the release.
        parts: (name, first row) of each part.
    """

    rows: int
    class_sizes: Ints
    first_rows: Ints
    quasi_identifiers: tuple[str, ...]
    sensitive: dict[str, SensitiveCount]
    persons: Ints | None
    identifiers: dict[str, bool]
    columns: tuple[str, ...]
    parts: tuple[tuple[str, int], ...]

    @property
    def classes(self) -> int:
        """Number of equivalence classes."""
        return len(self.class_sizes)

    @property
    def histogram(self) -> list[tuple[int, int]]:
        """(size, number of classes of that size), by ascending size."""
        sizes, classes = np.unique(self.class_sizes, return_counts=True)
        return list(zip(sizes.tolist(), classes.tolist(), strict=True))

    @property
    def persons_histogram(self) -> list[tuple[int, int, int]] | None:
        """(persons, number of classes with so many, rows of these), by ascending persons."""
        if self.persons is None:
            return None
        persons, place = np.unique(self.persons, return_inverse=True)
        rows = np.zeros(len(persons), np.int64)
        np.add.at(rows, place, self.class_sizes)
        columns = (persons, np.bincount(place), rows)
        return list(zip(*(column.tolist() for column in columns), strict=True))

    @property
    def dp(self) -> int:
        """Discernibility penalty, the sum of squared class sizes (seed, eq. 2)."""
        return _dp(self.class_sizes)

    @property
    def prosecutor_max(self) -> float:
        """Highest probability of re-identifying a row: 1 / smallest class."""
        return 1 / int(self.class_sizes.min()) if self.classes else 1.0

    @property
    def prosecutor_avg(self) -> float:
        """Probability of re-identifying a row, averaged over rows: classes / rows."""
        return self.classes / self.rows if self.rows else 1.0

    def c_avg(self, k: int) -> float:
        """Average class size in units of k."""
        return self.rows / self.classes / k if self.classes else 0.0

    def locate(self, number: int) -> tuple[str, int]:
        """(part, row within it) of a row of class ``number``, for a person to look at."""
        row = int(self.first_rows[number])
        part = bisect_right(self.parts, row, key=lambda part: part[1]) - 1
        name, start = self.parts[part]
        return name, row - start


class ReleaseCounter:
    """Counts a release part by part; memory is bounded by its classes, not its rows.

    With persons it follows the pairs of a class and a person, which may be as many as the rows.

    Args:
        quasi_identifiers: the published columns that define the classes.
        sensitive: columns whose values are counted within the classes.
        identifiers: columns that should be gone or blank; looked at only where they are present.
        with_persons: each part is added with whose rows its rows are.
    """

    def __init__(
        self,
        quasi_identifiers: Sequence[str],
        sensitive: Sequence[str],
        identifiers: Sequence[str] = (),
        with_persons: bool = False,
    ) -> None:
        self._quasi = {name: _Values(name) for name in quasi_identifiers}
        self._sensitive = {
            name: _Values(name, nan_is_missing=True, read=True) for name in sensitive
        }
        # Persons are counted as the values of one more sensitive column are.
        self._persons = [_Values("entity_id", nan_is_missing=True)] if with_persons else []
        self._identifiers = {name: _Identifier(name) for name in identifiers}
        self._columns: tuple[str, ...] | None = None
        self._parts: list[tuple[str, int]] = []
        self._rows = 0
        self._merged = _nothing(len(self._quasi), len(self._sensitive) + len(self._persons))
        self._pending: list[_Classes] = []

    def add(
        self, table: pa.Table, name: str = "", persons: pa.ChunkedArray[Any] | None = None
    ) -> PartCount:
        """Count one part; ``name`` is its file's, for messages, ``persons`` whose its rows are.

        Raises:
            PrivacyError: a column to count is missing, twice there, not the same in all parts, or
                of a type whose values cannot be told apart; or persons are not told, or not those
                of so many rows.
        """
        self._check_columns(table, name)
        if self._persons and (persons is None or len(persons) != table.num_rows):
            raise PrivacyError(
                f"{name or 'a part'}: it is not known whose row each of its rows is, so its "
                "persons cannot be counted; run again from the partition task"
            )
        self._parts.append((name or f"part {len(self._parts)}", self._rows))
        rows = np.arange(self._rows, self._rows + table.num_rows)
        self._rows += table.num_rows
        for column, identifier in self._identifiers.items():
            if column in table.column_names:
                identifier.see(table[column])
        part = self._group(
            [
                _Classes(
                    codes=[values.encode(table[column]) for column, values in self._quasi.items()],
                    sizes=np.ones(table.num_rows, np.int64),
                    first_rows=rows,
                    pairs=[
                        _Pairs(rows - rows[:1], values.encode(column), np.ones_like(rows))
                        for values, column in (
                            *((values, table[name]) for name, values in self._sensitive.items()),
                            *((values, persons) for values in self._persons),
                        )
                    ],
                )
            ]
        )
        self._pending.append(part)
        if sum(len(each.sizes) for each in self._pending) > max(_PENDING, len(self._merged.sizes)):
            self._merge()
        return PartCount(table.num_rows, len(part.sizes), _dp(part.sizes))

    def result(self) -> ReleaseCount:
        """The count of all parts so far."""
        self._merge()
        return ReleaseCount(
            rows=self._rows,
            class_sizes=self._merged.sizes,
            first_rows=self._merged.first_rows,
            quasi_identifiers=tuple(self._quasi),
            sensitive={
                name: _sensitive_count(values, pairs)
                for (name, values), pairs in zip(
                    self._sensitive.items(), self._merged.pairs, strict=False
                )
            },
            persons=self._persons_per_class(),
            identifiers={
                name: identifier.is_blank
                for name, identifier in self._identifiers.items()
                if identifier.found
            },
            columns=self._columns or (),
            parts=tuple(self._parts),
        )

    def _persons_per_class(self) -> Ints | None:
        if not self._persons:
            return None
        persons: Ints = np.bincount(
            self._merged.pairs[-1].classes, minlength=len(self._merged.sizes)
        )
        return persons

    def _check_columns(self, table: pa.Table, name: str) -> None:
        columns = tuple(sorted(table.column_names))
        where = f"{name}: " if name else ""
        for column in (*self._quasi, *self._sensitive):
            if columns.count(column) != 1:
                state = "missing" if column not in columns else "there twice"
                raise PrivacyError(
                    f"{where}column {column!r} is {state}; the release cannot be checked"
                )
        if self._columns is not None and columns != self._columns:
            raise PrivacyError(
                f"{where}its columns are not those of the parts before; "
                "the release cannot be checked"
            )
        self._columns = columns

    def _merge(self) -> None:
        if not self._pending:
            return
        pieces = [self._merged, *self._pending]
        del self._merged  # or it would stay in memory beside what takes its place
        self._pending = []
        self._merged = self._group(pieces)

    def _group(self, pieces: list[_Classes]) -> _Classes:
        return _group(
            pieces,
            [values.size for values in self._quasi.values()],
            [values.size for values in (*self._sensitive.values(), *self._persons)],
        )


class _Pairs(NamedTuple):
    """Occurrences of a sensitive column's codes in classes: three arrays (pairs,)."""

    classes: Ints
    codes: NDArray[Any]
    counts: Ints


class _Classes(NamedTuple):
    """Groups of rows with equal codes; the same combination may be there more than once.

    ``codes`` has one unsigned array (classes,) per quasi-identifier, ``pairs`` one entry per
    sensitive column.
    """

    codes: list[NDArray[Any]]
    sizes: Ints
    first_rows: Ints
    pairs: list[_Pairs]


def _nothing(quasi: int, sensitive: int) -> _Classes:
    none = np.zeros(0, np.int64)
    code = np.zeros(0, np.uint8)
    return _Classes([code] * quasi, none, none, [_Pairs(none, code, none)] * sensitive)


def _group(pieces: list[_Classes], radices: Sequence[int], pair_radices: Sequence[int]) -> _Classes:
    """Join the classes whose codes are all equal; they come out by ascending codes.

    The list is emptied, and what it held is given up column by column: a release of 100 million
    rows has some gigabytes of classes, which cannot be in memory several times.
    """
    if not any(len(each.sizes) for each in pieces):
        return pieces[0]
    of_codes, of_sizes, of_rows, of_pairs = map(list, zip(*pieces, strict=True))
    pieces.clear()
    ends = np.cumsum([len(sizes) for sizes in of_sizes])
    columns = [list(codes) for codes in zip(*of_codes, strict=True)]
    del of_codes
    order, starts = _runs(_keys(map(np.concatenate, columns), radices, int(ends[-1])))
    class_of = np.empty(len(order), np.int64)
    class_of[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
    first = order[starts]
    codes = [_given_up(column)[first] for column in columns]
    del first
    sizes = _reduced(np.add, _given_up(of_sizes), order, starts)
    first_rows = _reduced(np.minimum, _given_up(of_rows), order, starts)
    del order
    places = np.split(class_of, ends[:-1])
    pairs = [list(column) for column in zip(*of_pairs, strict=True)]
    del of_pairs
    return _Classes(
        codes,
        sizes,
        first_rows,
        [
            _group_pairs(column, places, len(starts), radix)
            for column, radix in zip(pairs, pair_radices, strict=True)
        ],
    )


def _group_pairs(pieces: list[_Pairs], places: Sequence[Ints], classes: int, radix: int) -> _Pairs:
    """Join the pairs that are equal when the classes of each piece have their new ``places``.

    The list is emptied.
    """
    class_of = np.concatenate(
        [place[piece.classes] for place, piece in zip(places, pieces, strict=True)]
    )
    codes = np.concatenate([piece.codes for piece in pieces])
    counts = np.concatenate([piece.counts for piece in pieces])
    pieces.clear()
    order, starts = _runs(_keys([class_of, codes], [classes, radix], len(codes)))
    counts = _reduced(np.add, counts, order, starts)
    first = order[starts]
    del order, starts
    return _Pairs(class_of[first], codes[first], counts)


def _given_up(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    """The pieces one after the other; the list is emptied."""
    whole = np.concatenate(pieces)
    pieces.clear()
    return whole


def _reduced(by: np.ufunc, numbers: Ints, order: Ints, starts: Ints) -> Ints:
    """(runs,) what ``by`` makes of the numbers of each run of the order."""
    reduced: Ints = by.reduceat(numbers[order], starts)
    return reduced


def _keys(columns: Iterable[NDArray[Any]], radices: Sequence[int], rows: int) -> NDArray[np.uint64]:
    """(rows,) one number per row, equal if and only if the rows' codes are equal in all columns."""
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
    """The order that sorts the keys, and where in it each run of equal keys starts."""
    order = np.argsort(keys)
    ordered = keys[order]
    return order, np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))


def _dp(sizes: Ints) -> int:
    # Python's integers: the sum of squares of ten billion rows does not fit in 64 bits.
    distinct, classes = np.unique(sizes, return_counts=True)
    return sum(s * s * n for s, n in zip(distinct.tolist(), classes.tolist(), strict=True))


def _sensitive_count(values: _Values, pairs: _Pairs) -> SensitiveCount:
    codes = pairs.codes.astype(np.int64)
    totals = np.zeros(values.size, np.int64)
    np.add.at(totals, codes, pairs.counts)
    return SensitiveCount(values.known, pairs.classes, codes, pairs.counts, totals)


class _Values:
    """The distinct values of a column met so far; value ``i`` has the code ``i + 1``.

    With ``read``, texts are compared, and listed, as `as_read` gives them.
    """

    def __init__(self, name: str, nan_is_missing: bool = False, read: bool = False) -> None:
        self.name = name
        self.known: pa.Array[Any] = pa.nulls(0)
        self._nan_is_missing = nan_is_missing
        self._read = read

    @property
    def size(self) -> int:
        """Codes in use: those of the values, and 0 for the missing one."""
        return len(self.known) + 1

    def encode(self, column: pa.ChunkedArray[Any]) -> NDArray[Any]:
        """(rows,) unsigned codes of the column; new values extend the known ones."""
        codes = [self._encode_chunk(chunk) for chunk in column.chunks if len(chunk)]
        return np.concatenate(codes) if codes else np.zeros(0, np.uint8)

    def _encode_chunk(self, chunk: Any) -> NDArray[Any]:
        try:
            if not pa.types.is_dictionary(chunk.type):
                chunk = chunk.dictionary_encode()
            values = _canonical(chunk.dictionary, self._nan_is_missing)
            if self._read and pa.types.is_large_string(values.type):
                values = _all_read(values)
            code_of = self._codes_of(values)
        except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
            raise PrivacyError(
                f"column {self.name!r}: values of type {chunk.type} cannot be compared; "
                "the release cannot be checked"
            ) from None
        # One entry more than the dictionary: where a row has no index, it has no value.
        code_of = np.append(code_of, _MISSING).astype(np.min_scalar_type(self.size))
        indices = chunk.indices
        if indices.null_count:
            indices = indices.cast(pa.int64()).fill_null(len(code_of) - 1)
        codes: NDArray[Any] = code_of[indices.to_numpy()]
        return codes

    def _codes_of(self, values: pa.Array[Any]) -> Ints:
        """(values,) the code of each; equal values, wherever they stand, have equal codes."""
        if pa.types.is_null(values.type):
            return np.zeros(len(values), np.int64)
        if not len(self.known):
            self.known = pa.array([], values.type)
        if values.type != self.known.type:
            raise PrivacyError(
                f"column {self.name!r} is {values.type} in one part and {self.known.type} in "
                "another; the release cannot be checked"
            )
        place = pc.index_in(values, value_set=self.known)
        new = values.filter(pc.and_(pc.is_null(place), pc.is_valid(values)))
        if len(new):
            self.known = pa.concat_arrays([self.known, new.unique()])
            place = pc.index_in(values, value_set=self.known)
        codes: Ints = place.cast(pa.int64()).fill_null(-1).to_numpy() + 1
        return codes


class _Identifier(_Values):
    """A column that should hold one value for all rows; two distinct ones tell that it does not."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.found = False
        self._distinct: set[int] = set()

    @property
    def is_blank(self) -> bool:
        """Whether no two rows differ."""
        return len(self._distinct) < 2

    def see(self, column: pa.ChunkedArray[Any]) -> None:
        """Take note of a part's values."""
        self.found = True
        if not len(column):
            return
        if self.is_blank:  # else nothing more is to be learned
            codes = self.encode(column)
            self._distinct.update((int(codes.min()), int(codes.max())))


def _canonical(values: pa.Array[Any], nan_is_missing: bool) -> pa.Array[Any]:
    """The values in a form in which equal ones are one: text of one type, one zero, one NaN."""
    if pa.types.is_string(values.type) or pa.types.is_string_view(values.type):
        return values.cast(pa.large_string())
    if not pa.types.is_floating(values.type):
        return values
    missing = pc.is_null(values, nan_is_null=nan_is_missing).to_numpy(zero_copy_only=False)
    numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    return pa.array(numbers, mask=missing)


_BLANKS = ("Cc", "Zl", "Zp", "Zs")  # control characters; between lines, paragraphs and words
_SHOWS_NOTHING = frozenset(
    map(
        chr,
        [
            *(0x034F, 0x115F, 0x1160, 0x3164, 0xFFA0, 0x17B4, 0x17B5, 0x2065, 0x2800),
            *range(0x180B, 0x1810),
            *range(0xFE00, 0xFE10),
            *range(0xFFF0, 0xFFF9),
            *range(0xE0000, 0xE1000),
        ],
    )
)


def as_read(text: str) -> str | None:
    """The text that a reader sees, None if that is none: equal for texts that look alike.

    Characters that show nothing are left out, the rest is in Unicode's form NFKC, and words are one
    space apart.
    """
    shown = "".join(c for c in text if unicodedata.category(c) != "Cf" and c not in _SHOWS_NOTHING)
    composed = unicodedata.normalize("NFKC", shown)
    words = "".join(" " if unicodedata.category(c) in _BLANKS else c for c in composed).split(" ")
    return " ".join(filter(None, words)) or None


def _all_read(values: pa.Array[Any]) -> pa.Array[Any]:
    """`as_read` of each text; quickly where all of them are plain words of ASCII."""
    plain = pc.match_substring_regex(values, r"^[!-~]+( [!-~]+)*$")
    if pc.all(plain).as_py() is not False:
        return values
    texts = values.to_pylist()
    return pa.array([None if text is None else as_read(text) for text in texts], values.type)
