"""Widths of similar values, as a job says them."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from mondrian_ops.errors import JobError
from mondrian_ops.job.job import Job
from mondrian_ops.job.widths import Width, as_width, widths_of


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("10 %", (0.1, "share", "10 %")),
        (" 2.5% ", (0.025, "share", "2.5 %")),
        ("500", (500.0, "number", "500")),
        (".5", (0.5, "number", "0.5")),
        ("1.", (1.0, "number", "1")),
        ("30 days", (30 * 86_400.0, "seconds", "30 days")),
        ("0.5 days", (43_200.0, "seconds", "0.5 days")),
        ("1 day", (86_400.0, "seconds", "1 day")),
        ("1.0 Days", (86_400.0, "seconds", "1 day")),
        ("2weeks", (14 * 86_400.0, "seconds", "2 weeks")),
        ("12 hours", (43_200.0, "seconds", "12 hours")),
        ("90 minutes", (5400.0, "seconds", "90 minutes")),
        ("1 second", (1.0, "seconds", "1 second")),
    ],
)
def test_what_a_width_may_be(text, width):
    width = Width(*width)
    assert as_width(text) == width
    assert as_width(width.text) == width
    assert width.is_of_time == (width.unit == "seconds")


@pytest.mark.parametrize(
    "text", ["", "0", "0 %", "0 days", "-5", "ten", "10 percent", "5 months", "1e3", "1,5", "5 s d"]
)
def test_what_is_no_width(text):
    with pytest.raises(JobError, match=r"^l_width\.x: must be a width, such as 10 %"):
        as_width(text, "l_width.x")


@pytest.mark.parametrize("text", ["100 %", "250%"])
def test_a_share_is_less_than_a_whole(text):
    with pytest.raises(JobError, match=r"^l_width: must be less than 100 %, not "):
        as_width(text)
    assert as_width("99.9 %").amount < 1


def test_a_wider_one_of_the_same_unit_covers():
    wide, narrow = as_width("2 weeks"), as_width("1 day")
    assert wide.covers(narrow) and wide.covers(as_width("14 days")) and not narrow.covers(wide)
    assert not as_width("500").covers(as_width("10 %"))
    assert not as_width("50 %").covers(as_width("0.1"))
    with pytest.raises(FrozenInstanceError):
        wide.amount = 0.0


def test_the_errors_name_the_column():
    assert widths_of({"a": "1", "b": "5 %"})["b"].unit == "share"
    with pytest.raises(JobError, match=r"^l_width\.b: "):
        widths_of({"a": "1", "b": "x"})


KEYS = {"k": 2, "l": 2, "quasi_identifiers": ["age"], "sensitive": ["income", "ill"]}


def a_job(**keys) -> Job:
    return Job.from_dict({**KEYS, **keys}, paths_required=False)


@pytest.mark.parametrize("given", [{"income": "10 %"}, ["income=10 %"], {"income": 500}])
def test_a_job_takes_widths_of_sensitive_columns(given):
    job = a_job(l_width=given)
    assert set(widths_of(job.l_width)) == {"income"}
    assert Job.from_dict(job.to_dict(), paths_required=False) == job


@pytest.mark.parametrize(
    ("keys", "error"),
    [
        ({"l_width": {"age": "5"}}, r"^l_width\.age: is not a sensitive column; list it"),
        ({"l_width": {"incme": "5"}}, r"^l_width\.incme: is not a sensitive column.*income"),
        ({"l_width": {"income": "0"}}, r"^l_width\.income: must be a width"),
        ({"l_width": {"income": "5"}, "l": None}, "^l_width: needs l; set it, such as l: 2"),
        (
            {
                "l_width": {"income": "5"},
                "t": 0.5,
                "t_distance": "hierarchical",
                "sensitive_hierarchy": {"income": "i.csv", "ill": "ills.csv"},
            },
            r"^l_width\.income: cannot be combined with sensitive_hierarchy of the same column",
        ),
        (
            {
                "l_width": {"income": "5"},
                "sensitive": ["income"],
                "entity_id": "no",
                "series": {"kind": "snapshots", "protect": "intersection"},
            },
            r"^series.protect: intersection needs no l_width",
        ),
    ],
)
def test_what_a_job_may_not_say_of_widths(keys, error):
    with pytest.raises(JobError, match=error):
        a_job(**keys)
