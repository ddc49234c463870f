"""A population that changes from night to night."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops.datasets import Population, generate_nights, nights, people
from mondrian_ops.errors import InputError, StorageError
from mondrian_ops.nightly.landing import read_landing

TOWN = Population(5_000, 6, 3, kind="snapshots", leave=0.1, come=0.2, back=0.5, move=0.04)
ADMITTED = Population(300, 40, 3, spread=200, back=0.3, move=0.5, change=0.25)


def by_person(population: Population) -> Iterator[dict[int, dict[str, Any]]]:
    for _, drop in nights(population):
        rows = {row["person"]: row for row in drop.to_pylist()}
        assert len(rows) == len(drop)
        yield rows


class TestSnapshots:
    def test_people_leave_come_and_come_back(self) -> None:
        drops = list(by_person(TOWN))
        seen: set[int] = set()
        for before, after in pairwise(drops):
            seen |= before.keys()
            left = len(before.keys() - after.keys()) / len(before)
            came = after.keys() - before.keys()
            assert 0.08 < left < 0.12
            assert len(came) == 1_000
            assert all(person > max(seen) for person in came - seen)
        assert len(drops[0]) == 5_000
        back = came & seen
        assert 400 < len(back) < 600

    def test_some_move_and_nothing_else_changes(self) -> None:
        for before, after in pairwise(by_person(TOWN)):
            stayed = before.keys() & after.keys()
            moved = {person for person in stayed if before[person] != after[person]}
            assert 0.02 < len(moved) / len(stayed) < 0.06
            for person in moved:
                assert before[person] == {**after[person], "zip": before[person]["zip"]}


class TestIncrements:
    def test_their_sizes(self) -> None:
        sizes = [len(drop) for _, drop in nights(ADMITTED)]
        assert min(sizes) >= 100 and max(sizes) <= 500
        assert min(sizes) < 150 and max(sizes) > 450

    def test_who_comes_back_may_have_another_diagnosis(self) -> None:
        last: dict[int, dict[str, Any]] = {}
        back = changed = 0
        for drop in by_person(ADMITTED):
            again = last.keys() & drop.keys()
            back += len(again)
            changed += sum(last[one]["diagnosis"] != drop[one]["diagnosis"] for one in again)
            last |= drop
        assert back / 12_000 == pytest.approx(0.3, abs=0.05)
        # Some draw the diagnosis that they had.
        assert 0.15 < changed / back < 0.25


@pytest.mark.parametrize("population", [TOWN, ADMITTED])
class TestDrops:
    def test_columns_are_those_of_people(self, population: Population) -> None:
        schema = people(1, 0).schema
        for _, drop in nights(population):
            assert drop.drop_columns("person").schema == schema
            assert drop.schema.field("person").type == pa.int64()

    def test_the_same_again_and_fewer_are_the_beginning(self, population: Population) -> None:
        whole = list(nights(population))
        assert list(nights(replace(population, nights=4))) == whole[:4]
        assert whole[0] != next(nights(replace(population, seed=4)))
        assert [day for day, _ in whole[:2]] == [date(2025, 1, 1), date(2025, 1, 2)]


@pytest.mark.servers
def test_memory_does_not_grow_with_the_nights() -> None:
    population = Population(20_000, 20, back=0.1)
    before = pa.total_allocated_bytes()
    for _ in nights(population):
        assert pa.total_allocated_bytes() - before < 128 << 20


class TestGenerateNights:
    def test_the_drops_of_a_landing_folder(self, tmp_path: Path) -> None:
        population = Population(50, 3, 1, spread=20)
        rows = generate_nights(population, str(tmp_path / "people"))
        landing = read_landing(str(tmp_path))
        assert not landing.unusable
        found = landing.drops["people"]
        assert [(drop.day, pq.read_table(drop.input)) for drop in found] == list(nights(population))
        assert rows == sum(len(drop) for _, drop in nights(population))
        now = datetime.now(UTC)
        assert {drop.incomplete(now, timedelta(hours=1)) for drop in found} == {None}

    def test_a_drop_is_not_replaced(self, tmp_path: Path) -> None:
        generate_nights(Population(50, 1, first_day=date(2025, 1, 2)), str(tmp_path))
        with pytest.raises(StorageError, match="2025-01-02' exists already; name another folder"):
            generate_nights(Population(50, 3), str(tmp_path))
        assert [path.name for path in tmp_path.iterdir()] == ["2025-01-02"]

    def test_a_place_that_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(StorageError, match="cannot be written"):
            generate_nights(Population(50, 1), str(tmp_path / "file" / "people"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "diffs"}, "drops: 'diffs' is not one of increments, snapshots"),
        ({"rows": 0}, "rows: must be at least 1"),
        ({"nights": 0}, "nights: must be at least 1"),
        ({"seed": -1}, "seed: must be at least 0"),
        ({"move": 1.5}, "move: must be a share from 0 to 1, not 1.5"),
        ({"spread": 10}, "spread: must be at least 0 and below rows"),
        ({"spread": 1, "kind": "snapshots"}, "spread: is for increments"),
    ],
)
def test_populations_that_cannot_be_are_refused_at_once(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        nights(replace(Population(10, 2), **changes))
