"""What policies ask of an inspection: the strictest of all of them."""

from __future__ import annotations

import pytest

from mondrian_ops.inspection.floor import Floor
from mondrian_ops.job.policy import Policy


def floor(*policies: dict) -> Floor:
    return Floor([
        Policy.read({"name": str(at), "inputs": ["/srv"], **each}, "policy")
        for at, each in enumerate(policies)
    ])  # fmt: skip


def test_without_policies_five_people_and_two_values_are_asked():
    assert (Floor().k, Floor().l, Floor().role("age"), Floor().is_entity_id("")) == (
        5, 2, None, False,
    )  # fmt: skip


def test_the_strictest_of_several_holds():
    both = floor({"min_k": 50, "min_l": 3}, {"min_k": 20, "min_l": 4}, {})
    assert (both.k, both.l) == (50, 4)
    assert floor({"min_k": 2, "min_l": 2}).k == 5


@pytest.mark.parametrize(
    ("policies", "role"),
    [
        ([{"roles": {"ward*": "sensitive"}}], "sensitive"),
        ([{"roles": {"ward": "any"}}], None),
        ([{"roles": {"ward": "sensitive"}}, {"roles": {"WARD": "quasi_identifier"}}], "identifier"),
        ([{"roles": {"age": "sensitive"}, "others": "drop"}], "left_out"),
        ([{"roles": {"ward": "any"}, "others": "drop"}], None),
        ([{"roles": {"ward": "sensitive"}}, {"roles": {"a": "any"}, "others": "drop"}], "left_out"),
        ([{"min_l": 2, "l_width": {"ward": "5"}}], "sensitive"),
    ],
)
def test_roles_of_policies(policies, role):
    assert floor(*policies).role("ward") == role


def test_the_column_that_tells_people_apart():
    assert floor({"entity_id": "Patient"}).is_entity_id(" patient")
    assert not floor({}, {"entity_id": "Patient"}).is_entity_id("ward")
