"""What a published label says: the values that it covers, and how much it loses.

A label is the text that a class publishes of a quasi-identifier, or two typed bounds. This module
reads labels as a reader of the release does, by the definitions of the papers and of the job. It
shares no code with encoding, cutting and generalizing, and takes from them only the facts that the
labels are measured by: the values that occur in the dataset, its hierarchies, the boundaries of its
series.

Where a label of a hierarchy may be read in two ways, it covers what any reading covers, and loses
as much as the worst.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.errors import PrivacyError
from mondrian_ops.job.job import Job
from mondrian_ops.job.quasi_identifier import QuasiIdentifier
from mondrian_ops.verify import spans
from mondrian_ops.verify.quoted_texts import is_set, members_of, values_of
from mondrian_ops.verify.scales import (
    BoundedScale,
    Ends,
    GridScale,
    LadderScale,
    Scale,
    flags,
    nulls,
    plain,
    ranked,
    written,
)
from mondrian_ops.verify.spans import ends_in_order

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_Read = TypeVar("_Read", bound=tuple[Any, ...])

_STAR = "*"
_REMEMBERED = 4096  # labels of a column


class Losses(NamedTuple):
    """How much each of some labels loses, four arrays (labels,).

    ``ncp``, ``lm``: by the two metrics, per row. ``exact``: the label is one value, or missing.
    ``star``: it is "*", or says as little.
    """

    ncp: Floats
    lm: Floats
    exact: Flags
    star: Flags


class PublishedLabels(ABC):
    """Reads the labels of one quasi-identifier.

    Labels come as the columns that publish them: one of texts, or two of bounds. Raises
    PrivacyError, which names the column, on a text that is no label of it.
    """

    pointed = False  # whether whole floating-point numbers are written 70.0

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def covers(
        self, labels: Sequence[pa.Array], values: pa.Array, label_of: Ints, value_of: Ints
    ) -> Flags:
        """Whether the label covers the value, for each of some pairs, (pairs,).

        ``label_of`` and ``value_of`` (pairs,) are places in ``labels`` and in ``values``, which
        have the type of the source's column.
        """

    @abstractmethod
    def losses(self, labels: Sequence[pa.Array]) -> Losses:
        """How much each label loses, measured on the whole dataset."""

    def _unread(self) -> PrivacyError:
        return PrivacyError(
            f"column {self.name!r}: a published label cannot be read, so the release cannot be "
            "checked; nothing is published; please report this error"
        )


def labels_of_job(
    job: Job,
    types: Mapping[str, pa.DataType],
    domains: Mapping[str, pa.Array],
    boundaries: Mapping[str, pa.Array],
    hierarchies: Mapping[str, Hierarchy],
    pointed: Sequence[str] = (),
) -> dict[str, PublishedLabels]:
    """By quasi-identifier of the job, what reads its labels.

    ``types`` and ``domains`` by column: the type of its values, and those that occur in the whole
    dataset in ascending order, of intervals the ends at least. ``boundaries``: of the columns to
    which the nights of a series give them. ``hierarchies``: those from files. ``pointed``: the
    columns of floating-point numbers whose whole ones are written ``70.0``.
    """
    labels = {}
    for quasi in job.quasi_identifiers:
        name = quasi.name
        of_texts = {**domains, name: written(domains[name], True)} if name in pointed else domains
        how = _generalization(quasi, plain(types[name]))
        read_as = domains if how == "interval" or quasi.widths else of_texts
        labels[name] = _labels_of(quasi, job, types, read_as, boundaries, hierarchies)
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
) -> PublishedLabels:
    name, domain = quasi.name, domains[quasi.name]
    type_ = plain(types[name])
    how = _generalization(quasi, type_)
    if quasi.order is not None:
        return OrderedLabels(name, quasi.order)
    if how == "interval":
        if quasi.grid is not None and not job.recodes_globally:
            return IntervalLabels(name, GridScale(type_, domain, quasi.grid, quasi.origin))
        if name in boundaries and not job.recodes_globally:
            return IntervalLabels(name, BoundedScale(type_, domain, boundaries[name]))
        return IntervalLabels(name, Scale(type_, domain))
    if how == "prefix":
        return PrefixLabels(name, domain)
    if how == "set":
        return SetLabels(name, domain)
    if quasi.named_ladder:
        return SpanLabels(name, domain, quasi.named_ladder)
    if quasi.widths:
        return IntervalLabels(name, LadderScale(type_, domain, quasi.widths[-1], quasi.origin))
    return TreeLabels(name, hierarchies[name])


# Intervals


class IntervalLabels(PublishedLabels):
    """Reads intervals, ``[25, 30]``, and single values, ``25``; or two bounds."""

    def __init__(self, name: str, scale: Scale) -> None:
        super().__init__(name)
        self.scale = scale
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
        return self._lost(self.scale.of_texts(texts))

    def _lost(self, ends: Ends) -> Losses:
        scale = self.scale
        low, high = scale.positions(ends.low), scale.positions(ends.high)
        low = np.where(nulls(ends.low), scale.low, low)
        high = np.where(nulls(ends.high), scale.high, high)
        lost = np.zeros(len(low))
        if scale.width > 0:
            lost = (high - low + np.where(ends.closed, scale.closing, 0.0)) / scale.width
        lost[ends.missing | ends.single] = 0.0
        lost[ends.star] = 1.0
        return Losses(lost, lost, (ends.missing | ends.single) & ~ends.star, ends.star)

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
        none = pa.array([], pa.string())
        self._all = none, read(none)

    def of(self, labels: pa.Array) -> _Read:
        """What is read of some labels."""
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


# Categories


class OrderedLabels(PublishedLabels):
    """Reads intervals of categories in an order, ``[low, medium]``, and single ones."""

    def __init__(self, name: str, order: Sequence[str]) -> None:
        super().__init__(name)
        self._place = {text: at for at, text in enumerate(order)}

    def covers(
        self, labels: Sequence[pa.Array], values: pa.Array, label_of: Ints, value_of: Ints
    ) -> Flags:
        low, high, missing, star = self._read(labels)
        texts = written(values, self.pointed).to_pylist()
        value = np.array([self._place.get(text, -1) for text in texts], np.int64)[value_of]
        inside = (value >= 0) & (low[label_of] <= value) & (value <= high[label_of])
        is_missing = nulls(values)[value_of]
        return star[label_of] | np.where(missing[label_of], is_missing, inside)

    def losses(self, labels: Sequence[pa.Array]) -> Losses:
        low, high, _, star = self._read(labels)
        lost = (high - low) / max(1, len(self._place) - 1)
        lost[star] = 1.0
        return Losses(lost, lost, (low == high) & ~star, star)

    def _read(self, labels: Sequence[pa.Array]) -> tuple[Ints, Ints, Flags, Flags]:
        """The places of both ends of each label; missing; star."""
        texts = written(labels[0])
        missing, star = nulls(texts), flags(pc.equal(texts, _STAR))
        ends = np.zeros((2, len(texts)), np.int64)
        for at, text in enumerate(texts.to_pylist()):
            if not missing[at] and not star[at]:
                ends[:, at] = [self._place.get(end, -1) for end in ends_in_order(text)]
        if (ends < 0).any():
            raise self._unread()
        return ends[0], ends[1], missing, star


class TreeLabels(PublishedLabels):
    """Reads the labels of a hierarchy's nodes."""

    def __init__(self, name: str, hierarchy: Hierarchy) -> None:
        super().__init__(name)
        self._leaves = len(hierarchy.leaves)
        self._parent = np.asarray(hierarchy.parent, np.int64)
        numbers: dict[str, int] = {}
        # Nodes with one label are one thing to a reader.
        self._label = np.array(
            [numbers.setdefault(label, len(numbers)) for label in hierarchy.labels], np.int64
        )
        self._numbers = numbers
        self._leaf_of = {leaf: at for at, leaf in enumerate(hierarchy.leaves)}

    @cached_property
    def _under(self) -> Ints:
        """(labels + 1,) the leaves under each label, under the larger of several nodes."""
        count = np.zeros(len(self._parent), np.int64)
        node = np.arange(self._leaves)
        while len(node):
            count += np.bincount(node, minlength=len(count))
            node = self._parent[node]
            node = node[node >= 0]
        under = np.zeros(len(self._numbers) + 1, np.int64)
        np.maximum.at(under, self._label, count)
        return under

    def covers(
        self, labels: Sequence[pa.Array], values: pa.Array, label_of: Ints, value_of: Ints
    ) -> Flags:
        number, missing, star = self._read(labels)
        leaf_of = self._leaf_of
        node = np.array(
            [leaf_of.get(text, -1) for text in written(values, self.pointed).to_pylist()], np.int64
        )
        node, wanted = node[value_of], number[label_of]
        is_value = nulls(values)[value_of]
        covered = star[label_of] | (missing[label_of] & is_value)
        while (climbing := node >= 0).any():
            covered |= climbing & (self._label[node] == wanted)
            node = np.where(climbing, self._parent[node], -1)
        return covered

    def losses(self, labels: Sequence[pa.Array]) -> Losses:
        number, missing, star = self._read(labels)
        under, all_leaves = self._under[number], self._leaves
        ncp = np.where(under > 1, under / all_leaves, 0.0)
        lm = np.where(missing, 0.0, (under - 1) / max(1, all_leaves - 1))
        ncp[star] = lm[star] = 1.0
        leaf = np.append(np.zeros(len(self._numbers), bool), False)
        leaf[self._label[: self._leaves]] = True
        exact = missing | (leaf[number] & (under == 1))
        return Losses(ncp, lm, exact & ~star, star)

    def _read(self, labels: Sequence[pa.Array]) -> tuple[Ints, Flags, Flags]:
        """The number of each label, that after the last for a missing one; missing; star."""
        (texts,) = labels
        texts = written(texts)
        missing, star = nulls(texts), flags(pc.equal(texts, _STAR))
        numbers, none = self._numbers, len(self._numbers)
        number = np.array([numbers.get(text, none) for text in texts.to_pylist()], np.int64)
        if ((number == none) & ~missing & ~star).any():
            raise self._unread()
        return number, missing, star


