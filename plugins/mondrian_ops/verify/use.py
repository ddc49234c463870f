"""How well a release can be worked with: counts, distributions and correlations, against its rows.

Everything is measured as a reader of the release would compute it. A row counts in each range by
the share of its label that lies in it: of an interval the share of its length, of a set, prefix or
node the share of its values (Xiao and Tao, "Anatomy", 2006, section 4, who compare the median error
of random counts as well).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.verify.arrays import decoded, in_one
from mondrian_ops.verify.labels import IntervalLabels
from mondrian_ops.verify.loss import columns_of
from mondrian_ops.verify.published_labels import PublishedLabels
from mondrian_ops.verify.quoted_texts import as_texts
from mondrian_ops.verify.scales import Ends, flags, nulls, written

QUERIES = 1000
"""Random counts, each of the rows that lie in random ranges of two columns."""

LEAST_SHARE = 0.01
"""Counts of fewer than so many of the rows, or than k, are not asked: nobody would rely on them."""

_PAIRS = 15  # of columns
_ONE_THREAD = 200_000  # multiplications
_MOST_RANGES = 200  # of a column
_POINTS = 64  # at which distributions are compared
_KEYS_PER_ROW = 4  # up to which a table has an entry for each key

Floats = NDArray[np.float64]
Shares = NDArray[np.float32]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Column(ABC):
    """A quasi-identifier: its raw values (rows,), and the ``label`` (published rows,) of each row
    in the release, in any order. Suppressed rows are in the former only.
    """

    def __init__(self, rows: int, label: Ints) -> None:
        self.rows = rows
        self.label = label

    @classmethod
    def of(cls, labels: PublishedLabels, raw: pa.Array, released: Sequence[pa.Array]) -> Column:
        """``released``: its column, or the two of its bounds.

        Raises PrivacyError where a label cannot be read.
        """
        distinct, label = _distinct(released)
        if isinstance(labels, IntervalLabels):
            return NumberColumn(labels, raw, distinct, label)
        return ValueColumn(labels, raw, distinct, label)

    @abstractmethod
    def ranges(self, count: int, draw: np.random.Generator) -> NDArray[Any]:
        """(ranges, 2) random ranges of values."""

    @abstractmethod
    def inside(self, ranges: NDArray[Any]) -> Shares:
        """(rows, ranges) whether the raw value lies in the range."""

    def shares(self, ranges: NDArray[Any]) -> Shares:
        """(published rows, ranges) the share of the label in the range; 0 of a missing value."""
        of_rows: Shares = self._of_labels(ranges).astype(np.float32)[self.label]
        return of_rows

    @abstractmethod
    def _of_labels(self, ranges: NDArray[Any]) -> Floats:
        """(labels, ranges) the share of each label in the range."""

    @abstractmethod
    def distance(self) -> float:
        """Between the distribution of the raw values and that of the published ones, in [0, 1]."""


class NumberColumn(Column):
    """Numbers and moments, published as intervals; all as positions on a line.

    ``raw`` (rows,) and ``middle`` (published rows,) are NaN where there is none.
    """

    def __init__(
        self,
        labels: IntervalLabels,
        raw: pa.Array,
        distinct: Sequence[pa.Array],
        label: Ints,
    ) -> None:
        super().__init__(len(raw), label)
        scale = labels.scale
        self.raw = scale.positions(scale.values(raw))
        ends: Ends = labels.ends(distinct)
        low, high = scale.positions(ends.low), scale.positions(ends.high)
        hidden = ends.star.copy()
        low = np.where(nulls(ends.low) & ~ends.missing, scale.low, low)
        high = np.where(nulls(ends.high) & ~ends.missing, scale.high, high)
        # A whole number is as wide as one step, so that each of an interval's numbers counts alike.
        self._step = 1.0 if _is_whole(raw.type) else 0.0
        self._low, self._hidden = low, hidden
        self._wide = high - low + np.where(ends.closed, self._step, 0.0)
        middle = low + (self._wide - self._step) / 2
        middle[hidden] = np.nan
        self.middle = middle[self.label]
        self._ascending = np.sort(self.raw[~np.isnan(self.raw)])
        self._values = _without_repeats(self._ascending)

    def ranges(self, count: int, draw: np.random.Generator) -> Floats:
        if not len(self._values):
            return np.zeros((count, 2))
        return np.sort(draw.choice(self._values, (count, 2)), axis=1)

    def inside(self, ranges: Floats) -> Shares:
        value = self.raw[:, None]
        inside: Shares = ((ranges[:, 0] <= value) & (value <= ranges[:, 1])).astype(np.float32)
        return inside

    def _of_labels(self, ranges: Floats) -> Floats:
        low, wide = self._low[:, None], self._wide[:, None]
        first, last = ranges[:, 0], ranges[:, 1] + self._step
        common = np.clip(np.minimum(low + wide, last) - np.maximum(low, first), 0, None)
        point = (first <= low) & (low <= ranges[:, 1])
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = np.where(wide > 0, common / wide, point)
        shares = np.where(self._hidden[:, None], 0.5, np.nan_to_num(shares))
        return _with_hidden(shares, self._hidden, self.label)

    def distance(self) -> float:
        """The greatest distance of the two distribution functions (Kolmogorov and Smirnov)."""
        values = self._ascending
        if not len(values):
            return 0.0
        if not len(self.label):
            return 1.0
        points = values[(len(values) - 1) * np.arange(_POINTS) // (_POINTS - 1)]
        points = _without_repeats(points)
        below = np.full((len(points), 2), -np.inf)
        below[:, 0], below[:, 1] = min(values[0], np.nanmin(self._low, initial=np.inf)), points
        before = np.searchsorted(values, points, "right") / self.rows
        weight = np.bincount(self.label, minlength=len(self._low))
        after = weight @ self._of_labels(below) / len(self.label)
        return float(np.abs(before - after).max())


class ValueColumn(Column):
    """Values published as sets, prefixes, nodes or as they are; in the order of their texts."""

    def __init__(
        self,
        labels: PublishedLabels,
        raw: pa.Array,
        distinct: Sequence[pa.Array],
        label: Ints,
    ) -> None:
        super().__init__(len(raw), label)
        encoded = raw.dictionary_encode()
        count = len(encoded.dictionary)
        order = np.argsort(np.array(written(encoded.dictionary).to_pylist(), object))
        rank = np.empty(count + 1, np.int64)
        rank[order], rank[count] = np.arange(count), -1
        self.raw = rank[encoded.indices.fill_null(count).to_numpy()]
        self.values = encoded.dictionary.take(pa.array(order))
        self._covered = self._read(labels, distinct)

    def _read(self, labels: PublishedLabels, distinct: Sequence[pa.Array]) -> Floats:
        """(labels, values) the share of each value in each label; a missing one has none."""
        size, count = len(distinct[0]), len(self.values)
        pairs = np.divmod(np.arange(size * count), max(1, count))
        covered = labels.covers(distinct, self.values, *pairs).reshape(size, count).astype(float)
        shares: Floats = covered / np.maximum(1, covered.sum(axis=1, keepdims=True))
        hidden = flags(pc.equal(written(distinct[0]), "*"))
        return _with_hidden(shares, hidden, self.label)

    def ranges(self, count: int, draw: np.random.Generator) -> Ints:
        return np.sort(draw.integers(0, max(1, len(self.values)), (count, 2)), axis=1)

    def inside(self, ranges: Ints) -> Shares:
        value = self.raw[:, None]
        inside: Shares = ((ranges[:, 0] <= value) & (value <= ranges[:, 1])).astype(np.float32)
        return inside

    def _of_labels(self, ranges: Ints) -> Floats:
        below = np.hstack([np.zeros((len(self._covered), 1)), np.cumsum(self._covered, axis=1)])
        if below.shape[1] == 1:
            return np.zeros((len(below), len(ranges)))
        shares: Floats = below[:, ranges[:, 1] + 1] - below[:, ranges[:, 0]]
        return shares

    @property
    def each(self) -> Ints:
        """(values, 2) a range of each value alone."""
        return np.repeat(np.arange(len(self.values)), 2).reshape(-1, 2)

    def distance(self) -> float:
        """Half of the sum of the distances of the values' shares (total variation)."""
        if not len(self.values):
            return 0.0
        before = np.bincount(self.raw[self.raw >= 0], minlength=len(self.values)) / self.rows
        weight = np.bincount(self.label, minlength=len(self._covered))
        after = weight @ self._covered / max(1, len(self.label))
        return float(np.abs(before - after).sum() / 2)


