"""Counts a release as it was written: its equivalence classes, and the values within them.

It reads only the rows of the parts and knows nothing of how they were cut. `values` decides which
are equal, `classes` which rows form one class; `spilling` keeps classes that do not fit in memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.errors import PrivacyError
from mondrian_ops.job.widths import Width
from mondrian_ops.late_methods import dataclass
from mondrian_ops.verify.classes import (
    CountedClasses,
    classes_of,
    divided,
    entries,
    group_classes,
    one_by_one,
    recoded,
    rows_without,
)
from mondrian_ops.verify.figures import ClassCounts, Figures
from mondrian_ops.verify.loss import losses_of_part
from mondrian_ops.verify.native.value_counts import CountedPairs, sum_by_code
from mondrian_ops.verify.published_labels import PublishedLabels
from mondrian_ops.verify.quoted_texts import as_texts
from mondrian_ops.verify.spilling import SpilledClasses
from mondrian_ops.verify.spread import SensitiveCount
from mondrian_ops.verify.values import ColumnCodes, ColumnValues, IdentifierValues

Ints = NDArray[np.int64]
Part: TypeAlias = pa.Table | Iterable[pa.RecordBatch]

HELD = 4_000_000
"""Classes that a counter keeps in memory; pairs of a class and a value weigh as `entries` says."""
_SLICE = 1 << 17  # rows encoded at once: their arrays fit into the caches
_MEASURED = 1 << 20  # pairs of a class and a value that are measured at once


@dataclass(frozen=True)
class PartCount:
    """One part by itself: rows, equivalence classes, and DP, the sum of squared class sizes.

    ``losses``: those of its rows, as `release_loss.losses_of_part` has them; empty where they are
    not measured.
    """

    rows: int
    classes: int
    dp: int
    losses: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class ReleaseCount:
    """A whole release.

    Attributes:
        rows: of all parts.
        quasi_identifiers: the columns that define the classes.
        sensitive: the columns whose values were counted.
        identifiers: by published identifier, whether all rows have the same value or none.
        columns: all columns of the release.
        published: by quasi-identifier, the distinct values that are published.
        parts: (name, first row) of each part.
        read: the classes anew, a partition at a time.
        widths: by sensitive column, within which its values count as similar.
    """

    rows: int
    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...]
    identifiers: dict[str, bool]
    columns: tuple[str, ...]
    published: dict[str, pa.Array[Any]]
    parts: tuple[tuple[str, int], ...]
    read: Callable[[], Iterator[ClassCounts]]
    widths: Mapping[str, Width] = field(default_factory=dict)

    def partitions(self) -> Iterator[ClassCounts]:
        """All classes, a partition at a time.

        Raises:
            OSError: the file of spilled classes does not give back what was written.
        """
        figures = Figures(self.widths)
        for classes in self.read():
            figures.add(classes)
            yield classes
        if figures.rows != self.rows:
            raise OSError("the spilled classes have other rows than were counted")
        vars(self)["figures"] = figures  # so that no pass is made for them alone

    @cached_property
    def figures(self) -> Figures:
        """Of all classes."""
        deque(self.partitions(), maxlen=0)
        return self.figures

    @property
    def classes(self) -> int:
        """Number of equivalence classes."""
        return self.figures.classes.total()

    @property
    def histogram(self) -> list[tuple[int, int]]:
        """(size, number of classes of that size), by ascending size."""
        return sorted(self.figures.classes.items())

    @property
    def persons_histogram(self) -> list[tuple[int, int, int]] | None:
        """(persons, number of classes of so many persons, rows of these), by ascending persons."""
        return self.figures.persons_histogram

    @property
    def dp(self) -> int:
        """Discernibility penalty: the sum of squared class sizes (Bayardo and Agrawal 2005)."""
        return sum(size * size * number for size, number in self.histogram)

    @property
    def prosecutor_max(self) -> float:
        """Highest probability of re-identifying a row: 1 / smallest class."""
        return 1 / self.histogram[0][0] if self.classes else 1.0

    @property
    def prosecutor_avg(self) -> float:
        """Probability of re-identifying a row, averaged over rows: classes / rows."""
        return self.classes / self.rows if self.rows else 1.0

    def c_avg(self, k: int) -> float:
        """Average class size in units of k."""
        return self.rows / self.classes / k if self.classes else 0.0

    def locate(self, row: int) -> tuple[str, int]:
        """(part, row within it) of a row of the release, to look it up."""
        part = bisect_right(self.parts, row, key=lambda part: part[1]) - 1
        name, start = self.parts[part]
        return name, row - start


class ReleaseCounter:
    """Counts a release part by part.

    Memory is bounded where there is a file for the classes that are too many: by the largest part,
    the distinct values of the sensitive columns, and the persons of the class that has most.

    Args:
        quasi_identifiers: the published columns that define the classes.
        sensitive: columns whose values are counted within the classes.
        identifiers: columns that should be dropped or redacted; counted where they are published.
        with_persons: each part comes with the person of each row.
        spill: a file without content, open to be written and read, for classes beyond ``held``;
            without it, all are in memory.
        held: entries that are kept in memory: classes, with their pairs of a class and a value.
        with_counterfeits: a row without a person is a counterfeit.
        labels: by quasi-identifier, what reads its labels; the losses of each part are measured by
            them, without the rows that are made up. By default they are not measured.
        widths: by sensitive column, within which its values count as similar.
        of_codes: the sensitive columns whose texts are codes: ``1`` and ``1.0`` are two values.
    """

    def __init__(
        self,
        quasi_identifiers: Sequence[str],
        sensitive: Sequence[str],
        identifiers: Sequence[str] = (),
        with_persons: bool = False,
        spill: IO[bytes] | None = None,
        held: int = HELD,
        with_counterfeits: bool = False,
        labels: Mapping[str, PublishedLabels] | None = None,
        widths: Mapping[str, Width] | None = None,
        of_codes: Collection[str] = (),
    ) -> None:
        self._quasi = {name: ColumnValues(name) for name in quasi_identifiers}
        self._sensitive = {
            name: ColumnValues(name, nan_is_missing=True, read=True, numbers=name not in of_codes)
            for name in sensitive
        }
        # Persons are counted as the values of one more sensitive column are.
        self._persons = [ColumnValues("entity_id", nan_is_missing=True)] if with_persons else []
        self._with_counterfeits = with_counterfeits
        self._labels = labels or {}
        self._widths = widths or {}
        self._identifiers = {name: IdentifierValues(name) for name in identifiers}
        self._columns: tuple[str, ...] | None = None
        self._parts: list[tuple[str, int]] = []
        self._rows = 0
        self._totals = [np.zeros(1, np.int64) for _ in sensitive]
        self._merged = self._no_classes()
        self._pending: list[_Coded] = []
        self._held = held
        self._spilled: SpilledClasses | None = None
        if spill is not None:
            first, last = len(self._quasi), len(self._quasi) + len(self._sensitive)
            self._spilled = SpilledClasses(spill, self._values, first, range(first, last))

    def know(self, values: Sequence[pa.Array[Any]]) -> None:
        """Give values of the sensitive columns the first codes; before anything is counted."""
        for column, known in zip(self._sensitive.values(), values, strict=True):
            column.values = known

    @property
    def columns(self) -> frozenset[str]:
        """The columns whose values are counted."""
        return frozenset([*self._quasi, *self._sensitive, *self._identifiers])

    def add(
        self,
        part: Part,
        name: str = "",
        persons: pa.ChunkedArray[Any] | None = None,
        columns: Sequence[str] | None = None,
    ) -> PartCount:
        """Count one part and merge the result."""
        return self.merge(self.count(part, name, persons, columns))

    def count(
        self,
        part: Part,
        name: str = "",
        persons: pa.ChunkedArray[Any] | None = None,
        columns: Sequence[str] | None = None,
    ) -> CountedPart:
        """Count one part. The counter does not change, so threads may count parts concurrently.

        Args:
            part: a table, or its batches, of which there is one at least.
            name: that of its file, for messages.
            persons: the person of each row.
            columns: all that its file has, where the part has only those of :attr:`columns`.

        Raises:
            PrivacyError: a column to count is missing, duplicate, or of a type whose values
                cannot be compared; or the number of persons is not that of the rows.
        """
        rows, present = 0, tuple[str, ...]()
        classes, pieces = self._no_classes(), list[_Coded]()
        fresh = 0.0  # entries of the pieces
        values = [column.empty() for column in self._values]
        encoders = list(map(ColumnCodes, values))
        identifiers = {column: IdentifierValues(column) for column in self._identifiers}
        for batch in _batches(part):
            present = self._checked(columns or batch.schema.names, name)
            for column, identifier in identifiers.items():
                if column in present:
                    identifier.add(batch.column(column))
            counted = [as_texts(batch[column]) for column in (*self._quasi, *self._sensitive)]
            if self._persons:
                counted.append(_persons_of(persons, rows, batch.num_rows, name))
            for piece in pa.table(counted, list(map(str, range(len(counted))))).to_batches(_SLICE):
                found = classes_of(encoders, len(self._quasi), piece.columns, rows)
                pieces.append(_Coded([encoder.values for encoder in encoders], found))
                rows += piece.num_rows
                fresh += entries(found)
                if fresh > max(self._held, entries(classes)):  # rows that are not sorted by class
                    classes, fresh = self._group([classes, *_recoded(pieces, values)], values), 0
                    pieces.clear()
        if persons is not None and len(persons) != rows:
            raise _unknown_persons(name)
        classes = self._group([classes, *_recoded(pieces, values)], values)
        losses = self._losses(values, classes)
        count = PartCount(rows, len(classes.sizes), _dp(classes.sizes), losses)
        return CountedPart(name, count, present, values, classes, identifiers)

    def merge(self, part: CountedPart, first_row: int | None = None) -> PartCount:
        """Merge the count of one part.

        ``first_row``: the number of its first row, by default that after the rows so far.

        Raises:
            PrivacyError: its columns or their types differ from those of the parts before.
        """
        if self._columns not in (None, part.columns):
            where = f"{part.name}: " if part.name else ""
            raise PrivacyError(
                f"{where}its columns differ from those of the other parts; the release cannot be "
                "checked"
            )
        self._columns = part.columns
        for name, identifier in part.identifiers.items():
            self._identifiers[name].merge(identifier)
        start = self._rows if first_row is None else first_row
        self._parts.append((part.name or f"part {len(self._parts)}", start))
        self._rows += part.counted.rows
        if self._spilled is not None and entries(part.classes) > self._held:
            self._spill_merged(self._spilled)  # its codes may not outlive a run
            self._spilled.append(*self._recoded([_of_part(part, start)]))
            return part.counted
        self._pending.append(_of_part(part, start))
        pending = sum(entries(each.classes) for each in self._pending)
        if pending > max(self._held, entries(self._merged)):
            self._group_pending()
        return part.counted

    def result(self) -> ReleaseCount:
        """The count of all parts so far."""
        self._group_pending()
        return ReleaseCount(
            rows=self._rows,
            quasi_identifiers=tuple(self._quasi),
            sensitive=tuple(self._sensitive),
            identifiers={
                name: identifier.is_blank
                for name, identifier in self._identifiers.items()
                if identifier.is_published
            },
            columns=self._columns or (),
            published={name: values.values for name, values in self._quasi.items()},
            parts=tuple(self._parts),
            read=self._read,
            widths=self._widths,
        )

    def _read(self) -> Iterator[ClassCounts]:
        """The classes of all parts, which :meth:`result` has grouped, a partition at a time."""
        if self._spilled is None or not self._spilled.runs:
            yield from map(self._counts, divided(self._merged, _MEASURED))
            return
        self._spill_merged(self._spilled)
        for joined in self._spilled.partitions(self._held):
            yield from map(self._counts, divided(joined, _MEASURED))

    def _counts(self, classes: CountedClasses) -> ClassCounts:
        persons = None
        if self._persons:
            pairs = classes.pairs[-1]
            persons = np.diff(pairs.first)
            if self._with_counterfeits:
                persons -= rows_without(pairs) > 0
        return ClassCounts(
            classes.sizes,
            classes.first_rows,
            {
                name: SensitiveCount(values.values, *one_by_one(pairs), totals)
                for (name, values), pairs, totals in zip(
                    self._sensitive.items(), classes.pairs, self._totals, strict=False
                )
            },
            persons,
        )

    def _losses(
        self, values: Sequence[ColumnValues], classes: CountedClasses
    ) -> dict[str, dict[str, Any]]:
        """What the rows of some classes lose that are not made up."""
        rows = classes.sizes
        if self._with_counterfeits and self._persons:
            rows = rows - rows_without(classes.pairs[-1])
        published = {name: of.values for name, of in zip(self._quasi, values, strict=False)}
        codes = dict(zip(self._quasi, classes.codes, strict=True))
        return losses_of_part(self._labels, published, codes, rows)

    def _checked(self, columns: Sequence[str], name: str) -> tuple[str, ...]:
        where = f"{name}: " if name else ""
        for column in (*self._quasi, *self._sensitive):
            if columns.count(column) != 1:
                state = "missing" if column not in columns else "duplicate"
                raise PrivacyError(
                    f"{where}column {column!r} is {state}; the release cannot be checked"
                )
        return tuple(sorted(columns))

    def _group_pending(self) -> None:
        if not self._pending:
            return
        pieces = [self._merged, *self._recoded(self._pending)]
        del self._merged  # so that `group_classes` can free it
        self._pending = []
        self._merged = self._group(pieces, self._values)
        if self._spilled is not None and entries(self._merged) > self._held:
            self._spill_merged(self._spilled)

    def _spill_merged(self, spilled: SpilledClasses) -> None:
        self._group_pending()
        if len(self._merged.sizes):
            spilled.append(self._merged)
            self._merged = self._no_classes()

    def _recoded(self, pieces: Sequence[_Coded]) -> list[CountedClasses]:
        """The classes of parts in the codes of the counter, whose totals they are added to."""
        found, quasi = _recoded(pieces, self._values), len(self._quasi)
        for classes in found:
            self._totals = [
                _added(totals, pairs, values.size)
                for totals, pairs, values in zip(
                    self._totals, classes.pairs, self._values[quasi:], strict=False
                )
            ]
        return found

    @property
    def _values(self) -> list[ColumnValues]:
        return [*self._quasi.values(), *self._sensitive.values(), *self._persons]

    def _no_classes(self) -> CountedClasses:
        none = np.zeros(0, np.int64)
        code = np.zeros(0, np.uint8)
        pairs = len(self._sensitive) + len(self._persons)
        return CountedClasses(
            [code] * len(self._quasi),
            none,
            none,
            [CountedPairs(np.zeros(1, np.int64), code, code)] * pairs,
        )

    def _group(
        self, pieces: list[CountedClasses], values: Sequence[ColumnValues]
    ) -> CountedClasses:
        radices = [column.size for column in values]
        return group_classes(pieces, radices[: len(self._quasi)], radices[len(self._quasi) :])


class CountedPart(NamedTuple):
    """The count of one part, by :meth:`ReleaseCounter.count`."""

    name: str
    counted: PartCount
    columns: tuple[str, ...]
    values: list[ColumnValues]
    classes: CountedClasses
    identifiers: dict[str, IdentifierValues]


class _Coded(NamedTuple):
    """Classes in the codes of their own ``values``, one for each column."""

    values: list[ColumnValues]
    classes: CountedClasses


def _of_part(part: CountedPart, start: int) -> _Coded:
    """The classes of a part, with rows numbered from ``start``."""
    first_rows = part.classes.first_rows + start
    return _Coded(part.values, part.classes._replace(first_rows=first_rows))


def _recoded(pieces: Sequence[_Coded], values: Sequence[ColumnValues]) -> list[CountedClasses]:
    """The classes of all pieces in the codes of ``values``, to which theirs are added."""
    if not pieces:
        return []
    of_columns = zip(*(piece.values for piece in pieces), strict=True)
    added = [column.add_all(others) for column, others in zip(values, of_columns, strict=True)]
    found = []
    for (_, classes), codes_of in zip(pieces, zip(*added, strict=True), strict=True):
        quasi = len(classes.codes)
        codes = [recoded(column, of) for of, column in zip(codes_of, classes.codes, strict=False)]
        pairs = [
            pairs._replace(codes=recoded(pairs.codes, of))
            for of, pairs in zip(codes_of[quasi:], classes.pairs, strict=True)
        ]
        found.append(classes._replace(codes=codes, pairs=pairs))
    return found


def _dp(sizes: Ints) -> int:
    # Python's integers: the sum of squares of ten billion rows does not fit in 64 bits.
    distinct, classes = np.unique(sizes, return_counts=True)
    return sum(s * s * n for s, n in zip(distinct.tolist(), classes.tolist(), strict=True))


def _added(totals: Ints, pairs: CountedPairs, size: int) -> Ints:
    """The totals by code, with those of some pairs."""
    added = sum_by_code(pairs.codes, pairs.counts, size)
    added[: len(totals)] += totals
    return added


def _batches(part: Part) -> Iterable[pa.RecordBatch]:
    """The batches of a part; of a table without rows an empty one."""
    if not isinstance(part, pa.Table):
        return part
    empty = [pa.nulls(0, column.type) for column in part.schema]
    return part.to_batches() or [pa.record_batch(empty, schema=part.schema)]


def _persons_of(
    persons: pa.ChunkedArray[Any] | None, start: int, rows: int, name: str
) -> pa.ChunkedArray[Any]:
    if persons is None or len(persons) < start + rows:
        raise _unknown_persons(name)
    return persons.slice(start, rows)


def _unknown_persons(name: str) -> PrivacyError:
    return PrivacyError(
        f"{name or 'a part'}: the person of some rows is unknown, so persons cannot be counted; "
        "run again from the partition task"
    )
