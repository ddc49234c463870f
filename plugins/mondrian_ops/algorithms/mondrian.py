"""Mondrian on a fragment: cut until no valid cut is left (seed, section 5, figure 7).

`cut` chooses how: ``median`` of the attribute of largest representativity, the source's rule;
``gain``, the valid cut with the largest fall of information loss; ``lookahead``, the cut whose
finished subtree loses least. See docs/algorithms.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.core.criteria import Privacy, SensitiveDomain
from mondrian_ops.core.frequency_set import group, packed
from mondrian_ops.core.generalization import Classes, Encoded, kernel_rows
from mondrian_ops.native import mondrian as native
from mondrian_ops.native.class_criteria import Criteria, groups_satisfy
from mondrian_ops.native.classes import shuffle_classes
from mondrian_ops.native.counting import group_by_bits

__all__ = ["CANDIDATES", "CodedRows", "CutPolicy", "Tree", "better_gain", "loss"]

CANDIDATES = 3


@dataclass(frozen=True)
class CutPolicy:
    """How cuts are chosen.

    ``greedy`` is ``median``, ``gain``, ``widest gain`` or, for fragments drawn from a sample,
    ``balanced``: medians, but missing values are not parted first. ``relaxed`` takes medians too,
    and lays rows of the median value on both sides, so that classes have k to 2k - 1 rows. Nodes
    of at most ``rollout_rows`` rows are cut by looking ahead; those of at most ``group_rows``,
    never more than a block, also by groups: one value or subtree amid the others, or fewer than k
    rows, topped up with those that fit best; in the end rows change classes within such a node, and
    the rows of ``joined`` classes that lie near each other are cut anew, as often for each class.
    It looks ahead from the best ``candidates`` cuts of each attribute.
    """

    greedy: str
    rollout_rows: int = 0
    group_rows: int = 0
    candidates: int = CANDIDATES
    joined: int = 0

    def kernel(self) -> native.Policy:
        """The policy as the kernels take it."""
        return native.Policy(
            _POLICIES[self.greedy],
            self.candidates,
            self.rollout_rows,
            self.group_rows,
            self.joined,
        )

    @property
    def tree_order(self) -> bool:
        """Whether a hierarchy's leaves are taken in tree order, where subtrees are contiguous.

        The policies that weigh losses do; median cuts take them in the order of the file, as the
        source does.
        """
        return self.greedy != "median"

    @property
    def parts_equal_rows(self) -> bool:
        """Whether rows of the same quasi-identifiers may come into several classes."""
        return self.greedy == "relaxed" or self.group_rows > 0

    def classes(self, coded: CodedRows, cores: int = 1) -> Classes:
        """The equivalence classes of the rows; no valid cut is left in any of them.

        The rows as a whole must satisfy the criteria. The same codes give the same published
        classes on any number of ``cores``. Where rows of the same quasi-identifiers may come into
        several classes, a draw decides which row comes into which class.
        """
        if not self.parts_equal_rows:
            return Classes(*native.classes(coded.rows, coded.criteria, self.kernel(), cores))
        ordered = self.greedy == "relaxed"
        order = _by_codes(coded) if ordered else np.arange(coded.count, dtype=np.int32)
        index, starts = native.classes(
            coded.taken(order).rows, coded.criteria, self.kernel(), cores
        )
        index = order[index]
        return Classes(_mixed(coded, index, starts), starts)

    def tree(self, coded: CodedRows) -> Tree:
        """The rows, to be cut node by node."""
        return Tree(coded, self.kernel())


class Tree:
    """Rows that are cut node by node: a node is places ``start`` to ``stop``, which a cut moves."""

    def __init__(self, coded: CodedRows, policy: native.Policy) -> None:
        self._tree = native.Tree(coded.rows, coded.criteria, policy)
        self._stays = policy.group_rows  # rows of nodes whose rows may change classes
        self.split = self._tree.split

    def cut(self, start: int, stop: int) -> tuple[int, list[int]]:
        """The attribute of a node's cut (-1: it is final, or stays in one fragment), and the code
        that it is cut above."""
        if stop - start <= self._stays:
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
DRAWS = 8  # of the rows of the same quasi-identifiers, for their places


def better_gain(pilot: CodedRows) -> str:
    """``gain`` or ``widest gain``, whichever loses less on a pilot sample of the dataset."""
    return min(("gain", "widest gain"), key=lambda greedy: loss(pilot, CutPolicy(greedy)))


def loss(coded: CodedRows, cut: CutPolicy) -> float:
    """Information lost by the rows, in attributes."""
    policy = cut.kernel()
    found = native.classes(coded.rows, coded.criteria, policy)
    return native.loss(coded.rows, coded.criteria, policy, *found)


@dataclass(frozen=True)
class CodedRows:
    """Rows in codes, and what is asked of their classes."""

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
        """Put encoded columns together; where ``privacy`` counts persons, theirs is the last."""
        rows = kernel_rows(encoded, sensitive, privacy.persons is not None)
        return cls(encoded, rows, privacy.kernel(domains))

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.rows.codes.shape[1])

    def taken(self, index: NDArray[np.signedinteger[Any]]) -> CodedRows:
        """Some of the rows, of which only codes are known."""
        codes = self.rows.codes.take(index, axis=1)
        sensitive = self.rows.sensitive.take(index, axis=1)
        rows = self.rows._replace(codes=codes, sensitive=sensitive)
        return CodedRows(self.encoded, rows, self.criteria)


def _by_codes(coded: CodedRows) -> NDArray[np.int32]:
    """The rows by their codes, (rows,): by their quasi-identifiers, then by the sensitive ones."""
    columns = [*coded.rows.codes, *coded.rows.sensitive]
    sizes = [int(column.max(initial=0)) + 1 for column in columns]
    order, _ = group(packed(columns, sizes))
    return order.astype(np.int32)


def _mixed(
    coded: CodedRows, index: NDArray[np.int32], starts: NDArray[np.int64]
) -> NDArray[np.int32]:
    """The rows of ``index``, each in a place of one of the same quasi-identifiers, drawn by lot.

    Between such rows the cutting decides by their sensitive values or their order in the source: a
    class of two people and three others of another age would hold the three least incomes of that
    age, which tells the incomes of the two. Every class keeps its criteria: rows whose draw breaks
    one are drawn again, and stay where they were in the end if none is found.
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
        drawn = alike.copy()
        shuffle_classes(drawn, first)
        tried = index.copy()
        moves = waiting[group_of[places]]
        tried[places[moves]] = drawn[moves]
        kept = waiting.copy()
        while len(criteria.kind) and (broken := _broken(coded, tried, starts)).any():
            kept[group_of[broken]] = False
            stays = ~kept[group_of]
            tried[stays] = index[stays]
        index = tried
        waiting &= ~kept
        if not waiting.any():
            break
    return index


def _broken(
    coded: CodedRows, index: NDArray[np.int32], starts: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """The places, (rows,), of the classes that break a criterion."""
    rows = np.ones(len(index), np.int64)
    holds = groups_satisfy(index, starts, coded.rows.sensitive, rows, coded.criteria)
    return np.repeat(~holds, np.diff(starts, append=len(index)))
