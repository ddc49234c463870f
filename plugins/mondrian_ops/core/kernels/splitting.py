"""What one attribute of one node offers: its distinct codes, its loss, its best cut."""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.cpython.unsafe.numbers import trailing_zeros

from mondrian_ops.core.kernels.criteria import LEAN
from mondrian_ops.core.kernels.model import INTERVAL, SET, TREE

INLINE = {**LEAN, "inline": "always"}
SPARSE = 4  # codes in the range of a node's, over its rows: from there on they are far apart


@njit(**INLINE)
def tally(codes, a, index, start, stop, work):
    """Distinct codes of a node in order (``work.value``), rows at or below each (``work.below``).

    Returns how many there are.
    """
    low = np.int64(1 << 62)
    high = np.int64(-1)
    for i in range(start, stop):
        v = np.int64(codes[a, index[i]])
        work.histogram[v] += 1
        low = min(low, v)
        high = max(high, v)
    if high - low > SPARSE * (stop - start):
        return tally_sparse(codes, a, index, start, stop, low, high, work)
    d = 0
    total = 0
    for code in range(low, high + 1):
        count = work.histogram[code]
        if count > 0:
            work.histogram[code] = 0
            total += count
            work.value[d] = code
            work.below[d] = total
            d += 1
    return d


@njit(**LEAN)
def tally_sparse(codes, a, index, start, stop, low, high, work):
    """Finish a `tally` of few rows that have codes far apart: bits lead from one to the next."""
    for i in range(start, stop):
        v = codes[a, index[i]]
        work.bits[v >> 6] |= np.uint64(1) << np.uint64(v & 63)
    d = 0
    total = 0
    for word in range(low >> 6, (high >> 6) + 1):
        bits = work.bits[word]
        work.bits[word] = 0
        while bits != 0:
            code = (word << 6) + np.int64(trailing_zeros(bits))
            bits &= bits - np.uint64(1)
            total += work.histogram[code]
            work.histogram[code] = 0
            work.value[d] = code
            work.below[d] = total
            d += 1
    return d


@njit(**INLINE)
def highest_step(step, first, low, high):
    """TREE: loss of the lowest common ancestor of codes ``low`` to ``high``."""
    found = 0.0
    for v in range(first + low, first + high):
        found = max(found, step[v])
    return found


@njit(**INLINE)
def width(rows, a, low, high, d):
    """Loss in [0, 1] of publishing codes ``low`` to ``high``, ``d`` of them, as one value."""
    first = rows.first[a]
    if low == 0:
        return 1.0 if high > 0 else 0.0  # missing and present together publish "*"
    if rows.kind[a] == INTERVAL:
        return (rows.high[first + high] - rows.low[first + low]) / rows.span[a]
    if rows.kind[a] == SET:
        return (d - 1) / rows.domain[a]
    return highest_step(rows.step, first, low, high)


@njit(**INLINE)
def losses_above(rows, a, d, value, right):
    """``right[j]``: loss per row of the codes above the j-th of ``d``."""
    first = rows.first[a]
    if rows.kind[a] == INTERVAL:
        top = rows.high[first + value[d - 1]]
        for j in range(d - 1):
            right[j] = (top - rows.low[first + value[j + 1]]) / rows.span[a]
    elif rows.kind[a] == SET:
        for j in range(d - 1):
            right[j] = (d - 2 - j) / rows.domain[a]
    else:
        loss = 0.0
        right[d - 2] = 0.0
        for j in range(d - 3, -1, -1):
            loss = max(loss, highest_step(rows.step, first, value[j + 1], value[j + 2]))
            right[j] = loss


@njit(**INLINE)
def loss_below(rows, a, j, value, loss):
    """Loss per row of the j + 1 lowest codes, given that of the j lowest (``loss``)."""
    first = rows.first[a]
    if j == 0:
        if value[0] == 0 or rows.kind[a] != INTERVAL:
            return 0.0
        return (rows.high[first + value[0]] - rows.low[first + value[0]]) / rows.span[a]
    if value[0] == 0:
        return 1.0
    if rows.kind[a] == INTERVAL:
        return (rows.high[first + value[j]] - rows.low[first + value[0]]) / rows.span[a]
    if rows.kind[a] == SET:
        return j / rows.domain[a]
    return max(loss, highest_step(rows.step, first, value[j - 1], value[j]))


@njit(**INLINE)
def allowed(j, n, k, only_valid, below, valid):
    """Whether the cut above the j-th distinct code may be taken, as far as is known."""
    if only_valid:
        return valid[j]
    return below[j] >= k and n - below[j] >= k


@njit(**INLINE)
def median_cut(d, n, k, only_valid, below, valid):
    """The median of the ranks (seed, figure 7), else the allowed cut that balances best; -1: none.

    With ``only_valid`` the cuts that `mark_valid` marked are allowed, else those that keep k.
    """
    median = 0
    while 2 * below[median] < n:
        median += 1
    best = -1
    if median < d - 1 and allowed(median, n, k, only_valid, below, valid):
        best = median
    else:
        imbalance = n + 1
        for j in range(d - 1):
            if abs(2 * below[j] - n) < imbalance and allowed(j, n, k, only_valid, below, valid):
                best, imbalance = j, abs(2 * below[j] - n)
    return best


@njit(**INLINE)
def gain_cut(rows, a, d, n, k, only_valid, value, below, right, valid):
    """The allowed cut with the largest fall of loss, that fall, and the loss per row before it.

    The loss of rows is their number times `width`. Of equal falls the more balanced cut wins, then
    the lower one; -1: no cut is allowed.
    """
    losses_above(rows, a, d, value, right)
    whole = width(rows, a, value[0], value[d - 1], d)
    best = -1
    best_fall = -1.0
    best_imbalance = n + 1
    loss = 0.0
    for j in range(d - 1):
        loss = loss_below(rows, a, j, value, loss)
        if allowed(j, n, k, only_valid, below, valid):
            fall = n * whole - below[j] * loss - (n - below[j]) * right[j]
            imbalance = abs(2 * below[j] - n)
            if fall > best_fall or (fall == best_fall and imbalance < best_imbalance):
                best, best_fall, best_imbalance = j, fall, imbalance
    return best, best_fall, whole


@njit(**LEAN)
def gain_group(rows, a, d, least, most, whole, value, below):
    """The group amid the others whose parting lets loss fall most: (first, last) of the distinct
    codes and the fall; (-1, -1, 0) without one.

    One code by itself or, of a TREE, those of a subtree right below the node's own; neither holds
    the lowest or the highest code, so that the others lose what all lost, ``whole`` per row, or of
    a SET one value less. It has ``least`` to ``most`` rows; of equal falls the lower one is taken.
    """
    n = below[d - 1]
    less = 0.0
    if rows.kind[a] == SET and value[0] != 0:
        less = 1.0 / rows.domain[a]
    best_first, best_last, best_fall = -1, -1, 0.0
    first = 0
    loss = 0.0
    for j in range(d - 1):
        alone = below[j] - below[j - 1] if j > 0 else 0
        fall = alone * whole + (n - alone) * less
        if least <= alone <= most and fall > best_fall:
            best_first, best_last, best_fall = j, j, fall
        if rows.kind[a] != TREE:
            continue
        step = highest_step(rows.step, rows.first[a], value[j], value[j + 1])
        if step < whole:
            loss = max(loss, step)
            continue
        size = below[j] - below[first - 1] if first > 0 else 0
        if least <= size <= most and size * (whole - loss) > best_fall:
            best_first, best_last, best_fall = first, j, size * (whole - loss)
        first = j + 1
        loss = 0.0
    return best_first, best_last, best_fall
