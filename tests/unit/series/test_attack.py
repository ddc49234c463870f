"""The attacker's bookkeeping of rows, with drops and releases that are in no file."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops.errors import JobError, StorageError
from mondrian_ops.job.job import Job
from mondrian_ops.series.attack import Attack, Player
from mondrian_ops.series.evidence import DropRows, Evidence, Release
from mondrian_ops.series.history import Noted

JOB = {
    "input": "in/2025-01-01.parquet", "output": "out/2025-01-01", "k": 4, "l": 2,
    "entity_id": "person", "quasi_identifiers": ["age"], "sensitive": ["diagnosis"],
    "series": {"hold_nights": 2},
}  # fmt: skip
SNAPSHOTS = JOB | {"series": {"kind": "snapshots"}}
PROTECTED = JOB | {"series": {"hold_nights": 2, "protect": "intersection"}, "k": 2}

EVERYBODY = ("[20, 24]", "[20, 29]")


def numbers(values: str) -> list[int]:
    """A number for each letter; 0 for the missing value, a blank."""
    return [(" " + string.ascii_lowercase).index(each) for each in values]


def drop(rows: Sequence[tuple[int, int, str]]) -> DropRows:
    """Rows of a person, an age and a value."""
    persons, ages, values = zip(*rows, strict=True)
    return DropRows(
        np.array(persons),
        np.array(numbers("".join(values))),
        pa.table({"age": list(ages)}),
        np.zeros(len(rows), np.bool_),
    )


def release(classes: Mapping[str, str], made_up: Mapping[int | None, int]) -> Release:
    """A row for each value of each class."""
    return Release(
        {"age": pa.array(list(classes))},
        {number: number for number in range(len(classes))},
        np.repeat(np.arange(len(classes)), [*map(len, classes.values())]),
        np.array(numbers("".join(classes.values()))),
        Counter(made_up),
    )


class InMemory(Evidence):
    """A drop and a release that are in no file."""

    def __init__(self, job: Job) -> None:
        super().__init__(job, "")
        self.of_night: tuple[DropRows, Release] | None = None

    def drop(self, location: str, output: str) -> DropRows:
        return self._given[0]

    def release(self, output: str) -> Release:
        return self._given[1]

    def input_of(self, release: str) -> str:
        return "in"

    @property
    def _given(self) -> tuple[DropRows, Release]:
        if self.of_night is None:
            raise OSError("it is gone")
        return self.of_night


class Nights:
    """An attacker, and the nights that it is shown, one after the other."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        self._evidence = InMemory(Job.from_dict(job))
        self._player = Player(Job.from_dict(job), {}, self._evidence)
        self._first = 1

    @property
    def found(self) -> Attack:
        return self._player.found

    def conclude(self) -> None:
        self._player.conclude()

    def spell(self, odd: str, usual: str) -> None:
        """The series has the value of one letter in the spelling of the other."""
        self._evidence.spelled.update(zip(numbers(odd), numbers(usual), strict=True))

    def see_state(self, state: str, current: str | None) -> None:
        """A night in a state, whose release has this token."""
        self._evidence.of_night = drop([(1, 20, "a")]), release({}, {})
        with mock.patch("mondrian_ops.publish.current_token", return_value=current):
            self._player.see_night(Noted(1, "1", "in", "out", "its", 0, state))

    def miss(self, label: str) -> None:
        """A night whose drop is gone."""
        self._evidence.of_night = None
        self._player.see_night(Noted(1, label, "in", "out", "its", 0, "published"))

    def see(
        self,
        label: str,
        delivered: str,
        published: str,
        made_up: int = 0,
        rows: int | None = None,
        outside: bool = False,
        current: str = "its",
    ) -> None:
        """A night of new people of one age, one for each value; a bar divides two classes."""
        new = [(self._first + at, 20, value) for at, value in enumerate(delivered)]
        self._first += len(new)
        classes = dict(zip(EVERYBODY, published.split("|"), strict=False))
        self.see_rows(label, new, classes, {0: made_up}, rows, outside, current)

    def see_rows(
        self,
        label: str,
        delivered: Sequence[tuple[int, int, str]],
        classes: Mapping[str, str],
        made_up: Mapping[int | None, int],
        rows: int | None = None,
        outside: bool = False,
        current: str = "its",
    ) -> None:
        """The catalogue has as many rows of persons as the release, or ``rows``."""
        of_night = release(classes, made_up)
        self._evidence.of_night = drop(delivered), of_night
        expected = len(of_night.value) - of_night.made_up.total() if rows is None else rows
        night = Noted(1, label, "in", "out", "its", expected, "published")
        with mock.patch("mondrian_ops.publish.current_token", return_value=current):
            if outside:
                self._player.see_outside(label, "out")
            else:
                self._player.see_night(night)

    @property
    def strange(self) -> dict[str, int]:
        """How many rows of nobody were found, by night."""
        words = [failure.split() for failure in self.found.failures if "no person of" in failure]
        return {each[0][:-1]: int(each[10]) for each in words}


