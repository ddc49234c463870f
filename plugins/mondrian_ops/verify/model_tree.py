"""A tree with a polynomial in each leaf, which predicts a column from several others.

The tree divides the rows by binned columns, so that the variance decreases the most (L. Breiman et
al., *Classification and Regression Trees*, 1984). In each leaf a polynomial of degree two predicts
(J. R. Quinlan, "Learning with continuous classes", 1992), fitted robustly, so that a function that
holds in most rows is found as it is (P. W. Holland and R. E. Welsch, "Robust regression using
iteratively reweighted least-squares", 1977).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_LEAF_ROWS = 100
_DEPTH = 7
_BINS = 64
_CURVED = 4  # columns that have squares and products in a polynomial
_ROWS_PER_TERM = 5
_STEPS = 12  # of the robust fit, at most
_PROGRESS = 0.95  # of the errors, from which on another step does not pay

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Coded(NamedTuple):
    """A column as ranks (rows,), 0 where missing, and as numbers (rows,), NaN where missing.

    ``is_numeric``: the numbers are its values, and not only their ranks.
    """

    codes: Ints
    numbers: Floats
    is_numeric: bool


def predictions(known: Sequence[Coded], target: Floats, learned: Flags, asked: Flags) -> Floats:
    """(asked rows,) the ``target`` (rows,) as predicted from the columns ``known``.

    It is learned from the rows ``learned``, where it is not missing.
    """
    goal = target[learned]
    unit = float(np.max(np.abs(goal))) or 1.0
    ranks = np.searchsorted(np.sort(goal), goal).astype(float)
    bins, lines = [], []
    for column in known:
        line = column.numbers
        if not column.is_numeric:  # in the order of what they predict
            codes = column.codes[learned]
            rows = np.bincount(codes, minlength=int(column.codes.max()) + 1)
            total = np.bincount(codes, ranks, minlength=len(rows))
            line = ((total + ranks.mean()) / (rows + 1))[column.codes]
        bins.append(bins_of(line, _BINS))
        lines.append(_filled(line))
    leaf = _leaves(bins, ranks, learned)
    stacked = np.stack(lines, axis=1)
    predicted = np.empty(len(target))
    for rows in _groups(leaf):
        fitted, of_leaf = rows[learned[rows]], rows[asked[rows]]
        if len(of_leaf):
            of_fitted = target[fitted] / unit
            predicted[of_leaf] = _polynomial(stacked[fitted], of_fitted, stacked[of_leaf]) * unit
    return predicted[asked]


def bins_of(numbers: Floats, count: int) -> Ints:
    """(rows,) quantile bins from 1 on; 0 for the missing value."""
    is_missing = np.isnan(numbers)
    present = np.sort(numbers[~is_missing])
    if not len(present):
        return np.zeros(len(numbers), np.int64)
    edges = np.unique(present[len(present) * np.arange(1, count) // count])
    return np.where(is_missing, 0, np.searchsorted(edges, numbers) + 1).astype(np.int64)


def _filled(line: Floats) -> Floats:
    """The numbers in units of the greatest one, with the median in place of the missing ones."""
    is_missing = np.isnan(line)
    present = line[~is_missing]
    if not len(present):
        return np.zeros(len(line))
    filled = np.where(is_missing, np.median(present), line)
    return filled / (float(np.max(np.abs(present))) or 1.0)


def _groups(codes: Ints) -> list[Ints]:
    """The rows of each code."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)


def _leaves(bins: Sequence[Ints], goal: Floats, learned: Flags) -> Ints:
    """(rows,) the leaf of each row; ``goal`` (learned rows,)."""
    features = np.stack(bins)
    of_learned = features[:, learned]
    node = np.zeros(features.shape[1], np.int64)
    width = int(features.max()) + 1
    for _ in range(_DEPTH):
        nodes = int(node.max()) + 1
        gains, cuts = _best_cuts(of_learned + node[learned] * width, goal, nodes, width)
        best, every = np.argmax(gains, axis=0), np.arange(nodes)
        is_divided = gains[best, every] > 0
        if not is_divided.any():
            break
        is_right = features[best[node], np.arange(len(node))] > cuts[best, every][node]
        node = np.unique(2 * node + (is_right & is_divided[node]), return_inverse=True)[1]
    return node


def _best_cuts(keys: Ints, goal: Floats, nodes: int, width: int) -> tuple[Floats, Ints]:
    """By how much the best cut reduces the sum of squares, and its bin, (columns, nodes) both.

    ``keys`` (columns, learned rows): the node and bin of each row; ``goal`` (learned rows,): what
    is predicted.
    """
    columns, size = len(keys), nodes * width
    keys = (keys + size * np.arange(columns)[:, None]).ravel()
    shape = columns, nodes, width
    rows = np.bincount(keys, minlength=columns * size).reshape(shape)
    sums = np.bincount(keys, np.tile(goal, columns), minlength=columns * size).reshape(shape)
    left, left_sum = np.cumsum(rows, axis=2), np.cumsum(sums, axis=2)
    all_rows, all_sum = left[:, :, -1:], left_sum[:, :, -1:]
    right, right_sum = all_rows - left, all_sum - left_sum
    is_possible = (left >= _LEAF_ROWS) & (right >= _LEAF_ROWS)
    gain = left_sum**2 / np.maximum(left, 1) + right_sum**2 / np.maximum(right, 1)
    gain = np.where(is_possible, gain - all_sum**2 / np.maximum(all_rows, 1), 0.0)
    return np.max(gain, axis=2), np.argmax(gain, axis=2)


def _polynomial(lines: Floats, target: Floats, asked: Floats) -> Floats:
    """Predictions for rows ``asked`` (rows, columns) by what ``lines`` and ``target`` show."""
    center, spread = lines.mean(axis=0), lines.std(axis=0)
    used = np.flatnonzero(spread > 1e-12)
    # Those that tell most come first, and are squared.
    told = np.abs((lines[:, used] - center[used]).T @ (target - target.mean())) / spread[used]
    used = used[np.argsort(-told, kind="stable")][: len(target) // _ROWS_PER_TERM]
    terms, of_asked = (
        _terms((each[:, used] - center[used]) / spread[used], len(target))
        for each in (lines, asked)
    )
    level = _median(target)
    goal, penalty = target - level, 1e-9 * len(target) * np.eye(terms.shape[1])
    weights: NDArray[Any] = np.ones(len(target))
    before = np.inf
    for _ in range(_STEPS):
        weighted = terms * weights[:, None]
        solved: Floats = np.linalg.solve(weighted.T @ terms + penalty, weighted.T @ goal)
        errors: Floats = np.abs(goal - terms @ solved)
        scale = max(1.5 * _median(errors), 1e-12)
        if scale > _PROGRESS * before:
            break
        before = scale
        weights = 1 / (1 + (errors / scale) ** 2)
    predicted: NDArray[Any] = of_asked @ solved + level
    return predicted


def _median(numbers: Floats) -> float:
    """That of `numpy.median`, which takes ten times as long for so few numbers."""
    ascending, middle = np.sort(numbers), len(numbers) // 2
    return float(ascending[middle] + ascending[-1 - middle]) / 2


def _terms(lines: Floats, rows: int) -> Floats:
    """The constant and the columns; squares and products of the first ones where rows suffice."""
    count = lines.shape[1]
    curved = min(count, _CURVED)
    terms = [np.ones(len(lines)), *lines.T]
    if rows >= _ROWS_PER_TERM * (1 + count + curved * (curved + 1) // 2):
        terms += [lines[:, i] * lines[:, j] for i in range(curved) for j in range(i, curved)]
    return np.stack(terms, axis=1)
