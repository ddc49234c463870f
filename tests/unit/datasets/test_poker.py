"""Poker hands: what they make, and how often each comes."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from mondrian_ops.datasets import classify, poker
from shared_data import shared_data

HIERARCHIES = Path(__file__).resolve().parents[3] / "include" / "hierarchies"

CARD_COLUMNS = ["s1", "r1", "s2", "r2", "s3", "r3", "s4", "r4", "s5", "r5"]


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


def test_hands_against_the_real_ones() -> None:
    file = shared_data("poker/poker-hand-training-true.data")
    real = np.loadtxt(file, delimiter=",", dtype=np.int8).T
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
