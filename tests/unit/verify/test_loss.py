"""How much the rows of a part lose, by the labels that they are published under."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from mondrian_ops.verify.loss import (
    LOSS_STEPS,
    columns_of,
    losses_of_part,
    nothing_lost,
    with_hidden,
)
from mondrian_ops.verify.published_labels import Losses, PublishedLabels


class Labels(PublishedLabels):
    """Labels that lose what they say; "=" loses nothing, "*" all."""

    def covers(self, *_: object) -> np.ndarray:
        raise AssertionError

    def losses(self, labels: Sequence[pa.Array]) -> Losses:
        texts = labels[0].to_pylist()
        ncp = [{"=": 0.0, "*": 1.0}.get(text) if text in "=*" else float(text) for text in texts]
        is_ = [np.array([text == mark for text in texts], bool) for mark in "=*"]
        lost = np.array(ncp, float)
        return Losses(lost, lost / 2, *is_, lost / 4, lost / 8)


def measured(losses: list[str], rows: list[int]) -> dict:
    values = pa.array(losses, pa.string()).unique()
    codes = np.array([values.to_pylist().index(each) + 1 for each in losses], np.uint8)
    labels = {"age": Labels("age")}
    return losses_of_part(labels, {"age": values}, {"age": codes}, np.array(rows))["age"]


def test_every_row_is_exact_hidden_or_told_by_how_much_it_loses():
    losses = ["=", "0.001", "0.02", "0.1000000000001", "0.100001", "0.9", "1.0", "*", "="]
    figures = measured(losses, [1, 3, 5, 7, 11, 13, 17, 19, 1])
    assert (figures["rows_exact"], figures["rows_star"]) == (2, 19)
    assert figures["rows_by_loss"] == [
        [0.02, 8], [0.05, 0], [0.1, 7], [0.2, 11], [0.5, 0], [1.0, 30],
    ]  # fmt: skip
    assert figures["NCP"] == pytest.approx(0.003 + 0.1 + 0.7 + 1.100011 + 11.7 + 17 + 19)
    assert figures["LM"] == pytest.approx(figures["NCP"] / 2)
    assert figures["NCP_robust"] == pytest.approx(figures["NCP"] / 4)
    assert figures["information"] == pytest.approx(figures["NCP"] / 8)


@pytest.mark.parametrize("losses", [[], ["0.0"], ["1.0000001"]])
def test_a_part_without_such_rows_has_all_steps(losses):
    figures = measured(losses, [4] * len(losses))
    assert [step for step, _ in figures["rows_by_loss"]] == list(LOSS_STEPS)
    assert sum(rows for _, rows in figures["rows_by_loss"]) == 4 * len(losses)
    assert (figures == nothing_lost()) is (not losses)


def test_two_bounds_are_one_label_and_those_that_hide_a_value_lose_all():
    labels = {"age": Labels("age")}
    low, high = pa.array(["0.5", "*"]), pa.array([7, 9])
    codes = {"age_min": np.array([1, 2, 0, 1]), "age_max": np.array([1, 2, 0, 2])}
    assert columns_of("age", ["age_min", "age_max"]) == ["age_min", "age_max"]
    assert columns_of("age", ["age", "age_max"]) == ["age"]

    class Bounds(Labels):
        def losses(self, labels: Sequence[pa.Array]) -> Losses:
            pairs = set(zip(*(each.to_pylist() for each in labels), strict=True))
            assert pairs == {("0.5", 7), ("*", 9), (None, None), ("0.5", 9)}
            nothing = labels[0].is_null().to_numpy(zero_copy_only=False)
            ncp = np.where(nothing, 1.0, 0.25)
            return Losses(ncp, ncp, np.zeros(4, bool), nothing, ncp, ncp)

    labels = {"age": Bounds("age")}
    values = {"age_min": low, "age_max": high}
    (figures,) = losses_of_part(labels, values, codes, np.array([4, 8, 16, 32])).values()
    assert (figures["NCP"], figures["rows_exact"], figures["rows_star"]) == (11.0, 16, 0)
    hidden = with_hidden(figures, 5)
    assert (hidden["NCP"], hidden["LM"]) == (16.0, 16.0)
    assert (hidden["NCP_robust"], hidden["information"]) == (16.0, 16.0)
    assert (hidden["rows_exact"], hidden["rows_star"]) == (11, 5)
    assert hidden["rows_by_loss"] == figures["rows_by_loss"]
