from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from mondrian_ops import storage
from mondrian_ops.core.errors import InputError, StorageError
from mondrian_ops.datasets import (
    classify,
    generate,
    people,
    people_batches,
    poker,
    poker_batches,
)

HIERARCHIES = Path(__file__).resolve().parents[3] / "include" / "hierarchies"
REAL_HANDS = HIERARCHIES.parents[2] / "shared/data/poker/poker-hand-training-true.data"
CARD_COLUMNS = ["s1", "r1", "s2", "r2", "s3", "r3", "s4", "r4", "s5", "r5"]

Make = Callable[[int, int], pa.Table]
Batches = Callable[..., Iterator[pa.RecordBatch]]


def hand(*cards: tuple[int, int]) -> int:
    suits, ranks = np.array(cards, dtype=np.int8).T[..., np.newaxis]
    return int(classify(suits, ranks)[0])


@pytest.mark.parametrize(
    ("cards", "expected"),
    [
        ([(1, 2), (2, 4), (3, 6), (4, 8), (1, 10)], 0),
        ([(1, 2), (2, 2), (3, 6), (4, 8), (1, 10)], 1),
        ([(1, 2), (2, 6), (3, 6), (4, 2), (1, 10)], 2),
        ([(1, 10), (2, 2), (3, 10), (4, 8), (2, 10)], 3),
        ([(1, 2), (2, 6), (3, 5), (4, 4), (1, 3)], 4),
        ([(1, 1), (2, 2), (3, 5), (4, 4), (1, 3)], 4),  # the ace low
        ([(1, 1), (2, 13), (3, 12), (4, 11), (1, 10)], 4),  # the ace high
        ([(1, 13), (2, 1), (3, 2), (4, 3), (1, 4)], 0),  # no straight around the ace
        ([(1, 1), (1, 13), (1, 12), (1, 11), (1, 9)], 5),
        ([(1, 2), (2, 2), (3, 2), (4, 9), (1, 9)], 6),
        ([(1, 9), (2, 9), (3, 2), (4, 9), (1, 2)], 6),
        ([(1, 9), (2, 9), (3, 9), (4, 9), (1, 2)], 7),
        ([(1, 9), (2, 9), (3, 9), (4, 9), (1, 12)], 7),
        ([(2, 5), (2, 6), (2, 7), (2, 8), (2, 9)], 8),
        ([(2, 5), (2, 1), (2, 2), (2, 4), (2, 3)], 8),
        ([(3, 1), (3, 13), (3, 10), (3, 11), (3, 12)], 9),
    ],
)
def test_what_a_hand_makes(cards: list[tuple[int, int]], expected: int) -> None:
    assert hand(*cards) == expected
    assert hand(*reversed(cards)) == expected


def by_the_rules(suits: list[int], ranks: list[int]) -> int:
    """A hand judged one card at a time, as a person would."""
    counts = sorted(Counter(ranks).values(), reverse=True)
    flush = len(set(suits)) == 1
    broadway = sorted(ranks) == [1, 10, 11, 12, 13]
    straight = broadway or all(b - a == 1 for a, b in pairwise(sorted(ranks)))
    if straight and flush:
        return 9 if broadway else 8
    if straight or flush:
        return 4 if straight else 5
    shapes = {(4, 1): 7, (3, 2): 6, (3, 1, 1): 3, (2, 2, 1): 2, (2, 1, 1, 1): 1}
    return shapes.get(tuple(counts), 0)


def test_hands_against_the_rules() -> None:
    hands = poker(20_000, seed=5).to_pydict()
    for row in range(20_000):
        suits = [hands[f"s{card}"][row] for card in range(1, 6)]
        ranks = [hands[f"r{card}"][row] for card in range(1, 6)]
        assert hands["hand"][row] == by_the_rules(suits, ranks)


@pytest.mark.skipif(not REAL_HANDS.exists(), reason="the UCI data set is not at hand")
def test_hands_against_the_real_ones() -> None:
    real = np.loadtxt(REAL_HANDS, delimiter=",", dtype=np.int8).T
    np.testing.assert_array_equal(classify(real[0:10:2], real[1:10:2]), real[10])
    assert real.shape == (11, 25_010)


