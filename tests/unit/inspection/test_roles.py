"""Proposed roles and generalizations."""

from __future__ import annotations

from datetime import date

import pytest

from mondrian_ops.inspection.kinds import kind_of
from mondrian_ops.inspection.roles import Proposal, keys_of_people, persons, proposed
from unknown_tables import column

MANY = [f"text {number}" for number in range(200)]
FEW = ["red", "green", "blue", "grey"] * 50


def role(values, name="x", may_list=True) -> Proposal:
    found = column(values, name)
    return proposed(found, kind_of(found), may_list=may_list)


@pytest.mark.parametrize(
    ("name", "values", "wanted"),
    [
        ("FirstName", FEW, "identifier"),
        ("company_name", FEW, "undecided"),
        ("email", FEW, "identifier"),
        ("has_email", ["yes", "no"] * 100, "undecided"),
        ("street", MANY, "identifier"),
        ("row", list(range(200)), "identifier"),
        ("order_no", [7 * number for number in range(200)], "identifier"),
        ("weight_g", [7.5 * number for number in range(200)], "quasi_identifier"),
        ("age", [20, 30] * 100, "quasi_identifier"),
        ("homeTown", FEW, "quasi_identifier"),
        ("annual_income", [20, 30] * 100, "sensitive"),
        ("smoker", ["yes", "no"] * 100, "sensitive"),
        ("hiv", ["no"] * 199 + ["yes"], "undecided"),
        ("x", ["yes"] * 200, "left_out"),
        ("x", [None] * 200, "left_out"),
        ("x", MANY, "identifier"),
        ("x", ["Ann Smith", "Bo Li", "Cy P. Orr"], "identifier"),
        ("x", [f"{number} words make a text of some length" for number in range(50)], "left_out"),
        ("x", FEW, "undecided"),
        ("x", [1, 2] * 100, "undecided"),
        ("x", ["single", "married"] * 100, "quasi_identifier"),
        ("x", ["31.12.1990", "1.2.1991"] * 100, "left_out"),
    ],
)
def test_names_values_and_counts_say_a_role(name, values, wanted):
    assert role(values, name).role == wanted


@pytest.mark.parametrize(
    ("name", "values", "how"),
    [
        ("age", [20, 30] * 100, ""),
        ("zip", [94103, 10001] * 100, "ladder:postal"),
        ("ip", ["10.0.0.1", "10.0.0.2"] * 100, "ladder:ip"),
        ("birth_date", [date(1990, 1, 1), date(1991, 1, 1)] * 100, "ladder:year/decade"),
        ("visit", [date(1990, 1, 1), date(1991, 1, 1)] * 100, "ladder:month/quarter/year"),
        ("education", ["Low", "high", "medium"] * 100, "order:Low/medium/high"),
        ("age", ["18-25", "26-40", "65+"] * 100, "order:18-25/26-40/65+"),
        ("region", [f"R{number % 30:02}" for number in range(300)], "prefix"),
        ("sex", ["m", "f"] * 100, ""),
    ],
)
def test_quasi_identifiers_have_a_generalization(name, values, how):
    assert role(values, name) == Proposal("quasi_identifier", role(values, name).reason, how)


def test_an_order_that_may_not_be_shown_is_not_proposed():
    texts = ["low", "high", "medium"] * 100
    assert role(texts, "education", may_list=False).generalization == ""


def test_values_that_cannot_be_generalized_are_left_out():
    assert role([b"a", b"b"] * 100, "city").role == "left_out"


def told_apart(*columns, sampled=False):
    found = persons(columns, sampled=sampled)
    return found and found.name


def test_persons_are_told_apart_by_a_column_named_so_with_several_rows_each():
    thrice = [number // 3 for number in range(300)]
    often = [number % 30 for number in range(3000)]
    assert told_apart(column(thrice, "shop_id"), column(thrice, "patientId")) == "patientId"
    assert told_apart(column(often, "MRN")) == "MRN"
    assert told_apart(column(thrice, "id")) == "id"
    assert told_apart(column(thrice, "shop_id")) is None
    assert told_apart(column(["yes", "no"] * 100, "citizen")) is None


def test_persons_of_a_sample_may_have_rows_that_were_not_drawn():
    once = column(list(range(300)), "patient_id")
    assert told_apart(once) is None
    assert told_apart(once, sampled=True) == "patient_id"


def test_whose_values_are_one_persons():
    thrice = [number // 3 for number in range(300)]
    mails = [f"p{number}@mail.example" for number in thrice]
    columns = [
        column(thrice, "pid"),
        column(mails, "x"),
        column(thrice, "shop"),
        column(mails[::3]),
    ]
    assert keys_of_people(columns) == columns[:2]
