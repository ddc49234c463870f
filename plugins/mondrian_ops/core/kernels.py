"""Numba kernels of Mondrian: one permuted index, nodes are ``[start, stop)`` views of it.

The kernels see codes only. ``codes`` is a C-ordered ``(rows, attributes)`` matrix of one unsigned
dtype; within a column codes are ranks, so their order is the order of the attribute, and code 0 is
the missing value. Nothing here depends on how densely a column is coded: a decision uses counts,
order and positions of the values present in a node, so a fragment cut alone and the same rows cut
inside the whole table come out the same (design, invariant 5).

Every function releases the GIL and is cached on disk after its first compilation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

# Kinds of attribute: how a set of its codes is generalized, and so what it loses.
INTERVAL, TREE, SET = 0, 1, 2

# Cut policies; BALANCED is MEDIAN without giving missing values classes of their own first.
MEDIAN, GAIN, LOOKAHEAD, BALANCED = 0, 1, 2, 3

# Kinds of privacy criterion on a sensitive attribute.
DISTINCT, ENTROPY, RECURSIVE, T_EQUAL, T_ORDERED, T_TREE = 0, 1, 2, 3, 4, 5

_JIT = {"cache": True, "nogil": True}


class Space(NamedTuple):
    """The quasi-identifiers as the kernels see them; flat arrays, one slice per attribute."""

    kind: np.ndarray  # (q,) int64: INTERVAL, TREE or SET
    start: np.ndarray  # (q + 1,) int64: attribute a's codes are start[a] .. start[a + 1] - 1 below
    low: np.ndarray  # (sum of codes,) float64: lower end of a code's interval
    high: np.ndarray  # (sum of codes,) float64: its upper end; equal to low unless gridded
    span: np.ndarray  # (q,) float64: range over the whole dataset; 0 when constant
    domain: np.ndarray  # (q,) float64: distinct values (leaves) of the whole domain
    present: np.ndarray  # (q,) float64: distinct values present in the whole dataset
    depth: np.ndarray  # (q,) int64: levels of the tree, 0 without one
    ancestor: np.ndarray  # (sum of depth * codes,) int32: node of each code at each level
    ancestor_start: np.ndarray  # (q,) int64
    weight: np.ndarray  # (sum of nodes,) float64: loss of a node, in [0, 1]
    weight_start: np.ndarray  # (q,) int64


class Criteria(NamedTuple):
    """k and the criteria on the sensitive attributes, one entry per criterion."""

    k: int
    kind: np.ndarray  # (c,) int64
    column: np.ndarray  # (c,) int64: column of the sensitive code matrix
    level: np.ndarray  # (c,) float64: l, or t
    c: np.ndarray  # (c,) float64: recursive (c, l)
    codes: np.ndarray  # (c,) int64: sensitive codes, the missing one included
    share: np.ndarray  # (sum of codes,) float64: distribution over the whole dataset
    share_start: np.ndarray  # (c,) int64
    parent: np.ndarray  # (sum of nodes,) int32: sensitive hierarchy, leaves first (T_TREE)
    height: np.ndarray  # (sum of nodes,) float64: height of a node over the tree's height
    parent_start: np.ndarray  # (c + 1,) int64


class Scratch(NamedTuple):
    """Working memory of one kernel call, allocated once (see `scratch`)."""

    histogram: np.ndarray  # int32, all zero between uses
    values: np.ndarray  # (rows,) int64: sorted codes where a histogram would be too wide
    cut: np.ndarray  # int64: distinct codes of the node in order
    below: np.ndarray  # int64: rows at or below each
    seen: np.ndarray  # (most codes of an attribute,) int64: stamps
    left: np.ndarray  # (most sensitive codes,) int64: counts left of a cut
    right: np.ndarray  # (most sensitive codes,) int64: counts right of it
    surplus: np.ndarray  # (most sensitive nodes,) float64
    deficit: np.ndarray  # (most sensitive nodes,) float64
    first: np.ndarray  # (most sensitive codes,) int64: stamps
    last: np.ndarray  # (most sensitive codes,) int64: stamps
    valid: np.ndarray  # bool: which of the node's cuts hold
    clock: np.ndarray  # (1,) int64: the last stamp given out
    score: np.ndarray  # (q,) float64
    exact: np.ndarray  # (q,) bool
    choice: np.ndarray  # (q,) int64


@njit(**_JIT)
def tree_weight(space, a, low, high):
    """Loss of the lowest common ancestor of two codes of a tree attribute (codes in tree order)."""
    base = space.ancestor_start[a]
    codes = space.start[a + 1] - space.start[a]
    for level in range(space.depth[a]):
        node = space.ancestor[base + level * codes + low]
        if node == space.ancestor[base + level * codes + high]:
            return space.weight[space.weight_start[a] + node]
    return 1.0


@njit(**_JIT, inline="always")
def weight(space, a, low, high, distinct):
    """Loss in [0, 1] of publishing codes ``low..high`` (``distinct`` of them) as one value."""
    if low == 0 and high > 0:
        return 1.0  # missing and present together publish "*"
    if space.kind[a] == INTERVAL:
        if high == 0 or space.span[a] <= 0.0:
            return 0.0
        base = space.start[a]
        return (space.high[base + high] - space.low[base + low]) / space.span[a]
    if low == high:
        return 0.0
    if space.kind[a] == TREE:
        return tree_weight(space, a, low, high)
    return (distinct - 1.0) / (space.domain[a] - 1.0)


@njit(**_JIT, inline="always")
def extent(codes, index, start, stop, a, low_bound, high_bound):
    """Least and greatest code of a node; stops as soon as both bounds are reached."""
    low = high = codes[index[start], a]
    if low == low_bound and high == high_bound:
        return low, high
    for i in range(start + 1, stop):
        v = codes[index[i], a]
        if v < low:
            low = v
            if low == low_bound and high == high_bound:
                break
        elif v > high:
            high = v
            if low == low_bound and high == high_bound:
                break
    return low, high


@njit(**_JIT, inline="always")
def distinct_count(codes, index, start, stop, a, bound, scratch, stamp):
    """Number of distinct codes of a node; stops once ``bound`` of them are seen."""
    found = 0
    for i in range(start, stop):
        v = codes[index[i], a]
        if scratch.seen[v] != stamp:
            scratch.seen[v] = stamp
            found += 1
            if found == bound:
                break
    return found


@njit(**_JIT, inline="always")
def profile(codes, index, start, stop, a, low, high, scratch):
    """Distinct codes of a node in order (``scratch.cut``), rows at or below each (``below``).

    Counts into a histogram, or sorts where the codes lie too far apart for one: the cost follows
    the rows of the node, never the distinct values of the column.
    """
    n = stop - start
    width = np.int64(high) - np.int64(low) + 1
    d = 0
    if width <= 2 * n + 32:
        for i in range(start, stop):
            scratch.histogram[codes[index[i], a] - low] += 1
        total = 0
        for j in range(width):
            count = scratch.histogram[j]
            if count > 0:
                scratch.histogram[j] = 0
                total += count
                scratch.cut[d] = j + low
                scratch.below[d] = total
                d += 1
        return d
    values = scratch.values[:n]
    for i in range(n):
        values[i] = codes[index[start + i], a]
    values.sort()
    for i in range(n):
        if i + 1 == n or values[i + 1] != values[i]:
            scratch.cut[d] = values[i]
            scratch.below[d] = i + 1
            d += 1
    return d


@njit(**_JIT, inline="always")
def partition_rows(codes, index, start, stop, a, cut):
    """Bring the rows with code <= ``cut`` to the front; returns where the others start."""
    i, j = start, stop - 1
    while True:
        while i <= j and codes[index[i], a] <= cut:
            i += 1
        while i <= j and codes[index[j], a] > cut:
            j -= 1
        if i > j:
            return i
        index[i], index[j] = index[j], index[i]
        i += 1
        j -= 1


@njit(**_JIT)
def group_holds(counts, total, distinct, criteria, j, scratch):
    """Whether rows with these sensitive ``counts`` (codes,) satisfy criterion ``j``."""
    kind = criteria.kind[j]
    if kind == DISTINCT:
        return distinct >= criteria.level[j]
    m = criteria.codes[j]
    if kind == ENTROPY:  # Machanavajjhala et al. 2006, definition 4.1
        entropy = 0.0
        for s in range(m):
            if counts[s] > 0:
                p = counts[s] / total
                entropy -= p * np.log(p)
        return entropy >= np.log(criteria.level[j]) - 1e-9
    if kind == RECURSIVE:  # ibid., definition 4.2: r1 < c (r_l + ... + r_m)
        order = np.sort(counts[:m])
        tail = 0
        for s in range(m - np.int64(criteria.level[j]) + 1):
            tail += order[s]
        return order[m - 1] < criteria.c[j] * tail
    return closeness(counts, total, criteria, j, scratch) <= criteria.level[j] + 1e-9


@njit(**_JIT)
def closeness(counts, total, criteria, j, scratch):
    """Distance between a group's and the dataset's distribution (Li et al. 2007, section 5)."""
    m = criteria.codes[j]
    base = criteria.share_start[j]
    distance = 0.0
    if criteria.kind[j] == T_EQUAL:
        for s in range(m):
            distance += abs(counts[s] / total - criteria.share[base + s])
        return distance / 2.0
    if criteria.kind[j] == T_ORDERED:
        carried = 0.0
        for s in range(m - 1):
            carried += counts[s] / total - criteria.share[base + s]
            distance += abs(carried)
        return distance / (m - 1.0) if m > 1 else 0.0
    first = criteria.parent_start[j]
    nodes = criteria.parent_start[j + 1] - first
    surplus, deficit = scratch.surplus, scratch.deficit
    surplus[:nodes] = 0.0
    deficit[:nodes] = 0.0
    for node in range(nodes):  # children come before their parents
        if node < m:
            extra = counts[node] / total - criteria.share[base + node]
        else:
            extra = surplus[node] - deficit[node]
            distance += criteria.height[first + node] * min(surplus[node], deficit[node])
        parent = criteria.parent[first + node]
        if parent >= 0:
            if extra > 0:
                surplus[parent] += extra
            else:
                deficit[parent] -= extra
    return distance


@njit(**_JIT)
def both_diverse(codes, sensitive, index, start, stop, a, cut, column, need, scratch):
    """Whether both sides of a cut have ``need`` distinct sensitive codes; stops when they have."""
    scratch.clock[0] += 1
    stamp = scratch.clock[0]
    left = right = 0
    for i in range(start, stop):
        row = index[i]
        s = sensitive[row, column]
        if codes[row, a] <= cut:
            if left < need and scratch.first[s] != stamp:
                scratch.first[s] = stamp
                left += 1
        elif right < need and scratch.last[s] != stamp:
            scratch.last[s] = stamp
            right += 1
        if left >= need and right >= need:
            return True
    return False


@njit(**_JIT)
def cut_holds(codes, sensitive, index, start, stop, a, cut, criteria, scratch):
    """Whether both sides of a cut satisfy every criterion on the sensitive attributes."""
    for j in range(criteria.kind.size):
        column = criteria.column[j]
        if criteria.kind[j] == DISTINCT:
            if not both_diverse(
                codes, sensitive, index, start, stop, a, cut, column, criteria.level[j], scratch
            ):
                return False
            continue
        m = criteria.codes[j]
        scratch.left[:m] = 0
        scratch.right[:m] = 0
        below = 0
        for i in range(start, stop):
            row = index[i]
            if codes[row, a] <= cut:
                scratch.left[sensitive[row, column]] += 1
                below += 1
            else:
                scratch.right[sensitive[row, column]] += 1
        above = stop - start - below
        if not group_holds(scratch.left, below, 0, criteria, j, scratch):
            return False
        if not group_holds(scratch.right, above, 0, criteria, j, scratch):
            return False
    return True


@njit(**_JIT)
def mark_valid(codes, sensitive, index, start, stop, a, d, criteria, scratch):
    """``scratch.valid[j]``: whether the cut above the j-th distinct code keeps k and every criterion.

    One sweep over the rows in the attribute's order for each criterion, moving a row's sensitive
    value from the right side to the left.
    """
    n = stop - start
    for j in range(d - 1):
        below = scratch.below[j]
        scratch.valid[j] = below >= criteria.k and n - below >= criteria.k
    values = scratch.values[:n]
    for i in range(n):
        values[i] = (np.int64(codes[index[start + i], a]) << 32) | i
    values.sort()
    for c in range(criteria.kind.size):
        column, m = criteria.column[c], criteria.codes[c]
        left, right = scratch.left, scratch.right
        left[:m] = 0
        right[:m] = 0
        on_left = on_right = 0
        for i in range(start, stop):
            s = sensitive[index[i], column]
            on_right += right[s] == 0
            right[s] += 1
        i = 0
        for j in range(d - 1):
            below = scratch.below[j]
            while i < below:
                s = sensitive[index[start + (values[i] & 0xFFFFFFFF)], column]
                on_left += left[s] == 0
                left[s] += 1
                right[s] -= 1
                on_right -= right[s] == 0
                i += 1
            if scratch.valid[j]:
                scratch.valid[j] = group_holds(
                    left, below, on_left, criteria, c, scratch
                ) and group_holds(right, n - below, on_right, criteria, c, scratch)


@njit(**_JIT, inline="always")
def median_cut(d, n, k, only_valid, scratch):
    """The median of the ranks (seed, figure 7), else the allowed cut that balances best; -1: none.

    With ``only_valid`` the cuts marked by `mark_valid` are the allowed ones, else those that keep k.
    """
    median = 0
    while 2 * scratch.below[median] < n:
        median += 1
    if median < d - 1 and allowed(median, n, k, only_valid, scratch):
        return median
    best, best_balance = -1, n + 1
    for j in range(d - 1):
        balance = abs(2 * scratch.below[j] - n)
        if balance < best_balance and allowed(j, n, k, only_valid, scratch):
            best, best_balance = j, balance
    return best


@njit(**_JIT, inline="always")
def allowed(j, n, k, only_valid, scratch):
    """Whether the cut above the j-th distinct code may be taken, as far as is known."""
    if only_valid:
        return scratch.valid[j]
    return scratch.below[j] >= k and n - scratch.below[j] >= k


@njit(**_JIT, inline="always")
def gain_cut(space, a, d, n, k, only_valid, scratch):
    """The allowed cut of attribute ``a`` with the largest fall of loss, and that fall; -1: none.

    Loss is rows times `weight`. Of equal falls the more balanced cut wins, then the lower one.
    """
    cut, below = scratch.cut, scratch.below
    low, high = cut[0], cut[d - 1]
    best, best_fall, best_balance = -1, -1.0, n + 1
    whole = n * weight(space, a, low, high, d)
    for j in range(d - 1):
        if not allowed(j, n, k, only_valid, scratch):
            continue
        rest = below[j] * weight(space, a, low, cut[j], j + 1)
        rest += (n - below[j]) * weight(space, a, cut[j + 1], high, d - j - 1)
        fall = whole - rest
        balance = abs(2 * below[j] - n)
        if fall > best_fall or (fall == best_fall and balance < best_balance):
            best, best_fall, best_balance = j, fall, balance
    return best, best_fall


@njit(**_JIT)
def valid_code(codes, sensitive, index, start, stop, a, cut, low, high, space, criteria, by_gain, scratch):
    """Code of the best cut of attribute ``a`` that holds, and its fall; -1: no cut of it does."""
    if criteria.kind.size == 0:
        return -1, -1.0  # `cut` kept k already; there is nothing else it could have broken
    n = stop - start
    d = profile(codes, index, start, stop, a, low, high, scratch)
    mark_valid(codes, sensitive, index, start, stop, a, d, criteria, scratch)
    if by_gain:
        j, fall = gain_cut(space, a, d, n, criteria.k, True, scratch)
    else:
        j, fall = median_cut(d, n, criteria.k, True, scratch), 0.0
    return (scratch.cut[j], fall) if j >= 0 else (-1, -1.0)


@njit(**_JIT, inline="always")
def missing_cut(codes, sensitive, index, start, stop, low, high, criteria, scratch):
    """First attribute whose missing values can be given classes of their own; -1: none."""
    n = stop - start
    for a in range(low.size):
        if low[a] > 0 or high[a] == 0:
            continue
        missing = 0
        for i in range(start, stop):
            missing += codes[index[i], a] == 0
        if missing < criteria.k or n - missing < criteria.k:
            continue
        if cut_holds(codes, sensitive, index, start, stop, a, 0, criteria, scratch):
            return a
    return -1


@njit(**_JIT, inline="always")
def representativity(space, a, low, high, distinct):
    """Seed, equation 1: span (or distinct values) in the node over that of the whole dataset."""
    if space.kind[a] == INTERVAL:
        return weight(space, a, low, high, distinct)
    return distinct / space.present[a]


@njit(**_JIT, inline="always")
def widest_cut(codes, sensitive, index, start, stop, low, high, distinct, space, criteria, scratch):
    """Median cut of the attribute of largest representativity, ties broken by distinct values."""
    q = low.size
    n = stop - start
    score, exact = scratch.score, scratch.exact
    for a in range(q):
        exact[a] = False
        score[a] = -1.0
        if low[a] == high[a]:
            continue
        if space.kind[a] != INTERVAL:
            count_exactly(codes, index, start, stop, a, distinct, scratch)
        score[a] = representativity(space, a, low[a], high[a], distinct[a])
    while True:
        best, tied = -1, False
        for a in range(q):
            if score[a] >= 0.0:
                if best < 0 or score[a] > score[best]:
                    best, tied = a, False
                elif score[a] == score[best]:
                    tied = True
        if best < 0:
            return -1, np.int64(0)
        if tied:
            top = score[best]
            for a in range(q):
                if score[a] == top:
                    count_exactly(codes, index, start, stop, a, distinct, scratch)
                    if distinct[a] > distinct[best]:
                        best = a
        a = best
        d = profile(codes, index, start, stop, a, low[a], high[a], scratch)
        j = median_cut(d, n, criteria.k, False, scratch)
        if j >= 0:
            code = scratch.cut[j]
            if not cut_holds(codes, sensitive, index, start, stop, a, code, criteria, scratch):
                code, _ = valid_code(
                    codes, sensitive, index, start, stop, a, code, low[a], high[a], space, criteria,
                    False, scratch,
                )
            if code >= 0:
                return a, code
        score[a] = -1.0


@njit(**_JIT, inline="always")
def count_exactly(codes, index, start, stop, a, distinct, scratch):
    """Replace ``distinct[a]``, an upper bound, by the count itself (once per node)."""
    if scratch.exact[a]:
        return
    scratch.exact[a] = True
    scratch.clock[0] += 1
    distinct[a] = distinct_count(
        codes, index, start, stop, a, distinct[a], scratch, scratch.clock[0]
    )


@njit(**_JIT, inline="always")
def best_gain_cut(codes, sensitive, index, start, stop, low, high, space, criteria, scratch):
    """The valid cut with the largest fall of loss over all attributes; attribute -1: none."""
    q = low.size
    n = stop - start
    fall, choice, checked = scratch.score, scratch.choice, scratch.exact
    for a in range(q):
        fall[a] = -1.0
        checked[a] = False
        if low[a] == high[a]:
            continue
        d = profile(codes, index, start, stop, a, low[a], high[a], scratch)
        j, fall[a] = gain_cut(space, a, d, n, criteria.k, False, scratch)
        if j >= 0:
            choice[a] = scratch.cut[j]
    while True:
        best = 0
        for a in range(1, q):
            if fall[a] > fall[best]:
                best = a
        if fall[best] < 0.0:
            return -1, np.int64(0)
        code = choice[best]
        if checked[best] or cut_holds(
            codes, sensitive, index, start, stop, best, code, criteria, scratch
        ):
            return best, code
        choice[best], fall[best] = valid_code(
            codes, sensitive, index, start, stop, best, code, low[best], high[best], space,
            criteria, True, scratch,
        )
        checked[best] = True


@njit(**_JIT, inline="always")
def find_cut(
    codes, sensitive, index, start, stop, low, high, distinct, space, criteria, policy, scratch
):
    """Attribute and code of a node's next cut (rows <= code go left); attribute -1: it is final."""
    if stop - start < 2 * criteria.k:
        return -1, np.int64(0)
    if policy != BALANCED:
        a = missing_cut(codes, sensitive, index, start, stop, low, high, criteria, scratch)
        if a >= 0:
            return a, np.int64(0)
    if policy == MEDIAN or policy == BALANCED:
        return widest_cut(
            codes, sensitive, index, start, stop, low, high, distinct, space, criteria, scratch
        )
    return best_gain_cut(codes, sensitive, index, start, stop, low, high, space, criteria, scratch)