def test_hands_are_five_distinct_cards() -> None:
    hands = poker(50_000, seed=1)
    assert hands.column_names == [*CARD_COLUMNS, "hand"]
    assert set(hands.schema.types) == {pa.int8()}
    cards = np.array([hands[name].to_numpy() for name in CARD_COLUMNS])
    suits, ranks = cards[0::2], cards[1::2]
    assert (suits.min(), suits.max(), ranks.min(), ranks.max()) == (1, 4, 1, 13)
    ordered = np.sort(suits * 13 + ranks, axis=0)
    assert (np.diff(ordered, axis=0) > 0).all()


def test_hands_come_as_often_as_combinatorics_say() -> None:
    rows = 1 << 20
    found = np.bincount(poker(rows, seed=2)["hand"].to_numpy(), minlength=10)
    of_all = np.array([1302540, 1098240, 123552, 54912, 10200, 5108, 3744, 624, 36, 4])
    expected = of_all / 2_598_960 * rows
    assert (np.abs(found - expected) <= 5 * np.sqrt(expected) + 1).all()


def test_every_position_holds_every_card_equally_often() -> None:
    rows = 1 << 18
    hands = poker(rows, seed=3)
    for at in range(1, 6):
        card = hands[f"s{at}"].to_numpy().astype(int) * 13 + hands[f"r{at}"].to_numpy() - 14
        found = np.bincount(card, minlength=52)
        assert (np.abs(found - rows / 52) <= 5 * np.sqrt(rows / 52)).all()


@pytest.mark.parametrize(("make", "batches"), [(poker, poker_batches), (people, people_batches)])
class TestStreaming:
    def test_any_batches_are_the_same_rows(self, make: Make, batches: Batches) -> None:
        rows = 150_000
        whole = make(rows, 7)
        assert whole.num_rows == rows
        for size in (20_011, 131_072, 140_000, 10**6):
            parts = list(batches(rows, 7, size))
            assert all(part.num_rows == size for part in parts[:-1])
            assert 0 < parts[-1].num_rows <= size
            assert pa.Table.from_batches(parts).combine_chunks() == whole.combine_chunks()

    def test_fewer_rows_are_the_beginning(self, make: Make, batches: Batches) -> None:
        assert make(10, 7) == make(140_000, 7).slice(0, 10)

    def test_seeds_and_blocks_differ(self, make: Make, batches: Batches) -> None:
        assert make(100, 7) == make(100, 7)
        assert make(100, 7) != make(100, 8)
        two_blocks = make(2 * 131_072, 7)
        assert two_blocks.slice(0, 131_072) != two_blocks.slice(131_072)

    @pytest.mark.parametrize(
        ("arguments", "option"),
        [((0, 1, 10), "rows"), ((1, -1, 10), "seed"), ((1, 1, 0), "batch_rows")],
    )
    def test_impossible_sizes_are_refused_at_once(
        self, make: Make, batches: Batches, arguments: tuple[int, int, int], option: str
    ) -> None:
        with pytest.raises(InputError, match=f"^{option}: must be at least"):
            batches(*arguments)


class TestPeople:
    population = people(50_000, seed=4)

    def test_columns(self) -> None:
        assert {field.name: str(field.type) for field in self.population.schema} == {
            "name": "string",
            "age": "int16",
            "sex": "string",
            "zip": "string",
            "country": "string",
            "occupation": "string",
            "visit_date": "date32[day]",
            "income": "int32",
            "diagnosis": "string",
        }
        age, income = self.population["age"], self.population["income"]
        assert pc.min_max(age).as_py() == {"min": 18, "max": 95}
        assert pc.min(income).as_py() > 0
        assert pc.all(pc.match_substring_regex(self.population["zip"], r"^\d{5}$")).as_py()

    def test_some_values_are_missing(self) -> None:
        shares = {
            name: self.population[name].null_count / self.population.num_rows
            for name in self.population.column_names
        }
        gaps = {name for name, share in shares.items() if share}
        assert gaps == {"zip", "country", "occupation", "income", "diagnosis"}
        assert all(0.005 < shares[name] < 0.06 for name in gaps)

    @pytest.mark.parametrize(
        ("column", "file"),
        [
            ("country", "countries.csv"),
            ("occupation", "occupations.csv"),
            ("diagnosis", "diagnoses.csv"),
        ],
    )
    def test_the_hierarchies_hold_every_value(self, column: str, file: str) -> None:
        leaves = set(storage.read_hierarchy(str(HIERARCHIES / file)).leaves)
        assert set(self.population[column].drop_null().to_pylist()) <= leaves


