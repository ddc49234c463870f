"""What all nights of a series share: refused where a night has it otherwise, and kept once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
import sqlalchemy as sa

from mondrian_ops import catalogue
from mondrian_ops.catalogue.tables import night, series
from mondrian_ops.errors import InputError, JobError
from mondrian_ops.job.job import Job
from mondrian_ops.series import terms

NIGHT = {
    "label": "", "input": "", "output": "", "work": "", "time": "",
    "rows_in": 1, "rows_published": 1, "rows_suppressed": 0, "rows_waiting": 0,
}  # fmt: skip
TOWN, PROTECTED = "/out/town/*", {"kind": "snapshots", "protect": "intersection"}
TYPES = {"ill": "text", "person": "numbers"}


def job(**changes: Any) -> Job:
    """Without a series; the options of a protected one with ``series=PROTECTED``."""
    options = {
        "input": "/in/town.csv",
        "output": "/out/town/2025-01-01",
        "k": 5,
        "l": 3,
        "quasi_identifiers": ["zip", "age"],
        "sensitive": ["ill"],
        "entity_id": "person",
        "identifiers": ["person"],
        "series": PROTECTED,
        **changes,
    }
    return Job.from_dict({name: value for name, value in options.items() if value is not None})


def night_of(name: str, state: str, noted: Mapping[str, Any] | None = None) -> None:
    """A series with these terms, if it is a new one, and a night."""
    with catalogue.current().writing() as connection:
        found = connection.execute(sa.select(series.c.id).where(series.c.name == name)).scalar()
        if found is None:
            row = series.insert().values(name=name, terms=json.dumps(noted or {}))
            (found,) = connection.execute(row).inserted_primary_key or ()
        number = 2 if state == "pending" else 1
        row = night.insert().values(
            **NIGHT, number=number, token=f"{name} {state}", state=state, series=found
        )
        connection.execute(row)


def noted(name: str = TOWN) -> Any:
    with catalogue.current().reading() as connection:
        found = connection.execute(sa.select(series.c.terms).where(series.c.name == name))
        return json.loads(found.scalar_one())


def refuse(job: Job, name: str = TOWN) -> None:
    with catalogue.current().reading() as connection:
        terms.refuse_other_terms(connection, name, job)


def keep(job: Job, types: Mapping[str, str], name: str = TOWN) -> None:
    with catalogue.current().writing() as connection:
        terms.keep_terms(connection, name, job, types)


def test_a_series_that_protects_nobody_promises_its_kind_only() -> None:
    plain = {"series.kind": "snapshots", "series.protect": "release"}
    assert terms.terms_of(job(series={"kind": "snapshots"})) == plain
    assert terms.terms_of(job(series=None)) == {**plain, "series.kind": "increments"}


def test_one_that_protects_its_people_promises_what_tells_them_apart() -> None:
    promised = {
        "series.kind": "snapshots",
        "series.protect": "intersection",
        "entity_id": "person",
        "sensitive": "ill",
        "missing_sensitive": "no_value",
        "quasi_identifiers": "age, zip",
        "k": 5,
        "l": 3,
        "series.subtraction": None,
    }
    assert terms.terms_of(job()) == promised
    balanced = {**PROTECTED, "subtraction": "protect", "unmatched": "counterfeit"}
    assert terms.terms_of(job(series=balanced)) == {**promised, "series.subtraction": "protect"}


@pytest.mark.parametrize("state", ["held", "published"])
@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"k": 4}, "k: 4, but 5 in the nights before, whose promise would end; ask for no less, or"
         " begin another series with another output"),
        ({"l": 2}, "l: 2, but 3 in the nights before, whose promise would end; ask for no less, or"
         " begin another series with another output"),
        ({"quasi_identifiers": ["age"]}, "quasi_identifiers: age, but age, zip in the nights before"
         ", whose promise would end; change it back, or begin another series with another output"),
        ({"series": {"kind": "snapshots"}}, "series.protect: release, but intersection in the "
         "nights before, whose promise would end; change it back, or begin another series with "
         "another output"),
    ],
)  # fmt: skip
def test_a_night_that_promises_less_is_refused(
    state: str, changes: dict[str, Any], problem: str
) -> None:
    night_of(TOWN, state, terms.terms_of(job()))
    with pytest.raises(JobError) as caught:
        refuse(job(**changes))
    assert str(caught.value) == problem


def test_one_that_promises_the_same_or_asks_for_more_is_not() -> None:
    night_of(TOWN, "published", terms.terms_of(job()))
    refuse(job())
    refuse(job(k=6, l=4))
    night_of("/out/city/*", "published", {**terms.terms_of(job()), "l": None})
    refuse(job(), "/out/city/*")


def test_a_promise_that_is_not_set_any_more_is_told_so() -> None:
    night_of(TOWN, "published", {**terms.terms_of(job()), "series.subtraction": "protect"})
    with pytest.raises(JobError, match=r"^series\.subtraction: not set, but protect in the nights"):
        refuse(job())


@pytest.mark.parametrize("state", [None, "pending"])
def test_neither_another_series_nor_a_night_that_may_be_taken_back_binds(state: str | None) -> None:
    for other in ("/out/a/*", "/out/z/*"):
        night_of(other, "published", terms.terms_of(job(k=9)))
    if state is not None:
        night_of(TOWN, state, {**terms.terms_of(job(k=9)), "types": {"ill": "numbers"}})
        night_of("/out/zz/*", "published", terms.terms_of(job(k=9)))
    refuse(job())
    terms.refuse_other_types(TOWN, TYPES)


def test_the_terms_are_those_of_the_series_itself() -> None:
    night_of("/out/a/*", "published", terms.terms_of(job(k=4)))
    night_of(TOWN, "published", {**terms.terms_of(job()), "types": TYPES})
    night_of("/out/z/*", "published", terms.terms_of(job(k=4)))
    with pytest.raises(JobError, match=r"^k: 4, but 5 in the nights before"):
        refuse(job(k=4))
    terms.refuse_other_types(TOWN, TYPES)
    with pytest.raises(InputError) as caught:
        terms.refuse_other_types(TOWN, {**TYPES, "ill": "numbers"})
    assert str(caught.value) == (
        "column 'ill': numbers, but text in the nights before, so its values cannot be compared "
        "with theirs; deliver it as text, or begin another series with another output"
    )
    with pytest.raises(InputError, match="column 'person': text, but numbers in the nights"):
        terms.refuse_other_types(TOWN, {"person": "text"})


def test_those_of_the_first_night_stay_and_later_ones_add_types_only() -> None:
    others = ("/out/a/*", "/out/z/*")
    for name in (others[0], TOWN, others[1]):
        night_of(name, "pending", {"k": 9, "types": {"left": "by a night that was taken back"}})
    keep(job(), {"ill": "text"})
    first = {**terms.terms_of(job()), "types": {"ill": "text"}}
    assert noted() == first
    night_of(TOWN, "published")
    keep(job(k=6), {})
    assert noted() == first
    keep(job(k=6), {"ill": "numbers", "person": "numbers"})
    assert noted() == {**first, "types": {"ill": "text", "person": "numbers"}}
    assert [noted(name)["k"] for name in others] == [9, 9]


def test_without_types_the_terms_alone_are_kept() -> None:
    night_of(TOWN, "pending")
    keep(job(), {})
    assert noted() == terms.terms_of(job())


@pytest.mark.parametrize(
    ("protect", "state", "is_protected"),
    [("intersection", "published", True), ("intersection", "pending", True),
     ("release", "published", False)],
)  # fmt: skip
def test_a_series_protects_from_its_first_night_on(
    protect: str, state: str, is_protected: bool
) -> None:
    night_of(TOWN, state, {"series.protect": protect})
    with catalogue.current().reading() as connection:
        assert terms.protects(connection, TOWN) == is_protected


def test_one_without_a_night_or_another_one_protects_nobody() -> None:
    protecting = {"series.protect": "intersection"}
    night_of("/out/a/*", "published", protecting)
    with catalogue.current().writing() as connection:
        connection.execute(series.insert().values(name=TOWN, terms=json.dumps(protecting)))
    night_of("/out/z/*", "published", protecting)
    with catalogue.current().reading() as connection:
        assert not terms.protects(connection, TOWN)
        assert terms.protects(connection, "/out/z/*")
