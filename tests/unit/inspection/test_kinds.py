"""Kinds of values, by their texts and by the column's name."""

from __future__ import annotations

import pytest

from mondrian_ops.inspection import kinds
from mondrian_ops.inspection.kinds import kind_of
from unknown_tables import column

EXAMPLES = {
    kinds.EMAIL: ["a.b@example.org", "x@y.de"],
    kinds.URL: ["https://example.org/a", "www.example.org"],
    kinds.UUID: ["123e4567-e89b-12d3-a456-426614174000"],
    kinds.HASH: ["d41d8cd98f00b204e9800998ecf8427e"],
    kinds.MAC: ["00:1A:2b:3c:4d:5e"],
    kinds.IP: ["192.168.1.7", "2001:db8:1:2::1"],
    kinds.IBAN: ["DE89370400440532013000", "GB29 NWBK 6016 1331 9268 19"],
    kinds.CARD: ["4111 1111 1111 1111", "5500-0000-0000-0004"],
    kinds.NATIONAL: ["078-05-1120"],
    kinds.DATE_TEXT: ["31.12.1990", "1/2/90"],
    kinds.PHONE: ["+49 170 1234567", "(555) 555-1234"],
    kinds.ICD10: ["E11.9", "J45"],
    kinds.POSTAL: ["SW1A 1AA", "M1 1AE"],
}


@pytest.mark.parametrize(("kind", "texts"), EXAMPLES.items())
def test_texts_say_what_they_are(kind, texts):
    assert kind_of(column(texts)) == kind


@pytest.mark.parametrize(
    "texts",
    [["RSSMRA85T10A562S"], ["AB 12 34 56 C"], ["12345678Z"], ["86095742719"]],
    ids=["Italy", "United Kingdom", "Spain", "Germany"],
)
def test_national_numbers_of_other_countries(texts):
    assert kind_of(column(texts)) == kinds.NATIONAL


@pytest.mark.parametrize(
    "texts",
    [["DE89370400440532013001"], ["4111 1111 1111 1112"], ["12345678A"], ["86095742718"]],
    ids=["IBAN", "card", "Spain", "Germany"],
)
def test_a_wrong_check_digit_is_no_number_of_a_person(texts):
    assert kind_of(column(texts)) is None


@pytest.mark.parametrize("texts", [["10:30:00"], ["blue"], ["12"], ["a.b"], ["Type B12 pump"]])
def test_other_texts_have_no_kind(texts):
    assert kind_of(column(texts)) is None


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("zip", [94103, 10001], kinds.POSTAL),
        ("HomePhone", ["0301234567"], kinds.PHONE),
        ("amount", [94103, 10001], None),
    ],
)
def test_numbers_need_a_name(name, values, kind):
    assert kind_of(column(values, name)) == kind


def test_one_odd_text_in_ten_does_not_hide_a_kind():
    texts = ["a@b.org"] * 9
    assert kind_of(column([*texts, "none"])) == kinds.EMAIL
    assert kind_of(column([*texts[:8], "none", "unknown"])) is None


def test_missing_values_have_no_kind():
    assert kind_of(column([None, None])) is None
    assert kind_of(column(["a@b.org", None, None])) == kinds.EMAIL
