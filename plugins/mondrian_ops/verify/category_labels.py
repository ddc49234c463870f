"""The labels of categories: in an order, nodes of a hierarchy, prefixes and sets."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.verify import spans
from mondrian_ops.verify.information import Information
from mondrian_ops.verify.published_labels import (
    STAR,
    Flags,
    Floats,
    Ints,
    Losses,
    PublishedLabels,
    edged,
)
from mondrian_ops.verify.quoted_texts import is_set, members_of, values_of
from mondrian_ops.verify.scales import flags, nulls, written
from mondrian_ops.verify.spans import ends_in_order


class OrderedLabels(PublishedLabels):
    """Reads intervals of categories in an order, ``[low, medium]``, and single ones."""

    def __init__(
        self,
        name: str,
        order: Sequence[str],
        domain: pa.Array | None = None,
        information: Information | None = None,
    ) -> None:
        """``domain``: the values of ``information``."""
        super().__init__(name)
        self._place = {text: at for at, text in enumerate(order)}
        self._information = None
        if information is not None:
            places = [self._place[text] for text in written(domain).to_pylist()]
            by_place = sorted(range(len(places)), key=places.__getitem__)
            self._occurring = np.array(sorted(places), np.int64)
            self._information = information.ordered(by_place)

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
        exact, information = (low == high) & ~star, lost
        if self._information is not None:
            first = np.searchsorted(self._occurring, low)
            stop = np.searchsorted(self._occurring, high, "right")
            information = edged(self._information.between(first, stop), exact, star)
        return Losses(lost, lost, exact, star, lost, information)

    def _read(self, labels: Sequence[pa.Array]) -> tuple[Ints, Ints, Flags, Flags]:
        """The places of both ends of each label; missing; star."""
        texts = written(labels[0])
        missing, star = nulls(texts), flags(pc.equal(texts, STAR))
        ends = np.zeros((2, len(texts)), np.int64)
        for at, text in enumerate(texts.to_pylist()):
            if not missing[at] and not star[at]:
                ends[:, at] = [self._place.get(end, -1) for end in ends_in_order(text)]
        if (ends < 0).any():
            raise self._unread()
        return ends[0], ends[1], missing, star


class TreeLabels(PublishedLabels):
    """Reads the labels of a hierarchy's nodes."""

    def __init__(
        self,
        name: str,
        hierarchy: Hierarchy,
        domain: pa.Array | None = None,
        information: Information | None = None,
    ) -> None:
        """``domain``: the values of ``information``."""
        super().__init__(name)
        self._domain, self._information = domain, information
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
        exact = (missing | (leaf[number] & (under == 1))) & ~star
        known = self._lost_under
        information = lm if known is None else edged(known[number], exact, star)
        return Losses(ncp, lm, exact, star, ncp, information)

    @cached_property
    def _lost_under(self) -> Floats | None:
        """(labels + 1,) the information that each label loses, at most that of several nodes."""
        if self._information is None:
            return None
        texts = written(self._domain, self.pointed).to_pylist()
        leaf = np.array([self._leaf_of.get(text, -1) for text in texts], np.int64)
        node, value = leaf[leaf >= 0], np.flatnonzero(leaf >= 0)
        nodes, values = [node], [value]
        while len(node):
            above = self._parent[node]
            node, value = above[above >= 0], value[above >= 0]
            nodes.append(node)
            values.append(value)
        lost = self._information.summed(
            np.concatenate(nodes), np.concatenate(values), len(self._parent)
        )
        of_labels = np.zeros(len(self._numbers) + 1)
        np.maximum.at(of_labels, self._label, lost)
        return of_labels

    def _read(self, labels: Sequence[pa.Array]) -> tuple[Ints, Flags, Flags]:
        """The number of each label, that after the last for a missing one; missing; star."""
        (texts,) = labels
        texts = written(texts)
        missing, star = nulls(texts), flags(pc.equal(texts, STAR))
        numbers, none = self._numbers, len(self._numbers)
        number = np.array([numbers.get(text, none) for text in texts.to_pylist()], np.int64)
        if ((number == none) & ~missing & ~star).any():
            raise self._unread()
        return number, missing, star


