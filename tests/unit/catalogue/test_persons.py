"""The persons of a series in the catalogue."""

from __future__ import annotations

import numpy as np
import pytest
import sqlalchemy as sa

from mondrian_ops import catalogue
from mondrian_ops.catalogue import persons
from mondrian_ops.catalogue.tables import night, night_persons, person, series

NIGHT = {
    "state": "pending", "label": "", "input": "", "output": "", "work": "", "time": "",
    "rows_in": 0, "rows_published": 0, "rows_suppressed": 0, "rows_waiting": 0,
}  # fmt: skip


@pytest.fixture
def town():
    with catalogue.current().writing() as connection:
        for name in ("town", "other"):
            connection.execute(series.insert().values(name=name, terms="{}"))
        for number in (1, 2):
            of = {"id": number, "series": 1, "number": number, "token": str(number)}
            connection.execute(night.insert().values(**NIGHT, **of))


def note(number, hashes, common, values=()):
    count = len(hashes)
    common = np.array(common, np.uint64).reshape(count, -1)
    numbers = np.arange(count)
    table = persons.to_table(
        np.array(hashes, np.int64), numbers, 100 - numbers, 10 * numbers, common, values
    )
    with catalogue.current().writing() as connection:
        persons.note(connection, number, table)


def stage(number):
    with catalogue.current().writing() as connection:
        for part in persons.parts(connection, number):
            persons.stage(connection, 1, number, part)


def make_current(number):
    stage(number)
    conclude(number)


def conclude(number):
    with catalogue.current().writing() as connection:
        parts = persons.parts(connection, number)
        of_number = night.update().where(night.c.number == number)
        connection.execute(of_number.values(state="published"))
        persons.make_current(connection, 1, number)
        for part in parts:
            persons.remove_earlier(connection, 1, number, part)


def known(hashes, words=1, name="town"):
    with catalogue.current().reading() as connection:
        return persons.known(connection, name, np.array(hashes, np.int64), words)


def values(name="town"):
    with catalogue.current().reading() as connection:
        return persons.values(connection, name)


def left(name="town"):
    with catalogue.current().reading() as connection:
        return persons.left(connection, name)


def classes_in(number):
    with catalogue.current().reading() as connection:
        return persons.classes_in(connection, number)


def noted():
    with catalogue.current().reading() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(night_persons)).scalar()


@pytest.mark.usefixtures("town")
def test_persons_become_current_with_their_night(monkeypatch):
    monkeypatch.setattr(persons, "_AT_ONCE", 2)
    note(1, [7, -5, 1 << 62], [1, 3, (1 << 64) - 1], [11, -12])
    stage(1)
    stage(1)  # as often as it takes
    assert not known([7]).is_known.any()
    assert left() == {}
    make_current(1)
    assert noted() == 1
    assert left() == {7: [11], -5: [11, -12], 1 << 62: [11, -12]}
    found = known([-5, 8, 1 << 62, 7, -5], words=2)
    assert found.is_known.tolist() == [True, False, True, True, True]
    assert found.night.tolist() == [1, 0, 1, 1, 1]
    assert found.class_of.tolist() == [1, 0, 2, 0, 1]
    assert found.place.tolist() == [10, 0, 20, 0, 10]
    assert found.common.tolist() == [[3, 0], [0, 0], [(1 << 64) - 1, 0], [1, 0], [3, 0]]
    assert values() == [11, -12]


@pytest.mark.usefixtures("town")
def test_a_later_night_replaces_those_who_are_in_it():
    note(1, [1, 2], [1, 2], [5])
    make_current(1)
    note(2, [2, 3], [[2, 1], [4, 0]], [6, 7])
    make_current(2)
    conclude(2)  # once is enough
    found = known([1, 2, 3], words=2)
    assert found.night.tolist() == [1, 2, 2]
    assert found.common.tolist() == [[1, 0], [2, 1], [4, 0]]
    assert values() == [5, 6, 7]


@pytest.mark.usefixtures("town")
def test_who_was_in_which_class_stays_with_each_night_in_the_order_of_the_classes():
    assert classes_in(1) is None
    for number in (1, 2):
        note(number, [8, 5, 9], [1, 1, 1], [5] if number == 1 else [])
        make_current(number)
    assert classes_in(1) == classes_in(2) == {8: 100, 5: 99, 9: 98}
    assert list(classes_in(1)) == [9, 5, 8]


@pytest.mark.usefixtures("town")
def test_another_series_knows_nobody():
    note(1, [1], [1], [5])
    assert left("other") == {}
    make_current(1)
    assert not known([1], name="other").is_known.any()
    assert values("other") == []


@pytest.mark.usefixtures("town")
def test_a_night_that_is_withdrawn_leaves_nobody():
    for number in (1, 2):
        note(number, [number], [1], [5])
        stage(number)
    with catalogue.current().writing() as connection:
        persons.withdraw(connection, sa.select(night.c.id).where(night.c.number == 1))
        left = connection.execute(sa.select(night_persons.c.night)).scalars().all()
    assert left == [2]
    make_current(1)
    with catalogue.current().reading() as connection:
        assert connection.execute(sa.select(person.c.night)).scalars().all() == [2]
