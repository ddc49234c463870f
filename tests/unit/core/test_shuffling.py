"""Orders that nobody can repeat."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from mondrian_ops.core.shuffling import shuffle_classes


@examples(100)
@given(st.lists(st.integers(1, 9), max_size=20))
def test_a_shuffle_stays_in_its_class(sizes):
    starts = np.cumsum([0, *sizes], dtype=np.int64)[:-1]
    index = np.random.default_rng(1).permutation(sum(sizes)).astype(np.int32)
    shuffled = index.copy()
    shuffle_classes(shuffled, starts)
    for before, after in zip(np.split(index, starts), np.split(shuffled, starts), strict=True):
        assert sorted(before.tolist()) == sorted(after.tolist())


def test_every_order_of_a_class_is_equally_likely():
    starts = np.arange(0, 9000, 3)
    index = np.arange(9000, dtype=np.int32)
    shuffle_classes(index, starts)
    orders = Counter(tuple(each) for each in (index.reshape(-1, 3) % 3).tolist())
    assert len(orders) == 6
    assert all(380 < count < 620 for count in orders.values())  # 500, six deviations
