"""How far apart the values of each class are, and how great a share each value has."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.verify.native.value_figures import ends_of_ranks, greatest_shares

NONE = 2**31 - 1
PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=30, unique=True)


def arrays(pairs):
    return np.array(sorted(pairs), np.int64).reshape(-1, 2).T.copy()


@examples(200)
@given(PAIRS, st.lists(st.integers(-1, 9), min_size=6, max_size=6))
def test_the_ends_are_those_of_the_codes_that_count(pairs, ranks):
    low, high = ends_of_ranks(*arrays(pairs), 5, np.array(ranks, np.int32))
    for number in range(5):
        found = [ranks[code] for of, code in pairs if of == number and ranks[code] >= 0]
        assert (low[number], high[number]) == (min(found, default=NONE), max(found, default=-1))


@examples(200)
@given(PAIRS, st.integers(0, 99))
def test_shares_are_of_the_class_where_they_are_greatest(pairs, seed):
    random = np.random.default_rng(seed)
    counts, (classes, codes) = random.integers(1, 9, len(pairs)), arrays(pairs)
    sizes = np.maximum(np.bincount(classes, counts, 5), 1).astype(np.int64)
    rows, shares = greatest_shares(classes, codes, counts, sizes, 6)
    for code in range(6):
        of_code = codes == code
        assert rows[code] == counts[of_code].sum()
        assert shares[code] == max(counts[of_code] / sizes[classes[of_code]], default=0)


@pytest.mark.parametrize(
    ("classes", "codes"), [([0, 2], [0, 1]), ([0, -1], [0, 1]), ([0, 1], [0, 2]), ([0, 1], [0, -1])]
)
def test_numbers_outside_of_their_tables_are_an_error(classes, codes):
    pairs, sizes = (np.array(classes), np.array(codes)), np.ones(2, np.int64)
    with pytest.raises(ValueError, match="outside of its table"):
        ends_of_ranks(*pairs, 2, np.zeros(2, np.int32))
    with pytest.raises(ValueError, match="outside of its table"):
        greatest_shares(*pairs, sizes, sizes, 2)


def test_arrays_are_checked():
    pairs, ones = (np.zeros(2, np.int64), np.zeros(2, np.int64)), np.ones(2, np.int64)
    with pytest.raises(TypeError, match="ranks: int32 expected"):
        ends_of_ranks(*pairs, 1, ones)
    with pytest.raises(ValueError, match="codes: shape"):
        ends_of_ranks(pairs[0], pairs[1][:1], 1, ones.astype(np.int32))
    with pytest.raises(ValueError, match="counts: shape"):
        greatest_shares(*pairs, ones[:1], ones, 1)
    with pytest.raises(TypeError, match="sizes: int64 expected"):
        greatest_shares(*pairs, ones, ones.astype(float), 1)
