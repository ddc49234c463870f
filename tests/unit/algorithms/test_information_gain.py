"""The information gain of a specialization."""

from __future__ import annotations

import numpy as np

from mondrian_ops.algorithms.information_gain import information_gains
from mondrian_ops.core.frequency_set import FrequencySet
from taxonomies import TAXONOMIES


def test_many_sensitive_values_count_the_same_as_few():
    """Pairs of codes and sensitive values are counted in a table or, where it is sparse, sorted."""
    rng = np.random.default_rng(0)
    code, label = rng.integers(0, 8, 200), rng.integers(0, 5, 200)
    tree = TAXONOMIES["uneven"]
    gains = [
        information_gains(FrequencySet.of([code, label * step], [8, size]), 0, tree, range(1, 2))
        for step, size in ((1, 5), (10**6, 5 * 10**6))
    ]
    assert gains[0].any()
    assert np.array_equal(*gains)