@pytest.mark.parametrize(
    ("published", "strange"),
    [("aabb", 0), ("aaab", 1), ("aacb", 1), ("aabbb", 1), ("aaabb", 1), ("aaabbbb", 3)],
)
def test_rows_that_waited_stand_for_as_many_rows_of_their_value_and_class(
    published: str, strange: int
) -> None:
    """One row of b waits in the first night; the second has it, and rows of nobody."""
    nights = Nights(JOB)
    nights.see("first", "aabbb", "aabb")
    nights.see("second", "aab", published)
    nights.conclude()
    assert nights.strange == ({"second": strange} if strange else {})
    assert len(nights.found.failures) == bool(strange)
    assert nights.found.notes[0].startswith("fewer than k = 4 row(s) that waited")
    assert [night.below_k for night in nights.found.nights] == [0, 0]


@pytest.mark.parametrize(
    ("job", "nights", "strange"),
    [
        (JOB, [("ab", "ab"), ("ab", "aab")], {"2": 1}),  # nobody waits
        (JOB, [("ab", "abb"), ("ab", "ab"), ("ab", "ab")], {"1": 1}),  # and nobody is owed a row
        (JOB, [("aabb", "aaab"), ("cc", "aac")], {"1": 1, "2": 2}),  # those of a are published
        (JOB, [("aab", "ab"), ("c", "ac")], {}),
        (JOB, [("ab", "ab"), ("ab", "ab|b")], {"2": 1}),  # who fits two classes is in one
        (JOB, [("ab", "ab|b"), ("ab", "ab"), ("ab", "a|b")], {"1": 1}),
        (SNAPSHOTS, [("ab", "abb")], {"1": 1}),
        (SNAPSHOTS, [("ab", "ab"), ("cd", "cda")], {"2": 1}),
        (SNAPSHOTS, [("aab", "ab"), ("cd", "acd")], {"2": 1}),  # who was left out does not wait
        (SNAPSHOTS, [("abb", "ab"), ("ab", "ab|b")], {"2": 1}),
    ],
)
def test_rows_of_nobody_are_counted_by_night(
    job: Mapping[str, Any], nights: Sequence[tuple[str, str]], strange: Mapping[str, int]
) -> None:
    seen = Nights(job)
    for number, (delivered, published) in enumerate(nights, start=1):
        seen.see(str(number), delivered, published)
    assert seen.strange == strange
    assert len(seen.found.failures) == len(strange)
    rows = [len(each.replace("|", "")) for _, each in nights]
    assert [night.rows for night in seen.found.nights] == rows


def test_persons_are_in_a_release_that_has_their_value_or_where_they_have_none() -> None:
    for delivered, persons in (("abc", 2), ("ab ", 3), ("bb", 2), ("cd", 0)):
        nights = Nights(JOB)
        nights.see("1", delivered, "ab|b")
        assert nights.found.nights[0].persons == persons


def test_who_is_left_with_two_spellings_of_one_value_is_left_with_one() -> None:
    nights = Nights(JOB | {"k": 2})
    nights.spell("b", "a")
    nights.see("1", "ab", "ab")
    nights.conclude()
    (night,) = nights.found.nights
    assert (night.below_l, night.given_away, night.below_k) == (2, 2, 0)
    assert nights.found.failures == [
        "2 person(s) are left with fewer than l = 2 values of diagnosis by all nights together, "
        "2 of them with one or none"
    ]