class Correlation(NamedTuple):
    """That of two columns of numbers, in the raw rows and in the release."""

    one: str
    other: str
    before: float
    after: float


class QueryErrors(NamedTuple):
    """Relative errors of random counts: of ``queries``, the ``median``, the ``mean`` and the ninth
    tenth."""

    queries: int
    median: float
    mean: float
    p90: float


def query_errors(
    columns: Sequence[Column], k: int, queries: int = QUERIES, seed: int = 0
) -> QueryErrors | None:
    """The errors of random counts; None where there are no counts large enough to be asked."""
    if not columns or not columns[0].rows:
        return None
    draw = np.random.default_rng(seed)
    every: list[tuple[int, ...]] = [*combinations(range(len(columns)), 2)] or [(0,)]
    pairs = [every[at] for at in draw.permutation(len(every))[:_PAIRS]]
    # Twice as many as are asked, because some counts are too small.
    count = math.ceil(2 * queries / len(pairs))
    count = min(_MOST_RANGES, count if len(pairs[0]) == 1 else math.ceil(math.sqrt(count)))
    ranges = [column.ranges(count, draw) for column in columns]
    inside = [column.inside(of) for column, of in zip(columns, ranges, strict=True)]
    shares = [column.shares(of) for column, of in zip(columns, ranges, strict=True)]
    counted, guessed = _counts(inside, pairs), _counts(shares, pairs)
    asked = np.flatnonzero(counted >= max(k, LEAST_SHARE * columns[0].rows))
    asked = draw.permutation(asked)[:queries]
    if not len(asked):
        return None
    errors = np.abs(guessed[asked] - counted[asked]) / counted[asked]
    middle, most = np.quantile(errors, [0.5, 0.9])
    return QueryErrors(len(asked), float(middle), float(errors.mean()), float(most))


