"""Privacy criteria on the two sides of a cut."""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_ops.core.kernels.model import DISTINCT, ENTROPY, RECURSIVE, T_EQUAL, T_ORDERED

TOLERANCE = 1e-9  # entropies and distances are sums of rounded numbers

JIT = {"cache": True, "nogil": True, "error_model": "numpy"}
# For functions that allocate nothing: without Numba's counting of references to the many arrays of
# the tuples below, a million rows are cut in little more than half the time.
LEAN = {**JIT, "_nrt": False}


@njit(**LEAN)
def group_holds(counts, total, distinct, criteria, j, surplus, deficit):
    """Whether ``total`` rows with these sensitive ``counts`` (codes,) satisfy criterion ``j``.

    Where the missing value is ``uncounted``, l-diversity is asked of the other rows by themselves.
    """
    kind = criteria.kind[j]
    first = criteria.uncounted[j]
    if kind == DISTINCT:
        return distinct - np.int64(first > 0 and counts[0] > 0) >= criteria.level[j]
    m = criteria.codes[j]
    counted = total - first * counts[0]
    if kind == ENTROPY:  # Machanavajjhala et al. 2006, definition 4.1
        entropy = 0.0
        for s in range(first, m):
            if counts[s] > 0:
                p = counts[s] / counted
                entropy -= p * np.log(p)
        return entropy >= np.log(criteria.level[j]) - TOLERANCE
    if kind == RECURSIVE:  # ibid., definition 4.2: r1 < c (r_l + ... + r_m)
        level = np.int64(criteria.level[j])
        return outweighed(counts, first, m, counted, level, criteria.c[j])
    return distance(counts, total, criteria, j, surplus, deficit) <= criteria.level[j] + TOLERANCE


@njit(**LEAN)
def outweighed(counts, first, m, total, level, c):
    """Whether r1 < c (r_l + ... + r_m), where r1 >= r2 >= ... are the counts from ``first`` on."""
    largest = 0
    before = 0  # r1 + ... + r_(l-1)
    bound = total + 1
    left = level - 1
    while left > 0 and bound > 0:
        next_largest = same = 0
        for s in range(first, m):
            if counts[s] < bound and counts[s] > next_largest:
                next_largest, same = counts[s], 1
            elif counts[s] == next_largest:
                same += 1
        largest = max(largest, next_largest)
        before += next_largest * min(same, left)
        left -= same
        bound = next_largest
    return largest < c * (total - before)


@njit(**LEAN)
def distance(counts, total, criteria, j, surplus, deficit):
    """Distance of a group's distribution from the dataset's (Li et al. 2007, section 5)."""
    m = criteria.codes[j]
    first = criteria.share_first[j]
    found = 0.0
    if criteria.kind[j] == T_EQUAL:
        for s in range(m):
            found += abs(counts[s] / total - criteria.share[first + s])
        return found / 2.0
    if criteria.kind[j] == T_ORDERED:
        carried = 0.0
        for s in range(m - 1):
            carried += counts[s] / total - criteria.share[first + s]
            found += abs(carried)
        return found / (m - 1.0) if m > 1 else 0.0
    root = criteria.parent_first[j]
    nodes = criteria.parent_first[j + 1] - root
    surplus[:nodes] = 0.0
    deficit[:nodes] = 0.0
    for node in range(nodes):  # children come before their parents
        if node < m:
            extra = counts[node] / total - criteria.share[first + node]
        else:
            extra = surplus[node] - deficit[node]
            found += criteria.height[root + node] * min(surplus[node], deficit[node])
        parent = criteria.parent[root + node]
        if parent >= 0:
            if extra > 0:
                surplus[parent] += extra
            else:
                deficit[parent] -= extra
    return found


@njit(**LEAN)
def both_diverse(rows, index, start, stop, a, low, high, column, first, need, work):
    """Whether both sides of a cut have ``need`` distinct sensitive codes from ``first`` on.

    Stops when they have.
    """
    work.clock[0] += 1
    stamp = work.clock[0]
    left = right = 0
    span = np.uint64(high - low)
    for i in range(start, stop):
        row = index[i]
        s = rows.sensitive[column, row]
        if s < first:
            continue
        if np.uint64(rows.codes[a, row] - low) <= span:
            if work.left_seen[s] != stamp:
                work.left_seen[s] = stamp
                left += 1
        elif work.right_seen[s] != stamp:
            work.right_seen[s] = stamp
            right += 1
        if left >= need and right >= need:
            return True
    return False


