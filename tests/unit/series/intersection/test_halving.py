"""Rows and cells divided level by level: against one part after the other."""

from __future__ import annotations

import numpy as np
import pytest

from coded_people import coded_of
from mondrian_ops.series.intersection.extents import Extents
from mondrian_ops.series.intersection.halving import cut_cells, halved


def extents_of(codes: np.ndarray) -> Extents:
    return Extents(coded_of(codes, np.arange(codes.shape[1]) % 3, k=2, l=2).rows)


def cut_one_by_one(extents, low, high, people, k) -> list[list[int]]:
    """As the docstring says it: each part by itself, every cut of every attribute tried."""

    def loss(some) -> float:
        bounds = low[some].min(axis=0)[None], high[some].max(axis=0)[None]
        total = people[some].sum()
        return float(extents.width(*bounds, np.array([total]))[0] * total)

    done, waiting = [], [np.arange(len(people))]
    while waiting:
        some = waiting.pop()
        best = (np.inf, some, some)
        for a in range(low.shape[1]):
            middle = extents.middle(a, low[some, a], high[some, a])
            order = some[np.argsort(middle, kind="stable")]
            for at in range(1, len(order)):
                one, other = order[:at], order[at:]
                if min(people[one].sum(), people[other].sum()) >= k:
                    both = loss(one) + loss(other)
                    if both < best[0] - 1e-12:
                        best = (both, one, other)
        if best[0] <= loss(some) + 1e-12:
            waiting += best[1:]
        else:
            done.append(sorted(some.tolist()))
    return sorted(done)


@pytest.mark.parametrize("seed", range(6))
def test_cells_are_cut_where_that_loses_least(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Distinct places, so that no two cuts lose the same.
    codes = np.stack([rng.permutation(np.arange(60) % 19 + 1) for _ in range(3)])
    extents = extents_of(codes)
    pairs = codes.T.reshape(30, 2, 3).astype(np.int64)
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    people = rng.integers(1, 4, 30)
    k = int(rng.integers(3, 9))
    class_of = cut_cells(extents, low, high, people, k)
    found = sorted(np.flatnonzero(class_of == n).tolist() for n in range(class_of.max() + 1))
    assert found == cut_one_by_one(extents, low, high, people, k)
    assert np.bincount(class_of, people).min() >= k


def test_too_few_people_are_in_no_class() -> None:
    extents = extents_of(np.ones((3, 4), np.int64))
    low = np.ones((2, 3), np.int64)
    assert cut_cells(extents, low, low, np.array([1, 2]), 4).tolist() == [-1, -1]
    assert cut_cells(extents, low[:0], low[:0], np.zeros(0, np.int64), 4).tolist() == []
    assert cut_cells(extents, low, low, np.array([2, 2]), 4).tolist() == [0, 0]


@pytest.mark.parametrize("seed", range(4))
def test_parts_are_halved_until_few_rows_are_left(seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 20, (3, 200))
    extents = extents_of(codes)
    rows = rng.permutation(200)[:150]
    tree = halved(extents, rows, 8)
    assert sorted(tree.order.tolist()) == sorted(rows.tolist())
    assert [level.tolist() for level in tree.levels[:1]] == [[0]]
    for above, below in zip(tree.levels, tree.levels[1:], strict=False):
        assert {*above.tolist()} < {*below.tolist()}
        for first, end in zip(above, np.append(above[1:], 150), strict=True):
            ends = below[(below > first) & (below < end)]
            assert len(ends) <= 1
            if not len(ends):
                continue
            # The sides of a part are on both sides of a place in some attribute.
            one, other = (extents.places[tree.order[part]]
                          for part in (slice(first, ends[0]), slice(ends[0], end)))  # fmt: skip
            assert (one.max(axis=0) < other.min(axis=0)).any()
    last = np.diff(np.append(tree.levels[-1], 150))
    for first, size in zip(tree.levels[-1].tolist(), last.tolist(), strict=True):
        alike = extents.places[tree.order[first : first + size]]
        assert size <= 8 or (alike == alike[0]).all()


def test_no_rows_have_no_parts() -> None:
    tree = halved(extents_of(np.ones((3, 4), np.int64)), np.zeros(0, np.int64), 8)
    assert len(tree.order) == 0
    assert [level.tolist() for level in tree.levels] == [[]]
