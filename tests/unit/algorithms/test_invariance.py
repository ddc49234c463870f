"""Classes that leave l values to whoever intersects them, night after night."""

from __future__ import annotations

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


def nights_of(rng, value, *, k, l, made_up, share, moves):  # noqa: E741
    """Each night's values and common values of who is there, their classes, and what is left."""
    people = len(value)
    codes = rng.integers(0, 20, (3, people))
    left = np.full((people, 1), ~np.uint64(0))
    known, last = np.zeros(people, bool), np.full(people, NEW)
    for _ in range(5):
        there = np.flatnonzero(rng.random(people) < share)
        if len(np.unique(value[there])) < l or len(there) < k:
            continue
        moved = rng.random(people) < moves
        codes[:, moved] = rng.integers(0, 20, (3, moved.sum()))
        coded = coded_of(codes[:, there], value[there], k=k, l=l)
        history = history_of(value[there], left[there], last[there])
        kept = kept_classes(coded, history, l, counterfeits=made_up)
        of = classes_of(kept, len(there))
        placed = there[of >= 0]
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
        yield history.values, history.common, kept, of, result.below_l[persons]
        left[placed], known[placed] = result.common[persons], True
        last[:] = NEW
        last[there] = of


@given(
    st.integers(0, 1 << 30), st.integers(2, 6), st.integers(2, 4), st.integers(2, 8), st.booleans()
)
def test_no_person_falls_below_k_and_l_over_nights(seed, k, l, values, made_up):  # noqa: E741
    rng = np.random.default_rng(seed)
    value = np.concatenate([np.arange(values), rng.integers(0, values, 200 - values)])
    options = {"k": k, "l": l, "made_up": made_up, "share": 0.7, "moves": 0.05}
    for _, _, kept, of, below_l in nights_of(rng, value, **options):
        assert made_up or not len(kept.counterfeits)
        assert np.array_equal(of < 0, kept.unmatched)
        assert np.bincount(of[of >= 0]).min(initial=k) >= k
        assert not below_l.any()


def possible(common, counts):
    """(rows, values) who may have which value, of all ways to give people so many of each.

    None where there is no way (P. Hall, 1935): some people have fewer values than they are.
    """
    values = np.arange(len(counts))
    subsets = np.arange(1 << len(counts))
    holds = subsets[:, None] >> values & 1
    within = (common[:, None] & ~subsets) == 0
    spare = holds @ counts - within.sum(axis=0)
    if spare.min() < 0:
        return None
    tight = spare == 0
    taken = (~within[:, tight]).astype(int) @ holds[tight] > 0
    return (common[:, None] >> values & 1).astype(bool) & (counts > 0) & ~taken


def worlds(common, shown, made_up):
    """What :func:`possible` finds for each choice of the values that may be made up."""
    for chosen in np.arange(1 << len(shown))[:, None] >> np.arange(len(shown)) & 1:
        if chosen @ shown == made_up and not (chosen & (shown == 0)).any():
            found = possible(common, np.where(chosen, 0, shown))
            if found is not None:
                yield chosen, found


def rows_made_up(own, has, value, l):  # noqa: E741
    """How many rows of a value are made up for a class, 0 for none: the rule of the docs."""
    real = np.bincount(own, minlength=has.shape[1]) > 0
    found = has @ real
    needs = found < l
    (first, *others) = {*own[needs].tolist()} or {None}
    if others or first is None or (found[needs] < l - 1).any():
        return 0
    same = own == first
    depends = (has[:, first] > 0) & (found <= l)  # needs it if it were made up instead
    return np.count_nonzero(same) * has[same | depends, value].all()


def ruled_worlds(has, shown, made_up, l):  # noqa: E741
    """What each may have, for each value that may be made up, by all that the rule would do so."""
    for value in np.flatnonzero(shown == made_up):
        real = np.where(np.arange(len(shown)) == value, 0, shown)
        ways = [()]
        for signature in has:
            ways = [
                (*way, each)
                for way in ways
                for each in np.flatnonzero(signature * real)
                if way.count(each) < real[each]
            ]
        ways = [w for w in ways if rows_made_up(np.array(w), has, value, l) == made_up]
        if ways:
            yield value, [set(column) for column in zip(*ways, strict=True)]


