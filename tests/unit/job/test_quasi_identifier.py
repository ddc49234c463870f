"""The forms of a quasi-identifier, and what is none."""

from __future__ import annotations

import pytest

from jobs import minimal, one
from mondrian_ops.errors import JobError
from mondrian_ops.job import limits
from mondrian_ops.job.job import Job
from mondrian_ops.job.quasi_identifier import QuasiIdentifier


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("age", QuasiIdentifier("age")),
        ("zip=prefix", QuasiIdentifier("zip", "prefix")),
        (" zip = prefix ", QuasiIdentifier("zip", "prefix")),
        (
            "native-country=hierarchy:countries.csv",
            QuasiIdentifier("native-country", "hierarchy", "countries.csv"),
        ),
        (
            "x=hierarchy:s3://bucket/day=1/x.csv",
            QuasiIdentifier("x", "hierarchy", "s3://bucket/day=1/x.csv"),
        ),
        ("age=ladder:5/10/20", QuasiIdentifier("age", "hierarchy", ladder=(5, 10, 20))),
        (
            "age=ladder:5/10/20@16",
            QuasiIdentifier("age", "hierarchy", ladder=(5, 10, 20), origin=16),
        ),
        ("age=grid:5", QuasiIdentifier("age", "interval", grid=5)),
        ("t=grid:0.5@-40", QuasiIdentifier("t", "interval", grid=0.5, origin=-40)),
        ({"name": "a=b", "generalization": "set"}, QuasiIdentifier("a=b", "set")),
        ({"name": "c", "hierarchy": "c.csv"}, QuasiIdentifier("c", "hierarchy", "c.csv")),
        (
            {"name": "age", "generalization": "hierarchy", "ladder": [5, 10, 20], "origin": 16},
            QuasiIdentifier("age", "hierarchy", ladder=(5, 10, 20), origin=16),
        ),
        ("d=ladder:month/year", QuasiIdentifier("d", "hierarchy", ladder=("month", "year"))),
        ("pay=order:low/high", QuasiIdentifier("pay", "interval", order=("low", "high"))),
        ("zip=ladder:postal", QuasiIdentifier("zip", "prefix", ladder=("postal",))),
        ("zip=prefix:5/3", QuasiIdentifier("zip", "prefix", ladder=(5, 3))),
        ({"name": "w", "ladder": [0.1, 0.3]}, QuasiIdentifier("w", "hierarchy", ladder=(0.1, 0.3))),
        ({"name": "age", "generalization": None}, QuasiIdentifier("age")),
    ],
)
def test_forms_of_a_quasi_identifier(item: object, expected: QuasiIdentifier) -> None:
    assert one(item) == expected
    assert one(expected.to_dict()) == expected


def test_a_column_may_have_an_empty_name() -> None:
    for item in ("", {"name": ""}):
        assert one(item) == QuasiIdentifier("")
        assert one(QuasiIdentifier("").to_dict()) == QuasiIdentifier("")
    assert one("=prefix") == QuasiIdentifier("", "prefix")
    assert one(" = hierarchy:c.csv") == QuasiIdentifier("", "hierarchy", "c.csv")
    for role in ("identifiers", "sensitive"):
        job = Job.from_dict(minimal(**{role: ["", "b"]}))
        assert getattr(job, role) == ("", "b")
        assert Job.from_dict(job.to_dict()) == job
        with pytest.raises(JobError, match=rf"{role}\[1\]: column '' is listed twice"):
            Job.from_dict(minimal(**{role: ["", ""]}))
    with pytest.raises(JobError, match=r"column '' is listed already, at identifiers\[0\]"):
        Job.from_dict(minimal(identifiers=[""], quasi_identifiers=["=set"]))


def test_a_ladder_has_a_limit() -> None:
    with limits.changed(hierarchy_levels=3):
        assert one({"name": "a", "ladder": [1, 2, 4]})
        with pytest.raises(
            JobError, match=r"ladder: lists 4 entries; the limit 'hierarchy_levels'"
        ):
            one({"name": "a", "ladder": [1, 2, 4, 8]})