class SpanLabels(PublishedLabels):
    """Reads units of the calendar, ``2024-Q2``, and codes of ICD-10, ``E10-E14`` and ``E11``.

    ``domain``: the values that occur in the dataset, ascending.
    """

    def __init__(self, name: str, domain: pa.Array, kind: str) -> None:
        super().__init__(name)
        self._kind = kind
        texts = written(domain).to_pylist()
        self._sorted, self._single = sorted({*map(self._key, texts)}), {*texts}

    def covers(
        self, labels: Sequence[pa.Array], values: pa.Array, label_of: Ints, value_of: Ints
    ) -> Flags:
        known, missing, star = self._spans(labels)
        keys = [text and self._key(text) for text in written(values, self.pointed).to_pylist()]
        is_missing = nulls(values)[value_of]
        inside = np.array(
            [
                (span := known[label]) is not None
                and (key := keys[value]) is not None
                and span[0] <= key <= span[1]
                for label, value in zip(label_of.tolist(), value_of.tolist(), strict=True)
            ],
            bool,
        )
        return star[label_of] | np.where(missing[label_of], is_missing, inside)

    def losses(self, labels: Sequence[pa.Array]) -> Losses:
        known, missing, star = self._spans(labels)
        count, keys = len(self._sorted), self._sorted
        under = np.array(
            [0 if s is None else bisect_right(keys, s[1]) - bisect_left(keys, s[0]) for s in known]
        )
        if (under[~missing & ~star] == 0).any():
            raise self._unread()
        ncp = np.where(under > 1, under / max(1, count), 0.0)
        lm = np.where(missing, 0.0, (under - 1) / max(1, count - 1))
        ncp[star] = lm[star] = 1.0
        lm = ncp if self._kind == "calendar" else lm  # as intervals
        single = [text in self._single for text in written(labels[0]).to_pylist()]
        return Losses(ncp, lm, missing | ((under == 1) & single), star)

    def _key(self, text: str) -> str:
        return spans.key_of(text, self._kind)

    def _spans(
        self, labels: Sequence[pa.Array]
    ) -> tuple[list[tuple[str, str] | None], Flags, Flags]:
        """The first and the last key of each label, None of the missing one and of star."""
        texts = written(labels[0])
        missing, star = nulls(texts), flags(pc.equal(texts, _STAR))
        try:
            known = [
                None if text is None or text == _STAR else spans.KINDS[self._kind](text)
                for text in texts.to_pylist()
            ]
        except ValueError:
            raise self._unread() from None
        return known, missing, star


