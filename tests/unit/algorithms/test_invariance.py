"""Classes that leave l values to whoever intersects them, night after night."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops.algorithms.invariance import NEW, NOT_TONIGHT, History, kept_classes
from mondrian_ops.algorithms.mondrian import CodedRows
from mondrian_ops.core.criteria import DistinctDiversity, KAnonymity, Privacy, SensitiveDomain
from mondrian_ops.core.generalization import Encoded
from mondrian_ops.core.intersection import Tonight, follow
from mondrian_ops.native.mondrian import INTERVAL, SET, TREE


def coded_of(codes, values, *, k, l, kinds=(INTERVAL, SET, TREE)):  # noqa: E741
    """Rows of codes 0 to 19, each its own value; 0 is the missing one."""
    size = 20
    line = np.arange(size, dtype=float)
    encoded = [
        Encoded(
            codes=column.astype(np.uint8),
            size=size,
            kind=kind,
            low=line,
            high=line,
            step=np.ones(size),
            span=float(size),
            domain=float(size),
            present=float(size),
        )
        for column, kind in zip(codes, kinds, strict=True)
    ]
    counts = np.bincount(values, minlength=1)
    domain = SensitiveDomain("s", pa.array([f"{i:03d}" for i in range(len(counts))]), counts)
    privacy = Privacy(KAnonymity(k), (DistinctDiversity("s", l),))
    return CodedRows.of(encoded, [values.astype(np.int32)], [domain], privacy)


def history_of(values, common=None, class_of=None):
    count = len(values)
    return History(
        values.astype(np.int32),
        np.full((count, 1), ~np.uint64(0)) if common is None else common,
        np.full(count, NEW, np.int32) if class_of is None else class_of.astype(np.int32),
    )


def classes_of(kept, count):
    of = np.full(count, -1)
    of[kept.classes.index] = np.repeat(np.arange(len(kept.classes.starts)), kept.classes.sizes)
    return of


@given(
    st.integers(0, 1 << 30), st.integers(2, 6), st.integers(2, 4), st.integers(2, 8), st.booleans()
)
def test_no_person_falls_below_k_and_l_over_nights(seed, k, l, values, made_up):  # noqa: E741
    rng = np.random.default_rng(seed)
    people = 200
    value = np.concatenate([np.arange(values), rng.integers(0, values, people - values)])
    codes = rng.integers(0, 20, (3, people))
    left = np.full((people, 1), ~np.uint64(0))
    known, last = np.zeros(people, bool), np.full(people, NEW)
    for _ in range(5):
        there = np.flatnonzero(rng.random(people) < 0.7)
        if len(np.unique(value[there])) < l or len(there) < k:
            continue
        moved = rng.random(people) < 0.05
        codes[:, moved] = rng.integers(0, 20, (3, moved.sum()))
        coded = coded_of(codes[:, there], value[there], k=k, l=l)
        history = history_of(value[there], left[there], last[there])
        kept = kept_classes(coded, history, l, counterfeits=made_up)
        assert made_up or not len(kept.counterfeits)
        of = classes_of(kept, len(there))
        assert np.array_equal(of < 0, kept.unmatched)
        placed = there[of >= 0]
        for (name, _), times in Counter(map(tuple, kept.counterfeits.tolist())).items():
            real = Counter(value[there][of == name].tolist())
            assert times in real.values()  # so that either value may be the one made up
        number, of_value = kept.counterfeits.T  # nobody's rows, so without a history
        tonight = Tonight(
            np.append(of[of >= 0], number),
            np.append(placed, people + np.arange(len(number))),
            np.append(value[placed], of_value),
        )
        before = np.append(left[placed], np.full((len(number), 1), ~np.uint64(0)), axis=0)
        result = follow(
            tonight, before, np.append(known[placed], np.zeros(len(number), bool)), k=k, l=l
        )
        persons = slice(len(placed))
        assert np.bincount(of[of >= 0]).min(initial=k) >= k
        assert not result.below_l[persons].any()
        left[placed], known[placed] = result.common[persons], True
        last[:] = NEW
        last[there] = of


def test_whoever_was_in_no_class_of_enough_values_is_left_over():
    values = np.repeat(np.arange(4), 10)
    common = np.full((40, 1), ~np.uint64(0))
    common[0] = 1 | 1 << 9  # nobody has value 9 tonight
    coded = coded_of(np.ones((3, 40), int), values, k=5, l=2)
    kept = kept_classes(coded, history_of(values, common), 2)
    assert kept.unmatched.tolist() == [True] + [False] * 39


def test_who_would_lose_much_by_company_gets_rows_that_are_made_up():
    values, codes = np.repeat(np.arange(4), 10), np.ones((3, 40), int)
    codes[0, values == 3] = 19
    values[-1] = 2
    common = np.full((40, 1), ~np.uint64(0))
    common[values == 3] = 1 << 3 | 1 << 1
    coded = coded_of(codes, values, k=10, l=2)
    history = history_of(values, common)
    pairs = kept_classes(coded, history, 2, counterfeits=True).counterfeits
    assert len({*pairs[:, 0]}) == 1
    assert pairs[:, 1].tolist() == [1] * 9  # as many as it has of the one other value
    assert not len(kept_classes(coded, history, 2).counterfeits)


def test_rows_that_must_wait_are_in_no_class():
    values = np.tile(np.arange(4), 10)
    last = np.full(40, NEW)
    last[3] = NOT_TONIGHT
    kept = kept_classes(
        coded_of(np.ones((3, 40), int), values, k=5, l=2), history_of(values, class_of=last), 2
    )
    assert np.flatnonzero(kept.unmatched).tolist() == [3]


def test_people_stay_with_those_of_the_night_before():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 4, 300)
    coded = coded_of(rng.integers(1, 20, (3, 300)), values, k=5, l=2)
    first = classes_of(kept_classes(coded, history_of(values), 2), 300)
    again = classes_of(kept_classes(coded, history_of(values, class_of=first), 2), 300)
    same = (first[:, None] == first) & (again[:, None] == again)
    assert same.sum() > 0.9 * (first[:, None] == first).sum()


@pytest.mark.parametrize("missing", [0, 3])
def test_missing_values_are_no_values(missing):
    values = np.tile([0, 1, missing - 1 if missing else 2, -1], 20)
    coded = coded_of(np.ones((3, 80), int), np.maximum(values, 0), k=5, l=2)
    kept = kept_classes(coded, history_of(values), 2)
    of = classes_of(kept, 80)
    for number in range(len(kept.classes.starts)):
        assert len({*values[of == number]} - {-1}) >= 2