@njit(**LEAN)
def cut_holds(rows, index, start, stop, a, low, high, criteria, work):
    """Whether rows with codes ``low`` to ``high``, and the others, satisfy every criterion on the
    sensitive attributes."""
    span = np.uint64(high - low)  # one comparison: what lies below low wraps around
    for j in range(criteria.kind.size):
        column = criteria.column[j]
        if criteria.kind[j] == DISTINCT:
            first, need = criteria.uncounted[j], criteria.level[j]
            if not both_diverse(rows, index, start, stop, a, low, high, column, first, need, work):
                return False
            continue
        left, right = work.left_counts, work.right_counts
        left[: criteria.codes[j]] = 0
        right[: criteria.codes[j]] = 0
        below = 0
        for i in range(start, stop):
            row = index[i]
            if np.uint64(rows.codes[a, row] - low) <= span:
                left[rows.sensitive[column, row]] += 1
                below += 1
            else:
                right[rows.sensitive[column, row]] += 1
        above = stop - start - below
        if not group_holds(left, below, 0, criteria, j, work.surplus, work.deficit):
            return False
        if not group_holds(right, above, 0, criteria, j, work.surplus, work.deficit):
            return False
    return True


@njit(**LEAN)
def order_rows(rows, index, start, stop, a, d, work):
    """Put the node's rows into ``work.order`` by attribute ``a``, whose codes were just tallied."""
    # A counting sort: the histogram holds where the next row of each code goes.
    for j in range(d):
        work.histogram[work.value[j]] = work.below[j - 1] if j > 0 else 0
    for i in range(start, stop):
        v = rows.codes[a, index[i]]
        work.order[work.histogram[v]] = index[i]
        work.histogram[v] += 1
    for j in range(d):
        work.histogram[work.value[j]] = 0


@njit(**LEAN)
def forget(counts, rows, index, start, stop, criteria, j):
    """Zero ``counts`` (codes,) before the values of a node are counted for criterion ``j``.

    Distinct values are seen in the counts of the node's own values: of many, such as persons, no
    others are zeroed but the missing one, which is looked at in any case.
    """
    if criteria.kind[j] != DISTINCT or criteria.codes[j] <= stop - start:
        counts[: criteria.codes[j]] = 0
        return
    counts[0] = 0
    codes = rows.sensitive[criteria.column[j]]
    for i in range(start, stop):
        counts[codes[index[i]]] = 0


@njit(**LEAN)
def halves_hold(rows, index, start, middle, stop, criteria, work):
    """Whether the rows before and from ``middle`` satisfy every criterion, each side by itself."""
    left = work.left_counts
    for j in range(criteria.kind.size):
        for side in range(2):
            first, last = (start, middle) if side == 0 else (middle, stop)
            forget(left, rows, index, first, last, criteria, j)
            distinct = 0
            for i in range(first, last):
                s = rows.sensitive[criteria.column[j], index[i]]
                distinct += left[s] == 0
                left[s] += 1
            if not group_holds(
                left, last - first, distinct, criteria, j, work.surplus, work.deficit
            ):
                return False
    return True


@njit(**LEAN)
def mark_valid(rows, index, start, stop, a, d, criteria, work):
    """``work.valid[j]``: whether the cut above the j-th of ``d`` distinct codes keeps everything.

    For each criterion one sweep over the rows in the attribute's order, which moves a row's
    sensitive value from the right side to the left.
    """
    n = stop - start
    for j in range(d - 1):
        below = work.below[j]
        work.valid[j] = below >= criteria.k and n - below >= criteria.k
    order_rows(rows, index, start, stop, a, d, work)
    left, right = work.left_counts, work.right_counts
    for c in range(criteria.kind.size):
        column = criteria.column[c]
        forget(left, rows, index, start, stop, criteria, c)
        forget(right, rows, index, start, stop, criteria, c)
        on_left = on_right = 0
        for i in range(start, stop):
            s = rows.sensitive[column, index[i]]
            on_right += right[s] == 0
            right[s] += 1
        i = 0
        for j in range(d - 1):
            below = work.below[j]
            while i < below:
                s = rows.sensitive[column, work.order[i]]
                on_left += left[s] == 0
                left[s] += 1
                right[s] -= 1
                on_right -= right[s] == 0
                i += 1
            if work.valid[j]:
                work.valid[j] = group_holds(
                    left, below, on_left, criteria, c, work.surplus, work.deficit
                ) and group_holds(
                    right, n - below, on_right, criteria, c, work.surplus, work.deficit
                )
