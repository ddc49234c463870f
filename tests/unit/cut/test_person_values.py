"""Classes joined until the values of their persons are diverse: against plain Python."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.cut import person_values
from mondrian_ops.cut.person_values import PersonsColumn, joined
from mondrian_ops.generalize.attributes import Classes


def is_diverse(rows: np.ndarray, persons: np.ndarray, values: np.ndarray, level: int) -> bool:
    """By the definition, every choice of values tried."""
    of_person: dict[int, set[int]] = {}
    for row in rows:
        if values[row] >= 0:
            of_person.setdefault(int(persons[row]), set()).add(int(values[row]))
    every = set().union(*of_person.values())
    return len(every) >= level and not any(
        all(own & {*some} for own in of_person.values()) for some in combinations(every, level - 1)
    )


def is_spread(rows: np.ndarray, persons: np.ndarray, values: np.ndarray, near_end: np.ndarray,
              level: float) -> bool:  # fmt: skip
    """By the definition: of each interval that begins at some code, the persons who are in it."""
    had = {(int(persons[row]), int(values[row])) for row in rows if values[row] >= 0}
    people = {person for person, _ in had}
    return bool(people) and all(
        len({person for person, value in had if first <= value <= near_end[first]}) * level
        <= len(people) + 1e-9
        for first in range(len(near_end))
    )


def rows_of(classes: Classes) -> list[np.ndarray]:
    return np.split(classes.index, classes.starts[1:])


@examples(300)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_no_class_fails_but_a_last_one_and_those_that_hold_may_stay(seed: int, level: int) -> None:
    random = np.random.default_rng(seed)
    rows = int(random.integers(1, 60))
    persons = random.integers(0, rows // int(random.integers(1, 4)) + 1, rows)
    columns = [random.integers(-1, int(random.integers(1, 8)), rows) for _ in range(2)]
    starts = np.append(0, np.flatnonzero(random.random(rows - 1) < 0.25) + 1)
    before = Classes(random.permutation(rows).astype(np.int32), starts.astype(np.int64))
    after = joined(before, persons, [*map(PersonsColumn, columns)], level)
    assert after.index is before.index
    assert {*after.starts} <= {*before.starts} and after.starts[0] == 0

    def holds(members: np.ndarray) -> bool:
        return all(is_diverse(members, persons, values, level) for values in columns)

    if len(after.starts) > 1:
        assert all(map(holds, rows_of(after)))
    if all(map(holds, rows_of(before))):
        assert after.starts.tolist() == before.starts.tolist()


@examples(200)
@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3, 2.5]))
def test_no_interval_of_a_width_has_more_than_its_share_of_persons(seed: int, level: float) -> None:
    random = np.random.default_rng(seed)
    rows, codes = int(random.integers(1, 80)), int(random.integers(2, 30))
    persons = random.integers(0, rows // int(random.integers(1, 4)) + 1, rows)
    values = random.integers(-1, codes, rows)
    reach = np.arange(codes) + random.integers(0, 4, codes)
    near_end = np.minimum(np.maximum.accumulate(reach), codes - 1)
    starts = np.append(0, np.flatnonzero(random.random(rows - 1) < 0.25) + 1)
    before = Classes(random.permutation(rows).astype(np.int32), starts.astype(np.int64))
    after = joined(before, persons, [PersonsColumn(values, near_end)], level)
    assert {*after.starts} <= {*before.starts} and after.starts[0] == 0
    held = [is_spread(each, persons, values, near_end, level) for each in rows_of(after)]
    assert all(held) or len(held) == 1
    if all(is_spread(each, persons, values, near_end, level) for each in rows_of(before)):
        assert after.starts.tolist() == before.starts.tolist()


def test_a_person_with_several_rows_in_an_interval_is_one_there() -> None:
    """Two of the rows of an interval are one person's: two of four persons are in it, not three."""
    values, near_end = np.array([0, 1, 1, 5, 9]), np.array([1, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    classes = Classes(np.arange(10, dtype=np.int32), np.array([0, 5]))
    column = [PersonsColumn(np.tile(values, 2), near_end)]
    one = np.array([0, 0, 1, 2, 3])
    assert len(joined(classes, np.tile(one, 2) + np.repeat([0, 4], 5), column, 2).starts) == 2
    each = np.arange(5)
    assert len(joined(classes, np.tile(each, 2) + np.repeat([0, 5], 5), column, 2).starts) == 1


def test_one_row_each_is_distinct_values() -> None:
    values = np.array([0, 0, 0, 1, 0, 1, 2, 2])
    classes = Classes(np.arange(8, dtype=np.int32), np.array([0, 3, 5]))
    persons = np.arange(8)
    assert joined(classes, persons, [PersonsColumn(values)], 2).starts.tolist() in ([0, 5], [0])
    assert joined(
        Classes(classes.index, np.array([0, 4])), persons, [PersonsColumn(values)], 2
    ).starts.tolist() == [0, 4]


@pytest.mark.parametrize(("level", "count"), [(2, 2), (3, 1)])
def test_three_persons_two_of_whom_share_each_value(level: int, count: int) -> None:
    """No value is that of all three, and any two values are."""
    persons, values = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 1, 2, 2, 0])
    classes = Classes(np.arange(12, dtype=np.int32), np.array([0, 6]))
    twice = np.tile(persons, 2) + np.repeat([0, 3], 6)
    assert len(joined(classes, twice, [PersonsColumn(np.tile(values, 2))], level).starts) == count


def test_a_search_that_takes_too_long_counts_as_failing(monkeypatch) -> None:
    monkeypatch.setattr(person_values, "_MOST_STEPS", 0)
    persons, values = np.repeat(np.arange(6), 2), np.array([0, 1, 0, 2, 0, 3, 0, 4, 1, 2, 3, 4])
    classes = Classes(np.arange(24, dtype=np.int32), np.array([0, 12]))
    twice = np.tile(persons, 2) + np.repeat([0, 6], 12)
    assert len(joined(classes, twice, [PersonsColumn(np.tile(values, 2))], 3).starts) == 1


def test_what_a_join_may_break_is_kept_by_further_joins():
    classes = Classes(np.arange(12, dtype=np.int32), np.array([0, 2, 4, 6, 8, 10]))
    persons, values = np.arange(12), np.arange(12) % 2
    after = joined(
        classes, persons, [PersonsColumn(values)], 2, others=lambda each: each.sizes % 6 == 0
    )
    assert (after.sizes % 6 == 0).all()
    assert len(after.starts) < 6
