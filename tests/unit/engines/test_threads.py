"""What threads hold in memory together does not grow with the cores that they see."""

from __future__ import annotations

import threading
import weakref

import pytest

from mondrian_ops.engines import threads


@pytest.mark.parametrize("cores", [2, 3, 8, 64])
def test_batches_in_work_have_the_same_rows_together(monkeypatch, cores):
    monkeypatch.setattr(threads, "available_cores", lambda: cores)
    held = most = 0

    def items():
        nonlocal held, most
        for _ in range(100):
            held += threads.shared_rows(120_000)
            most = max(most, held)
            yield threads.shared_rows(120_000)

    for rows in threads.in_threads(lambda rows: rows, items()):
        held -= rows
    assert 350_000 <= most <= 360_000


@pytest.mark.parametrize(
    ("cores", "rows", "pieces"),
    [(1, 10, 1), (2, 10_000_000, 2), (64, 10_000_000, 2), (64, 100_000, 5), (64, 10, 64)],
)
def test_two_large_pieces_are_in_work_or_several_small_ones(monkeypatch, cores, rows, pieces):
    monkeypatch.setattr(threads, "available_cores", lambda: cores)
    assert threads.at_once(rows) == pieces


@pytest.mark.parametrize(("items", "here"), [((), []), ("a", [True]), ("abc", [False] * 3)])
def test_a_single_item_needs_no_other_thread(items, here):
    def is_here(_item: str) -> bool:
        return threading.current_thread() is threading.main_thread()

    assert list(threads.in_threads(is_here, iter(items))) == here


def test_an_item_is_held_no_longer_than_it_is_worked_on():
    class Batch:
        pass

    batches = [Batch() for _ in range(20)]
    alive = [weakref.ref(each) for each in batches]

    def items():
        while batches:
            yield batches.pop(0)

    for number, _ in enumerate(threads.in_threads(lambda _batch: None, items(), 2)):
        if number == 10:
            assert [each() for each in alive[:2]] == [None, None]