@njit(**_JIT)
def grow(codes, sensitive, index, space, criteria, policy, scratch):
    """Cut until no valid cut is left; marks in the result (rows,) uint8 where a class starts."""
    n, q = codes.shape
    starts = np.zeros(n, np.uint8)
    depth = 66  # the smaller side is cut first, so at most log2(rows) nodes wait
    node_start = np.empty(depth, np.int64)
    node_stop = np.empty(depth, np.int64)
    low = np.empty((depth, q), np.int64)
    high = np.empty((depth, q), np.int64)
    distinct = np.empty((depth, q), np.int64)
    node_start[0], node_stop[0] = 0, n
    for a in range(q):
        size = space.start[a + 1] - space.start[a]
        low[0, a], high[0, a], distinct[0, a] = 0, size - 1, size
    top = 0
    while top >= 0:
        start, stop = node_start[top], node_stop[top]
        if stop - start < 2 * criteria.k:
            starts[start] = 1
            top -= 1
            continue
        for a in range(q):
            low[top, a], high[top, a] = extent(
                codes, index, start, stop, a, low[top, a], high[top, a]
            )
        a, cut = find_cut(
            codes, sensitive, index, start, stop, low[top], high[top], distinct[top], space,
            criteria, policy, scratch,
        )
        if a < 0:
            starts[start] = 1
            top -= 1
            continue
        middle = partition_rows(codes, index, start, stop, a, cut)
        larger_left = middle - start > stop - middle
        node_start[top], node_stop[top] = (start, middle) if larger_left else (middle, stop)
        node_start[top + 1], node_stop[top + 1] = (middle, stop) if larger_left else (start, middle)
        for b in range(q):
            low[top + 1, b] = low[top, b]
            high[top + 1, b] = high[top, b]
            distinct[top + 1, b] = distinct[top, b]
        side_high = top if larger_left else top + 1
        high[side_high, a] = cut
        low[top if side_high == top + 1 else top + 1, a] = cut + 1
        top += 1
    return starts


