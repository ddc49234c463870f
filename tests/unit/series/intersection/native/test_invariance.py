"""The kernel of classes that are kept from night to night, on all kinds of attribute."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from mondrian_ops.cut.native.mondrian import INTERVAL, SET, TREE, Rows
from mondrian_ops.series.intersection.native.invariance import kept_classes


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
        step=np.concatenate([line[:40] % 7 / 7, line[:20] / 19]),
        span=np.full(attributes, 19.0),
        most=np.ones(attributes),
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
    assert (given | changes)["price"] is not None or (made_up < 0).all()
    made_of = [made_up[of == number].ravel() for number in range(max(of) + 1)]
    return of, [made[made >= 0] for made in made_of]


@pytest.mark.parametrize("seed", range(8))
def test_classes_have_k_rows_and_l_values_of_each_member(seed):
    values = np.random.default_rng(seed).integers(-1, 70, 120).astype(np.int32)
    of, _ = kept(seed=seed, values=values)
    assert (of >= 0).sum() > 100
    for number in np.unique(of[of >= 0]):
        assert np.count_nonzero(of == number) >= 4
        assert len({*values[of == number]} - {-1}) >= 3


def test_values_are_made_up_where_they_cost_little():
    rows = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        values = np.where(rng.random(120) < 0.1, 70, rng.integers(-1, 3, 120)).astype(np.int32)
        common = np.tile(np.array([6, 1 << 6], np.uint64), (120, 1))  # values 1, 2 and 70
        common[values == 0, 0] |= np.uint64(1)
        of, made_up = kept(seed=seed, price=0.0, values=values, common=common, l=2)
        assert (of >= 0).sum() > 100
        for number in np.unique(of[of >= 0]):
            in_class, made = of == number, made_up[number]
            real = {*values[in_class].tolist()} - {-1}
            assert np.count_nonzero(in_class) >= 4
            assert len({*made}) == len(made) <= 2
            assert real.isdisjoint(made)
            assert {*made} <= {1, 2, 70}
            for value in values[in_class]:
                assert len(({1, 2, 70} | ({0} & {value})) & (real | {*made})) >= 2
            rows += len(made)
    assert rows > 4


def made_up_for(people, elsewhere, l):  # noqa: E741
    """What is made up for a class of these people only, (value, values left) each; all others are
    far away.
    """
    others = [*range(10, 10 + l), *np.repeat(np.arange(len(elsewhere)), elsewhere)]
    others += [10] * max(0, len(people) - len(others))
    far = np.repeat([False, True], [len(people), len(others)])
    common = [sum(1 << value for value in left) for _, left in people]
    of, made_up = kept_classes(
        rows_of(np.where(far, 19, 1) * np.ones((3, 1), int)),
        np.array([own for own, _ in people] + others, np.int32),
        np.array(common + [(1 << 20) - 1] * len(others), np.uint64)[:, None],
        far.astype(np.int32),
        np.arange(len(far), dtype=np.int32)[None],
        k=len(people),
        l=l,
        most=8,
        weight=0.01,
        price=0.01,
    )
    if not np.array_equal(of == of[0], ~far):
        return ()
    return tuple(sorted(made_up[made_up >= 0].tolist()))


def test_chance_may_make_up_any_two_values():
    people = [(0, range(6)), (1, range(6))]
    found = {made_up_for(people, [2] * 6, l=4) for _ in range(200)}
    assert found == {*combinations(range(2, 6), 2)}


@pytest.mark.parametrize(
    ("people", "elsewhere", "made_up"),
    [
        ([(0, {0, 1}), (0, {0, 2})], (2, 2, 2), ()),  # the rows with 0 are never made up
        ([(0, {0, 1}), (2, {0, 1, 2})], (1, 1, 1), (1,)),
        ([(0, {0, 1}), (2, {0, 1, 2})], (0, 1, 1), ()),  # there is no other 0, so it is real
        ([(0, {0, 1}), (2, {1, 2})], (2, 1, 2), (1,)),
        ([(0, {0, 2}), (3, {3, 4}), (1, {1, 4})], (1, 0, 2, 1, 1), ()),
        ([(3, {2, 3}), (2, {1, 2}), (0, {0, 2})], (0, 1, 0, 2), (1,)),
        ([(-1, {1, 2}), (1, {1, 2})], (0, 2, 2), (2,)),  # who has no value needs two of others
        ([(-1, {1, 2}), (1, {1, 3, 4})], (0, 2, 2), ()),  # 2 would be made up for certain
        ([(0, {0, 1, 2}), (-1, {0, 2})], (2, 1, 2), (2,)),  # 1 would not do
    ],
)
def test_a_value_is_made_up_where_nobody_can_tell(people, elsewhere, made_up):
    assert {made_up_for(people, elsewhere, l=2) for _ in range(20)} == {made_up}


def test_no_price_is_below_zero_or_without_end():
    for price in (-1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="price: 0 or more"):
            kept(price=price)


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
    assert (of.shape, made_up.shape) == ((0,), (0, 2))


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
