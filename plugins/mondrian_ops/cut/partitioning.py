"""Partitioning a sample into fragments (De Capitani di Vimercati et al. 2023, section 4).

Quantile partitioning cuts one attribute at the quantiles of its ranks (Q_PARTITION, figure 4);
multidimensional partitioning cuts as Mondrian does (M_PARTITION, figure 5). The source
doubles the fragments level by level and then gives some workers two. Here the largest fragment of
the sample is cut next, which makes the same fragments for powers of two and more even ones for
other numbers.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.cut.algorithms.di_mondrian import MultiwayPolicy
from mondrian_ops.cut.algorithms.mondrian import CodedRows, CutPolicy
from mondrian_ops.cut.plan import Branch, Leaf, Plan
from mondrian_ops.errors import JobError
from mondrian_ops.generalize.attributes import Attribute
from mondrian_ops.generalize.encoded import Encoded


def single() -> Plan:
    """One fragment that holds every row."""
    return Plan((Leaf(0),), ((0,),))


def multidimensional(
    coded: CodedRows,
    attributes: Sequence[Attribute],
    fragments: int,
    cut: CutPolicy | MultiwayPolicy,
    most: int | None = None,
) -> Plan:
    """M_PARTITION: ``fragments`` fragments, and more until none holds over ``most`` rows.

    There are fewer, or larger ones, where no further cut is possible, and more where the last cut
    makes several parts.

    ``coded`` is the sample, with the criteria scaled to it. Where the sample is the whole dataset,
    and ``cut`` the job's own policy, the fragments are nodes of the centralized tree; else ``cut``
    is ``balanced``.
    """
    tree = cut.tree(coded)
    nodes: list[Branch | None] = [None]
    waiting = [(-coded.count, 0, 0, coded.count)]
    most = coded.count if most is None else most
    final = 0
    while waiting and (len(waiting) + final < fragments or -waiting[0][0] > most):
        _, at, start, stop = heapq.heappop(waiting)
        a, codes = -1, list[int]()
        if stop - start >= 2 * coded.criteria.k:
            a, codes = tree.cut(start, stop)
        if a < 0:
            final += 1
            continue
        for code in codes:  # several parts are a chain of cuts
            middle = tree.split(start, stop, a, code)
            nodes[at] = _branch(attributes[a], coded.encoded[a], code, len(nodes))
            heapq.heappush(waiting, (start - middle, len(nodes), start, middle))
            at, start = len(nodes) + 1, middle
            nodes += [None, None]
        heapq.heappush(waiting, (start - stop, at, start, stop))
    return _numbered(nodes)


def quantile(coded: CodedRows, attributes: Sequence[Attribute], fragments: int) -> Plan:
    """Q_PARTITION: the quantiles of the attribute with the most distinct values in the sample.

    Raises JobError, which names the largest possible number, where it has too few.
    """
    distinct = [np.count_nonzero(np.bincount(column)) for column in coded.rows.codes]
    a = int(np.argmax(distinct))
    ranks = np.sort(coded.rows.codes[a])
    cuts = _quantiles(ranks, fragments)
    if cuts is None:
        possible = next(
            n
            for n in range(min(fragments - 1, int(distinct[a])), 0, -1)
            if _quantiles(ranks, n) is not None
        )
        raise JobError(
            f"partitioning.fragments: column {attributes[a].name!r}, the one with the most "
            f"distinct values, cannot be cut into {fragments} quantiles; ask for at most "
            f"{possible} fragment(s), or use strategy: multidimensional"
        )
    nodes: list[Branch | None] = [None]
    ranges = [(0, 0, len(cuts))]
    while ranges:  # a balanced tree, so that neighbouring quantiles are siblings
        at, first, last = ranges.pop()
        if first == last:
            continue
        middle = (first + last) // 2
        nodes[at] = _branch(attributes[a], coded.encoded[a], int(cuts[middle]), len(nodes))
        ranges += [(len(nodes), first, middle), (len(nodes) + 1, middle + 1, last)]
        nodes += [None, None]
    return _numbered(nodes)


def _branch(attribute: Attribute, encoded: Encoded, code: int, left: int) -> Branch:
    """The cut above a code; its sides are node ``left`` and the next one."""
    value, near = attribute.cut_value(encoded, code), attribute.cut_round(encoded, code)
    return Branch(attribute.name, value, left, left + 1, near)


def _quantiles(
    ranks: NDArray[np.unsignedinteger], fragments: int
) -> NDArray[np.unsignedinteger] | None:
    """Inner quantiles of sorted ranks; None where two are equal."""
    places = -(-np.arange(1, fragments + 1) * len(ranks) // fragments) - 1
    cuts = ranks[places]
    return cuts[:-1] if np.all(np.diff(cuts.astype(np.int64)) > 0) else None


def _numbered(nodes: Sequence[Branch | None]) -> Plan:
    """The plan of a tree: leaves numbered from left to right, a fragment for each."""
    numbered: list[Branch | Leaf] = [node or Leaf(-1) for node in nodes]
    stack, leaves = [0], 0
    while stack:
        at = stack.pop()
        node = numbered[at]
        if isinstance(node, Branch):
            stack += [node.right, node.left]
        else:
            numbered[at] = Leaf(leaves)
            leaves += 1
    return Plan(tuple(numbered), tuple((leaf,) for leaf in range(leaves)))