def test_only_a_series_that_follows_persons_publishes_a_value_in_one_spelling() -> None:
    nights = Nights(JOB)
    nights.spell("c", "a")
    nights.see("1", "cb", "ab")
    assert nights.strange == {"1": 1}
    delivered = [(1, 5, "d"), *ROWS[1:]]
    nights = followed(delivered, "ab", {}, has_gap=False, spelled=("d", "a"))
    assert nights.found.failures == []
    nights = followed(delivered, "db", {}, has_gap=False, spelled=("d", "a"))
    (failure,) = nights.found.failures
    assert failure.startswith("1: 1 row(s) spell their value of diagnosis in a way that tells them")


@pytest.mark.parametrize(
    ("state", "current", "unseen"),
    [
        ("pending", "its", ["1: it is being published, or its run was killed; clear its"]),
        ("published", None, ["1: its release is not there any more"]),
        ("held", None, []),
    ],
)
def test_a_night_without_a_release_of_its_own_is_told_unless_it_was_held(
    state: str, current: str | None, unseen: Sequence[str]
) -> None:
    nights = Nights(JOB)
    nights.see_state(state, current)
    assert len(nights.found.unseen) == len(unseen)
    assert all(map(str.startswith, nights.found.unseen, unseen))
    assert nights.found.nights == []


def test_the_rows_that_waited_are_told_from_k_on() -> None:
    for waiting, told in ((3, "fewer than k = 4 row(s)"), (4, "at least 4 row(s) that waited")):
        nights = Nights(JOB)
        nights.see("1", "aabb" + "b" * waiting, "aabb")
        nights.conclude()
        (note,) = nights.found.notes
        assert note.startswith(told)


@pytest.mark.parametrize("current", ["a", "z"])
def test_another_release_in_the_place_of_a_night_is_one_from_outside(current: str) -> None:
    nights = Nights(JOB)
    nights.see("1", "ab", "ab", current=current)
    assert nights.found.unseen == ["1: another release was published in its place"]
    assert "1: a release that does not belong" in nights.found.failures[0]


@pytest.mark.parametrize(
    ("published", "made_up", "strange"),
    [("abz", 1, {}), ("abzz", 2, {}), ("abzz", 1, {"1": 1}), ("abb", 1, {}), ("abzb", 1, {"1": 1})],
)
def test_counterfeits_are_rows_of_nobody_that_are_allowed(
    published: str, made_up: int, strange: Mapping[str, int]
) -> None:
    nights = Nights(JOB)
    nights.see("1", "ab", published, made_up)
    nights.see("2", "ab", "ab")
    assert nights.strange == strange
    assert nights.found.nights[0].rows == len(published) - made_up


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_release_has_as_many_rows_as_were_published(rows: int) -> None:
    nights = Nights(JOB)
    nights.see("1", "ab", "ab", rows=rows)
    wrong = f"1: the release has 2 rows of persons, but {rows} were published; restore it"
    assert nights.found.failures == [wrong] * (rows != 2)


@pytest.mark.parametrize(
    ("published", "strange"), [("ab", {}), ("abb", {"x": 1}), ("a", {}), ("ab|b", {"x": 1})]
)
def test_a_release_from_outside_is_compared_with_its_own_drop_only(
    published: str, strange: Mapping[str, int]
) -> None:
    """What waits in the series waits on: the row of c in the first night."""
    nights = Nights(JOB)
    nights.see("1", "abcc", "abc")
    nights.see("x", "ab", published, outside=True)
    nights.see("2", "ab", "abc")
    assert nights.strange == strange
    assert len(nights.found.failures) == 1 + len(strange)
    assert nights.found.failures[0].startswith("x: a release that does not belong")


ROWS = [(1, 5, "a"), (2, 6, "b"), (3, 15, "b"), (4, 16, "c")]
ABSENT, AGED = ROWS[1:], [(1, 50, "a"), *ROWS[1:]]


def followed(
    rows: Sequence[tuple[int, int, str]],
    first: str,
    made_up: Mapping[int | None, int],
    has_gap: bool,
    classes: str = "0011",
    k: int = 2,
    spelled: tuple[str, str] = ("", ""),
    again: Sequence[tuple[int, int, str]] = (),
) -> Nights:
    """A night whose persons are followed, after one whose drop is gone if it ``has_gap``.

    ``classes``: of each person, from 1 on, as the catalogue has them. ``again``: the rows of
    another night, if there is one, whose release and persons are those of the first.
    """
    nights = Nights(PROTECTED | {"k": k})
    nights.spell(*spelled)
    if has_gap:
        nights.miss("0")
    class_of = dict(enumerate(map(int, classes), start=1))
    with (
        mock.patch("mondrian_ops.catalogue.current"),
        mock.patch("mondrian_ops.catalogue.signatures.classes_in", return_value=class_of),
    ):
        nights.see_rows("1", rows, {"[0, 9]": first, "[10, 19]": "bc"}, made_up)
        if again:
            nights.see_rows("2", again, {"[0, 9]": first, "[10, 19]": "bc"}, made_up)
    return nights