class PrefixLabels(PublishedLabels):
    """Reads prefixes with wildcards, ``100**``: what begins so, and is no longer.

    ``domain``: the texts that occur in the dataset, ascending.
    """

    def __init__(self, name: str, domain: pa.Array) -> None:
        super().__init__(name)
        self._domain = written(domain)

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._domain.to_pylist())

    def covers(
        self, labels: Sequence[pa.Array], values: pa.Array, label_of: Ints, value_of: Ints
    ) -> Flags:
        texts, values = written(labels[0]), written(values, self.pointed)
        missing, star = nulls(texts), flags(pc.equal(texts, _STAR))
        label = texts.take(pa.array(label_of))
        value = values.take(pa.array(value_of))
        begins = _begins(value, pc.utf8_rtrim(label, _STAR))
        fits = flags(pc.less_equal(pc.utf8_length(value), pc.utf8_length(label)))
        whole = flags(pc.equal(value, values_of(label)))
        general = flags(pc.ends_with(label, _STAR)) & begins & fits
        is_missing = nulls(value) & missing[label_of]
        return star[label_of] | is_missing | whole | general

    def losses(self, labels: Sequence[pa.Array]) -> Losses:
        texts = written(labels[0])
        missing, star = nulls(texts), flags(pc.equal(texts, _STAR))
        domain, count = self._sorted, len(self._domain)
        general = flags(pc.ends_with(texts, _STAR))
        under = np.ones(len(texts), np.int64)
        for at in np.flatnonzero(general).tolist():
            prefix = texts[at].as_py().rstrip(_STAR)
            first = bisect_left(domain, prefix)
            under[at] = bisect_right(domain, prefix, first, key=lambda t: t[: len(prefix)]) - first
        single = ~general & ~missing
        if single.any():
            values = values_of(texts.filter(pa.array(single)))
            known = pc.is_in(values, value_set=self._domain)
            if not pc.all(known).as_py():
                raise self._unread()
        if (under == 0).any():
            raise self._unread()
        ncp = np.where(under > 1, under / max(1, count), 0.0)
        lm = np.where(missing, 0.0, (under - 1) / max(1, count - 1))
        ncp[star] = lm[star] = 1.0
        return Losses(ncp, lm, missing | single, star)