@pytest.mark.parametrize("path", sorted(HIERARCHIES.glob("*.csv")), ids=lambda path: path.name)
def test_the_hierarchies_that_come_along_are_sound(path: Path) -> None:
    tree = storage.read_hierarchy(str(path))
    assert tree.labels[tree.root] == "*"
    assert tree.depth == 4
    # Leaf order is the order of the attribute: what generalizes together stands together.
    assert tree.tree_order.tolist() == list(range(len(tree.leaves)))
    assert len(set(tree.labels)) == len(tree.labels)


def test_the_countries_of_the_world() -> None:
    tree = storage.read_hierarchy(str(HIERARCHIES / "countries.csv"))
    above = {
        leaf: [tree.labels[node] for node in tree.ancestors[1:, at]]
        for at, leaf in enumerate(tree.leaves)
    }
    assert above["Italy"] == ["Southern Europe", "Europe", "*"]
    assert above["Côte d'Ivoire"] == ["Western Africa", "Africa", "*"]
    assert len(above) > 230
    continents = {path[-2] for path in above.values()}
    assert continents == {"Africa", "Americas", "Asia", "Europe", "Oceania"}


class TestGenerate:
    def test_parquet(self, tmp_path: Path) -> None:
        output = tmp_path / "new" / "poker.parquet"
        generate("poker", rows=300_000, seed=9, output=str(output))
        assert pq.read_table(output).combine_chunks() == poker(300_000, 9).combine_chunks()
        assert [path.name for path in output.parent.iterdir()] == ["poker.parquet"]

    def test_csv(self, tmp_path: Path) -> None:
        output = tmp_path / "people.csv"
        generate("people", rows=500, seed=9, output=str(output))
        read = pyarrow.csv.read_csv(
            output,
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=people(1, 0).schema, strings_can_be_null=True
            ),
        )
        assert read.combine_chunks() == people(500, 9).combine_chunks()

    def test_an_earlier_file_is_replaced(self, tmp_path: Path) -> None:
        output = tmp_path / "poker.parquet"
        generate("poker", rows=10, seed=0, output=str(output))
        generate("poker", rows=20, seed=0, output=str(output))
        assert pq.read_metadata(output).num_rows == 20

    @pytest.mark.parametrize(
        ("kind", "rows", "name", "error", "message"),
        [
            ("pokr", 1, "x.parquet", InputError, "kind: 'pokr' .*did you mean 'poker'"),
            ("poker", 0, "x.parquet", InputError, "rows: must be at least 1, not 0"),
            ("poker", 1, "x.txt", StorageError, "output: .* must end in .parquet or .csv"),
            ("poker", 1, "taken.csv", StorageError, "output: .* is a directory"),
            ("poker", 1, "file/x.csv", StorageError, "output: .* cannot be written"),
        ],
    )
    def test_what_cannot_be_done(
        self,
        tmp_path: Path,
        kind: str,
        rows: int,
        name: str,
        error: type[Exception],
        message: str,
    ) -> None:
        (tmp_path / "taken.csv").mkdir()
        (tmp_path / "file").write_text("in the way")
        with pytest.raises(error, match=message):
            generate(kind, rows=rows, seed=0, output=str(tmp_path / name))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "taken.csv"]


@pytest.mark.parametrize("batches", [poker_batches, people_batches])
def test_memory_does_not_grow_with_the_rows(batches: Batches) -> None:
    before = pa.total_allocated_bytes()
    for batch in batches(2_000_000, 0):
        assert batch.nbytes < 64 << 20
        assert pa.total_allocated_bytes() - before < 256 << 20
