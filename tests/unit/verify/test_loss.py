"""How much the rows of a part lose, by the labels that they are published under."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from mondrian_ops.verify.loss import (
    LOSS_STEPS,
    _weights,
    columns_of,
    losses_of_part,
    nothing_lost,
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


def test_bounds_are_one_label():
    names = ["age_min", "age_max", "age_hidden"]
    assert columns_of("age", names) == names
    assert columns_of("age", names[:2]) == names[:2]  # of an older version
    assert columns_of("age", ["age", *names]) == ["age"]
    for type_, expected in ((pa.bool_(), names), (pa.string(), names[:2])):
        schema = pa.schema([*((name, pa.int64()) for name in names[:2]), (names[2], type_)])
        assert columns_of("age", schema) == expected

    class Bounds(Labels):
        def losses(self, labels: Sequence[pa.Array]) -> Losses:
            found = [*zip(*(each.to_pylist() for each in labels), strict=True)]
            known = {("0.5", 7, False): 0.25, ("*", 9, False): 0.5, (None, None, False): 0.0}
            known |= {(None, None, True): 1.0}
            assert set(found) == set(known)
            ncp = np.array([known[each] for each in found])
            return Losses(ncp, ncp, ncp == 0, ncp == 1, ncp, ncp)

    values = dict(zip(names, map(pa.array, (["0.5", "*"], [7, 9], [False, True])), strict=True))
    codes = [np.array(each) for each in ([1, 2, 0, 0], [1, 2, 0, 0], [1, 1, 1, 2])]
    rows = np.array([4, 8, 16, 32])
    (figures,) = losses_of_part(
        {"age": Bounds("age")}, values, dict(zip(names, codes, strict=True)), rows
    ).values()
    assert (figures["NCP"], figures["rows_exact"], figures["rows_star"]) == (37.0, 16, 32)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int64])
def test_the_rows_of_each_key_are_added_up(kind: type[np.integer]) -> None:
    rows = np.array([5, 1, 2])
    for keys in ([2, 0, 2], [200, 0, 200]):  # as many numbers as rows, and some far apart
        used, weights = _weights(np.array(keys, kind), rows)
        assert (used.tolist(), weights.tolist()) == ([0, keys[0]], [1, 7])