@njit(**_JIT)
def distinct_per_class(codes, index, starts, size):
    """Distinct codes of each class in order, one after another, and where each class's end."""
    classes = starts.size
    seen = np.full(size, -1, np.int64)
    members = np.empty(index.size, codes.dtype)
    ends = np.empty(classes, np.int64)
    total = 0
    for i in range(classes):
        stop = starts[i + 1] if i + 1 < classes else index.size
        begin = total
        for j in range(starts[i], stop):
            v = codes[index[j]]
            if seen[v] != i:
                seen[v] = i
                members[total] = v
                total += 1
        members[begin:total].sort()
        ends[i] = total
    return members[:total], ends


@njit(**_JIT)
def shuffle_classes(index, starts, seed):
    """Shuffle the rows of every class in place (Fisher-Yates on splitmix64)."""
    state = np.uint64(seed)
    for i in range(starts.size):
        start = starts[i]
        stop = starts[i + 1] if i + 1 < starts.size else index.size
        for j in range(stop - 1, start, -1):
            state += np.uint64(0x9E3779B97F4A7C15)
            z = state
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            z ^= z >> np.uint64(31)
            other = start + np.int64(z % np.uint64(j - start + 1))
            index[j], index[other] = index[other], index[j]


@njit(**_JIT)
def route_rows(places, column, limit, left, right, leaf):
    """Leaf of each row of ``places`` (rows, columns) in a tree of cuts given node by node."""
    found = np.empty(places.shape[0], np.int64)
    for i in range(places.shape[0]):
        node = 0
        while leaf[node] < 0:
            node = left[node] if places[i, column[node]] <= limit[node] else right[node]
        found[i] = leaf[node]
    return found


