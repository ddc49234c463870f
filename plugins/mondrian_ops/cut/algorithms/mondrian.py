"""Mondrian on a fragment: cut until no valid cut is left.

De Capitani di Vimercati et al. 2023, figure 7. A job's ``cut`` selects the policy: ``median``, the
median of the attribute of largest representativity, as there; ``gain``, the valid cut that reduces
the rows' loss most; ``lookahead``, the cut whose finished subtree loses least. See
docs/algorithms.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.cut.criteria import Privacy
from mondrian_ops.cut.native import mondrian as native
from mondrian_ops.cut.native.class_criteria import Criteria, groups_satisfy
from mondrian_ops.data.frequency_set import group, packed
from mondrian_ops.data.native.counting import group_by_bits
from mondrian_ops.data.sensitive_domain import SensitiveDomain
from mondrian_ops.generalize.attributes import Classes
from mondrian_ops.generalize.encoded import Encoded
from mondrian_ops.generalize.native.classes import shuffle_classes
from mondrian_ops.late_methods import dataclass
from mondrian_ops.native.arrays import Floats

CANDIDATES = 3


@dataclass(frozen=True)
class CutPolicy:
    """How cuts are chosen.

    greedy
        ``median``, ``gain``, ``widest gain``; ``balanced``, for fragments planned on a sample:
        medians, without splitting off missing values first; ``relaxed``: medians with rows of the
        median value on both sides, so that classes have k to 2k - 1 rows.
    rollout_rows
        Nodes of at most so many rows are cut by looking ahead.
    group_rows
        Nodes of at most so many rows, never more than a block, are also cut by groups: one value or
        subtree out of the middle; a group of fewer than k rows is filled up with the rows that fit
        best. A local search then improves the classes of such a node.
    candidates
        Looking ahead compares so many cuts of each attribute.
    joined
        The local search joins so many neighbouring classes and cuts their rows again, and does so
        as many times for each class.
    """

    greedy: str
    rollout_rows: int = 0
    group_rows: int = 0
    candidates: int = CANDIDATES
    joined: int = 0

    def kernel(self) -> native.KernelPolicy:
        """The policy for the kernels."""
        return native.KernelPolicy(
            _POLICIES[self.greedy],
            self.candidates,
            self.rollout_rows,
            self.group_rows,
            self.joined,
        )

    @property
    def tree_order(self) -> bool:
        """Whether a hierarchy's leaves are in tree order, in which subtrees are contiguous.

        Policies that weigh losses use it; median cuts use the order of the file, as their paper
        does.
        """
        return self.greedy != "median"

    @property
    def parts_equal_rows(self) -> bool:
        """Whether rows of equal quasi-identifiers may end up in several classes."""
        return self.greedy == "relaxed" or self.group_rows > 0

    def classes(self, coded: CodedRows, cores: int = 1) -> Classes:
        """Cut rows until no valid cut is left; returns their equivalence classes.

        The rows as a whole must satisfy the criteria. The same codes give the same published
        classes on any number of ``cores``. Where rows of equal quasi-identifiers may end up in
        several classes, a random draw decides which row is in which.
        """
        if not self.parts_equal_rows:
            return Classes(
                *native.classes_with_extents(coded.rows, coded.criteria, self.kernel(), cores)
            )
        ordered = self.greedy == "relaxed"
        order = _by_codes(coded) if ordered else np.arange(coded.count, dtype=np.int32)
        index, starts = native.classes(
            coded.taken(order).rows, coded.criteria, self.kernel(), cores
        )
        index = order[index]
        return Classes(_redistributed(coded, index, starts), starts)

    def tree(self, coded: CodedRows) -> Tree:
        """The rows, to be cut node by node."""
        return Tree(coded, self.kernel())


class Tree:
    """Rows that are cut node by node: a node is places ``start`` to ``stop``."""

    def __init__(self, coded: CodedRows, policy: native.KernelPolicy) -> None:
        self._tree = native.Tree(coded.rows, coded.criteria, policy)
        self._whole_rows = policy.group_rows  # of nodes that are searched locally, so stay whole
        self.split = self._tree.split

    def cut(self, start: int, stop: int) -> tuple[int, list[int]]:
        """The attribute of a node's cut, and the code above which it is cut.

        The attribute is -1 where the node is final or must stay in one fragment.
        """
        if stop - start <= self._whole_rows:
            return -1, []
        a, code = self._tree.cut(start, stop)
        return a, [code]


_POLICIES = {
    "median": native.MEDIAN,
    "gain": native.GAIN,
    "widest gain": native.WIDEST_GAIN,
    "balanced": native.BALANCED,
    "relaxed": native.RELAXED,
}
DRAWS = 8  # attempts to redistribute rows of equal quasi-identifiers


def better_gain(pilot: CodedRows) -> str:
    """``gain`` or ``widest gain``, whichever loses less on a pilot sample of the dataset."""
    return min(("gain", "widest gain"), key=lambda greedy: loss(pilot, CutPolicy(greedy)))


def loss(coded: CodedRows, cut: CutPolicy) -> float:
    """The information loss of the rows, in rows times attributes."""
    policy = cut.kernel()
    classes = native.classes(coded.rows, coded.criteria, policy)
    return native.loss(coded.rows, coded.criteria, policy, *classes)


@dataclass(frozen=True)
class CodedRows:
    """Rows in codes, and the criteria for their classes."""

    encoded: Sequence[Encoded]
    rows: native.Rows
    criteria: Criteria

    @classmethod
    def of(
        cls,
        encoded: Sequence[Encoded],
        sensitive: Sequence[NDArray[np.int32]],
        domains: Sequence[SensitiveDomain],
        privacy: Privacy,
    ) -> CodedRows:
        """Rows of encoded columns; the last is the ``entity_id`` if ``privacy`` counts persons."""
        rows = kernel_rows(encoded, sensitive, privacy.persons is not None)
        return cls(encoded, rows, privacy.kernel(domains))

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.rows.codes.shape[1])

    def satisfied(self, classes: Classes) -> NDArray[np.bool_]:
        """(classes,) whether each of some classes of the rows satisfies every criterion."""
        ones = np.ones(self.count, np.int64)
        return groups_satisfy(
            classes.index, classes.starts, self.rows.sensitive, ones, self.criteria
        )

    def taken(self, index: NDArray[np.signedinteger[Any]]) -> CodedRows:
        """Some of the rows; their ``encoded`` columns stay those of all."""
        codes = self.rows.codes.take(index, axis=1)
        sensitive = self.rows.sensitive.take(index, axis=1)
        rows = self.rows._replace(codes=codes, sensitive=sensitive)
        return CodedRows(self.encoded, rows, self.criteria)


def _by_codes(coded: CodedRows) -> NDArray[np.int32]:
    """(rows,): the rows sorted by the codes of quasi-identifiers, then of sensitive columns."""
    columns = [*coded.rows.codes, *coded.rows.sensitive]
    sizes = [int(column.max(initial=0)) + 1 for column in columns]
    order, _ = group(packed(columns, sizes))
    return order.astype(np.int32)


def _redistributed(
    coded: CodedRows, index: NDArray[np.int32], starts: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Redistribute rows of equal quasi-identifiers at random among their places in ``index``.

    The cutting chooses among such rows by their sensitive values, or their order in the source. If
    it completed a class of two people with three of another age, it would take the three of that
    age with the lowest incomes, and so disclose the incomes of the two. Every class still satisfies
    the criteria: a draw that breaks one is repeated, and after the last attempt the rows keep their
    places.
    """
    codes, criteria = coded.rows.codes, coded.criteria
    words = packed(codes, [int(column.max(initial=0)) + 1 for column in codes])
    alike, first = group_by_bits(words, np.full(len(words), np.iinfo(np.uint64).max, np.uint64))
    place = np.empty(len(index), np.int32)
    place[index] = np.arange(len(index), dtype=np.int32)
    places = place[alike]
    group_of = np.empty(len(index), np.int32)  # of each place
    group_of[places] = np.repeat(np.arange(len(first)), np.diff(first, append=len(index)))
    waiting = np.ones(len(first), np.bool_)
    for _ in range(DRAWS):
        shuffled = alike.copy()
        shuffle_classes(shuffled, first)
        candidate = index.copy()
        moves = waiting[group_of[places]]
        candidate[places[moves]] = shuffled[moves]
        kept = waiting.copy()
        while len(criteria.kind) and (broken := _broken(coded, candidate, starts)).any():
            kept[group_of[broken]] = False
            stays = ~kept[group_of]
            candidate[stays] = index[stays]
        index = candidate
        waiting &= ~kept
        if not waiting.any():
            break
    return index


