"""A level is specialized step by step, as the definitions say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given

from examples import examples
from mondrian_ops.algorithms import tds
from mondrian_ops.core.errors import PrivacyError
from taxonomies import TAXONOMIES
from tds_cases import Data, as_lists, by_definition, classes, datasets, holds


@examples(300)
@given(datasets())
def test_specializes_as_the_definitions_say(data):
    start = tds.top(data.taxonomies)
    assume(holds(data, data.rows, 1))
    expected, steps = by_definition(data, as_lists(start), 1)
    found = tds.specialize(data.frequencies, *data.asked, 1, start)
    assert list(map(tuple, found.steps.tolist())) == steps
    assert as_lists(found.cuts) == expected
    assert found.classes == len(classes(data, expected))


@pytest.mark.parametrize("seed", range(12))
def test_long_ways_as_the_definitions_say(seed):
    """Few drawn datasets are large enough for their order to depend on every term of the IGPL."""
    rng = np.random.default_rng(seed)
    names = ["uneven", "line", "flat", "chain"]
    sizes = [TAXONOMIES[name].levels.shape[1] for name in names]
    codes = [np.minimum(rng.geometric(0.35, 150), size - 1) for size in sizes]
    label = (codes[0] + codes[1] * rng.integers(0, 2, 150)) % 3 + 1
    data = Data(names, list(zip(*(c.tolist() for c in [*codes, label]), strict=True)), (), 2)
    start = tds.top(data.taxonomies)
    _, steps = by_definition(data, as_lists(start), 1)
    found = tds.specialize(data.frequencies, *data.asked, 1, start)
    assert list(map(tuple, found.steps.tolist())) == steps
    assert len(steps) > 3


def test_a_start_that_is_too_specific_is_refused():
    data = Data(["flat", "flat"], [(1, 1), (1, 2), (2, 1), (2, 2)], (), 2)
    leaves = tuple(t.levels[0] for t in data.taxonomies)
    with pytest.raises(PrivacyError):
        tds.specialize(data.frequencies, *data.asked, 2, leaves)
