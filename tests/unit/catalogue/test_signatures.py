"""The persons of a series in the catalogue."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sqlalchemy as sa

from mondrian_ops import catalogue
from mondrian_ops.catalogue import signatures
from mondrian_ops.catalogue.tables import night, night_persons, person, series
from mondrian_ops.errors import StorageError

NIGHT = {
    "state": "pending", "label": "", "input": "", "output": "", "work": "", "time": "",
    "rows_in": 1, "rows_published": 1, "rows_suppressed": 0, "rows_waiting": 0,
}  # fmt: skip


@pytest.fixture
def town():
    with catalogue.current().writing() as connection:
        for name in ("town", "other"):
            connection.execute(series.insert().values(name=name, terms="{}"))
        for number in (1, 2, 3, 4, 5, 6):  # of town, the last two of other
            of = {"id": number, "series": series_of(number), "number": number, "token": str(number)}
            connection.execute(night.insert().values(**NIGHT, **of))


def series_of(number):
    return 1 if number < 5 else 2


def note(number, hashes, common, values=()):
    count = len(hashes)
    common = np.array(common, np.uint64).reshape(count, -1)
    numbers = np.arange(count)
    table = signatures.to_table(
        np.array(hashes, np.int64), 100 - numbers, 10 * numbers, common, values
    )
    with catalogue.current().writing() as connection:
        signatures.note(connection, number, table)


def file_away(number):
    with catalogue.current().writing() as connection:
        for part in signatures.who_left(connection, series_of(number), number):
            signatures.file_away(connection, series_of(number), part)


def make_current(number):
    file_away(number)
    with catalogue.current().writing() as connection:
        signatures.make_current(connection, series_of(number), number)
        of_number = night.update().where(night.c.number == number)
        connection.execute(of_number.values(state="published"))


def known(hashes, words=1, name="town", **options):
    with catalogue.current().reading() as connection:
        return signatures.known(connection, name, np.array(hashes, np.int64), words, **options)


def values(name="town"):
    with catalogue.current().reading() as connection:
        return signatures.values(connection, name)


def left(name="town", **options):
    with catalogue.current().reading() as connection:
        return signatures.left(connection, name, **options)


def classes_in(number):
    with catalogue.current().reading() as connection:
        return signatures.classes_in(connection, number)


def noted():
    with catalogue.current().reading() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(night_persons)).scalar()


def filed(series_id=1):
    """The persons of a series that have a row, and what is left for them."""
    with catalogue.current().reading() as connection:
        rows = connection.execute(person.select().where(person.c.series == series_id)).all()
    return {row.hash: int.from_bytes(row.common, "little") for row in rows}


@pytest.mark.usefixtures("town")
def test_persons_become_current_with_their_night():
    note(1, [7, -5, 1 << 62], [1, 3, (1 << 64) - 1], [11, -12])
    file_away(1)
    assert not known([7]).is_known.any()
    assert left() == {}
    make_current(1)
    assert noted() == 1
    assert left() == {7: [11], -5: [11, -12], 1 << 62: [11, -12]}
    found = known([-5, 8, 1 << 62, 7, -5], words=2)
    assert found.is_known.tolist() == [True, False, True, True, True]
    assert found.class_of.tolist() == [1, -1, 0, 2, 1]
    assert found.place.tolist() == [10, 0, 20, 0, 10]
    assert found.common.tolist() == [[3, 0], [0, 0], [(1 << 64) - 1, 0], [1, 0], [3, 0]]
    assert values() == [11, -12]


@pytest.mark.usefixtures("town")
def test_who_is_not_in_a_later_night_keeps_what_was_left(monkeypatch):
    monkeypatch.setattr(signatures, "_AT_ONCE", 2)
    note(1, [1, 2, 4, 5, 6], [1, 2, 3, 1, 2], [5])
    make_current(1)
    note(2, [2, 3], [[2, 1], [4, 0]], [6, 7])
    file_away(2)
    file_away(2)  # as often as it takes
    assert filed() == {1: 1, 4: 3, 5: 1, 6: 2}
    assert known([1, 2]).class_of.tolist() == [4, 3]
    make_current(2)
    found = known([1, 2, 3, 6, 7], words=2)
    assert found.is_known.tolist() == [True, True, True, True, False]
    assert found.class_of.tolist() == [-1, 1, 0, -1, -1]
    assert found.common.tolist() == [[1, 0], [2, 1], [4, 0], [2, 0], [0, 0]]
    assert values() == [5, 6, 7]
    assert left() == {1: [5], 2: [6], 3: [7], 4: [5, 6], 5: [5], 6: [6]}


@pytest.mark.usefixtures("town")
def test_who_is_filed_away_is_not_written_again_while_others_wait(monkeypatch):
    note(1, [1, 2, 3], [1, 2, 3], [5, 6])
    make_current(1)
    note(5, [1, 2, 3], [3, 3, 3], [5, 6])
    make_current(5)
    note(6, [9], [1])  # the other series files the same away
    file_away(6)
    note(2, [1], [1])
    file_away(2)
    monkeypatch.setattr(signatures, "file_away", lambda *_: pytest.fail("it was written again"))
    with catalogue.current().writing() as connection:
        signatures.make_current(connection, 1, 2)


@pytest.mark.usefixtures("town")
def test_signatures_follow_on_what_is_left():
    note(1, [1, 2], [[0b1, 0b11], [0b110, 0b111]], [5, 6, 7])
    make_current(1)
    note(2, [2], [[0b10, 0b111]])
    make_current(2)
    found = known([3, 2, 1], words=2, signed=True)  # 1 is filed away
    assert found.is_known.tolist() == [False, True, True]
    assert found.common.tolist() == [[0, 0], [0b10, 0], [0b1, 0]]
    assert found.signature.tolist() == [[0, 0], [0b111, 0], [0b11, 0]]
    assert not known([3, 2, 1], words=2).signature.any()
    assert left(signed=True) == {1: [5], 2: [6]}


@pytest.mark.usefixtures("town")
def test_who_comes_back_and_leaves_again_keeps_what_was_left_last():
    for number, hashes, common in ((1, [1, 2], [7, 7]), (2, [2], [7]), (3, [1, 2], [3, 5])):
        note(number, hashes, common, [5, 6, 7] if number == 1 else [])
        make_current(number)
    assert left() == {1: [5, 6], 2: [5, 7]}
    note(4, [2], [5])
    make_current(4)
    assert filed() == {1: 3}
    assert known([1]).common.tolist() == [[3]]
    assert left() == {1: [5, 6], 2: [5, 7]}


@pytest.mark.usefixtures("town")
def test_who_was_in_which_class_stays_with_each_night_in_the_order_of_the_classes():
    assert classes_in(1) is None
    for number in (1, 2):
        note(number, [8, 5, 9], [1, 1, 1], [5] if number == 1 else [])
        make_current(number)
    assert classes_in(1) == classes_in(2) == {8: 100, 5: 99, 9: 98}
    assert list(classes_in(1)) == [9, 5, 8]


def test_the_order_of_the_release_is_not_kept():
    """With it, whoever has the catalogue but not its key would find whose row is whose."""
    published = np.array([3, 1, 3, 1, 2])
    hashes = np.array([5, 9, 4, 8, 7])
    common = np.arange(1, 6, dtype=np.uint64).reshape(5, 1)
    kept = {
        signatures.packed(signatures.to_table(*(each[order] for each in columns), []))
        for order in map(list, itertools.permutations(range(5)))
        for columns in [(hashes, published, 10 * hashes, common)]
    }
    assert len(kept) == 1


@pytest.mark.usefixtures("town")
def test_two_series_know_nothing_of_each_other():
    for number, hashes, common in ((1, [1, 2], [1, 1]), (2, [1], [1])):
        note(number, hashes, common, [5] if number == 1 else [])
        make_current(number)
    assert left("other") == left("none") == {}
    assert not known([1, 2], name="other").is_known.any()
    assert values("other") == []
    for number, hashes, common in ((5, [2, 3], [3, 2]), (6, [3], [2])):
        note(number, hashes, common, [7, 8] if number == 5 else [])
        make_current(number)
    assert (left(), left("other")) == ({1: [5], 2: [5]}, {2: [7, 8], 3: [8]})
    assert (values(), values("other")) == ([5], [7, 8])
    assert (filed(), filed(2)) == ({2: 1}, {2: 3})
    for number, who in ((3, 2), (4, 1)):
        note(number, [who], [1])
        make_current(number)
    assert (filed(), filed(2)) == ({1: 1, 2: 1}, {2: 3})
    assert left("none") == {}


@pytest.mark.usefixtures("town")
def test_a_night_that_is_withdrawn_changes_nothing():
    note(1, [1, 2], [1, 3], [5, 6])
    make_current(1)
    before = left()
    note(2, [1], [1])
    file_away(2)
    with catalogue.current().writing() as connection:
        signatures.withdraw(connection, sa.select(night.c.id).where(night.c.number == 2))
    assert noted() == 1
    assert left() == before
    note(2, [1, 2], [1, 1])  # another attempt, which has everybody
    make_current(2)
    assert left() == {1: [5], 2: [5]}
    assert known([1, 2]).common.tolist() == [[1], [1]]


@pytest.mark.usefixtures("town")
def test_persons_of_the_last_release_that_are_lost_are_told():
    """Otherwise everybody in it would count as new, and be given away."""
    note(1, [1, 2], [1, 3], [5, 6])
    make_current(1)
    note(2, [1, 2], [1, 3])
    make_current(2)
    with catalogue.current().reading() as connection:
        before = signatures._noted(connection, 1)
    assert before.column_names == ["hash", "published"]  # who was in which class, and no more
    for there in (before, None):
        with catalogue.current().writing() as connection:
            connection.execute(night_persons.delete().where(night_persons.c.night == 2))
            if there is not None:
                signatures.note(connection, 2, there)
        for ask in (left, lambda: known([1])):
            with pytest.raises(StorageError, match="lost the persons of the last release"):
                ask()


@pytest.mark.usefixtures("town")
def test_a_night_is_noted_in_pieces(monkeypatch):
    """No database takes a value of any size."""
    monkeypatch.setattr(signatures, "_PIECE", 2)
    note(1, [5, 4, 3, 2, 1], [1, 3, 1, 3, 1], [5, 6])
    note(1, [5, 4, 3], [1, 3, 2], [5, 6])  # in place of all of them
    assert noted() == 2
    make_current(1)
    assert values() == [5, 6]
    assert left() == {5: [5], 4: [5, 6], 3: [6]}
    note(2, [3], [2])
    make_current(2)
    assert noted() == 3
    assert classes_in(1) == {3: 98, 4: 99, 5: 100}


@pytest.mark.usefixtures("town")
def test_more_common_values_than_the_series_has_are_told():
    note(1, [1, 2], [[1, 1], [1, 1]], [5])
    make_current(1)
    with pytest.raises(StorageError, match="more common values than the series has"):
        known([1], words=1)


@pytest.mark.usefixtures("town")
def test_a_night_without_a_release_leaves_everybody_in_the_classes_of_the_last_one():
    note(1, [1, 2], [1, 3], [5, 6])
    make_current(1)
    with catalogue.current().writing() as connection:
        of_second = night.update().where(night.c.number == 2)
        connection.execute(of_second.values(state="held", rows_published=0))
    assert known([1, 2]).class_of.tolist() == [1, 0]
    note(3, [1], [1])
    make_current(3)
    assert filed() == {2: 3}
    assert left() == {1: [5], 2: [5, 6]}