def attacks(own, common, kept, of, l):  # noqa: E741
    """The number of classes with counterfeits, of whose needy each may have several values.

    The attacker has all releases before, the class, the number of its counterfeits, and the rule
    for that number.
    """
    values = int(max(own.max(), kept.counterfeits[:, 1].max(initial=0))) + 1
    common = (common[:, 0] & np.uint64((1 << values) - 1)).astype(int)
    numbers = np.unique(kept.counterfeits[:, 0])
    for number in numbers:
        made_up = kept.counterfeits[kept.counterfeits[:, 0] == number, 1]
        real = np.bincount(own[of == number], minlength=values)
        signatures = common[of == number]
        shown = real + np.bincount(made_up, minlength=values)
        chosen, found = zip(*worlds(signatures, shown, len(made_up)), strict=True)
        assert not np.all(chosen, axis=0).any()  # no value is made up for certain
        has = signatures[:, None] >> np.arange(values) & 1
        needs = has @ (real > 0) < l
        assert np.any(found, axis=0)[needs].sum(axis=1).min() >= 2
        assert (has @ (shown > 0)).min() >= l
        assert len(made_up) == rows_made_up(own[of == number], has, made_up[0], l)
        if len(signatures) <= 7:
            chosen, may_be = zip(*ruled_worlds(has, shown, len(made_up), l), strict=True)
            assert len(chosen) > 1
            for person in np.flatnonzero(needs):
                assert len(set.union(*(world[person] for world in may_be))) > 1
    return len(numbers)


def test_who_knows_everybodys_signature_cannot_tell_what_is_made_up():
    attacked = 0
    for seed in (42, 65, 68, 97, 105, 137, 139, 141, 148, 154):  # towns where rows are made up
        rng = np.random.default_rng(seed)
        l, values = int(rng.integers(2, 4)), int(rng.integers(4, 8))  # noqa: E741
        often = rng.choice(values, 120 - values, p=rng.dirichlet(np.ones(values)))
        value = np.concatenate([np.arange(values), often])
        options = {"k": int(rng.integers(2, 6)), "l": l, "share": 0.6, "moves": 0.1}
        for own, common, kept, of, _ in nights_of(rng, value, made_up=True, **options):
            attacked += attacks(own, common, kept, of, l)
    assert attacked > 0


def test_nobody_who_knows_any_signatures_can_tell_what_is_made_up_in_a_class():
    attacked, left_out = 0, 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        l, values, people = (int(rng.integers(*ends)) for ends in ((2, 4), (4, 7), (4, 13)))  # noqa: E741
        own = rng.choice(values, people, p=rng.dirichlet(np.full(values, 0.5)))
        common = rng.random((3, values)) < 0.5  # few signatures, as people stay together
        common = common[rng.integers(0, 3, people)]
        common[np.arange(people), own] = True
        common = (common @ (1 << np.arange(values))).astype(np.uint64)[:, None]
        k = people // 2 + 1  # so there can be one class only of these people
        others = np.tile(np.arange(values), k)  # far away, so that any value may be made up
        far = np.arange(people + len(others)) >= people
        own = np.append(own, others)
        common = np.append(common, np.full((len(others), 1), ~np.uint64(0)), axis=0)
        coded = coded_of(np.where(far, 19, 1) * np.ones((3, 1), int), own, k=k, l=l)
        kept = kept_classes(coded, history_of(own, common), l, counterfeits=True)
        of = classes_of(kept, len(own))
        assert np.bincount(of[of >= 0]).min(initial=k) >= k
        attacked += attacks(own, common, kept, of, l)
        left_out += kept.unmatched[~far].any()
    assert attacked > 20
    assert left_out > 0


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
    assert pairs[:, 1].tolist() == [1] * 9  # as many as it has rows of those who need it
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