class SetLabels(PublishedLabels):
    """Reads sets, ``{France, Italy}``, and single values.

    ``domain``: the values that occur in the dataset, ascending.
    """

    def __init__(self, name: str, domain: pa.Array) -> None:
        super().__init__(name)
        self._domain = written(domain)

    def covers(
        self, labels: Sequence[pa.Array], values: pa.Array, label_of: Ints, value_of: Ints
    ) -> Flags:
        texts = written(labels[0])
        missing, star = nulls(texts), flags(pc.equal(texts, _STAR))
        values = written(values, self.pointed)
        value = _places(values, self._domain)[value_of]
        label, member = self._members(texts, missing | star)
        size = len(self._domain) + 1
        is_member = np.isin(label_of * size + value, label * size + member)
        is_missing = nulls(values)[value_of]
        known = (value >= 0) & is_member
        return star[label_of] | (missing[label_of] & is_missing) | known

    def losses(self, labels: Sequence[pa.Array]) -> Losses:
        texts = written(labels[0])
        missing, star = nulls(texts), flags(pc.equal(texts, _STAR))
        label, _ = self._members(texts, missing | star)
        members = np.bincount(label, minlength=len(texts))
        domain = max(2, len(self._domain))
        ncp = np.where(members > 1, members / domain, 0.0)
        lm = np.where(members > 1, (members - 1) / (domain - 1), 0.0)
        ncp[star] = lm[star] = 1.0
        return Losses(ncp, lm, (members <= 1) & ~star, star)

    def _members(self, texts: pa.Array, without: Flags) -> tuple[Ints, Ints]:
        """Pairs of a label and a member, as two arrays; labels ``without`` members have none."""
        sets = is_set(texts)
        single = np.flatnonzero(~sets & ~without)
        value = _places(values_of(texts.take(pa.array(single))), self._domain)
        lists = members_of(texts.filter(pa.array(sets)))
        counts = lists.value_lengths().to_numpy()
        member = _places(lists.flatten(), self._domain)
        if (value < 0).any() or (member < 0).any() or (counts == 0).any():
            raise self._unread()
        label = np.concatenate([single, np.repeat(np.flatnonzero(sets), counts)])
        return label, np.concatenate([value, member])


# Values and texts


def _is_unordered(type_: pa.DataType) -> bool:
    """Whether values are published as a set where the job does not say how."""
    kinds = pa.types
    is_text = kinds.is_string(type_) or kinds.is_large_string(type_) or kinds.is_string_view(type_)
    return bool(is_text or kinds.is_boolean(type_) or kinds.is_null(type_))


def _places(texts: pa.Array, domain: pa.Array) -> Ints:
    """(texts,) the place of each in the domain; -1 if it is not there."""
    found: Ints = pc.index_in(texts, value_set=domain).cast(pa.int64()).fill_null(-1).to_numpy()
    return np.where(nulls(texts), -1, found)


def _begins(texts: pa.Array, prefixes: pa.Array) -> Flags:
    """Whether each text begins with the prefix beside it."""
    pairs = zip(texts.to_pylist(), prefixes.to_pylist(), strict=True)
    return np.array(
        [
            text is not None and begin is not None and text.startswith(begin)
            for text, begin in pairs
        ],
        bool,
    )


def _joined(one: Any, other: Any) -> Any:
    """Two arrays, of Arrow or NumPy, one after the other."""
    if isinstance(one, np.ndarray):
        return np.append(one, other)
    return pa.concat_arrays([one, other])


def _at(values: Any, place: pa.Array) -> Any:
    """The values at some places."""
    return values[place.to_numpy()] if isinstance(values, np.ndarray) else values.take(place)
