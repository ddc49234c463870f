"""Synthetic Poker Hand data, as the experiments of the distributed Mondrian paper use it.

The UCI data set (Cattral and Oppacher, 2002) has a million hands in its test file; hands drawn at
random have its distribution, in any number.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.datasets import blocks

Cards = NDArray[np.int8]

_CARDS = 5
_SUITS = 4
_RANKS = 13
_COLUMNS = [f"{part}{card}" for card in range(1, _CARDS + 1) for part in "sr"]


def poker(rows: int, seed: int) -> pa.Table:
    """Hands of five cards drawn without replacement, all columns int8.

    ``s1``, ``r1``, ..., ``s5``, ``r5``: suit 1-4 and rank 1 (ace) to 13 (king) of each card;
    ``hand``: what they make, as in :func:`classify`. Raises InputError on no rows.
    """
    return blocks.table(block, rows, seed)


def classify(suits: Cards, ranks: Cards) -> Cards:
    """What each hand makes: (5, n) suits and (5, n) ranks -> (n,) int8.

    0 nothing, 1 one pair, 2 two pairs, 3 three of a kind, 4 straight, 5 flush, 6 full house,
    7 four of a kind, 8 straight flush, 9 royal flush. An ace is the lowest card of a straight or
    the highest.
    """
    a, b, c, d, e = _sorted(ranks)
    ab, bc, cd, de = a == b, b == c, c == d, d == e
    equal = ab.astype(np.int8) + bc + cd + de
    triple = (ab & bc) | (bc & cd) | (cd & de)
    # Equal neighbours among the five sorted ranks tell all but straights and flushes.
    hand: Cards = equal.copy()
    hand[(equal == 2) & triple] = 3
    hand[equal == 3] = 6
    hand[(equal == 3) & bc & cd] = 7
    distinct = equal == 0
    royal = distinct & (a == 1) & (b == 10)
    straight = (distinct & (e - a == 4)) | royal
    flush = (suits[1:] == suits[0]).all(axis=0)
    hand[straight] = 4
    hand[flush & distinct] = 5
    hand[straight & flush] = 8
    hand[royal & flush] = 9
    return hand


def block(generator: np.random.Generator, rows: int) -> pa.RecordBatch:
    """The rows of one block of :func:`poker`."""
    cards = _deal(generator, rows)
    suits = cards // _RANKS + np.int8(1)
    ranks = cards % _RANKS + np.int8(1)
    columns = [part[card] for card in range(_CARDS) for part in (suits, ranks)]
    return pa.RecordBatch.from_arrays(
        [pa.array(column) for column in (*columns, classify(suits, ranks))], [*_COLUMNS, "hand"]
    )


def _deal(generator: np.random.Generator, rows: int) -> Cards:
    """(5, rows) cards 0-51, distinct in each hand, every order equally likely."""
    cards = np.empty((_CARDS, rows), dtype=np.int8)
    before: list[Cards] = []
    for at in range(_CARDS):
        card = generator.integers(0, _SUITS * _RANKS - at, size=rows, dtype=np.int8)
        # The n-th of the cards still in the deck: step over those dealt before, lowest first.
        for dealt in before:
            card += card >= dealt
        cards[at] = card
        before = _inserted(before, card)
    return cards


def _sorted(ranks: Cards) -> list[Cards]:
    """The rows of (5, n) ranks put in ascending order, column by column."""
    ordered: list[Cards] = []
    for rank in ranks:
        ordered = _inserted(ordered, rank)
    return ordered


def _inserted(ordered: list[Cards], card: Cards) -> list[Cards]:
    """The sorted columns with one more; whole columns sort faster than five bytes per hand."""
    columns = []
    for lower in ordered:
        columns.append(np.minimum(lower, card))
        card = np.maximum(lower, card)
    return [*columns, card]
