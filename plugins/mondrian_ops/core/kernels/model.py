"""What the kernels work on: coded rows, criteria, policy, working memory. Flat arrays, tuples."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Kinds of attribute: what a set of its codes loses.
INTERVAL, TREE, SET = 0, 1, 2

# Cut policies. GAIN takes the largest fall of loss over all attributes; WIDEST_GAIN adds the loss
# of the attribute to the fall per row, so that wide attributes come first; which of them loses less
# depends on the data. BALANCED is MEDIAN without giving missing values classes of their own first.
# RELAXED halves a node on its widest attribute, rows of equal value on both sides where needed.
MEDIAN, GAIN, WIDEST_GAIN, BALANCED, RELAXED = 0, 1, 2, 3, 4

# Kinds of privacy criterion on a sensitive attribute.
DISTINCT, ENTROPY, RECURSIVE, T_EQUAL, T_ORDERED, T_TREE = 0, 1, 2, 3, 4, 5

# Typed: a function is compiled once more for every literal that it is given, or could be.
NONE: Any = np.int64(-1)
ZERO: Any = np.int64(0)
ONE: Any = np.int64(1)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Rows(NamedTuple):
    """Coded rows: code 0 is the missing value, codes of an attribute are in its order.

    Tables over codes are flat; those of attribute a start at ``first[a]``.
    """

    codes: NDArray[np.unsignedinteger[Any]]  # (attributes, rows), C-contiguous
    sensitive: NDArray[np.int32]  # (sensitive attributes, rows)
    kind: Ints  # (attributes,): INTERVAL, TREE or SET
    first: Ints  # (attributes + 1,)
    low: Floats  # INTERVAL: lower end of a code's interval
    high: Floats  # INTERVAL: upper end; equal to the lower unless gridded
    step: Floats  # TREE: loss of the lowest common ancestor of a code and the next one
    span: Floats  # (attributes,): INTERVAL: range over the whole dataset, 1 where that is 0
    domain: Floats  # (attributes,): SET: distinct values of the whole dataset, less one
    present: Floats  # (attributes,): distinct values present in the whole dataset
    persons: int = 0  # 1 where the last sensitive row tells persons apart, and nothing else; else 0


class Criteria(NamedTuple):
    """k, and the criteria on the sensitive attributes, one entry per criterion."""

    k: int
    kind: Ints  # (criteria,)
    column: Ints  # (criteria,): row of the sensitive matrix
    level: Floats  # (criteria,): l, or t
    c: Floats  # (criteria,): the c of recursive (c, l)-diversity
    codes: Ints  # (criteria,): sensitive codes
    uncounted: Ints  # (criteria,): 1 where code 0, the missing value, counts as no value; else 0
    share: Floats  # of t-closeness: distribution over the whole dataset, flat
    share_first: Ints  # (criteria + 1,)
    parent: NDArray[np.int32]  # T_TREE: parents in the sensitive hierarchy, flat, children first
    height: Floats  # T_TREE: height of a node over the height of the tree, flat
    parent_first: Ints  # (criteria + 1,)


class Policy(NamedTuple):
    """How cuts are chosen: greedily, or, in nodes of at most ``rollout_rows``, by looking ahead."""

    greedy: int  # also finishes the subtrees that are compared when looking ahead
    candidates: int  # cuts of each attribute whose subtrees are compared
    rollout_rows: int  # 0: never look ahead
    group_rows: int = 0  # nodes of at most these may be cut by groups; never more than above
    nested_rows: int = 0  # in these it is looked ahead twice; likewise
    finalists: int = 1  # cuts of a node, over all attributes, that are compared by the second look


class Work(NamedTuple):
    """Working memory, allocated once per block of rows."""

    histogram: Ints  # (codes,), zero between uses
    bits: NDArray[np.uint64]  # (codes / 64,), likewise
    value: Ints  # (codes,): distinct codes of a node in order
    below: Ints  # (codes,): rows of the node at or below each
    right: Floats  # (codes,): loss per row of what lies above each
    valid: NDArray[np.bool_]  # (codes,): which cuts keep every criterion
    order: Ints  # (rows,)
    score: Floats  # (attributes,)
    low: Ints  # (attributes,): first code of the rows that the best cut parts from the others
    cut: Ints  # (attributes,): last code of them, -1 without a cut
    distinct: Ints  # (attributes,)
    checked: NDArray[np.bool_]  # (attributes,)
    try_low: Ints  # (candidates,): the same of the cuts that are compared by looking ahead
    try_cut: Ints
    try_attribute: Ints
    try_fall: Floats
    best: Ints  # (finalists,): places in the above of those that lose least
    best_loss: Floats  # (finalists,)
    before: NDArray[np.int32]  # (rollout rows,): a node's rows before any cut was tried
    final_low: Ints  # (finalists,): the cuts that are compared by looking ahead twice
    final_cut: Ints
    final_attribute: Ints
    final_before: NDArray[np.int32]  # (nested rows,): a node's rows before they were tried
    open: Ints  # (2, nodes): start, stop of the nodes to be cut, or to be closed, for them
    sum: Floats  # (depth,): loss of the classes so far in each node around the present one
    sum_key: NDArray[np.uint64]  # (depth,): what it is remembered by
    known_key: NDArray[np.uint64]  # (a power of two,): nodes whose loss is known, and that loss
    known_loss: Floats
    block: Ints  # (1,): tells the blocks whose rows are numbered alike
    widening: Floats  # (group rows,): loss that a row adds to each of a group
    waiting: Ints  # (2, nodes): start, stop of the nodes to be cut
    stack: Ints  # (2, nodes): the same for a rollout
    left_counts: Ints  # (sensitive codes,)
    right_counts: Ints  # (sensitive codes,)
    left_seen: Ints  # (sensitive codes,): stamps
    right_seen: Ints
    clock: Ints  # (1,): the last stamp given out
    surplus: Floats  # (nodes of a sensitive hierarchy,)
    deficit: Floats


def new_work(rows: int, codes: int, attributes: int, criteria: Criteria, policy: Policy) -> Work:
    """Working memory for ``rows`` rows of at most ``codes`` codes per attribute."""
    tried = 2 * max(1, policy.candidates) * attributes
    sensitive = int(criteria.codes.max(initial=1))
    nodes = int(np.diff(criteria.parent_first).max(initial=1))
    nested = min(rows, policy.nested_rows)
    known = KNOWN if nested else 1
    return Work(
        histogram=np.zeros(codes, np.int64),
        bits=np.zeros(codes // 64 + 1, np.uint64),
        value=np.zeros(codes, np.int64),
        below=np.zeros(codes, np.int64),
        right=np.zeros(codes),
        valid=np.zeros(codes, np.bool_),
        order=np.zeros(rows, np.int64),
        score=np.zeros(attributes),
        low=np.zeros(attributes, np.int64),
        cut=np.zeros(attributes, np.int64),
        distinct=np.zeros(attributes, np.int64),
        checked=np.zeros(attributes, np.bool_),
        try_low=np.zeros(tried, np.int64),
        try_cut=np.zeros(tried, np.int64),
        try_attribute=np.zeros(tried, np.int64),
        try_fall=np.zeros(tried),
        best=np.zeros(policy.finalists, np.int64),
        best_loss=np.zeros(policy.finalists),
        before=np.zeros(min(rows, policy.rollout_rows), np.int32),
        final_low=np.zeros(policy.finalists, np.int64),
        final_cut=np.zeros(policy.finalists, np.int64),
        final_attribute=np.zeros(policy.finalists, np.int64),
        final_before=np.zeros(nested, np.int32),
        open=np.zeros((2, MAX_WAITING + nested), np.int64),
        sum=np.zeros(1 + nested),
        sum_key=np.zeros(1 + nested, np.uint64),
        known_key=np.zeros(known, np.uint64),
        known_loss=np.zeros(known),
        block=np.zeros(1, np.int64),
        widening=np.zeros(min(rows, policy.group_rows)),
        waiting=np.zeros((2, MAX_WAITING), np.int64),
        stack=np.zeros((2, MAX_WAITING), np.int64),
        left_counts=np.zeros(sensitive, np.int64),
        right_counts=np.zeros(sensitive, np.int64),
        left_seen=np.zeros(sensitive, np.int64),
        right_seen=np.zeros(sensitive, np.int64),
        clock=np.zeros(1, np.int64),
        surplus=np.zeros(nodes),
        deficit=np.zeros(nodes),
    )


KNOWN = 1 << 16
"""Places for losses that are remembered: a megabyte, which stays in the caches."""

MAX_WAITING = 70
"""Nodes that may wait: the smaller side is cut first, so at most log2(rows) + 1 do."""


def _no_rows() -> Rows:
    integers, floats = np.zeros(0, np.int64), np.zeros(0)
    return Rows(
        np.zeros((0, 0), np.uint8), np.zeros((0, 0), np.int32), integers, np.zeros(1, np.int64),
        floats, floats, floats, floats, floats, floats, 0,
    )  # fmt: skip


NO_ROWS = _no_rows()
