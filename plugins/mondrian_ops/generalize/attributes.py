"""The four generalizations: how a quasi-identifier is coded, how a class of rows is published.

An attribute is a quasi-identifier resolved against the whole dataset: it knows its domain, so it
codes any part of the dataset alike and measures every loss on the dataset's scale (De Capitani di
Vimercati et al., section 5; losses: their equations 3 and 4, and Iyengar 2002).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.data.encoding import (
    Codes,
    Column,
    code_dtype,
    encode_known,
    encode_ranks,
    indexed,
    positions,
    value_type,
)
from mondrian_ops.data.hierarchy import MISSING, STAR, CodedHierarchy, Hierarchy
from mondrian_ops.data.small_integers import look_up
from mondrian_ops.data.unlisted_values import no_leaves, not_in_order
from mondrian_ops.data.values import example_text, json_value, text_of
from mondrian_ops.generalize.cells import Cells
from mondrian_ops.generalize.encoded import Encoded
from mondrian_ops.generalize.labels import (
    STAR_TEXT,
    dictionary,
    dictionary_of_texts,
    distinct_pairs,
    edge_text,
    labels_of_pairs,
    of_codes,
    starred,
)
from mondrian_ops.generalize.lines import LINEAR, WidthScale, with_open_ends
from mondrian_ops.generalize.native.classes import (
    extents,
    extents_of_columns,
)
from mondrian_ops.generalize.rounding import Round, round_between
from mondrian_ops.late_methods import dataclass
from mondrian_ops.native.arrays import Floats, Ints

Extent: TypeAlias = tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]]
"""The least and the greatest code of each class, (classes,) both."""


@dataclass(frozen=True)
class Classes:
    """The equivalence classes of some rows: a permuted index, divided into runs.

    ``known``: the least and the greatest code of each class, (columns, classes) both, where the
    cutting found them.
    """

    index: NDArray[np.int32]  # (rows,)
    starts: NDArray[np.int64]  # (classes,)
    known: tuple[Codes, Codes] | None = None

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Rows of each class, (classes,) int64."""
        return np.diff(self.starts, append=len(self.index))

    def where(self, chosen: NDArray[np.bool_]) -> Classes:
        """The classes that are ``chosen`` (classes,)."""
        sizes = self.sizes[chosen]
        return Classes(
            self.index[np.repeat(chosen, self.sizes)], (np.cumsum(sizes) - sizes).astype(np.int64)
        )

    def extent(self, codes: NDArray[np.integer[Any]]) -> tuple[Ints, Ints]:
        """Least and greatest of ``codes`` (rows,) in each class."""
        return extents(codes, self.index, self.starts)

    def extents(self, codes: Codes) -> list[Extent]:
        """Least and greatest of ``codes`` (columns, rows) in each class, for each column.

        ``codes`` are those that were cut.
        """
        known = self.known or extents_of_columns(codes, self.index, self.starts)
        return list(zip(*known, strict=True))


@dataclass(frozen=True)
class Losses:
    """What each of some labels loses, and what it is, (labels,) all."""

    ncp: Floats  # per row of a class
    lm: Floats  # per row of a class
    exact: NDArray[np.bool_]  # one value, which is published unchanged
    star: NDArray[np.bool_]  # "*", for missing and present values together


@dataclass(frozen=True)
class Published:
    """The published values of one attribute, one per class, and the information loss.

    There are far fewer labels than classes: what is the same for a label is there once.
    """

    columns: dict[str, pa.Array]  # published name -> (classes,) value of each class
    losses: Losses
    label_of: NDArray[np.integer[Any]]  # (classes,): the label of each class among these

    @classmethod
    def each(cls, columns: dict[str, pa.Array], losses: Losses) -> Published:
        """With a label for each class."""
        return cls(columns, losses, np.arange(len(losses.ncp)))

    @property
    def ncp(self) -> Floats:
        """As of `Losses`, (classes,); so are the following."""
        return self.losses.ncp.take(self.label_of)

    @property
    def lm(self) -> Floats:
        return self.losses.lm.take(self.label_of)

    @property
    def exact(self) -> NDArray[np.bool_]:
        return self.losses.exact.take(self.label_of)

    @property
    def star(self) -> NDArray[np.bool_]:
        return self.losses.star.take(self.label_of)

    def where(self, chosen: NDArray[np.bool_]) -> Published:
        """The values of the classes that are ``chosen`` (classes,)."""
        mask = pa.array(chosen)
        columns = {name: values.filter(mask) for name, values in self.columns.items()}
        return Published(columns, self.losses, self.label_of[chosen])