@njit(**_JIT)
def next_cut(
    codes, sensitive, index, start, stop, low, high, distinct, space, criteria, policy, scratch
):
    """`find_cut` of a node for which ``low``, ``high``, ``distinct`` (q,) may still be bounds."""
    for a in range(low.size):
        low[a], high[a] = extent(codes, index, start, stop, a, low[a], high[a])
    return find_cut(
        codes, sensitive, index, start, stop, low, high, distinct, space, criteria, policy, scratch
    )


def _no_space() -> Space:
    integers, floats = np.zeros(0, np.int64), np.zeros(0)
    nodes = np.zeros(0, np.int32)
    start = np.zeros(1, np.int64)
    return Space(
        integers, start, floats, floats, floats, floats, floats, integers, nodes, integers, floats,
        integers,
    )  # fmt: skip


NO_SPACE = _no_space()
"""The space of no attribute, for judging groups of rows alone."""


def new_scratch(rows: int, space: Space, criteria: Criteria) -> Scratch:
    """Working memory for kernels on ``rows`` rows."""
    sizes = np.diff(space.start)
    most = int(sizes.max(initial=1))
    cuts = min(rows, most) + 1
    sensitive = int(criteria.codes.max(initial=1))
    nodes = int(np.diff(criteria.parent_start).max(initial=1))
    attributes = len(sizes)
    return Scratch(
        histogram=np.zeros(min(most, 4 * rows + 64) + 1, np.int32),
        values=np.empty(rows, np.int64),
        cut=np.empty(cuts, np.int64),
        below=np.empty(cuts, np.int64),
        seen=np.zeros(most, np.int64),
        left=np.zeros(sensitive, np.int64),
        right=np.zeros(sensitive, np.int64),
        surplus=np.zeros(nodes),
        deficit=np.zeros(nodes),
        first=np.zeros(sensitive, np.int64),
        last=np.zeros(sensitive, np.int64),
        valid=np.zeros(cuts, np.bool_),
        clock=np.zeros(1, np.int64),
        score=np.zeros(attributes),
        exact=np.zeros(attributes, np.bool_),
        choice=np.zeros(attributes, np.int64),
    )
