"""Sketches: what they estimate, by how much they err, and that their parts add up."""

from __future__ import annotations

import base64
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops.data import sketch
from mondrian_ops.data.sketch import ENOUGH, SIZE, Sketch

HASHES = np.random.default_rng(5).integers(0, 1 << 64, 60_000, np.uint64)


def of(hashes: np.ndarray, each: int = 1) -> Sketch:
    return Sketch.of(hashes, np.full(len(hashes), each, np.int64))


def shared(own: set[int], other: set[int]) -> float:
    return len(own & other) / len(own)


@given(
    st.sets(st.integers(0, 2**64 - 1), min_size=1, max_size=50),
    st.sets(st.integers(0, 2**64 - 1), max_size=50),
    st.integers(0, 50),
)
def test_few_persons_are_compared_exactly(own, other, twice):
    other |= set(sorted(own)[:twice])
    first, second = (of(np.array(sorted(each), np.uint64)) for each in (own, other))
    assert first.shared_with(second) == (shared(own, other), 0.0)
    assert first.persons == len(own)


@pytest.mark.parametrize("overlap", [0, 1_000, 3_000, 9_000, 10_000])
@pytest.mark.parametrize("others", [2_000, 10_000, 50_000])
def test_the_share_of_many_persons_errs_as_it_says(overlap, others):
    own = HASHES[:10_000]
    other = HASHES[10_000 - overlap : 10_000 - overlap + others]
    expected = shared(set(own.tolist()), set(other.tolist()))
    share, error = of(own).shared_with(of(other))
    assert abs(share - expected) <= 4 * error
    assert (share == 0) == (expected == 0)
    assert error <= 0.5 / np.sqrt(SIZE * min(1, 10_000 / others)) * 1.1


def test_the_number_of_persons_errs_by_a_few_percent():
    result = of(HASHES)
    assert len(result.least) == SIZE
    assert abs(result.persons / len(HASHES) - 1) < 4 / np.sqrt(SIZE)


def test_a_drop_in_parts_has_the_sketch_of_the_whole_in_any_order():
    parts = [of(part) for part in np.array_split(HASHES, 7)]
    forth, back = Sketch.nothing(), Sketch.nothing()
    for part in parts:
        forth = forth.merged(part)
    for part in reversed(parts):
        back = back.merged(part)
    for result in (forth, back):
        assert np.array_equal(result.least, of(HASHES).least)
        assert result.is_drop_of(of(HASHES))


def test_one_row_more_or_one_person_else_makes_another_drop():
    whole = of(HASHES)
    assert not of(HASHES[1:]).is_drop_of(whole)
    assert not of(HASHES, 2).is_drop_of(whole)
    swapped = of(np.append(HASHES[1:], np.uint64(77)))
    assert swapped.rows == whole.rows
    assert not swapped.is_drop_of(whole)


@pytest.mark.parametrize("hashes", [HASHES[:0], HASHES[:3], HASHES])
def test_a_sketch_survives_json_in_constant_size(hashes):
    json_value = of(hashes).to_json()
    again = Sketch.from_json(json_value)
    assert np.array_equal(again.least, of(hashes).least)
    assert again.is_drop_of(of(hashes))
    assert len(json_value["least"]) <= 4 * -(-SIZE * 8 // 3)


def coded(hashes: np.ndarray) -> str:
    return base64.b64encode(hashes.astype("<u8").tobytes()).decode()


ASCENDING = np.sort(HASHES)


@pytest.mark.parametrize(
    "damage",
    [
        {"least": coded(ASCENDING[:0])},
        {"least": coded(ASCENDING[[1, 0]])},
        {"least": coded(ASCENDING[[0, 0]])},
        {"least": coded(ASCENDING[:3])},  # of two rows
        {"least": coded(ASCENDING[: SIZE + 1]), "rows": SIZE + 1},
        {"least": "AAAA"},
        {"least": "!" + coded(ASCENDING[:2])},
        {"least": "?"},
        {"least": None},
        {"total": "x"},
        {"total": "-1"},
        {"total": f"{1 << 64:x}"},
        {"total": f"{(1 << 64) + 1:x}"},
        {"total": 1},
        {"rows": 1},
        {"rows": -1, "least": ""},
        {"rows": 2.0},
        {"rows": float("inf")},
    ],
)
def test_a_sketch_that_no_drop_has_is_refused(damage):
    json_value = of(ASCENDING[:2]).to_json()
    most = {"least": coded(ASCENDING[:SIZE]), "rows": SIZE, "total": f"{(1 << 64) - 1:x}"}
    for each in (json_value, most, Sketch.nothing().to_json()):
        assert Sketch.from_json(each).rows == each["rows"]
    with pytest.raises((ValueError, KeyError, TypeError)):
        Sketch.from_json({**json_value, **damage})
    with pytest.raises(KeyError):
        Sketch.from_json({"rows": json_value["rows"], "least": json_value["least"]})


@pytest.mark.parametrize(
    ("own", "other", "tells"),
    [(10, 4_000, True), (10, 50_000, False), (1_000, 50_000, True), (50_000, 10, True)],
)
def test_a_drop_beside_one_that_is_much_larger_tells_nothing(own, other, tells):
    """Wholly in it as it is: none of its few hashes need be among the least of the other."""
    assert len(HASHES) >= other
    small, large = of(HASHES[:own]), of(HASHES[:other])
    assert small.tells_of(large) == tells
    assert Sketch.nothing().tells_of(large)


def test_nothing_shares_nothing():
    assert Sketch.nothing().shared_with(of(HASHES)) == (0.0, 0.0)
    assert of(HASHES).shared_with(Sketch.nothing())[0] == 0


def at(*sixteenths: int) -> np.ndarray:
    """Hashes as parts of their range."""
    return np.array(sixteenths, np.uint64) << np.uint64(60)


def test_the_number_of_persons_is_told_by_the_last_hash_that_is_kept(monkeypatch):
    monkeypatch.setattr(sketch, "SIZE", 4)
    assert of(at(1, 2, 3, 5, 6, 7)).persons == 10  # 3 of them in 5/16 of the range: 9.6
    assert of(at(1, 2, 15)).persons == 3


@pytest.mark.parametrize(("few", "tells"), [(ENOUGH, True), (ENOUGH - 1, False)])
def test_as_many_hashes_as_are_enough_are(monkeypatch, few, tells):
    """The last one that can be compared is the bound itself."""
    assert ENOUGH == 30
    monkeypatch.setattr(sketch, "SIZE", 64)
    large = of(np.arange(100, 170, dtype=np.uint64))
    assert large.least[-1] == 163
    small = of(np.arange(164 - few, 167, dtype=np.uint64))
    assert small.tells_of(large) == tells
    assert small.shared_with(large)[0] == 1


def test_the_greatest_hash_is_one_like_others():
    greatest = of(np.array([(1 << 64) - 1], np.uint64))
    assert greatest.shared_with(greatest) == (1, 0)


def test_as_many_rows_of_the_same_people_dealt_otherwise_are_another_drop():
    one, other = (Sketch.of(at(1, 2), np.array(counts)) for counts in ([2, 1], [1, 2]))
    assert not one.is_drop_of(other)
    assert one.is_drop_of(Sketch.of(at(1), np.array([1])).merged(of(at(2, 1))))
    assert not one.is_drop_of(of(at(1, 2)))


def test_a_sketch_does_not_change():
    with pytest.raises(FrozenInstanceError):
        Sketch.nothing().rows = 1
