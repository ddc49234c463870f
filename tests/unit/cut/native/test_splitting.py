"""What one attribute of one node offers, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.cut.native.mondrian import INTERVAL, SET, TREE, Rows
from native_probes import Opened

POSITIONS = np.array([0.0, -8.0, -7.5, 0.0, 0.25, 3.0, 8.0])  # of codes 0 to 6; 16 apart
STEPS = np.array([0.0, 0.25, 1.0, 0.25, 0.5, 0.25, 0.0])
OF_SETS = np.array([0.0, 0.5, 0.75, 0.875, 0.9375, 0.96875, 1.0])  # of 1, 2, ... values
# An attribute of as many codes has 1, 2 or 4 bytes in a row; few are counted in a way of their own.
SIZES = [7, 64, 65, 300, 70_000]
# With as many other columns of 4 bytes, rows have 8, 16, 24 and 32 bytes.
FILLERS = {8: 0, 16: 2, 24: 4, 32: 6}


def rows_of(codes, kind, size=7, fillers=0, most=1.0) -> Rows:
    room = np.zeros(size - 7)
    return Rows(
        codes=np.array([codes], np.uint32),
        sensitive=np.full((fillers, len(codes)), 1 << 17, np.int32),
        kind=np.array([kind]),
        first=np.array([0, size]),
        low=np.concatenate([POSITIONS, room]),
        high=np.concatenate([POSITIONS, room]),
        step=np.concatenate([OF_SETS if kind == SET else STEPS, room]),
        span=np.array([16.0]),
        most=np.array([most]),
        present=np.array([6.0]),
    )


def loss(codes, kind, most=1.0) -> float:
    present = sorted({*codes} - {0})
    if not present:
        return 0.0
    if 0 in codes:
        return most
    if kind == INTERVAL:
        return min(most, (POSITIONS[present[-1]] - POSITIONS[present[0]]) / 16)
    if kind == SET:
        return OF_SETS[len(present) - 1]
    return max(STEPS[present[0] : present[-1]], default=0.0)


def test_fillers_make_rows_of_every_width():
    widths = [Opened(rows_of([1], SET, fillers=fillers)).stride for fillers in FILLERS.values()]
    assert widths == list(FILLERS)


@examples(400)
@given(
    st.lists(st.integers(0, 6), min_size=2, max_size=30),
    st.sampled_from([INTERVAL, TREE, SET]),
    st.integers(1, 5),
    st.sampled_from(SIZES),
    st.sampled_from(sorted(FILLERS.values())),
    st.sampled_from([1.0, 0.5, 2.0]),
    st.data(),
)
def test_cuts_of_one_attribute(codes, kind, k, size, fillers, most, data):
    opened = Opened(rows_of(codes, kind, size, fillers, most))
    start = data.draw(st.integers(0, len(codes) - 1))
    stop = data.draw(st.integers(start + 1, len(codes)))
    opened.node(start, stop, in_word=data.draw(st.booleans()))
    node = codes[start:stop]
    n = len(node)
    distinct = sorted(set(node))
    assert opened.tally() == (distinct, [sum(c <= v for c in node) for v in distinct])
    assert opened.is_clean()
    assert opened.width() == loss(node, kind, most)

    cuts = {
        j: ([c for c in node if c <= v], [c for c in node if c > v])
        for j, v in enumerate(distinct[:-1])
    }
    allowed = {j: cut for j, cut in cuts.items() if min(map(len, cut)) >= k}
    at_median = distinct.index(sorted(node)[(n - 1) // 2])
    balance = {j: abs(len(left) - len(right)) for j, (left, right) in allowed.items()}
    nearest = min(allowed, key=lambda j: (balance[j], j), default=-1)
    assert opened.median_cut(k) == (at_median if at_median in allowed else nearest)

    if len(distinct) < 2:
        return
    gain = opened.gain_cut(k)
    assert gain.whole == loss(node, kind, most)
    if not allowed:
        assert gain.at == -1
        return
    gains = {
        j: n * loss(node, kind, most)
        - len(left) * loss(left, kind, most)
        - len(right) * loss(right, kind, most)
        for j, (left, right) in allowed.items()
    }
    assert gain.at == max(allowed, key=lambda j: (gains[j], -balance[j], -j))
    assert gain.gain == gains[gain.at]


@examples(150)
@given(
    st.lists(st.integers(0, 999) | st.integers(0, 69_999), min_size=1, max_size=40),
    st.sampled_from([1000, 70_000]),
    st.booleans(),
)
def test_codes_far_apart_are_counted_like_others(codes, size, few):
    codes = [code % size for code in codes]
    opened = Opened(rows_of(codes, SET, size))
    opened.node(0, len(codes), in_word=few)
    distinct = sorted(set(codes))
    for _ in range(2):
        assert opened.tally() == (distinct, [sum(c <= v for c in codes) for v in distinct])
        assert opened.is_clean()


@examples(400)
@given(
    st.lists(st.integers(0, 6), min_size=2, max_size=30).filter(lambda codes: len({*codes}) > 1),
    st.sampled_from([TREE, SET]),
    st.integers(1, 6),
    st.integers(0, 12),
)
def test_the_group_amid_the_others(codes, kind, least, more):
    """Of a SET the best value, of a TREE a group that parts no less than it is said to."""
    opened = Opened(rows_of(codes, kind))
    opened.tally()
    most = least + more
    first, last, gain = opened.gain_group(least, most, loss(codes, kind))
    distinct = sorted(set(codes))

    def true_gain(group):
        inside = [c for c in codes if c in group]
        others = [c for c in codes if c not in group]
        before = len(codes) * loss(codes, kind)
        return before - len(inside) * loss(inside, kind) - len(others) * loss(others, kind)

    alone = [v for v in distinct[1:-1] if least <= codes.count(v) <= most]
    if first < 0:
        assert kind == TREE or not alone
        assert gain == 0
        return
    group = distinct[first : last + 1]
    assert least <= sum(c in group for c in codes) <= most
    assert 0 < gain <= true_gain(group) + 1e-12
    if kind == SET:
        assert gain <= max(true_gain([v]) for v in alone) + 1e-12
        if 0 not in codes:
            assert gain == pytest.approx(max(true_gain([v]) for v in alone))


@examples(100)
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=70),
    st.sampled_from([7, 300, 70_000]),
    st.sampled_from([*FILLERS.values(), 8]),
    st.data(),
)
def test_a_cut_brings_rows_to_the_front_in_their_order(codes, size, fillers, data):
    """Rows of every width, and none of those around the node."""
    opened = Opened(rows_of(codes, SET, size, fillers))
    start = data.draw(st.integers(0, len(codes) - 1))
    stop = data.draw(st.integers(start + 1, len(codes)))
    low = data.draw(st.integers(0, 6))
    high = data.draw(st.integers(low, 6))
    opened.node(start, stop)
    middle = opened.split_rows(low, high)
    inside = [i for i in range(start, stop) if low <= codes[i] <= high]
    outside = [i for i in range(start, stop) if not low <= codes[i] <= high]
    assert middle == len(inside)
    around = list(range(start)), list(range(stop, len(codes)))
    assert opened.numbers() == [*around[0], *inside, *outside, *around[1]]