def _broken(
    coded: CodedRows, index: NDArray[np.int32], starts: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """(rows,): which places are in classes that break a criterion."""
    holds = coded.satisfied(Classes(index, starts))
    return np.repeat(~holds, np.diff(starts, append=len(index)))


_KINDS = {"interval": native.INTERVAL, "tree": native.TREE, "set": native.SET}


def kernel_rows(
    encoded: Sequence[Encoded], sensitive: Sequence[NDArray[np.int32]], persons: bool = False
) -> native.Rows:
    """The columns for the kernels.

    ``persons``: the last ``sensitive`` column only tells persons apart.
    """
    codes = np.stack([column.codes for column in encoded])
    return native.Rows(
        codes=codes,
        sensitive=np.array(sensitive, np.int32).reshape(len(sensitive), codes.shape[1]),
        kind=np.array([_KINDS[c.kind] for c in encoded], np.int64),
        first=np.cumsum([0, *(c.size for c in encoded)], dtype=np.int64),
        low=_table(encoded, [c.low for c in encoded]),
        high=_table(encoded, [c.high for c in encoded]),
        step=_table(encoded, [c.weight * c.step for c in encoded]),
        span=np.array([(c.span if c.span > 0 else 1.0) / c.weight for c in encoded]),
        most=np.array([c.weight for c in encoded]),
        present=np.array([max(1.0, c.present) for c in encoded]),
        persons=int(persons),
    )


def _table(encoded: Sequence[Encoded], values: Sequence[Floats]) -> Floats:
    """One flat table over the codes of all attributes, zero where an attribute has none."""
    return np.concatenate(
        [v if len(v) else np.zeros(c.size) for c, v in zip(encoded, values, strict=True)]
    )
