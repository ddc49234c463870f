"""Counting packed combinations, against dictionaries of tuples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.data.native.counting import group_by_bits, recode


@st.composite
def combinations(draw):
    """Rows of codes, how many have each, and the place (word, shift, bits) of each column."""
    widths = draw(st.lists(st.sampled_from([1, 2, 8, 30, 64]), min_size=1, max_size=6))
    places, word, free = [], 0, 64
    for bits in widths:
        if bits > free:
            word, free = word + 1, 64
        free -= bits
        places.append((word, free, bits))
    one = st.tuples(*(st.sampled_from([0, 1, 2, (1 << bits) - 1]) for bits in widths))
    codes = [
        tuple(code & (1 << bits) - 1 for code, bits in zip(row, widths, strict=True))
        for row in draw(st.lists(one, max_size=40))
    ]
    rows = draw(st.lists(st.integers(1, 9), min_size=len(codes), max_size=len(codes)))
    return codes, np.array(rows, np.int64), places


def packed(codes, places):
    """(words, n) uint64."""
    words = [[0] * len(codes) for _ in range(places[-1][0] + 1)]
    for at, row in enumerate(codes):
        for code, (word, shift, _) in zip(row, places, strict=True):
            words[word][at] |= code << shift
    return np.array(words, np.uint64).reshape(len(words), len(codes))


def tables_of(tables, places):
    """The arguments that say what codes become: of each column (a key) a list."""
    where = [
        (word, shift, (1 << bits) - 1) for word, shift, bits in map(places.__getitem__, tables)
    ]
    flat = [new for table in tables.values() for new in table]
    first = np.cumsum([0, *map(len, tables.values())])[:-1]
    return np.array(where, np.uint64).reshape(-1, 3), np.array(flat, np.uint64), first


@examples(300)
@given(combinations(), st.data())
def test_recode(given_rows, data):
    codes, rows, places = given_rows
    narrow = [at for at, (_, _, bits) in enumerate(places) if bits <= 8]
    changed = data.draw(st.sets(st.sampled_from(narrow))) if narrow else ()
    tables = {}
    for at in changed:
        size = 1 << places[at][2]
        few = st.lists(st.integers(0, size - 1), min_size=1, max_size=3)
        some = data.draw(few)
        tables[at] = [some[code % len(some)] for code in range(size)]
    expected: dict[tuple[int, ...], int] = {}
    for row, count in zip(codes, rows.tolist(), strict=True):
        new = tuple(tables[at][code] if at in tables else code for at, code in enumerate(row))
        expected[new] = expected.get(new, 0) + count
    words = packed(codes, places)
    before = words.copy()
    result, totals = recode(words, rows, *tables_of(tables, places))
    assert result.tolist() == packed(list(expected), places).tolist()
    assert totals.tolist() == list(expected.values())
    assert np.array_equal(words, before)


@examples(300)
@given(combinations(), st.data())
def test_group_by_bits(given_rows, data):
    codes, _, places = given_rows
    columns = data.draw(st.integers(0, len(places)))
    expected: dict[tuple[int, ...], list[int]] = {}
    for at, row in enumerate(codes):
        expected.setdefault(row[:columns], []).append(at)
    keys = [0] * (places[-1][0] + 1)
    for word, shift, bits in places[:columns]:
        keys[word] |= ((1 << bits) - 1) << shift
    index, starts = group_by_bits(packed(codes, places), np.array(keys, np.uint64))
    assert (index.dtype, starts.dtype) == (np.int32, np.int64)
    assert [part.tolist() for part in np.split(index, starts)[1:]] == list(expected.values())


def test_many_combinations_of_few_bits():
    """Hashes that share their lower bits, and a table that is as full as it can be."""
    words = np.arange(1 << 12, dtype=np.uint64)[None] << np.uint64(52)
    twice = np.concatenate([words, words[:, ::-1]], axis=1)
    result, totals = recode(twice, np.ones(1 << 13, np.int64), *tables_of({}, []))
    assert np.array_equal(result, words)
    assert (totals == 2).all()


WORDS = np.array([[0, 1, 2, 3]], np.uint64)
ROWS = np.ones(4, np.int64)
PLACES = np.array([[0, 0, 3]], np.uint64)
TABLE = np.arange(4, dtype=np.uint64)
FIRST = np.array([0])


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((WORDS.astype(np.int64), ROWS, PLACES, TABLE, FIRST), TypeError, "words: uint64"),
        ((WORDS[0], ROWS, PLACES, TABLE, FIRST), ValueError, "words: shape"),
        ((np.asfortranarray(np.repeat(WORDS, 2, 0)), ROWS, PLACES, TABLE, FIRST), ValueError,
         "words: must be C-contiguous"),
        ((WORDS, ROWS[:3], PLACES, TABLE, FIRST), ValueError, "rows: shape"),
        ((WORDS, ROWS.astype(np.int32), PLACES, TABLE, FIRST), TypeError, "rows: int64"),
        ((WORDS, ROWS - 2, PLACES, TABLE, FIRST), ValueError, "rows: each"),
        ((WORDS, ROWS << 61, PLACES, TABLE, FIRST), ValueError, "all less than 2"),
        ((WORDS, ROWS, PLACES.T.copy(), TABLE, FIRST), ValueError, "places: shape"),
        ((WORDS, ROWS, np.array([[1, 0, 3]], np.uint64), TABLE, FIRST), ValueError, "words of"),
        ((WORDS, ROWS, np.array([[0, 64, 3]], np.uint64), TABLE, FIRST), ValueError, "shifts"),
        ((WORDS, ROWS, PLACES, TABLE.astype(np.int64), FIRST), TypeError, "tables: uint64"),
        ((WORDS, ROWS, PLACES, TABLE[:3], FIRST), ValueError, "outside of its table"),
        ((WORDS, ROWS, PLACES, TABLE, FIRST + 1), ValueError, "outside of its table"),
        ((WORDS, ROWS, PLACES, TABLE, FIRST + 5), ValueError, "first: "),
        ((WORDS, ROWS, PLACES, TABLE, FIRST - 1), ValueError, "first: "),
        ((WORDS, ROWS, PLACES, TABLE, np.array([0, 4])), ValueError, "places: shape"),
    ],
)  # fmt: skip
def test_recounted_refuses(arguments, error, text):
    with pytest.raises(error, match=text):
        recode(*arguments)


def test_grouped_refuses():
    with pytest.raises(ValueError, match="keys: shape"):
        group_by_bits(WORDS, np.zeros(2, np.uint64))
    with pytest.raises(TypeError, match="keys: uint64"):
        group_by_bits(WORDS, np.zeros(1, np.int64))
    with pytest.raises(ValueError, match="words: shape"):
        group_by_bits(WORDS[0], np.zeros(1, np.uint64))
