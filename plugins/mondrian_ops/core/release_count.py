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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.core.errors import PrivacyError

__all__ = [
    "PartCount",
    "ReleaseCount",
    "ReleaseCounter",
    "SeenPart",
    "SensitiveCount",
    "as_read",
]

Ints = NDArray[np.int64]
Part: TypeAlias = pa.Table | Iterable[pa.RecordBatch]

_MISSING = 0
_KEYS = 1 << 64
_PENDING = 2_000_000  # classes of parts kept apart before they are merged
_SLICE = 1 << 17  # rows encoded at once, whose arrays stay in the caches
_TABLE = 1 << 22  # entries of a table of counts


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
    the pairs of a class and a code that occur, by ascending class. ``totals``
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
        self._merged = self._nothing()
        self._pending: list[_Classes] = []

    def add(
        self, part: Part, name: str = "", persons: pa.ChunkedArray[Any] | None = None
    ) -> PartCount:
        """Count one part: :meth:`look` at it, and :meth:`take` what was found."""
        return self.take(self.look(part, name, persons))

    def look(
        self, part: Part, name: str = "", persons: pa.ChunkedArray[Any] | None = None
    ) -> SeenPart:
        """What one part holds; the counter stays as it is, so threads may look at several.

        Args:
            part: a table, or its batches, of which there is one at least.
            name: its file's, for messages.
            persons: whose its rows are.

        Raises:
            PrivacyError: a column to count is missing, twice there, or of a type whose values
                cannot be told apart; or persons are not told, or not those of so many rows.
        """
        rows, pieces, columns = 0, list[_Classes](), tuple[str, ...]()
        values = [each.anew() for each in self._values]
        identifiers = {column: _Identifier(column) for column in self._identifiers}
        for batch in _batches(part):
            columns = self._checked(batch.schema.names, name)
            for column, identifier in identifiers.items():
                if column in columns:
                    identifier.see(batch.column(column))
            counted = [batch.column(column) for column in (*self._quasi, *self._sensitive)]
            if self._persons:
                counted.append(_persons_of(persons, rows, batch.num_rows, name))
            for piece in pa.table(counted, list(map(str, range(len(counted))))).to_batches(_SLICE):
                pieces.append(_classes(values, len(self._quasi), piece.columns, rows))
                rows += piece.num_rows
        if persons is not None and len(persons) != rows:
            raise _unknown_persons(name)
        classes = self._group(pieces, values) if pieces else self._nothing()
        count = PartCount(rows, len(classes.sizes), _dp(classes.sizes))
        return SeenPart(name, count, columns, values, classes, identifiers)

    def take(self, part: SeenPart) -> PartCount:
        """Take in what one part holds.

        Raises:
            PrivacyError: its columns are not those of the parts before, or not of their types.
        """
        if self._columns not in (None, part.columns):
            where = f"{part.name}: " if part.name else ""
            raise PrivacyError(
                f"{where}its columns are not those of the parts before; "
                "the release cannot be checked"
            )
        self._columns = part.columns
        for name, identifier in part.identifiers.items():
            self._identifiers[name].join(identifier)
        self._parts.append((part.name or f"part {len(self._parts)}", self._rows))
        self._pending.append(self._recoded(part))
        self._rows += part.counted.rows
        if sum(len(each.sizes) for each in self._pending) > max(_PENDING, len(self._merged.sizes)):
            self._merge()
        return part.counted

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

    def _checked(self, columns: Sequence[str], name: str) -> tuple[str, ...]:
        where = f"{name}: " if name else ""
        for column in (*self._quasi, *self._sensitive):
            if columns.count(column) != 1:
                state = "missing" if column not in columns else "there twice"
                raise PrivacyError(
                    f"{where}column {column!r} is {state}; the release cannot be checked"
                )
        return tuple(sorted(columns))

    def _merge(self) -> None:
        if not self._pending:
            return
        pieces = [self._merged, *self._pending]
        del self._merged  # or it would stay in memory beside what takes its place
        self._pending = []
        self._merged = self._group(pieces, self._values)

    def _recoded(self, part: SeenPart) -> _Classes:
        """The classes of a part in the codes of the counter, and its rows counted on."""
        of_part = [
            known.codes_of(each.known)
            for known, each in zip(self._values, part.values, strict=True)
        ]
        # There the missing value comes last, among codes first.
        of_part = [np.roll(codes, 1) for codes in of_part]
        found, quasi = part.classes, len(self._quasi)
        return _Classes(
            [codes[each] for codes, each in zip(of_part, found.codes, strict=False)],
            found.sizes,
            found.first_rows + self._rows,
            [
                pairs._replace(codes=codes[pairs.codes])
                for codes, pairs in zip(of_part[quasi:], found.pairs, strict=True)
            ],
        )

    @property
    def _values(self) -> list[_Values]:
        return [*self._quasi.values(), *self._sensitive.values(), *self._persons]

    def _nothing(self) -> _Classes:
        none = np.zeros(0, np.int64)
        code = np.zeros(0, np.uint8)
        pairs = len(self._sensitive) + len(self._persons)
        return _Classes([code] * len(self._quasi), none, none, [_Pairs(none, code, none)] * pairs)

    def _group(self, pieces: list[_Classes], values: Sequence[_Values]) -> _Classes:
        radices = [each.size for each in values]
        return _group(pieces, radices[: len(self._quasi)], radices[len(self._quasi) :])


