"""What labels of ladders and of columns with an order stand for, as a reader takes them."""

from __future__ import annotations

import pytest

from mondrian_ops.verify.spans import codes_of, days_of, ends_in_order, key_of


@pytest.mark.parametrize(
    ("label", "first", "last"),
    [
        ("2020s", "2020-01-01", "2029-12-31"),
        ("2024", "2024-01-01", "2024-12-31"),
        ("2024-Q1", "2024-01-01", "2024-03-31"),
        ("2024-Q2", "2024-04-01", "2024-06-30"),
        ("2024-Q3", "2024-07-01", "2024-09-30"),
        ("2024-Q4", "2024-10-01", "2024-12-31"),
        ("2024-02", "2024-02-01", "2024-02-29"),
        ("2023-02", "2023-02-01", "2023-02-28"),
        ("2024-12", "2024-12-01", "2024-12-31"),
        ("2024-W01", "2024-01-01", "2024-01-07"),
        ("2024-W53", "2024-12-30", "2025-01-05"),
        ("2024-05-01", "2024-05-01", "2024-05-01"),
    ],
)
def test_the_days_of_a_unit_of_the_calendar(label: str, first: str, last: str) -> None:
    if label == "2024-W53":  # a year of 52 weeks
        with pytest.raises(ValueError):
            days_of(label)
        return
    assert days_of(label) == (first, last)


@pytest.mark.parametrize("label", ["", "*", "20", "2024-Q5", "2024-13", "2024-5", "in 2024"])
def test_another_text_is_no_unit_of_the_calendar(label: str) -> None:
    with pytest.raises(ValueError):
        days_of(label)


@pytest.mark.parametrize(
    ("label", "within", "outside"),
    [
        ("E10-E14", ["E10", "E109", "E14", "E149"], ["E09", "E099", "E15"]),
        ("E11", ["E11", "E110", "E119"], ["E10", "E109", "E12"]),
        ("E11.9", ["E119"], ["E11", "E118", "E1190"]),
    ],
)
def test_the_codes_of_a_label(label: str, within: list[str], outside: list[str]) -> None:
    first, last = codes_of(label)
    assert all(first <= code <= last for code in within)
    assert not any(first <= code <= last for code in outside)


def test_by_what_a_value_is_compared_with_such_labels() -> None:
    assert key_of("2024-05-01 12:30:00", "calendar") == "2024-05-01"
    assert key_of("E11.9", "icd10") == "E119"


def test_the_ends_of_categories_in_order() -> None:
    assert ends_in_order("[low, medium]") == ("low", "medium")
    for label in ("low", "[low", "low]"):
        assert ends_in_order(label) == (label, label)
