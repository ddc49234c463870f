"""An attacker who holds all releases, against sets that are intersected one by one."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops.verify.attacker import Attacker, Row

VALUES = st.sampled_from([0, -7, 5, 6, 1 << 62])
CLASSES = st.lists(st.sets(VALUES), min_size=3, max_size=3)
ROWS = st.lists(
    st.tuples(st.integers(-2, 4), VALUES, st.lists(st.integers(0, 2), min_size=1, unique=True))
)


def see(attacker, classes, *rows, company=()):
    attacker.see(classes, [Row(*row) for row in rows], [Row(*row) for row in company])


NIGHTS = st.lists(st.tuples(CLASSES, ROWS, ROWS), max_size=4)


@given(NIGHTS, st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_who_falls_below_is_found_as_by_sets(nights, k, l, knows):  # noqa: E741
    attacker, left, fallen = Attacker(k, l, knows_changes=knows), {}, defaultdict(set)
    for classes, rows, company in nights:
        see(attacker, classes, *rows, company=company)
        persons = defaultdict(set)
        for person, _, numbers in rows + company:
            for number in numbers:
                persons[number].add(person)
        for person, value, numbers in rows:
            if not person:
                continue
            here = set().union(*(classes[number] for number in numbers)) - {0}
            before = left.get(person, here)
            if value and value not in before:
                before = here - before if knows else here
            left[person] = before & here
            if len(left[person]) < l:
                fallen["l"].add(person)
            if len(left[person]) <= 1:
                fallen["one"].add(person)
            if all(len(persons[number]) < k for number in numbers):
                fallen["k"].add(person)
    assert set(attacker.persons) == left.keys()
    assert attacker.below_l == fallen["l"]
    assert attacker.given_away == fallen["one"]
    assert attacker.below_k == fallen["k"]
    assert attacker.differing(left) == 0


def test_persons_of_whom_something_else_is_remembered_are_counted():
    attacker = Attacker(1, 1, knows_changes=True)
    see(attacker, [{5, 6}], (1, 5, [0]), (2, 6, [0]), (3, 5, [0]))
    left = {1: [5, 6], 2: [6, 5], 3: [5, 6]}
    assert attacker.differing(left) == 0
    assert attacker.differing(left | {2: [5, 6, 7]}) == 1
    assert attacker.differing(left | {2: [5]}) == 1
    assert attacker.differing(left | {4: [5]}) == 1
    assert attacker.differing({1: [5, 6]}) == 2


def test_a_person_of_another_value_is_followed_anew_and_the_fall_before_counts():
    attacker = Attacker(1, 2, knows_changes=True)
    see(attacker, [{5, 6}, {6, 8}], (1, 5, [0]), (2, 6, [0]))
    see(attacker, [{5, 6}, {6, 8, 9}], (1, 8, [1]), (2, 6, [1]))
    assert attacker.below_l == {2}
    see(attacker, [{8, 7}, {6, 7, 8}], (1, 8, [0]), (2, 8, [1]))
    assert attacker.below_l == {1, 2}
    assert attacker.differing({1: [8], 2: [7, 8]}) == 0


def test_a_new_value_is_given_away_if_all_others_of_the_class_were_left_before():
    for knows in (True, False):
        attacker = Attacker(1, 2, knows_changes=knows)
        see(attacker, [{5, 6}], (1, 5, [0]))
        see(attacker, [{6, 8}], (1, 8, [0]))
        assert attacker.given_away == ({1} if knows else set())
