"""Sentences on columns that are published as they are."""

from __future__ import annotations

from typing import Any

import pytest

from mondrian_ops.data.finding import Finding
from mondrian_ops.report.raw_columns import disclosures, singled_out
from mondrian_ops.verify.singling_out import SingledOut


def sentences(*findings: Finding) -> list[str]:
    return disclosures([each.to_dict() for each in findings])


def figures(*of_columns: tuple[str | None, float]) -> list[dict[str, Any]]:
    return [SingledOut(name, 5000, 2 * found, found).to_dict() for name, found in of_columns]


def test_nothing_found_says_nothing() -> None:
    assert sentences() == []
    assert singled_out([]) == ""


def test_a_column_is_named_once_before_the_classes_are_known_and_once_after() -> None:
    before, after = sentences(
        Finding("log", "alone", 1.0, fewer_than=2),
        Finding("log", "order", 0.99, "age"),
        Finding("log", "jointly", 0.71),
    )
    assert before.count("'log'") == 1 and "gives away 'age'" in before
    assert after == (
        "'log' stays as it is and singles out 71 % of the rows in their classes (predicted from "
        "all quasi-identifiers together); make it a quasi-identifier or an identifier, or leave it "
        "out"
    )


def test_all_columns_together_have_no_name() -> None:
    (sentence,) = sentences(Finding("", "jointly", 0.12))
    assert sentence.startswith(
        "what stays as it is, all columns of it together, singles out 12 % of the rows in their "
    )


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ([("a", 0.0)], "finds none"),
        ([("a", 0.25), ("b", 0.0)], "finds 25.0 % by 'a'"),
        ([("a", 0.1), ("b", 0.2), (None, 0.3)],
         "finds 30.0 % by all such columns together, 20.0 % by 'b', 10.0 % by 'a'"),
        ([("a", 0.1), ("b", 0.2), ("c", 0.3), ("d", 0.4)],
         "finds 40.0 % by 'd', 30.0 % by 'c', 20.0 % by 'b'"),
    ],
)  # fmt: skip
def test_the_columns_that_find_the_most_come_first(found: list[Any], says: str) -> None:
    text = singled_out(figures(*found))
    assert text.startswith("of 5,000 rows, an attacker who predicts the columns")
    assert text.endswith(says)
