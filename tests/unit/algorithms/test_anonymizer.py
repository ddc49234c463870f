"""What a fragment's summary tells of the loss of its attributes."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_ops.algorithms.anonymizer import LOSS_STEPS, Counterfeits, _summary
from mondrian_ops.core.generalization import Classes, Published


def published(ncp: list[float], exact: list[int] = (), star: list[int] = ()) -> Published:
    at = np.arange(len(ncp))
    return Published({}, np.array(ncp), np.array(ncp), np.isin(at, exact), np.isin(at, star))


def classes_of(sizes: list[int]) -> Classes:
    starts = np.cumsum([0, *sizes[:-1]])
    return Classes(np.arange(sum(sizes), dtype=np.int32), starts)


def test_every_row_is_exact_hidden_or_told_by_how_much_it_loses():
    losses = [0.0, 0.001, 0.02, 0.1 + 1e-12, 0.100001, 0.9, 1.0, 1.0]
    attributes = {"age": published(losses, exact=[0], star=[7]), "sex": published([0.0] * 8)}
    sizes = [2, 3, 5, 7, 11, 13, 17, 19]
    figures = _summary(classes_of(sizes), attributes)["attributes"]["age"]
    assert (figures["rows_exact"], figures["rows_star"]) == (2, 19)
    assert figures["rows_by_loss"] == [
        [0.02, 8], [0.05, 0], [0.1, 7], [0.2, 11], [0.5, 0], [1.0, 30],
    ]  # fmt: skip
    assert (
        figures["rows_exact"] + figures["rows_star"] + sum(n for _, n in figures["rows_by_loss"])
        == 77
    )


@pytest.mark.parametrize("losses", [[], [0.0], [1.0 + 1e-6]])
def test_a_fragment_without_such_rows_has_all_steps(losses):
    sizes = [4] * len(losses)
    figures = _summary(classes_of(sizes), {"age": published(losses)})["attributes"]["age"]
    assert [step for step, _ in figures["rows_by_loss"]] == list(LOSS_STEPS)
    assert sum(rows for _, rows in figures["rows_by_loss"]) == sum(sizes)


def test_counterfeits_are_rows_of_their_classes():
    values = np.array([9, 4, -1, 4, 9], np.int32)
    made_up = Counterfeits.of(np.array([[0, 4], [2, 9], [2, 9]]), values)
    kept = made_up.where(np.array([True, False, True]))
    assert kept.classes.tolist() == [0, 1, 1]
    assert values[kept.rows].tolist() == [4, 9, 9]
    classes = kept.added(Classes(np.array([3, 2, 4], np.int32), np.array([0, 2])), 10)
    assert classes.index.tolist() == [3, 2, 10, 4, 11, 12]
    assert classes.starts.tolist() == [0, 3]