class SpanLabels(PublishedLabels):
    """Reads units of the calendar, ``2024-Q2``, and codes of ICD-10, ``E10-E14`` and ``E11``.

    ``domain``: the values that occur in the dataset, ascending.
    """

    def __init__(
        self, name: str, domain: pa.Array, kind: str, information: Information | None = None
    ) -> None:
        super().__init__(name)
        self._kind = kind
        texts = written(domain).to_pylist()
        keys = [*map(self._key, texts)]
        self._sorted, self._single = sorted({*keys}), {*texts}
        order = sorted(range(len(keys)), key=keys.__getitem__)
        self._each = [keys[at] for at in order]
        self._information = information and information.ordered(order)

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
        exact, information = missing | ((under == 1) & single), lm
        if self._information is not None:
            places = [
                (0, 0)
                if s is None
                else (bisect_left(self._each, s[0]), bisect_right(self._each, s[1]))
                for s in known
            ]
            first, stop = np.array(places, np.int64).reshape(-1, 2).T
            information = edged(self._information.between(first, stop), exact, star)
        return Losses(ncp, lm, exact, star, ncp, information)

    def _key(self, text: str) -> str:
        return spans.key_of(text, self._kind)

    def _spans(
        self, labels: Sequence[pa.Array]
    ) -> tuple[list[tuple[str, str] | None], Flags, Flags]:
        """The first and the last key of each label, None of the missing one and of star."""
        texts = written(labels[0])
        missing, star = nulls(texts), flags(pc.equal(texts, STAR))
        try:
            known = [
                None if text is None or text == STAR else spans.KINDS[self._kind](text)
                for text in texts.to_pylist()
            ]
        except ValueError:
            raise self._unread() from None
        return known, missing, star


class PrefixLabels(PublishedLabels):
    """Reads prefixes with wildcards, ``100**``: what begins so, and is no longer.

    ``domain``: the texts that occur in the dataset, ascending.
    """

    def __init__(self, name: str, domain: pa.Array, information: Information | None = None) -> None:
        super().__init__(name)
        self._domain, self._information = written(domain), information

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._domain.to_pylist())

    def covers(
        self, labels: Sequence[pa.Array], values: pa.Array, label_of: Ints, value_of: Ints
    ) -> Flags:
        texts, values = written(labels[0]), written(values, self.pointed)
        missing, star = nulls(texts), flags(pc.equal(texts, STAR))
        label = texts.take(pa.array(label_of))
        value = values.take(pa.array(value_of))
        begins = _begins(value, pc.utf8_rtrim(label, STAR))
        fits = flags(pc.less_equal(pc.utf8_length(value), pc.utf8_length(label)))
        whole = flags(pc.equal(value, values_of(label)))
        general = flags(pc.ends_with(label, STAR)) & begins & fits
        is_missing = nulls(value) & missing[label_of]
        return star[label_of] | is_missing | whole | general

    def losses(self, labels: Sequence[pa.Array]) -> Losses:
        texts = written(labels[0])
        missing, star = nulls(texts), flags(pc.equal(texts, STAR))
        domain, count = self._sorted, len(self._domain)
        general = flags(pc.ends_with(texts, STAR))
        first, stop = np.zeros(len(texts), np.int64), np.ones(len(texts), np.int64)
        for at in np.flatnonzero(general).tolist():
            prefix = texts[at].as_py().rstrip(STAR)
            first[at] = bisect_left(domain, prefix)
            stop[at] = bisect_right(domain, prefix, first[at], key=lambda t: t[: len(prefix)])
        under = stop - first
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
        information = lm
        if self._in_order is not None:
            between = self._in_order.between(first, np.where(general, stop, first))
            information = edged(between, missing | single, star)
        return Losses(ncp, lm, missing | single, star, ncp, information)

    @cached_property
    def _in_order(self) -> Information | None:
        """The information of the texts in Python's order."""
        if self._information is None:
            return None
        texts = self._domain.to_pylist()
        return self._information.ordered(sorted(range(len(texts)), key=texts.__getitem__))


class SetLabels(PublishedLabels):
    """Reads sets, ``{France, Italy}``, and single values.

    ``domain``: the values that occur in the dataset, ascending.
    """

    def __init__(self, name: str, domain: pa.Array, information: Information | None = None) -> None:
        super().__init__(name)
        self._domain, self._information = written(domain), information

    def covers(
        self, labels: Sequence[pa.Array], values: pa.Array, label_of: Ints, value_of: Ints
    ) -> Flags:
        texts = written(labels[0])
        missing, star = nulls(texts), flags(pc.equal(texts, STAR))
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
        missing, star = nulls(texts), flags(pc.equal(texts, STAR))
        label, member = self._members(texts, missing | star)
        members = np.bincount(label, minlength=len(texts))
        domain = max(2, len(self._domain))
        ncp = np.where(members > 1, members / domain, 0.0)
        lm = np.where(members > 1, (members - 1) / (domain - 1), 0.0)
        ncp[star] = lm[star] = 1.0
        exact, information = (members <= 1) & ~star, lm
        if self._information is not None:
            information = edged(self._information.summed(label, member, len(texts)), exact, star)
        return Losses(ncp, lm, exact, star, ncp, information)

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
