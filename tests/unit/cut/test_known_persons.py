"""Whether some persons have diverse values, before anything is cut: on persons one can count."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mondrian_ops.cut import person_values
from mondrian_ops.cut.person_values import (
    PersonsColumn,
    PersonsValues,
    kept,
    satisfied,
    unattainable,
)
from mondrian_ops.data.person_rows import KnownPersons
from mondrian_ops.generalize.attributes import Classes

PAIRS = np.array([1, 1, 3, 3, 5, 5])  # codes 0 and 1 are near one another, 2 and 3, 4 and 5


def known(persons: Any, units: Any = None, complete: bool = True) -> KnownPersons:
    units = persons if units is None else units
    return KnownPersons(np.asarray(persons), np.asarray(units), [], complete)


def column(codes: Any, near_end: Any = None) -> list[PersonsColumn]:
    return [PersonsColumn(np.asarray(codes), near_end, "s")]


@pytest.mark.parametrize("counts_missing", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_missing_values_count_where_the_job_counts_them(
    missing: bool, counts_missing: bool
) -> None:
    """Without a missing value code 0 is a value."""
    domain: Any = SimpleNamespace(missing=missing, near_end=PAIRS, name="s")
    (found,) = PersonsValues([domain], 2, counts_missing).columns([np.array([0, 1, 2])])
    assert found.codes.tolist() == [-1 if missing and not counts_missing else 0, 1, 2]
    assert (found.name, found.near_end is PAIRS) == ("s", True)


@pytest.mark.parametrize(("persons", "concerns"), [([0, 1, 2], False), ([0, 1, 1], True)])
def test_persons_concern_l_where_one_has_several_rows(persons: list[int], concerns: bool) -> None:
    frequencies: Any = SimpleNamespace(
        sizes=[9, 9, 3], total=3, column=lambda at: np.array(persons if at == 2 else [7, 7, 7])
    )
    assert PersonsValues([], 2, False).concern(frequencies) is concerns


def test_two_values_that_all_have_are_looked_for_where_counts_do_not_tell() -> None:
    """Six times one of the two most frequent values, of five persons; but two have neither."""
    persons, values = [0, 0, 1, 1, 2, 2, 3, 4], [0, 1, 0, 1, 0, 1, 2, 3]
    classes = Classes(np.arange(16, dtype=np.int32), np.array([0, 8]))
    both = np.tile(persons, 2) + np.repeat([0, 5], 8)
    shared = [*values, *values[:6], 0, 1]
    assert satisfied(classes, both, column(shared), 3).tolist() == [True, False]


def test_what_counts_of_persons_tell_needs_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long one would take: four values of four persons, and fewer values than l."""
    monkeypatch.setattr(person_values, "_MOST_STEPS", 0)
    four = Classes(np.arange(4, dtype=np.int32), np.array([0]))
    assert satisfied(four, np.arange(4), column([0, 1, 2, 3]), 3).tolist() == [True]
    told = unattainable(known([0, 1, 2, 3]), column([0, 1, 0, 1]), 3)
    assert told.startswith("l: each person has one of 2 value(s) of column 's'")


@pytest.mark.parametrize(
    ("persons", "complete", "holds"),
    [(90, True, True), (90, False, False), (150, False, True), (0, False, False)],
)
def test_a_share_that_is_estimated_is_taken_to_be_higher(
    persons: int, complete: bool, holds: bool
) -> None:
    """A third of the persons is in each interval, and at most a half may be."""
    codes = np.arange(persons) % 6
    assert kept(known(np.arange(persons), None, complete), column(codes, PAIRS), 2) is holds
    nobody = known(np.arange(6), None, complete)
    assert not kept(nobody, column([-1] * 6, PAIRS), 2)


def test_persons_who_share_a_value_are_told_before_anything_is_cut() -> None:
    shared = known([0, 0, 1, 1])
    assert kept(shared, column([0, 1, 2, 3]), 2)
    assert not kept(shared, column([0, 1, 0, 2]), 2)
    assert unattainable(shared, column([0, 1, 2, 3]), 2) == ""
    assert unattainable(shared, column([0, 1, 0, 2]), 2) == (
        "l: each person has one of 1 value(s) of column 's', even with all rows in one class; "
        "lower l, or choose another column"
    )
    assert unattainable(shared._replace(complete=False), column([0, 1, 0, 2]), 2) == ""


def test_persons_in_one_interval_are_told_before_anything_is_cut() -> None:
    four = known([0, 1, 2, 3])
    assert unattainable(four, column([0, 1, 2, 4], PAIRS), 2) == ""  # exactly a half
    told = unattainable(four, column([0, 1, 1, 4], PAIRS), 2)
    assert told == (
        "l: more than 1/2 of the persons have values of column 's' within its l_width of one "
        "another, even with all rows in one class; lower l or the width"
    )
    # Each combination of a person may be in a class of its own.
    several = known([0, 1, 2, 3, 3, 3], [0, 1, 2, 3, 4, 5])
    assert unattainable(several, column([0, 1, 1, 4, 4, 4], PAIRS), 2) == ""