class _Pairs(NamedTuple):
    """Occurrences of a sensitive column's codes in classes: three arrays (pairs,)."""

    classes: Ints
    codes: NDArray[Any]
    counts: Ints


class SeenPart(NamedTuple):
    """What :meth:`ReleaseCounter.look` found in a part."""

    name: str
    counted: PartCount
    columns: tuple[str, ...]
    values: list[_Values]
    classes: _Classes
    identifiers: dict[str, _Identifier]


class _Classes(NamedTuple):
    """Groups of rows with equal codes; the same combination may be there more than once.

    ``codes`` has one unsigned array (classes,) per quasi-identifier, ``pairs`` one entry per
    sensitive column.
    """

    codes: list[NDArray[Any]]
    sizes: Ints
    first_rows: Ints
    pairs: list[_Pairs]


def _classes(
    values: Sequence[_Values], quasi: int, columns: Sequence[pa.Array[Any]], first_row: int
) -> _Classes:
    """Some rows as runs of equal neighbours, of which a release sorted by class has few.

    The first ``quasi`` of the columns are quasi-identifiers.
    """
    rows = len(columns[0])
    listed = [each.listed(column) for each, column in zip(values, columns, strict=True)]
    places = [_places(column) for column in listed]
    differs = np.zeros(rows, bool)
    differs[0] = True
    for each in places[:quasi]:
        differs[1:] |= each[1:] != each[:-1]
    starts = np.flatnonzero(differs)
    sizes = np.diff(starts, append=rows)
    run_of = np.repeat(np.arange(len(starts)), sizes)
    codes_of = [
        each.codes_of(column.dictionary) for each, column in zip(values, listed, strict=True)
    ]
    return _Classes(
        [codes[each[starts]] for codes, each in zip(codes_of, places[:quasi], strict=False)],
        sizes,
        first_row + starts,
        [
            _counted_pairs(run_of, codes[each], None, len(starts), of.size)
            for codes, each, of in zip(
                codes_of[quasi:], places[quasi:], values[quasi:], strict=True
            )
        ],
    )


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
    first = order[starts]
    codes = [_given_up(column)[first] for column in columns]
    del first
    sizes = _reduced(np.add, _given_up(of_sizes), order, starts)
    first_rows = _reduced(np.minimum, _given_up(of_rows), order, starts)
    pairs = [list(column) for column in zip(*of_pairs, strict=True)]
    del of_pairs
    return _Classes(
        codes,
        sizes,
        first_rows,
        [
            _group_pairs(column, ends, order, starts, radix)
            for column, radix in zip(pairs, pair_radices, strict=True)
        ],
    )


def _group_pairs(pieces: list[_Pairs], ends: Ints, order: Ints, starts: Ints, radix: int) -> _Pairs:
    """The pairs of joined classes; the list is emptied.

    ``ends`` (pieces,) count the classes of the pieces, one after another; in ``order`` (classes,)
    they are sorted, and those from one of ``starts`` to the next are joined.
    """
    before = np.concatenate([[0], ends[:-1]])
    of_class = np.concatenate(
        [piece.classes + start for piece, start in zip(pieces, before, strict=True)]
    )
    codes = np.concatenate([piece.codes for piece in pieces])
    counts = np.concatenate([piece.counts for piece in pieces])
    pieces.clear()
    # Every class has rows, so it has pairs, which stand beside each other.
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
    if len(starts) == len(order):  # none was joined
        return _Pairs(of_class, codes, counts)
    return _counted_pairs(of_class, codes, counts, len(starts), radix)