def _counts(of_rows: Sequence[Shares], pairs: Sequence[tuple[int, ...]]) -> Floats:
    """(counts,) what each two ranges of each pair of columns have in common, over all rows."""
    if len(pairs[0]) == 1:
        whole: Floats = of_rows[0].sum(axis=0, dtype=float)
        return whole
    ranges = of_rows[0].shape[1]
    counts = np.empty((len(pairs), ranges, ranges))
    for of_pair, (one, other) in zip(counts, pairs, strict=True):
        of_pair[:] = _products(of_rows[one], of_rows[other])
    return counts.ravel()


def correlation_changes(columns: Mapping[str, Column]) -> list[Correlation]:
    """By pair of columns of numbers: their correlation in the raw rows and in the release."""
    numbers = {n: each for n, each in columns.items() if isinstance(each, NumberColumn)}
    before = _correlations([each.raw for each in numbers.values()])
    after = _correlations([each.middle for each in numbers.values()])
    pairs = zip(combinations(numbers, 2), before, after, strict=True)
    return [Correlation(*names, *both) for names, *both in pairs if not np.isnan(both).any()]


def columns_of_table(
    labels: Mapping[str, PublishedLabels], raw: pa.Table, released: pa.Table
) -> dict[str, Column]:
    """By quasi-identifier, its column."""
    columns = {}
    for name, of_column in labels.items():
        arrays = [
            decoded(as_texts(released[each])) for each in columns_of(name, released.column_names)
        ]
        columns[name] = Column.of(of_column, decoded(raw[name]), arrays)
    return columns