WRONG_ATTRIBUTES = [
    (7, "quasi_identifiers[0]: must be a mapping", []),
    (None, "quasi_identifiers[0]: must be a mapping", []),
    ({}, "quasi_identifiers[0].name: is required", []),
    ({"name": 7}, "quasi_identifiers[0].name: must be text, not 7", []),
    ("zip=", "quasi_identifiers[0]: 'zip=' is no short form", ["NAME=prefix"]),
    ("zip=prefx", "quasi_identifiers[0]: 'zip=prefx'", ["did you mean 'prefix'?"]),
    ("zip=hierarchy", "quasi_identifiers[0].hierarchy: is required", ["name a file"]),
    ("zip=hierarchy:", "quasi_identifiers[0]: 'zip=hierarchy:' is no short form", ["FILE"]),
    ("a=order:x/y/x", "quasi_identifiers[0].order[2]: is listed twice", []),
    ("a=order:x/[y", "quasi_identifiers[0].order[1]: '[y' could be read as an interval", []),
    ("a=order:x/*", "quasi_identifiers[0].order[1]: '*' could be read", ["hierarchy"]),
    (
        {"name": "a", "order": ["x", "y"], "grid": 5},
        "quasi_identifiers[0].grid: is for numbers and dates",
        [],
    ),
    (
        {"name": "a", "order": ["x", "y"], "generalization": "set"},
        "quasi_identifiers[0].order: applies only to generalization: interval, not set",
        [],
    ),
    ("zip=prefix:2/3", "quasi_identifiers[0].ladder: of a prefix is of whole", ["longest first"]),
    ("zip=prefix:ip/2", "quasi_identifiers[0].ladder: ip stands alone", []),
    ("zip=prefix:2/ip", "quasi_identifiers[0].ladder: of a prefix is of whole", []),
    (
        "d=ladder:mont",
        "quasi_identifiers[0].ladder[0]: must be a width above 0 or one of `day`",
        ["mont"],
    ),
    ("d=ladder:year/month", "quasi_identifiers[0].ladder: names units of the", ["month, quarter"]),
    ("d=ladder:day/week/month", "quasi_identifiers[0].ladder: weeks are no parts of a month", []),
    ("d=ladder:calendar/year", "quasi_identifiers[0].ladder: calendar stands alone", []),
    ("d=ladder:month/icd10", "quasi_identifiers[0].ladder: icd10 stands alone", []),
    ("d=ladder:month/5", "quasi_identifiers[0].ladder: names units of the calendar", []),
    ("d=ladder:5/month", "quasi_identifiers[0].ladder: is of widths or of names", []),
    ("d=ladder:month@3", "quasi_identifiers[0].origin: applies only to a ladder of widths", []),
    ("d=prefix:icd10", "quasi_identifiers[0].ladder: icd10 needs generalization: hierarchy", []),
    (
        {"name": "d", "generalization": "hierarchy", "ladder": ["postal"]},
        "quasi_identifiers[0].ladder: postal needs generalization: prefix",
        [],
    ),
    ("age=ladder:5/x", "quasi_identifiers[0].ladder[1]: must be a width above 0", ["not 'x'"]),
    ("age=grid:x", "quasi_identifiers[0].grid: must be a step above 0 or `auto`, not 'x'", []),
    ("age=grid:5@x", "quasi_identifiers[0].origin: must be a number, not 'x'", []),
    ({"name": "a", "generalisation": "set"}, "quasi_identifiers[0].generalisation", ["mean"]),
    ({"name": "a", "generalization": "sett"}, "quasi_identifiers[0].generalization", ["'set'?"]),
    (
        {"name": "a", "generalization": "hierarchy"},
        "quasi_identifiers[0].hierarchy: is required",
        ["'a'", "ladder"],
    ),
    (
        {"name": "a", "generalization": "set", "hierarchy": "a.csv"},
        "quasi_identifiers[0].hierarchy: applies only to generalization: hierarchy, not set",
        [],
    ),
    (
        {"name": "a", "hierarchy": "a.csv", "ladder": [5]},
        "quasi_identifiers[0].ladder: replaces a hierarchy file",
        [],
    ),
    (
        {"name": "a", "generalization": "interval", "ladder": [5]},
        "quasi_identifiers[0].ladder: applies only to generalization: hierarchy or prefix",
        ["not interval"],
    ),
    ({"name": "a", "ladder": [5, 12]}, "quasi_identifiers[0].ladder[1]: 12 is not a", ["nest"]),
    ({"name": "a", "ladder": [0.1, 0.25]}, "quasi_identifiers[0].ladder[1]: 0.25 is not", []),
    ({"name": "a", "ladder": [5, 5]}, "quasi_identifiers[0].ladder[1]: 5 is not", []),
    ({"name": "a", "ladder": [10, 5]}, "quasi_identifiers[0].ladder[1]: 5 is not", []),
    ({"name": "a", "ladder": [0, 5]}, "quasi_identifiers[0].ladder[0]: must be", ["not 0"]),
    ({"name": "a", "ladder": 5}, "quasi_identifiers[0].ladder: must be a list", []),
    (
        {"name": "a", "generalization": "set", "grid": 5},
        "quasi_identifiers[0].grid: applies only to generalization: interval, not set",
        [],
    ),
    (
        {"name": "a", "grid": 0},
        "quasi_identifiers[0].grid: must be a step above 0 or `auto`, not 0",
        [],
    ),
    ({"name": "a", "origin": 5}, "quasi_identifiers[0].origin: applies only to a ladder", ["grid"]),
]


@pytest.mark.parametrize(("item", "start", "parts"), WRONG_ATTRIBUTES)
def test_a_wrong_quasi_identifier_is_refused(item: object, start: str, parts: list[str]) -> None:
    with pytest.raises(JobError) as caught:
        one(item)
    message = str(caught.value)
    assert message.startswith(start), message
    assert all(part in message for part in parts), message