def _counted_pairs(
    class_of: Ints, codes: NDArray[Any], counts: Ints | None, classes: int, radix: int
) -> _Pairs:
    """The pairs of a class and a code, each once; a pair stands for so many ``counts``, or one."""
    if classes * radix <= max(_TABLE, 4 * len(codes)):  # a table of all pairs is small
        table = np.bincount(class_of * radix + codes, weights=counts, minlength=classes * radix)
        pairs = np.flatnonzero(table)
        return _Pairs(
            pairs // radix, (pairs % radix).astype(codes.dtype), table[pairs].astype(np.int64)
        )
    counts = np.ones(len(codes), np.int64) if counts is None else counts
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
    """The order that sorts the keys, and where in it each run of equal keys starts.

    Keys that are sorted piece by piece, as those of parts are, are merged rather than sorted anew.
    """
    order = np.argsort(keys, kind="stable")
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

    def anew(self) -> _Values:
        """For the same column, with no values met."""
        return _Values(self.name, self._nan_is_missing, self._read)

    @property
    def size(self) -> int:
        """Codes in use: those of the values, and 0 for the missing one."""
        return len(self.known) + 1

    def listed(self, column: pa.Array[Any]) -> pa.DictionaryArray[Any, Any]:
        """The column as indices into a list of values, which may hold equal ones."""
        with self._comparable(column):
            return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()

    def codes_of(self, values: pa.Array[Any]) -> NDArray[Any]:
        """(values + 1,) unsigned codes of some values, and of none; new ones extend the known ones.

        Equal values, wherever they stand, have equal codes.
        """
        with self._comparable(values):
            values = _canonical(values, self._nan_is_missing)
            if self._read and pa.types.is_large_string(values.type):
                values = _all_read(values)
            codes = self._codes_of(values)
        return np.append(codes, _MISSING).astype(np.min_scalar_type(self.size))

    @contextmanager
    def _comparable(self, column: pa.Array[Any]) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
            raise PrivacyError(
                f"column {self.name!r}: values of type {column.type} cannot be compared; "
                "the release cannot be checked"
            ) from None

    def _codes_of(self, values: pa.Array[Any]) -> Ints:
        """(values,) the code of each of some values in their canonical form."""
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

    def see(self, column: pa.Array[Any]) -> None:
        """Take note of some values."""
        self.found = True
        if self.is_blank and len(column):  # else nothing more is to be learned
            listed = self.listed(column)
            codes = self.codes_of(listed.dictionary).take(_places(listed))
            self._distinct.update((int(codes.min()), int(codes.max())))

    def join(self, other: _Identifier) -> None:
        """Take note of what another one saw."""
        self.found |= other.found
        if not other.is_blank:
            self._distinct |= other._distinct
        elif other._distinct:
            (code,) = other._distinct
            self.see(other.known.slice(code - 1, 1) if code else pa.nulls(1, other.known.type))


def _batches(part: Part) -> Iterable[pa.RecordBatch]:
    """The batches of a part, one without rows where it has none."""
    if not isinstance(part, pa.Table):
        return part
    return part.to_batches() or [_without_rows(part.schema)]


def _without_rows(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, each.type) for each in schema], schema=schema)


def _persons_of(
    persons: pa.ChunkedArray[Any] | None, start: int, rows: int, name: str
) -> pa.ChunkedArray[Any]:
    if persons is None or len(persons) < start + rows:
        raise _unknown_persons(name)
    return persons.slice(start, rows)


def _unknown_persons(name: str) -> PrivacyError:
    return PrivacyError(
        f"{name or 'a part'}: it is not known whose row each of its rows is, so its "
        "persons cannot be counted; run again from the partition task"
    )


def _places(column: pa.DictionaryArray[Any, Any]) -> NDArray[Any]:
    """(rows,) places in the column's dictionary; the place behind its last where there is none."""
    indices = column.indices
    if indices.null_count:
        indices = indices.cast(pa.int64()).fill_null(len(column.dictionary))
    places: NDArray[Any] = indices.to_numpy()
    return places


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
