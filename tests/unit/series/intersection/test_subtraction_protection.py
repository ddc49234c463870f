"""Classes that nobody can subtract from those of other nights: what always holds of them."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from coded_people import coded_of, history_of
from mondrian_ops.series.intersection.check import Tonight, unbalanced
from mondrian_ops.series.intersection.invariance import NEW, NOT_TONIGHT, History
from mondrian_ops.series.intersection.subtraction_protection import balanced_classes
from tiers import one_in


def words_of(found, count, words=1):
    packed = b"".join(found.signatures.to_pylist())
    return np.frombuffer(packed, "<u8").reshape(count, words).astype(np.uint64)


def classes_of(found, count):
    sizes = np.diff(found.classes.starts, append=len(found.classes.index))
    of = np.full(count, -1)
    of[found.classes.index] = np.repeat(np.arange(len(sizes)), sizes)
    return of


def values_in(word):
    return {value for value in range(64) if int(word) >> value & 1}


def is_balanced(of, found, value, signature, there):
    """By plain counting: with what is made up, a class is some signatures, each several times."""
    for number in range(len(found.classes.starts)):
        rows = [row for row in there if of[row] == number and value[row] >= 0]
        counts = Counter(int(value[row]) for row in rows)
        counts += Counter(int(v) for c, v in found.counterfeits.tolist() if c == number)
        by_signature = {}
        for row in rows:
            mine = by_signature.setdefault(int(signature[row, 0]), Counter())
            mine[int(value[row])] += 1
        for word, mine in by_signature.items():
            counts -= Counter(dict.fromkeys(values_in(word), max(mine.values())))
        if counts:
            return False
    return True


@pytest.mark.parametrize("l", [2, 3])
@pytest.mark.parametrize("seed", one_in(2, range(4)))
def test_nights_are_balanced_and_signatures_stay(seed, l):  # noqa: E741
    rng = np.random.default_rng(seed)
    people, k = 120, 4
    value = rng.choice(6, people, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.05])
    value[rng.random(people) < 0.05] = -1
    codes = rng.integers(0, 20, (3, people))
    kept, common = np.zeros((people, 1), np.uint64), np.full((people, 1), ~np.uint64(0))
    last = np.full(people, NEW)
    for night in range(4):
        there = np.flatnonzero(rng.random(people) < 0.8)
        allowed = np.where(kept[there] != 0, kept[there], common[there])
        history = history_of(value[there], allowed, last[there])
        coded = coded_of(codes[:, there], value[there], k=k, l=l)
        found = balanced_classes(coded, history, l)
        again = balanced_classes(coded, history, l)
        assert np.array_equal(found.classes.index, again.classes.index)
        of, signature = classes_of(found, len(there)), words_of(found, len(there))
        assert np.array_equal(of < 0, found.unmatched)
        assert np.bincount(of[of >= 0]).min() >= k
        has = (of >= 0) & (value[there] >= 0)
        for row in np.flatnonzero(has):
            mine = values_in(signature[row, 0])
            assert len(mine) == l
            assert int(value[there][row]) in mine
            assert kept[there[row], 0] in (0, signature[row, 0])
        assert {int(v) for _, v in found.counterfeits} <= {*value[there].tolist()}
        assert is_balanced(of, found, value[there], signature, np.flatnonzero(of >= 0))
        assert has.sum() > 0.9 * (value[there] >= 0).sum()
        placed = np.flatnonzero(of >= 0)
        tonight = Tonight(of[placed], placed, value[there][placed], found.counterfeits)
        before = SimpleNamespace(common=allowed[placed], signature=kept[there][placed])
        assert not unbalanced(tonight, signature[placed], before, l).any()
        kept[there[has]] = signature[has]
        last = np.full(people, NEW)
        last[there[placed]] = of[placed]
        assert night < 4


def test_who_comes_takes_the_place_of_who_left_with_the_same_value():
    """Nothing is made up, and the class tells nothing else than that both have the same value."""
    codes = np.array([[3, 4, 5, 4]] * 3)
    value = np.array([0, 1, 2, 0])
    first = history_of(value[:3])
    coded = coded_of(codes[:, :3], value[:3], k=3, l=3)
    found = balanced_classes(coded, first, 3)
    assert not len(found.counterfeits)
    signature = words_of(found, 3)
    there = [1, 2, 3]
    common = np.array([signature[1], signature[2], [~np.uint64(0)]])
    history = history_of(value[there], common, np.array([0, 0, NEW]))
    found = balanced_classes(coded_of(codes[:, there], value[there], k=3, l=3), history, 3)
    assert not len(found.counterfeits)
    assert not found.unmatched.any()
    assert len({*words_of(found, 3)[:, 0].tolist()}) == 1


def test_in_the_place_of_who_left_a_row_is_made_up():
    codes = np.array([[3, 4, 5, 4, 3, 5]] * 3)
    value = np.array([0, 1, 2, 0, 1, 2])
    found = balanced_classes(coded_of(codes, value, k=3, l=3), history_of(value), 3)
    there = np.array([0, 1, 2, 3, 4])
    history = history_of(value[there], words_of(found, 6)[there], classes_of(found, 6)[there])
    found = balanced_classes(coded_of(codes[:, there], value[there], k=3, l=3), history, 3)
    assert [int(v) for _, v in found.counterfeits] == [2]


def test_nobody_gets_a_signature_of_values_that_were_ruled_out():
    codes = np.array([[3, 4, 5, 4, 3, 5]] * 3)
    value = np.array([0, 1, 2, 0, 1, 2])
    common = np.full((6, 1), ~np.uint64(0))
    common[0] = np.uint64(0b1001_0001)  # values 0, 4 and 7; nobody has 4 and 7 tonight
    found = balanced_classes(coded_of(codes, value, k=2, l=2), history_of(value, common), 2)
    assert found.unmatched.tolist() == [True] + [False] * 5


@pytest.mark.parametrize(
    ("class_of", "common"),
    [(np.full(4, NOT_TONIGHT), ~0), (np.full(4, NEW), 0b1), (np.full(4, NEW), 0b11)],
)
def test_rows_that_must_not_be_published_are_not(class_of, common):
    """Not tonight; fewer than l values left; and too few people."""
    value = np.array([0, 1, 0, 1])
    coded = coded_of(np.full((3, 4), 5), value, k=5, l=2)
    words = np.full((4, 1), common & (2**64 - 1), np.uint64)
    found = balanced_classes(coded, History(value.astype(np.int32), words, class_of), 2)
    assert found.unmatched.all()
    assert not len(found.classes.index)
    assert not len(found.counterfeits)


def test_a_row_without_a_value_joins_the_class_nearby_that_has_values_enough_for_it():
    """Two classes, of the values 0, 1, 2 and 0, 1, 3; then rows of which some values are left."""
    left = {(16, ~0): 3, (16, 0b1111): 3, (16, 0b111): 0, (4, 0b1011): 3, (4, 0b11): None}
    value = np.array([0, 1, 2, 0, 1, 3, *[-1] * len(left)])
    codes = np.tile([3, 4, 5, 15, 16, 17, *(place for place, _ in left)], (3, 1))
    common = [~0] * 6 + [allowed for _, allowed in left]
    words = np.array([each & (2**64 - 1) for each in common], np.uint64)[:, None]
    coded = coded_of(codes, value, k=3, l=3, kinds=("interval",) * 3)
    found = balanced_classes(coded, history_of(value, words), 3)
    of = classes_of(found, len(value))
    assert of[0] != of[3]
    assert of[6:].tolist() == [-1 if who is None else of[who] for who in left.values()]
    assert found.unmatched.tolist() == (of < 0).tolist()
    assert not words_of(found, len(value))[6:].any()  # they need no signature


def test_rows_without_values_are_in_no_class_where_there_is_none():
    value = np.array([0, 0, -1])
    coded = coded_of(np.full((3, 3), 5), value, k=2, l=2)
    assert balanced_classes(coded, history_of(value), 2).unmatched.all()


def test_many_values_need_several_words():
    value = np.arange(140) % 70
    codes = np.tile(np.arange(140) % 19 + 1, (3, 1))
    common = np.full((140, 2), ~np.uint64(0))
    coded = coded_of(codes, value, k=3, l=3)
    found = balanced_classes(coded, history_of(value, common), 3)
    signature = words_of(found, 140, 2)
    assert (np.bitwise_count(signature).sum(axis=1) == 3).all()
    assert (signature[:, 1] != 0).any()


def test_two_who_are_left_of_two_cells_with_one_signature_make_up_less_together():
    """In each cell somebody left; those who are left have each other's missing values."""
    codes = np.array([[3, 4, 5, 4, 5, 3]] * 3)
    value = np.array([0, 1, 2, 0, 1, 2])
    there = np.array([0, 4, 5])
    words = np.full((3, 1), np.uint64(0b111))
    history = history_of(value[there], words, np.array([0, 1, 2]))
    found = balanced_classes(coded_of(codes[:, there], value[there], k=3, l=3), history, 3)
    assert not len(found.counterfeits)
    assert not found.unmatched.any()


def test_new_people_who_are_too_few_for_a_cell_share_one():
    """Two of them, and one row that is made up in place of two for each."""
    codes = np.array([[3, 4, 3, 4, 3]] * 3)
    value = np.array([0, 1, 0, 1, 2])
    found = balanced_classes(coded_of(codes, value, k=5, l=3), history_of(value), 3)
    assert len(found.counterfeits) == 1
    assert len({*words_of(found, 5)[:, 0].tolist()}) == 1


def test_the_values_of_a_set_are_no_distances():
    """Texts without a hierarchy: any few of them lose as much, however far apart they stand."""
    rng = np.random.default_rng(0)
    codes, value = rng.integers(1, 20, (3, 400)), rng.integers(0, 9, 400)
    coded = coded_of(codes, value, k=4, l=3, kinds=("set",) * 3)
    found = balanced_classes(coded, history_of(value), 3)
    assert len(found.counterfeits) < 40
