"""What a published label says: the values that it covers, and how much it loses.

A label is the text that a class publishes of a quasi-identifier, or two typed bounds with a sign of
what is hidden. This module
reads labels as a reader of the release does, by the definitions of the papers and of the job. It
shares no code with encoding, cutting and generalizing, and takes from them only the facts that the
labels are measured by: the values that occur in the dataset, its hierarchies, the boundaries of its
series.

Where a label of a hierarchy may be read in two ways, it covers what any reading covers, and loses
as much as the worst.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.job.job import Job
from mondrian_ops.job.quasi_identifier import QuasiIdentifier
from mondrian_ops.verify.category_labels import (
    OrderedLabels,
    PrefixLabels,
    SetLabels,
    SpanLabels,
    TreeLabels,
)
from mondrian_ops.verify.information import Information
from mondrian_ops.verify.published_labels import (
    Flags,
    Ints,
    Losses,
    PublishedLabels,
    edged,
)
from mondrian_ops.verify.scales import (
    BoundedScale,
    Ends,
    GridScale,
    LadderScale,
    Scale,
    nulls,
    plain,
    ranked,
    written,
)

_Read = TypeVar("_Read", bound=tuple[Any, ...])

_REMEMBERED = 4096  # labels of a column


def labels_of_job(
    job: Job,
    types: Mapping[str, pa.DataType],
    domains: Mapping[str, pa.Array],
    boundaries: Mapping[str, pa.Array],
    hierarchies: Mapping[str, Hierarchy],
    pointed: Sequence[str] = (),
    counts: Mapping[str, pa.Array] | None = None,
    quantiles: Mapping[str, pa.Array] | None = None,
    robust_ends: Mapping[str, pa.Array] | None = None,
) -> dict[str, PublishedLabels]:
    """By quasi-identifier of the job, what reads its labels.

    ``types`` and ``domains`` by column: the type of its values, and those that occur in the whole
    dataset in ascending order, of intervals the ends at least. ``boundaries``: of the columns to
    which the nights of a series give them. ``hierarchies``: those from files. ``pointed``: the
    columns of floating-point numbers whose whole ones are written ``70.0``. ``counts``: the rows of
    the missing value, if it occurs, and of each value of the domains; ``quantiles``: those of a
    sample of the other columns (`spans.quantiles_of`); ``robust_ends``: the two values that the
    robust spans of columns of numbers or moments reach between.
    """
    known = _Distributions(counts or {}, quantiles or {}, robust_ends or {})
    labels = {}
    for quasi in job.quasi_identifiers:
        name = quasi.name
        of_texts = {**domains, name: written(domains[name], True)} if name in pointed else domains
        how = _generalization(quasi, plain(types[name]))
        read_as = domains if how == "interval" or quasi.widths else of_texts
        labels[name] = _labels_of(quasi, job, types, read_as, boundaries, hierarchies, known)
        labels[name].pointed = name in pointed
    return labels


def _generalization(quasi: QuasiIdentifier, type_: pa.DataType) -> str:
    return quasi.generalization or ("set" if _is_unordered(type_) else "interval")


def _labels_of(
    quasi: QuasiIdentifier,
    job: Job,
    types: Mapping[str, pa.DataType],
    domains: Mapping[str, pa.Array],
    boundaries: Mapping[str, pa.Array],
    hierarchies: Mapping[str, Hierarchy],
    known: _Distributions,
) -> PublishedLabels:
    name, domain = quasi.name, domains[quasi.name]
    type_ = plain(types[name])
    how = _generalization(quasi, type_)
    if quasi.order is not None:
        return OrderedLabels(name, quasi.order, domain, known.of_values(name, domain))
    scale: Callable[[pa.Array], Scale] | None = None
    if how == "interval":
        scale = partial(Scale, type_)
        if quasi.grid_step is not None and not job.recodes_globally:
            scale = partial(GridScale, type_, step=quasi.grid_step, origin=quasi.origin)
        elif name in boundaries and not job.recodes_globally:
            scale = partial(BoundedScale, type_, boundaries=boundaries[name])
    elif how == "hierarchy" and quasi.widths:
        scale = partial(LadderScale, type_, widest=quasi.widths[-1], origin=quasi.origin)
    if scale is not None:
        values, information = known.of_line(name, domain)
        return IntervalLabels(
            name, scale(domain), scale(known.robust_ends(name)), values, information
        )
    information = known.of_values(name, domain)
    if how == "prefix":
        return PrefixLabels(name, domain, information)
    if how == "set":
        return SetLabels(name, domain, information)
    if quasi.named_ladder:
        return SpanLabels(name, domain, quasi.named_ladder, information)
    return TreeLabels(name, hierarchies[name], domain, information)


class _Distributions:
    """How often the values of columns occur; see `labels_of_job`."""

    def __init__(
        self,
        counts: Mapping[str, pa.Array],
        quantiles: Mapping[str, pa.Array],
        robust_ends: Mapping[str, pa.Array],
    ) -> None:
        self._counts, self._quantiles, self._robust_ends = counts, quantiles, robust_ends

    def of_values(self, name: str, domain: pa.Array) -> Information | None:
        """That of a column all of whose values are in the domain."""
        if name not in self._counts:
            return None
        rows = self._counts[name].to_numpy()
        missing = len(rows) - len(domain)
        return Information(rows[missing:], float(rows[:missing].sum()))

    def of_line(self, name: str, domain: pa.Array) -> tuple[pa.Array, Information | None]:
        """Ascending values of a column of numbers or moments, and how often each occurs."""
        if name in self._counts:
            return domain, self.of_values(name, domain)
        if name not in self._quantiles:
            return domain, None
        present = self._quantiles[name].drop_null()
        values = present.unique()
        places = pc.index_in(present, value_set=values).to_numpy()
        missing = len(self._quantiles[name]) - len(present)
        return values, Information(np.bincount(places, minlength=len(values)), missing)

    def robust_ends(self, name: str) -> pa.Array:
        """The values that the robust span of a column reaches between, if they are known."""
        return self._robust_ends.get(name, pa.array([], pa.float64()))


# Intervals


class IntervalLabels(PublishedLabels):
    """Reads intervals, ``[25, 30]``, and single values, ``25``; or bounds."""

    def __init__(
        self,
        name: str,
        scale: Scale,
        robust: Scale | None = None,
        values: pa.Array | None = None,
        information: Information | None = None,
    ) -> None:
        """``robust``: the scale of the robust span; ``values`` are those of ``information``."""
        super().__init__(name)
        self.scale = scale
        self._robust_width = scale.width if robust is None else robust.width
        self._values, self._information = values, information
        self._known_ends = _Known(scale.of_texts)
        self._known_losses = _Known(self._losses_of_texts)

    def covers(
        self, labels: Sequence[pa.Array], values: pa.Array, label_of: Ints, value_of: Ints
    ) -> Flags:
        ends, values = self.ends(labels), self.scale.values(values)
        ranks = ranked(pa.concat_arrays([ends.low, ends.high, values]))
        low, high = ranks[: len(ends.low)], ranks[len(ends.low) : 2 * len(ends.low)]
        value = ranks[2 * len(ends.low) :][value_of]
        low, high, closed = low[label_of], high[label_of], ends.closed[label_of]
        within = (value > 0) & (low <= value)  # an unlimited end has rank 0
        within &= (high == 0) | (value < high) | (closed & (value == high))
        missing = ends.missing[label_of]
        return ends.star[label_of] | np.where(missing, value == 0, within)

    def losses(self, labels: Sequence[pa.Array]) -> Losses:
        if len(labels) == 1:
            return self._read(self._known_losses.of, written(labels[0]))
        return self._lost(self.ends(labels))

    def _losses_of_texts(self, texts: pa.Array) -> Losses:
        return self._lost(self._known_ends.of(texts))

    def _lost(self, ends: Ends) -> Losses:
        scale = self.scale
        low, high = scale.positions(ends.low), scale.positions(ends.high)
        low = np.where(nulls(ends.low), scale.low, low)
        high = np.where(nulls(ends.high), scale.high, high)
        width = high - low + np.where(ends.closed, scale.closing, 0.0)
        lost = width / scale.width if scale.width > 0 else np.zeros(len(low))
        robust = lost
        if self._robust_width > 0:
            robust = np.minimum(1.0, width / self._robust_width)
        information = lost
        if self._information is not None:
            line = scale.positions(scale.values(self._values))
            first = np.searchsorted(line, low)
            upto = np.searchsorted(line, high), np.searchsorted(line, high, "right")
            stop = np.where(ends.closed | nulls(ends.high), upto[1], upto[0])
            information = self._information.between(first, stop)
        exact = ends.missing | ends.single
        lost, robust, information = (
            edged(each, exact, ends.star) for each in (lost, robust, information)
        )
        return Losses(lost, lost, exact & ~ends.star, ends.star, robust, information)

    def ends(self, labels: Sequence[pa.Array]) -> Ends:
        if len(labels) == 1:
            return self._read(self._known_ends.of, written(labels[0]))
        return self._read(self.scale.of_bounds, *labels)

    def _read(self, how: Callable[..., _Read], *labels: pa.Array) -> _Read:
        try:
            return how(*labels)
        except pa.ArrowInvalid:
            raise self._unread() from None


class _Known(Generic[_Read]):
    """What was read of labels, remembered for those of other parts while they are few.

    ``read`` reads texts, as a tuple of arrays with an entry for each. Threads may share this.
    """

    def __init__(self, read: Callable[[pa.Array], _Read]) -> None:
        self._how = read
        self._all: tuple[pa.Array, _Read] | None = None

    def of(self, labels: pa.Array) -> _Read:
        """What is read of some labels."""
        if self._all is None:
            known = self._how(labels)
            if len(labels) <= _REMEMBERED:
                self._all = labels, known
            return known
        texts, known = self._all
        place = pc.index_in(labels, value_set=texts)
        if place.null_count:
            new = labels.filter(place.is_null())
            if len(texts) + len(new) > _REMEMBERED:
                return self._how(labels)
            texts = pa.concat_arrays([texts, new])
            known = type(known)(*map(_joined, known, self._how(new)))
            self._all = texts, known
            place = pc.index_in(labels, value_set=texts)
        return type(known)(*(_at(each, place) for each in known))


# Values and texts


def _is_unordered(type_: pa.DataType) -> bool:
    """Whether values are published as a set where the job does not say how."""
    kinds = pa.types
    is_text = kinds.is_string(type_) or kinds.is_large_string(type_) or kinds.is_string_view(type_)
    return bool(is_text or kinds.is_boolean(type_) or kinds.is_null(type_))


def _joined(one: Any, other: Any) -> Any:
    """Two arrays, of Arrow or NumPy, one after the other."""
    if isinstance(one, np.ndarray):
        return np.append(one, other)
    return pa.concat_arrays([one, other])


def _at(values: Any, place: pa.Array) -> Any:
    """The values at some places."""
    return values[place.to_numpy()] if isinstance(values, np.ndarray) else values.take(place)