@dataclass(frozen=True)
class Attribute(ABC):
    """A quasi-identifier resolved against the whole dataset.

    ``generalization`` is its name in a job. ``pointed``: whole numbers are written ``70.0``.
    ``weight``: how much its losses count beside those of others.
    """

    name: str
    type: pa.DataType
    _: KW_ONLY
    generalization: str = ""
    pointed: bool = False
    weight: float = 1.0

    @abstractmethod
    def encode(self, column: Column) -> Encoded:
        """The codes of some rows; raises InputError or HierarchyError on values without a code."""

    def publish(
        self, encoded: Encoded, classes: Classes, extent: Extent | None = None
    ) -> Published:
        """The generalized value of each class; ``extent``: that of its codes, if it is known."""
        return self._published(encoded, classes, extent or classes.extent(encoded.codes))

    @abstractmethod
    def _published(self, encoded: Encoded, classes: Classes, extent: Extent) -> Published:
        """As `publish`."""

    def texts(self, values: pa.Array) -> pa.Array:
        """The values as they are published where a class has one value."""
        return text_of(values, self.pointed)

    def cut_value(self, encoded: Encoded, code: int) -> int | float | str | bool | None:
        """The value of a cut above ``code``, as JSON; None above the missing value."""
        return None if code == 0 else json_value(encoded.values[code - 1])

    def cut_round(self, encoded: Encoded, code: int) -> Round | None:
        """A round value above `cut_value` and below the next code's value, if there is one."""
        if not 0 < code < len(encoded.values):
            return None
        return round_between(encoded.values[code - 1], encoded.values[code])


