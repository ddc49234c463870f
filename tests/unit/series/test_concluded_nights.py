"""What the catalogue says of persons is what the releases left, whoever comes in between."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mondrian_ops import catalogue
from mondrian_ops.catalogue import signatures, tables
from mondrian_ops.series import nights

PEOPLE = [0, -1, (1 << 63) - 1, -(1 << 63), 5, 6]
NIGHT = {
    "label": "", "input": "", "output": "", "work": "",
    "rows_in": 0, "rows_suppressed": 0, "rows_waiting": 0,
}  # fmt: skip

Left = dict[int, list[int]]


class Series:
    """A series whose people come and go, and what its releases have left for them."""

    def __init__(self, id_: int, dice: random.Random) -> None:
        self.id, self.dice, self.clock = id_, dice, itertools.count(1000 * id_)
        self.left: Left = {}
        self.values: list[int] = []
        self.number = 1
        self.tonight: tuple[str, Left, list[int]] | None = None

    def note(self, token: str, state: str, people: pa.Table | None) -> None:
        row = {**NIGHT, "series": self.id, "number": self.number, "token": token, "state": state}
        row |= {"time": str(next(self.clock)), "rows_published": int(people is not None)}
        with catalogue.current().writing() as connection:
            nights._take_back(connection, token)
            added = connection.execute(tables.night.insert().values(**row))
            if people is not None:
                signatures.note(connection, nights._key(added), people)

    def begin(self) -> None:
        """Note a pending night, or note it again."""
        if self.tonight is None:
            added = [next(self.clock) for _ in range(self.dice.choice([1, 64]))]
            values, share = self.values + added, self.dice.choice([0.2, 0.8])
            people = [each for each in PEOPLE if self.dice.random() < share]
            before = {each: self.left.get(each, values) for each in people}
            left = {
                each: [value for value in before[each] if self.dice.random() < 0.9]
                for each in people
            }
            self.tonight = str(next(self.clock)), left, added
        token, left, added = self.tonight
        values = self.values + added
        words = max(1, -(-len(values) // 64))
        bits = [sum(1 << values.index(value) for value in each) for each in left.values()]
        packed = b"".join(each.to_bytes(8 * words, "little") for each in bits)
        common = np.frombuffer(packed, np.uint64).reshape(-1, words)
        hashes, none = np.array([*left], np.int64), np.zeros(len(left), np.int64)
        self.note(token, "pending", signatures.to_table(hashes, none, none, common, added))

    def withdraw(self) -> None:
        if self.tonight is not None:
            nights.withdraw(self.tonight[0])
            self.tonight = None

    def lose(self) -> None:
        """A backup without the night is restored; then its attempt may :meth:`begin` again."""
        if self.tonight is not None:
            nights.withdraw(self.tonight[0])

    def hold(self) -> None:
        if self.tonight is None:
            self.note(str(next(self.clock)), "held", None)
            self.number += 1

    def conclude(self) -> None:
        tonight = self.tonight
        if tonight is not None and nights.conclude(tonight[0]) and self.tonight is tonight:
            self.left |= tonight[1]
            self.values += tonight[2]
            self.number, self.tonight = self.number + 1, None

    def pass_night(self, token: str, left: Left, added: Sequence[int] = ()) -> None:
        self.tonight = token, left, [*added]
        self.begin()
        self.conclude()

    def be_killed(self) -> None:
        raise KeyboardInterrupt


def compare(each: Series) -> None:
    with catalogue.current().reading() as connection:
        assert signatures.left(connection, str(each.id)) == each.left
        known = signatures.known(connection, str(each.id), np.array(PEOPLE), 40)
    assert known.is_known.tolist() == [key in each.left for key in PEOPLE]
    counts = np.unpackbits(known.common.view(np.uint8), axis=1).sum(axis=1)
    assert counts.tolist() == [len(each.left.get(key, ())) for key in PEOPLE]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Callable[[], None]]]:
    """What others do before the next transactions that write, the last one first."""
    others: list[Callable[[], None]] = []
    writing = catalogue.Catalogue.writing

    def interrupted(opened: catalogue.Catalogue) -> Any:
        rest, others[:] = others[:], []  # nobody comes between what others do
        if rest:
            rest.pop()()
        others[:] = rest
        return writing(opened)

    monkeypatch.setattr(catalogue.Catalogue, "writing", interrupted)
    monkeypatch.setattr(signatures, "_AT_ONCE", 1)
    monkeypatch.setattr(nights, "_PAUSE_S", 0)
    with catalogue.current().writing() as connection:
        for name in ("1", "2"):
            connection.execute(tables.series.insert().values(name=name, terms="{}"))
    with catalogue.current().reading():  # SQLite tidies up when nobody is connected; that is slow
        yield others


def test_a_night_that_is_lost_and_noted_again_meanwhile_forgets_nobody(
    meanwhile: list[Callable[[], None]],
) -> None:
    """Who left is in no other release, and would count as new."""
    town = Series(1, random.Random(0))
    town.pass_night("1", {5: [1], 6: [1, 2]}, [1, 2])
    meanwhile[:] = [town.begin, town.lose, lambda: None]
    town.pass_night("2", {5: [1]})
    assert town.left == {5: [1], 6: [1, 2]}
    compare(town)


def test_rows_that_a_restored_backup_lacks_are_written_again(
    meanwhile: list[Callable[[], None]],
) -> None:
    def restore() -> None:
        with catalogue.current().writing() as connection:
            connection.execute(tables.person.delete())

    town = Series(1, random.Random(0))
    town.pass_night("1", {5: [1], 6: [1, 2], 7: [2]}, [1, 2])
    meanwhile[:] = [restore, lambda: None, lambda: None]
    town.pass_night("2", {5: [1]})
    assert not meanwhile
    compare(town)


def test_who_sleeps_while_nights_pass_writes_nothing_of_before(
    meanwhile: list[Callable[[], None]],
) -> None:
    def others() -> None:
        town.conclude()
        town.pass_night("3", {6: [2]})
        town.pass_night("4", {5: [1]})

    town = Series(1, random.Random(0))
    town.pass_night("1", {5: [1], 6: [1, 2]}, [1, 2])
    meanwhile[:] = [others, lambda: None]
    town.pass_night("2", {5: [1]})
    assert town.left == {5: [1], 6: [2]}
    compare(town)


@pytest.mark.parametrize("seed", range(3))
def test_others_between_two_transactions_change_nobody(
    meanwhile: list[Callable[[], None]], seed: int
) -> None:
    dice = random.Random(seed)
    both = Series(1, dice), Series(2, dice)
    for _ in range(18):
        of = dice.choice(both)
        dice.choices([of.begin, of.hold], [5, 1])[0]()
        others = of.begin, of.withdraw, of.hold, of.lose, of.be_killed, of.conclude
        meanwhile[:] = dice.choices(others, [4, 1, 1, 4, 1, 2], k=dice.choice([0, 0, 1, 2, 4]))
        with suppress(KeyboardInterrupt):
            of.conclude()
        meanwhile.clear()
        compare(of)
    for each in both:
        compare(each)