@pytest.mark.parametrize(
    ("rows", "first", "made_up", "lost", "surely_lost"),
    [
        (ROWS, "ab", {}, 0, 0),
        ([(1, 5, " "), *ROWS[1:]], " b", {}, 0, 0),  # a missing value
        (ABSENT, "b", {}, 1, 0),
        (ABSENT, "ab", {}, 1, 0),
        (ABSENT, "aab", {}, 2, 0),
        (ABSENT[1:], "", {}, 2, 0),
        (AGED, "b", {}, 1, 1),
        (AGED, "aab", {}, 2, 1),
        (ROWS, "b", {}, 1, 1),
        (ROWS, "aab", {}, 1, 0),
        (ROWS, "aabb", {}, 2, 0),
        ([(1, 5, "b"), *ROWS], "bb", {}, 0, 0),  # of the person's two rows the one that fits
        ([*ROWS, (1, 5, "b")], "ba", {}, 0, 0),  # or either
        (ROWS, "abc", {0: 1}, 0, 0),
        (ROWS, "abb", {0: 1}, 0, 0),
        (ROWS, "ab", {0: 1}, 1, 0),
        (ROWS, "abcc", {0: 1}, 1, 0),
        (ROWS, "abc", {1: 1}, 1, 0),
        (ROWS, "abc", {None: 1}, 1, 0),
        ([*ROWS, (1, 5, "b")], "ab", {0: 1}, 0, 0),
    ],
)
def test_rows_of_a_followed_night_are_those_of_the_persons_in_their_class(
    rows: Sequence[tuple[int, int, str]],
    first: str,
    made_up: Mapping[int | None, int],
    lost: int,
    surely_lost: int,
) -> None:
    """The catalogue has persons 1 and 2 in the first class, 3 and 4 in the second.

    ``surely_lost``: also where a drop cannot be read, which may have had the row.
    """
    for has_gap in (False, True):
        nights = followed(rows, first, made_up, has_gap)
        expected = surely_lost if has_gap else lost
        assert [failure.split(" of the release")[0] for failure in nights.found.failures] == [
            f"1: {expected} row(s)"
        ] * bool(expected)


@pytest.mark.parametrize(
    ("rows", "first", "made_up", "has_gap", "below_k"),
    [
        (ROWS, "ab", {}, False, 0),
        (ABSENT, "ab", {}, True, 0),
        (ABSENT, "ab", {}, False, 1),
        (ABSENT, "b", {}, True, 1),  # the other person is in no row of the class
        (ABSENT, "ab", {0: 1}, True, 1),
        (AGED, "ab", {}, True, 1),
        (AGED, "ab", {}, False, 1),
    ],
)
def test_people_whose_drop_is_gone_are_company_as_far_as_rows_are_left_for_them(
    rows: Sequence[tuple[int, int, str]],
    first: str,
    made_up: Mapping[int | None, int],
    has_gap: bool,
    below_k: int,
) -> None:
    (night,) = followed(rows, first, made_up, has_gap).found.nights
    assert night.below_k == below_k


def test_a_row_that_was_published_is_in_no_later_release() -> None:
    assert followed(ROWS, "ab", {}, has_gap=False, again=ROWS).found.failures == []
    (failure,) = followed(ROWS, "ab", {}, has_gap=False, again=ABSENT).found.failures
    assert failure.startswith("2: 1 row(s) of the release do not match the rows")


def test_who_is_certain_to_somebody_who_subtracts_classes_is_told() -> None:
    for value, certain in (("b", 0), ("a", 2)):
        rows = [(1, 5, "a"), (2, 6, value), *ROWS[2:]]
        nights = followed(rows, f"a{value}", {}, has_gap=False)
        nights.conclude()
        assert nights.found.subtracted == certain
        assert [each.split(" to ")[0] for each in nights.found.notes] == [
            f"{certain} person(s) are certain"
        ] * bool(certain)


