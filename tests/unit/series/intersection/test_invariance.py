"""Classes that leave l values to whoever intersects them, night after night."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coded_people import coded_of, history_of
from mondrian_ops.series.intersection.check import Tonight, follow
from mondrian_ops.series.intersection.invariance import NEW, NOT_TONIGHT, kept_classes


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


def ways(common, has_value, shown, elsewhere, made_up, l):  # noqa: E741
    """Each choice of the values that are made up, by the rule of the docs: (rows, values) who may
    have which value then. ``elsewhere``: how many other rows of the night have each value.
    """
    has = common[:, None] >> np.arange(len(shown)) & 1
    needs = (has @ (shown > 0) == l) @ has > 0
    could_be = np.flatnonzero((shown == 1) & needs & (elsewhere > 0))
    for chosen in combinations(could_be.tolist(), made_up):
        real = shown.copy()
        real[list(chosen)] = 0
        found = possible(common[has_value], real)
        if found is not None:
            yield chosen, found


def attacks(own, common, kept, of, l):  # noqa: E741
    """The people of each class with counterfeits, how often each value is shown, and `ways`.

    The attacker has all releases before, the class, the number of its counterfeits, and the rule.
    """
    values = int(max(own.max(), kept.counterfeits[:, 1].max(initial=0))) + 1
    common = (common[:, 0] & np.uint64((1 << values) - 1)).astype(int)
    for number in np.unique(kept.counterfeits[:, 0]):
        made_up = kept.counterfeits[kept.counterfeits[:, 0] == number, 1]
        here, has_value = np.flatnonzero(of == number), own[of == number] >= 0
        real, elsewhere = (
            np.bincount(own[mask & (own >= 0)], minlength=values)
            for mask in (of == number, of != number)
        )
        shown = real + np.bincount(made_up, minlength=values)
        has = common[here, None] >> np.arange(values) & 1
        assert (has @ (shown > 0)).min() >= l
        assert not real[made_up].any()
        found = [*ways(common[here], has_value, shown, elsewhere, len(made_up), l)]
        chosen, may_be = zip(*found, strict=True)
        assert tuple(sorted(made_up)) in chosen
        assert not set.intersection(*map(set, chosen))  # no value is made up for certain
        has, lacks = has[has_value], (has @ (real > 0) < l)[has_value]
        maybe = np.isin(np.arange(values), np.unique(chosen))
        needs = (has & maybe).astype(bool) & (has @ (shown > 0) < l + len(made_up))[:, None]
        may_have = np.any(may_be, axis=0)
        assert may_have[needs].all()
        others = [of_way.sum(axis=1, keepdims=True) > of_way for of_way in may_be]
        assert np.any(others, axis=0)[needs].all()
        assert may_have[lacks].sum(axis=1).min(initial=2) >= 2
        yield here, shown, chosen


def given_out(signatures, counts):
    """A value for each of these people, so many of each; None where there is no way."""
    if not len(signatures):
        return ()
    for value in np.flatnonzero(counts * (signatures[0] >> np.arange(len(counts)) & 1)):
        others = given_out(signatures[1:], counts - (np.arange(len(counts)) == value))
        if others is not None:
            return (value, *others)
    return None


def test_who_knows_everybodys_signature_cannot_tell_what_is_made_up():
    attacked = 0
    for seed in (42, 65, 68, 97, 105, 137, 139, 141, 148, 154):  # towns where rows are made up
        rng = np.random.default_rng(seed)
        l, values = int(rng.integers(2, 4)), int(rng.integers(4, 8))  # noqa: E741
        often = rng.choice(values, 120 - values, p=rng.dirichlet(np.ones(values)))
        value = np.concatenate([np.arange(values), often])
        options = {"k": int(rng.integers(2, 6)), "l": l, "share": 0.6, "moves": 0.1}
        for own, common, kept, of, _ in nights_of(rng, value, made_up=True, **options):
            attacked += len([*attacks(own, common, kept, of, l)])
    assert attacked >= 10


def released(own, common, elsewhere, l, k):  # noqa: E741
    """The classes when all others are far away; and the attacks on it."""
    people = len(own)
    others = np.append(np.tile(np.arange(6, 10), k), np.repeat(np.arange(6), elsewhere))
    far = np.arange(people + len(others)) >= people
    own = np.append(own, others)
    common = np.append(common, np.full((len(others), 1), ~np.uint64(0)), axis=0)
    coded = coded_of(np.where(far, 19, 1) * np.ones((3, 1), int), own, k=k, l=l)
    kept = kept_classes(coded, history_of(own, common), l, counterfeits=True)
    of = classes_of(kept, len(own))
    assert np.bincount(of[of >= 0]).min(initial=k) >= k
    return of, [*attacks(own, common, kept, of, l)]


def people_of_one_class(rng):
    l, values, people = (int(rng.integers(*ends)) for ends in ((2, 4), (4, 7), (4, 13)))  # noqa: E741
    own = rng.choice(values, people, p=rng.dirichlet(np.full(values, 0.5)))
    common = rng.random((3, values)) < 0.5  # few signatures, as people stay together
    common = common[rng.integers(0, 3, people)]
    common[np.arange(people), own] = True
    own[rng.random(people) < 0.05] = -1
    own[0] = max(own[0], 0)
    elsewhere = rng.choice(3, 6, p=[0.1, 0.3, 0.6])
    return own, (common @ (1 << np.arange(values))).astype(np.uint64)[:, None], elsewhere, l


def test_nobody_who_knows_any_signatures_can_tell_what_is_made_up_in_a_class():
    attacked, left_out = 0, 0
    for seed in range(400):
        own, *known = people_of_one_class(np.random.default_rng(seed))
        of, found = released(own, *known, k=len(own) // 2 + 1)
        attacked += len(found)
        left_out += (of[: len(own)] < 0).any()
    assert attacked > 50
    assert left_out > 0


def test_the_same_may_be_shown_where_people_have_other_values():
    tried = 0
    for seed in range(300):
        own, *known = people_of_one_class(np.random.default_rng(seed))
        people = np.arange(len(own))
        for here, shown, chosen in released(own, *known, k=len(own))[1]:
            if not np.array_equal(here, people):
                continue
            for made_up in chosen:
                real = shown - np.isin(np.arange(len(shown)), made_up)
                others = own.copy()
                others[own >= 0] = given_out(known[0][own >= 0, 0].astype(int), real)
                for _ in range(200):
                    of, again = released(others, *known, k=len(own))
                    if (of[people[-1] + 1 :] == of[0]).any():
                        break  # people from far away came: who comes may depend on all values
                    if again and again[0][1].tolist() == shown.tolist():
                        tried += 1
                        break
                else:
                    pytest.fail(f"{shown} is never shown of {others}")
    assert tried > 40


def test_whoever_was_in_no_class_of_enough_values_is_left_over():
    values = np.repeat(np.arange(4), 10)
    common = np.full((40, 1), ~np.uint64(0))
    common[0] = 1 | 1 << 9  # nobody has value 9 tonight
    coded = coded_of(np.ones((3, 40), int), values, k=5, l=2)
    kept = kept_classes(coded, history_of(values, common), 2)
    assert kept.unmatched.tolist() == [True] + [False] * 39


@pytest.mark.parametrize("elsewhere", [(3, 4), (3,), (4,)])
def test_only_values_are_made_up_that_others_have_tonight(elsewhere):
    """Whoever sees that nobody else has a value knows that its only row is not made up."""
    values, codes = np.tile(np.arange(3), 13), np.ones((3, 39), int)
    codes[0, :10] = 19
    values[0] = 3
    values[10 : 10 + len(elsewhere)] = elsewhere
    common = np.full((39, 1), ~np.uint64(0))
    common[0] = 1 << 3 | 1 << 4
    coded = coded_of(codes, values, k=10, l=2)
    history = history_of(values, common)
    kept = kept_classes(coded, history, 2, counterfeits=True)
    made_up = [[classes_of(kept, 39)[0], 4]] if elsewhere == (3, 4) else []
    assert kept.counterfeits.tolist() == made_up
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
    first = np.full(300, NEW)
    for _ in range(2):
        first = classes_of(kept_classes(coded, history_of(values, class_of=first), 2), 300)
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
