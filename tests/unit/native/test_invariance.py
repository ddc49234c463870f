"""The kernel of classes that are kept from night to night, on all kinds of attribute."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_ops.native.invariance import kept_classes
from mondrian_ops.native.mondrian import INTERVAL, SET, TREE, Rows


def rows_of(codes):
    attributes, size = len(codes), 20
    line = np.tile(np.arange(size, dtype=float), attributes)
    return Rows(
        codes=codes.astype(np.uint8),
        sensitive=np.zeros((0, codes.shape[1]), np.int32),
        kind=np.array([INTERVAL, TREE, SET], np.int64),
        first=np.arange(attributes + 1, dtype=np.int64) * size,
        low=line,
        high=line,
        step=line % 7 / 7,
        span=np.full(attributes, 19.0),
        domain=np.full(attributes, 19.0),
        present=np.full(attributes, 20.0),
    )


def kept(count=120, seed=0, **changes):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 20, (3, count))
    order = np.lexsort(codes).astype(np.int32)
    given = {
        "values": rng.integers(-1, 70, count).astype(np.int32),
        "common": np.full((count, 2), ~np.uint64(0)),
        "class_of": rng.integers(-1, 20, count).astype(np.int32),
        "orders": order[None],
        "k": 4,
        "l": 3,
        "most": 64,
        "weight": 0.5,
        "price": None,
    }
    of, made_up = kept_classes(rows_of(codes), **(given | changes))
    assert (given | changes)["price"] is not None or not made_up.any()
    return of, made_up, given | changes


@pytest.mark.parametrize("seed", range(8))
def test_classes_have_k_rows_and_l_values_of_each_member(seed):
    of, _, given = kept(seed=seed)
    assert (of >= 0).sum() > 100
    for number in np.unique(of[of >= 0]):
        assert np.count_nonzero(of == number) >= 4
        assert len({*given["values"][of == number]} - {-1}) >= 3


@pytest.mark.parametrize("seed", range(8))
def test_values_are_made_up_where_they_cost_little(seed):
    values = np.random.default_rng(seed).integers(-1, 3, 120).astype(np.int32)
    common = np.tile(np.array([7, 0], np.uint64), (120, 1))
    of, made_up, _ = kept(seed=seed, price=0.0, values=values, common=common)
    assert (of >= 0).sum() > 100
    for number in np.unique(of[of >= 0]):
        in_class = of == number
        assert np.count_nonzero(in_class) >= 4
        bits = np.bitwise_or.reduce(made_up[in_class])
        assert bits[0] <= 7
        assert not bits[1]
        real = {*values[in_class].tolist()} - {-1}
        assert not any(int(bits[0]) >> value & 1 for value in real)
        assert len(real) + int(bits[0]).bit_count() >= 3
        assert len(real) >= 3 or (values[in_class] >= 0).all()  # nothing for who has no value


def test_no_rows_have_no_classes():
    empty = np.zeros(0, np.int32)
    of, made_up = kept_classes(
        rows_of(np.zeros((3, 0), int)),
        empty,
        np.zeros((0, 1), np.uint64),
        empty,
        np.zeros((1, 0), np.int32),
        k=2,
        l=2,
        most=8,
        weight=1.0,
        price=1.0,
    )
    assert of.shape == (0,)
    assert made_up.shape == (0, 1)


def test_too_few_values_leave_everybody_over():
    of, *_ = kept(values=np.zeros(120, np.int32))
    assert (of == -1).all()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"values": np.full(120, 128, np.int32)}, "values"),
        ({"values": np.full(120, -2, np.int32)}, "values"),
        ({"class_of": np.full(120, 120, np.int32)}, "class_of"),
        ({"orders": np.zeros((1, 120), np.int32)}, "permutation"),
        ({"k": 0}, "k, l, weight"),
        ({"l": 0}, "k, l, weight"),
        ({"weight": np.nan}, "k, l, weight"),
    ],
)
def test_what_would_read_outside_of_memory_is_refused(changes, problem):
    with pytest.raises(ValueError, match=problem):
        kept(**changes)
