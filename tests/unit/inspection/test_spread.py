"""Where numbers and dates lie, and what may stand for a missing value."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from mondrian_ops.inspection.spread import missing_texts, spread
from unknown_tables import column

AGES = [20 + number % 61 for number in range(610)]


@pytest.mark.parametrize("code", [9999, -1, 999, -99])
def test_a_code_for_missing_values_is_named(code):
    found = spread(column([*AGES, *[code] * 6]), 5)
    assert found.sentinels == [str(code)]
    assert found.mostly == ("22", "78")
    assert found.outliers == 0


def test_a_code_of_few_people_is_not_named():
    assert spread(column([*AGES, *[9999] * 4]), 5).sentinels == []


def test_two_codes_are_named_even_if_they_are_a_tenth_of_the_rows():
    found = spread(column([*AGES, *[9999] * 40, *[-1] * 40]), 5)
    assert sorted(found.sentinels) == ["-1", "9999"]


def test_values_far_from_the_others_are_counted():
    assert spread(column([*AGES, 5000, 7000]), 5).outliers == pytest.approx(2 / 612)
    assert spread(column(AGES), 5).outliers == 0


def test_dates_have_months_and_their_own_codes():
    days = [date(2020, 1, 1) + timedelta(days=number) for number in range(700)]
    found = spread(column([*days, *[date(1900, 1, 1)] * 5]), 5)
    assert found.sentinels == ["1900-01-01"]
    assert found.mostly == ("2020-02", "2021-10")


@pytest.mark.parametrize("values", [[1, 2], [1.0, float("inf"), 3.0], AGES[:61], ["a", "b", "c"]])
def test_few_rows_few_values_and_infinite_ones_show_no_range(values):
    assert spread(column(values), 5).mostly is None


def test_texts_for_missing_values_belong_to_five_people():
    texts = [*["?"] * 5, *["N/A"] * 4, *["blue"] * 9]
    assert missing_texts(column(texts), 5) == ["?"]
    assert missing_texts(column([1, 2]), 5) == []