@dataclass(frozen=True)
class IntervalAttribute(Attribute):
    """Ordered values, published as the interval of a class: tight, or the cells that it spans.

    ``low`` and ``high`` are the least and the greatest position in the whole dataset (`positions`)
    or, with ``cells``, the ends of the cells that contain them. ``span``: the width that loses all,
    if it is not that of the range. With ``bounds`` an interval is published as two typed columns,
    and one that tells hidden values from missing ones; else as text. Values up to ``bottom``, and
    those from ``top`` on, are published alike. ``scale``: by which widths are measured.
    """

    low: float = 0.0
    high: float = 0.0
    cells: Cells | None = None
    bounds: bool = False
    span: float | None = None
    bottom: pa.Scalar | None = field(default=None, kw_only=True)
    top: pa.Scalar | None = field(default=None, kw_only=True)
    scale: WidthScale = field(default=LINEAR, kw_only=True)
    generalization: str = field(default="interval", kw_only=True)

    def encode(self, column: Column) -> Encoded:
        codes, values = encode_ranks(column)
        if self.cells is None:
            codes, values = with_open_ends(codes, values, self.bottom, self.top)
            low = high = self.scale.of(positions(values, self.name))
        else:
            cell_of = self._cells_of(values, self.cells)
            cells, cell_of = np.unique(cell_of, return_inverse=True)
            table = np.concatenate([[0], cell_of + 1]).astype(code_dtype(len(cells) + 1))
            codes = look_up(table, codes)
            low, high = map(self.scale.of, self.cells.ends(cells, self.low, self.high))
            values = pa.array(cells)
        no_low, no_high = self._open_in(values)
        least, greatest = self.scale.of(np.array([self.low, self.high])).tolist()
        low, high = np.where(no_low, least, low), np.where(no_high, greatest, high)
        return Encoded(
            codes=codes,
            size=len(values) + 1,
            kind="interval",
            low=np.concatenate([[0.0], low]),
            high=np.concatenate([[0.0], high]),
            span=greatest - least if self.span is None else self.span,
            origin=least,
            values=values,
            weight=self.weight,
        )

    def _published(self, encoded: Encoded, classes: Classes, extent: Extent) -> Published:
        # There are far fewer pairs of ends than classes: compute everything once per pair.
        low, high, pair_of = distinct_pairs(*extent, encoded.size)
        first, last = self._ends(encoded)
        closed = self.cells is None or self.cells.are_closed()
        star = (low == 0) & (high > 0)
        is_value = pc.fill_null(pc.and_(pc.equal(first, last), closed), False)
        exact = (low == high) & np.concatenate([[True], is_value])[low]
        loss = np.zeros(len(low))
        if encoded.span > 0:
            loss = np.minimum((encoded.high[high] - encoded.low[low]) / encoded.span, 1.0)
        loss[high == 0] = 0.0
        loss[star] = 1.0
        if self.bounds:
            no_bounds = star | (high == 0)
            ends = {
                f"{self.name}_min": of_codes(first, low, no_bounds),
                f"{self.name}_max": of_codes(last, high, no_bounds),
            }
            nothing = pc.and_(*(each.is_null() for each in ends.values()))
            ends[f"{self.name}_hidden"] = pc.and_(nothing, pa.array(high > 0))
            columns = {name: each.take(pa.array(pair_of)) for name, each in ends.items()}
        else:
            to_text = self.texts if self.cells is None else edge_text
            texts = to_text(first), to_text(last)
            labels = labels_of_pairs(low, high, *texts, exact, "]" if closed else ")")
            columns = {self.name: dictionary_of_texts(pair_of, labels)}
        return Published(columns, Losses(loss, loss, exact, star), pair_of)

    def cut_value(self, encoded: Encoded, code: int) -> int | float | str | bool | None:
        if code == 0 or self.cells is None:
            return super().cut_value(encoded, code)
        return self.cells.greatest(encoded.values[code - 1].as_py(), self.type)

    def cut_round(self, encoded: Encoded, code: int) -> Round | None:
        if self.cells is None:
            return super().cut_round(encoded, code)
        if not 0 < code < len(encoded.values):
            return None
        cell, following = encoded.values.slice(code - 1, 2).to_pylist()
        return self.cells.cut_round(cell, following, self.type)

    def _ends(self, encoded: Encoded) -> tuple[pa.Array, pa.Array]:
        """The least and the greatest value of codes 1, 2, ..., or the ends of their cells."""
        low = high = encoded.values
        if self.cells is not None:
            low, high = self.cells.published(encoded.values.to_numpy(), self.type)
        no_low, no_high = self._open_in(encoded.values)
        low = pc.if_else(pa.array(no_low), None, low) if no_low.any() else low
        return low, pc.if_else(pa.array(no_high), None, high) if no_high.any() else high

    def _cells_of(self, values: pa.Array, cells: Cells) -> Ints:
        """The cell of each value; those beyond an open end have that of the end."""
        found = cells.of(values, self.name)
        for end, clip in ((self.bottom, np.maximum), (self.top, np.minimum)):
            if end is not None:
                found = clip(found, cells.of(pa.array([end], values.type), self.name)[0])
        return found

    def _open_in(self, values: pa.Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which of the coded values, or cells, have no lower and no upper end, (values,) both."""
        flags = []
        for end in (self.bottom, self.top):
            if end is None or not len(values):
                flags.append(np.zeros(len(values), np.bool_))
                continue
            if self.cells is not None:
                type_ = pa.float32() if pa.types.is_float16(self.type) else value_type(self.type)
                end = pa.scalar(int(self.cells.of(pa.array([end], type_), self.name)[0]))
            flags.append(pc.equal(values, end).to_numpy(zero_copy_only=False))
        return flags[0], flags[1]


@dataclass(frozen=True)
class OrderedAttribute(IntervalAttribute):
    """Texts in an order that the job gives, ``order``, published as intervals of them."""

    order: pa.Array = field(default_factory=lambda: pa.nulls(0, pa.string()), kw_only=True)

    def encode(self, column: Column) -> Encoded:
        codes, unknown = encode_known(indexed(column).mapped(self.texts), self.order)
        if unknown:
            raise not_in_order(self.name, unknown)
        places = np.concatenate([[0.0], np.arange(len(self.order), dtype=np.float64)])
        return Encoded(
            codes=codes,
            size=len(places),
            kind="interval",
            low=places,
            high=places,
            span=self.high,
            values=self.order,
            weight=self.weight,
        )

    def cut_round(self, encoded: Encoded, code: int) -> None:
        """None: between two values of the order there is no other."""


@dataclass(frozen=True)
class TreeAttribute(Attribute):
    """Values that are leaves of a hierarchy, published as their lowest common ancestor.

    ``order`` (leaves,) lists the leaves in the order of the attribute: that of the hierarchy's
    file, or of a depth-first walk (docs/algorithms.md). ``present`` counts the leaves that occur in
    the whole dataset. For a ``prefix`` the tree is the trie of the values that occur. ``named``:
    the leaves come from a file, and may be shown; else they are values of the data. ``units``,
    where leaves are units that hold several values, as months hold days: the texts of the values,
    and the leaf that each belongs to, both ascending.
    """

    hierarchy: Hierarchy
    order: NDArray[np.int64]
    present: int = 0
    named: bool = True
    units: tuple[pa.Array, Ints] | None = None
    generalization: str = field(default="hierarchy", kw_only=True)

    @property
    def prefix(self) -> bool:
        """Whether a node is published as a prefix with wildcards."""
        return self.generalization == "prefix"

    @cached_property
    def coded_hierarchy(self) -> CodedHierarchy:
        """The nodes above the codes."""
        return CodedHierarchy.of(self.hierarchy, self.order, self.weight)

    @cached_property
    def leaves(self) -> pa.Array:
        """Texts of the leaves in the order of the attribute."""
        return pa.array(self.hierarchy.leaves, pa.string()).take(pa.array(self.order))

    @property
    def compared(self) -> pa.Array:
        """Texts of the values in the order of the attribute: those of its leaves, or below them."""
        return self.leaves if self.units is None else self.units[0]

    @cached_property
    def greatest(self) -> pa.Array:
        """Text of the greatest value below each leaf, in the order of the attribute."""
        if self.units is None:
            return self.leaves
        texts, leaf_of = self.units
        return texts.take(
            pa.array(np.searchsorted(leaf_of, np.arange(len(self.order)), "right") - 1)
        )

    def encode(self, column: Column) -> Encoded:
        leaves = self.leaves
        codes, unknown = encode_known(indexed(column).mapped(self.texts), self.compared)
        if self.units is not None:
            leaf_of = np.concatenate([[0], self.units[1] + 1])
            codes = look_up(leaf_of.astype(code_dtype(len(leaves) + 1)), codes)
        if unknown:
            form = example_text(self.type, self.pointed)
            empty = pa.scalar("", pa.string()) in indexed(column).mapped(self.texts).values
            raise no_leaves(self.name, self.type, form, self.hierarchy, unknown, empty=empty)
        count = len(leaves)
        meets = self.hierarchy.lca_of(self.order[:-1], self.order[1:])
        step = self.hierarchy.losses()[1][meets]
        return Encoded(
            codes=codes,
            size=count + 1,
            kind="tree",
            present=float(self.present),
            step=np.concatenate([[0.0], step, [0.0]]),
            values=self.greatest,
            weight=self.weight,
        )

    def _published(self, encoded: Encoded, classes: Classes, extent: Extent) -> Published:
        low, high = extent
        star = (low == 0) & (high > 0)
        missing = high == 0
        node = self._common_ancestors(encoded.codes, classes)
        exact = low == high
        nothing = missing if self.units is not None else exact
        ncp, lm = (np.where(nothing, 0.0, loss[node]) for loss in self.hierarchy.losses())
        ncp[star] = lm[star] = 1.0
        if self.prefix:
            labels = self._wildcards(encoded.codes, classes, node, missing)
        else:
            texts = pa.array(self.hierarchy.labels, pa.string())
            labels = dictionary(np.where(missing | star, -1, node), texts)
        columns = {self.name: starred(labels, star)}
        return Published.each(columns, Losses(ncp, lm, exact, star))

    def cut_round(self, encoded: Encoded, code: int) -> None:
        """None: between leaves there is no other value."""

    def publish_nodes(self, nodes: NDArray[np.int32]) -> Published:
        """The value of each class by ``nodes`` (classes,), those of `coded_hierarchy` or STAR."""
        star, present = nodes == STAR, nodes > MISSING
        at = np.maximum(nodes, MISSING)
        ncp, lm = (
            np.where(star, 1.0, loss[at])
            for loss in (self.coded_hierarchy.ncp, self.coded_hierarchy.lm)
        )
        texts = pa.array(self._wildcard_labels if self.prefix else self.hierarchy.labels)
        labels = dictionary(np.where(present, at - 1, -1), texts)
        exact = ~star & (at <= len(self.order))
        columns = {self.name: starred(labels, star)}
        return Published.each(columns, Losses(ncp, lm, exact, star))

    @cached_property
    def _wildcard_labels(self) -> list[str]:
        """The text of each node, a wildcard for every further character of its longest leaf."""
        lengths = pc.utf8_length(pa.array(self.hierarchy.leaves, pa.string())).to_numpy()
        longest = np.zeros(len(self.hierarchy.labels), np.int64)
        for level in self.hierarchy.ancestors:
            np.maximum.at(longest, level, lengths)
        pairs = zip(self.hierarchy.labels, longest.tolist(), strict=True)
        return [label.ljust(length, STAR_TEXT) for label, length in pairs]

    def _common_ancestors(self, codes: Codes, classes: Classes) -> NDArray[np.int64]:
        """(classes,): the node of each class; any node where all its values are missing."""
        tree_order = self.hierarchy.tree_order
        place = np.concatenate([[0], tree_order[self.order]])
        first, last = classes.extent(place[codes])
        leaf_at = np.argsort(tree_order)
        return self.hierarchy.lca_of(leaf_at[first], leaf_at[last]).astype(np.int64)

    def _wildcards(
        self,
        codes: Codes,
        classes: Classes,
        node: NDArray[np.int64],
        missing: NDArray[np.bool_],
    ) -> pa.DictionaryArray:
        """Common prefix of each class, a wildcard for every further character of its longest."""
        length = np.concatenate([[0], pc.utf8_length(self.leaves).to_numpy()])
        _, longest = classes.extent(length[codes])
        base = int(length.max()) + 1
        keys = np.where(missing, -1, node * base + longest)
        unique, inverse = np.unique(keys, return_inverse=True)
        labels = self.hierarchy.labels
        texts = [
            None if key < 0 else labels[key // base].ljust(key % base, STAR_TEXT)
            for key in unique.tolist()
        ]
        return dictionary_of_texts(inverse, pa.array(texts, pa.string()))