def _distinct(arrays: Sequence[pa.Array]) -> tuple[list[pa.Array], Ints]:
    """The distinct labels, as columns, and the number of each row's, (rows,)."""
    key = np.zeros(len(arrays[0]), np.int64)
    for array in arrays:
        encoded = in_one(array).dictionary_encode(null_encoding="encode")
        key = key * (len(encoded.dictionary) + 1) + encoded.indices.to_numpy()
    first, label = _numbered(key)
    return [array.take(pa.array(first)) for array in arrays], label


def _numbered(key: Ints) -> tuple[Ints, Ints]:
    """Where each distinct key comes first, in the order of the keys; and the number of each."""
    count = int(key.max(initial=-1)) + 1
    if count > _KEYS_PER_ROW * len(key):
        _, first, number = np.unique(key, return_index=True, return_inverse=True)
        return first, number
    first_of_key, number_of_key = np.full(count, -1), np.empty(count, np.int64)
    first_of_key[key[::-1]] = np.arange(len(key))[::-1]  # of several the last one stays
    present = np.flatnonzero(first_of_key >= 0)
    number_of_key[present] = np.arange(len(present))
    return first_of_key[present], number_of_key[key]


def _without_repeats(ascending: Floats) -> Floats:
    is_first = np.ones(len(ascending), bool)
    is_first[1:] = ascending[1:] != ascending[:-1]
    return ascending[is_first]


def _with_hidden(shares: Floats, hidden: Flags, label: Ints) -> Floats:
    """The shares of labels; those hidden have the mean of the others."""
    if not hidden.any():
        return shares
    weight = np.bincount(label, minlength=len(shares)) * ~hidden
    if not weight.any():  # nothing is known
        return shares
    return np.where(hidden[:, None], weight @ shares / weight.sum(), shares)


def _correlations(columns: Sequence[Floats]) -> list[float]:
    """Of each two columns, over the rows that have both; NaN where one is constant or too large."""
    if any(np.isnan(each).any() for each in columns):
        pairs = (
            (one, other, ~(np.isnan(one) | np.isnan(other)))
            for one, other in combinations(columns, 2)
        )
        return [_correlated([one[both], other[both]])[0, 1] for one, other, both in pairs]
    if len(columns) < 2:
        return []
    return [*_correlated(columns)[np.triu_indices(len(columns), 1)]]


def _correlated(columns: Sequence[Floats]) -> Floats:
    """(columns, columns) the correlations of columns without missing values."""
    rows, count = np.stack(columns, axis=1), len(columns)
    if len(rows) < 2:
        return np.full((count, count), np.nan)
    is_constant = np.ptp(rows, axis=0) == 0
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers too large to be squared: NaN
        centred = rows - rows.mean(axis=0)
        products = _products(centred, centred)
        spread = np.sqrt(np.diag(products))
        spread[is_constant | ~np.isfinite(spread)] = np.nan
        return np.clip(products / spread / spread[:, None], -1, 1)


def _products(one: NDArray[Any], other: NDArray[Any]) -> Floats:
    """(columns, columns) the sums of the products of each two columns, over all rows.

    In parts so small that the library starts no threads for them: these would wait for others.
    """
    size = max(1, _ONE_THREAD // (one.shape[1] * other.shape[1]))
    products = np.zeros((one.shape[1], other.shape[1]))
    for at in range(0, len(one), size):
        products += one[at : at + size].T @ other[at : at + size]
    return products


def _is_whole(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_date32(type_))