@pytest.mark.parametrize(("first", "below_k"), [("aab", 2), ("ab", 3)])
def test_a_row_is_company_once(first: str, below_k: int) -> None:
    """Of persons 1, 2 and 5 in the first class only 2 is known; the two of the second are few."""
    (night,) = followed(ABSENT, first, {}, has_gap=True, classes="00110", k=3).found.nights
    assert night.below_k == below_k


@pytest.mark.parametrize(("job", "strange"), [(JOB, {}), (SNAPSHOTS, {"2": 1})])
def test_a_drop_that_is_gone_explains_rows_of_later_nights_only_where_rows_wait(
    job: Mapping[str, Any], strange: Mapping[str, int]
) -> None:
    nights = Nights(job)
    nights.miss("1")
    nights.see("2", "ab", "abb")
    assert nights.strange == strange


def test_a_series_of_which_no_night_could_be_looked_at_does_not_pass() -> None:
    nights = Nights(JOB)
    nights.conclude()
    assert nights.found.failures == ["no night could be looked at"]


def test_a_drop_is_read_below_the_home_and_never_from_what_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mondrian_ops.stores.locations._home", str(tmp_path))
    table = pa.table({"person": [1, None], "age": [20, 30], "diagnosis": ["flu", None]})
    for folder in ("in", ".mondrian_waiting"):
        (tmp_path / folder).mkdir()
        pq.write_table(table, tmp_path / folder / "drop.parquet")
    evidence = Evidence(Job.from_dict(JOB), "")
    rows = evidence.drop("in/drop.parquet", "out")
    assert (rows.person != 0).tolist() == (rows.value != 0).tolist() == [True, False]
    assert rows.places.to_pydict() == {"age": [20, 30]}
    assert not rows.seen.any()
    with pytest.raises(JobError, match="mondrian_waiting"):
        evidence.drop(".mondrian_waiting/drop.parquet", "out")


def test_a_release_is_read_with_its_counterfeits_by_class(tmp_path: Path) -> None:
    rows = {"age": ["[0, 9]", "[0, 9]", "[10, 19]"], "diagnosis": ["flu", "cold", "flu"]}
    pq.write_table(pa.table(rows), tmp_path / "part-00000.parquet")
    made_up = {"age": ["[10, 19]", "[20, 29]"], "counterfeits": [1, 3]}
    pq.write_table(pa.table(made_up), tmp_path / "_counterfeits.parquet")
    read = Evidence(Job.from_dict(PROTECTED), "").release(str(tmp_path))
    assert read.published["age"].to_pylist() == ["[0, 9]", "[10, 19]"]
    assert read.class_of.tolist() == [0, 0, 1]
    assert len({*read.value.tolist()}) == 2
    assert read.made_up == {1: 1, None: 3}
    assert not Evidence(Job.from_dict(JOB), "").release(str(tmp_path)).made_up  # it makes up none


def test_the_values_of_a_drop_are_compared_byte_by_byte_and_as_the_series_spells_them(
    tmp_path: Path,
) -> None:
    values = ["flu", "cold", *(f"flu{' ' * blanks}" for blanks in range(1, 9))]
    rows = {"person": range(10), "age": [20] * 10, "diagnosis": values}
    pq.write_table(pa.table(rows), tmp_path / "drop.parquet")
    evidence = Evidence(Job.from_dict(PROTECTED), "")
    flu, cold, *odd = evidence.drop(str(tmp_path / "drop.parquet"), "out").value.tolist()
    assert len({flu, cold, *odd}) == 10
    assert evidence.spelled == dict.fromkeys(odd, flu)
    pq.write_table(pa.table(rows).slice(0, 0), tmp_path / "nobody.parquet")
    assert not len(evidence.drop(str(tmp_path / "nobody.parquet"), "out").person)


@pytest.mark.parametrize("report", ["", "7", '{"job": 7}', '{"job": {}}'])
def test_a_report_that_does_not_say_what_was_read_is_told(tmp_path: Path, report: str) -> None:
    (tmp_path / "_report.json").write_text(report)
    with pytest.raises(StorageError, match="its report does not say what it was made from"):
        Evidence.input_of(str(tmp_path))
    (tmp_path / "_report.json").write_text('{"job": {"input": "in"}}')
    assert Evidence.input_of(str(tmp_path)) == "in"
