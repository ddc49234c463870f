"""What one attribute of one node offers, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from examples import examples
from mondrian_ops.core import kernels
from mondrian_ops.core.kernels import splitting
from mondrian_ops.core.kernels.criteria import LEAN

NO_CRITERIA = kernels.Criteria(
    k=1,
    kind=np.zeros(0, np.int64),
    column=np.zeros(0, np.int64),
    level=np.zeros(0),
    c=np.zeros(0),
    codes=np.zeros(0, np.int64),
    uncounted=np.zeros(0, np.int64),
    share=np.zeros(0),
    share_first=np.zeros(1, np.int64),
    parent=np.zeros(0, np.int32),
    height=np.zeros(0),
    parent_first=np.zeros(1, np.int64),
)
POSITIONS = np.array([0.0, -8.0, -7.5, 0.0, 0.25, 3.0, 8.0])  # of codes 0 to 6; 16 apart
STEPS = np.array([0.0, 0.25, 1.0, 0.25, 0.5, 0.25, 0.0])


@njit(**LEAN)
def offers(rows, index, start, stop, k, work):
    """Median cut, gain cut, its fall and the loss of attribute 0."""
    d = splitting.tally(rows.codes, 0, index, start, stop, work)
    median = splitting.median_cut(d, stop - start, k, False, work.below, work.valid)
    if d < 2:
        low = work.value[0]
        return d, median, -1, 0.0, splitting.width(rows, 0, low, low, 1)
    gain, fall, whole = splitting.gain_cut(
        rows, 0, d, stop - start, k, False, work.value, work.below, work.right, work.valid
    )
    return d, median, gain, fall, whole


def rows_of(codes, kind) -> kernels.Rows:
    return kernels.Rows(
        codes=np.array([codes], np.uint16),
        sensitive=np.zeros((0, len(codes)), np.int32),
        kind=np.array([kind]),
        first=np.array([0, 7]),
        low=POSITIONS,
        high=POSITIONS,
        step=STEPS,
        span=np.array([16.0]),
        domain=np.array([8.0]),
        present=np.array([6.0]),
    )


def loss(codes, kind) -> float:
    present = sorted({*codes} - {0})
    if not present:
        return 0.0
    if 0 in codes:
        return 1.0
    if kind == kernels.INTERVAL:
        return (POSITIONS[present[-1]] - POSITIONS[present[0]]) / 16
    if kind == kernels.SET:
        return (len(present) - 1) / 8
    return max(STEPS[present[0] : present[-1]], default=0.0)


@examples(400)
@given(
    st.lists(st.integers(0, 6), min_size=2, max_size=30),
    st.sampled_from([kernels.INTERVAL, kernels.TREE, kernels.SET]),
    st.integers(1, 5),
    st.data(),
)
def test_cuts_of_one_attribute(codes, kind, k, data):
    rows = rows_of(codes, kind)
    index = np.array(data.draw(st.permutations(range(len(codes)))), np.int32)
    start = data.draw(st.integers(0, len(codes) - 1))
    stop = data.draw(st.integers(start + 1, len(codes)))
    work = kernels.new_work(len(codes), 7, 1, NO_CRITERIA, kernels.Policy(kernels.GAIN, 3, 0))
    node = [codes[i] for i in index[start:stop]]
    n = len(node)
    d, median, gain, fall, whole = offers(rows, index, start, stop, k, work)

    distinct = sorted(set(node))
    assert work.value[:d].tolist() == distinct
    assert work.below[:d].tolist() == [sum(c <= v for c in node) for v in distinct]
    assert not work.histogram.any()
    assert whole == loss(node, kind)

    cuts = {
        j: ([c for c in node if c <= v], [c for c in node if c > v])
        for j, v in enumerate(distinct[:-1])
    }
    allowed = {j: cut for j, cut in cuts.items() if min(map(len, cut)) >= k}
    at_median = distinct.index(sorted(node)[(n - 1) // 2])
    balance = {j: abs(len(left) - len(right)) for j, (left, right) in allowed.items()}
    nearest = min(allowed, key=lambda j: (balance[j], j), default=-1)
    assert median == (at_median if at_median in allowed else nearest)

    if not allowed:
        assert gain == -1
        return
    falls = {
        j: n * loss(node, kind) - len(left) * loss(left, kind) - len(right) * loss(right, kind)
        for j, (left, right) in allowed.items()
    }
    assert gain == max(allowed, key=lambda j: (falls[j], -balance[j], -j))
    assert fall == falls[gain]


@njit(**LEAN)
def counted(rows, index, start, stop, work):
    return splitting.tally(rows.codes, 0, index, start, stop, work)


@examples(100)
@given(st.lists(st.integers(0, 999), min_size=1, max_size=40))
def test_codes_far_apart_are_counted_like_others(codes):
    rows = rows_of(codes, kernels.SET)
    work = kernels.new_work(len(codes), 1000, 1, NO_CRITERIA, kernels.Policy(kernels.GAIN, 3, 0))
    for _ in range(2):
        d = counted(rows, np.arange(len(codes), dtype=np.int32), 0, len(codes), work)
        distinct = sorted(set(codes))
        assert work.value[:d].tolist() == distinct
        assert work.below[:d].tolist() == [sum(c <= v for c in codes) for v in distinct]
        assert not work.histogram.any()
        assert not work.bits.any()


@njit(**LEAN)
def group_of(rows, index, least, most, whole, work):
    d = splitting.tally(rows.codes, 0, index, 0, index.size, work)
    return splitting.gain_group(rows, 0, d, least, most, whole, work.value, work.below)


@examples(400)
@given(
    st.lists(st.integers(0, 6), min_size=2, max_size=30).filter(lambda codes: len({*codes}) > 1),
    st.sampled_from([kernels.TREE, kernels.SET]),
    st.integers(1, 6),
    st.integers(0, 12),
)
def test_the_group_amid_the_others(codes, kind, least, more):
    """Of a SET the best value, of a TREE a group that parts no less than it is said to."""
    rows = rows_of(codes, kind)
    work = kernels.new_work(len(codes), 7, 1, NO_CRITERIA, kernels.Policy(kernels.GAIN, 3, 0))
    index = np.arange(len(codes), dtype=np.int32)
    most = least + more
    first, last, fall = group_of(rows, index, least, most, loss(codes, kind), work)
    distinct = sorted(set(codes))

    def true_fall(group):
        inside = [c for c in codes if c in group]
        others = [c for c in codes if c not in group]
        before = len(codes) * loss(codes, kind)
        return before - len(inside) * loss(inside, kind) - len(others) * loss(others, kind)

    alone = [v for v in distinct[1:-1] if least <= codes.count(v) <= most]
    if first < 0:
        assert kind == kernels.TREE or not alone
        assert fall == 0
        return
    group = distinct[first : last + 1]
    assert least <= sum(c in group for c in codes) <= most
    assert 0 < fall <= true_fall(group) + 1e-12
    if kind == kernels.SET:
        assert fall <= max(true_fall([v]) for v in alone) + 1e-12
        if 0 not in codes:
            assert fall == pytest.approx(max(true_fall([v]) for v in alone))
