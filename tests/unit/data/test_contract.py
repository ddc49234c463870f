"""The contract of a dataset: what counts as a change of its columns, and what does not."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from mondrian_ops.data.contract import (
    Change,
    Column,
    changes,
    completed,
    contract_of,
    decided,
)
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.job.job import Job

SCHEMA = pa.schema(
    [("id", pa.int64()), ("age", pa.int64()), ("zip", pa.string()), ("illness", pa.string())]
)
JOB = {
    "k": 2,
    "identifiers": ["id"],
    "quasi_identifiers": ["age", "zip=prefix"],
    "sensitive": ["illness"],
}


def contract(schema: pa.Schema = SCHEMA, **keys: Any) -> dict[str, Column]:
    tree = keys.pop("tree", None)
    job = Job.from_dict({**JOB, **keys}, paths_required=False)
    return contract_of(job, schema, {} if tree is None else {"zip": tree})


def with_type(name: str, type_: pa.DataType) -> pa.Schema:
    return SCHEMA.set(SCHEMA.get_field_index(name), pa.field(name, type_))


def texts(found: list[Change]) -> list[str]:
    return [str(each) for each in found]


SSN = SCHEMA.append(pa.field("ssn", pa.int64()))


@pytest.mark.parametrize(
    ("now", "last", "text"),
    [
        (
            contract(with_type("age", pa.string())),
            contract(),
            "column 'age' is text, quasi-identifier (set), and was int64, quasi-identifier "
            "(interval)",
        ),
        (
            contract(with_type("age", pa.float64())),
            contract(),
            "column 'age' is double, quasi-identifier (interval), and was int64, quasi-identifier "
            "(interval)",
        ),
        (
            contract(SSN, unlisted="publish"),
            contract(unlisted="publish"),
            "column 'ssn' is new (int64, published unchanged)",
        ),
        (
            contract(unlisted="publish"),
            contract(SSN, unlisted="publish"),
            "column 'ssn' is missing, and was int64, published unchanged",
        ),
        (
            contract(SSN, unlisted="publish"),
            contract(SSN),
            "column 'ssn' is int64, published unchanged, and was left out",
        ),
        (
            contract(sensitive=[]),
            contract(),
            "column 'illness' is left out, and was text, sensitive",
        ),
        (
            contract(identifier_policy="redact"),
            contract(),
            "column 'id' is redacted, and was left out",
        ),
        (
            contract(entity_id="id"),
            contract(),
            "column 'id' is numbers, tells persons apart, and was left out",
        ),
        (
            contract(quasi_identifiers=["age=ladder:5/10@1", "zip=prefix"]),
            contract(quasi_identifiers=["age=ladder:5/20@1", "zip=prefix"]),
            "column 'age' is int64, quasi-identifier (ladder 5/10@1), and was int64, "
            "quasi-identifier (ladder 5/20@1)",
        ),
        (
            contract(quasi_identifiers=["age=grid:5", "zip=prefix"], interval_style="bounds"),
            contract(quasi_identifiers=["age=grid:5", "zip=prefix"]),
            "column 'age' is int64, quasi-identifier (grid 5@0 as bounds and hidden), and was "
            "int64, quasi-identifier (grid 5@0)",
        ),
    ],
)
def test_what_is_published_otherwise_is_a_change_that_names_both(
    now: dict[str, Column], last: dict[str, Column], text: str
) -> None:
    assert texts(changes(now, last)) == [text]


@pytest.mark.parametrize(
    ("now", "last"),
    [
        (contract(SSN), contract()),
        (contract(), contract(SSN)),
        (contract(with_type("id", pa.string())), contract()),
        (contract(SSN, identifiers=["id", "ssn"]), contract(SSN)),
        (contract(with_type("zip", pa.large_string())), contract()),
        (contract(with_type("zip", pa.dictionary(pa.int8(), pa.string()))), contract()),
        (contract(k=5), contract()),
    ],
    ids=["new", "gone", "type of an identifier", "identifier", "large text", "codes", "k"],
)
def test_what_nobody_sees_in_a_release_is_no_change(
    now: dict[str, Column], last: dict[str, Column]
) -> None:
    assert changes(now, last) == []


def test_another_content_of_a_hierarchy_is_a_change() -> None:
    one, other = (
        Hierarchy.from_rows([["1", low, "*"], ["2", "b", "*"]], "zip.csv") for low in ("a", "b")
    )
    how = {"quasi_identifiers": ["age", "zip=hierarchy:zip.csv"]}
    assert changes(contract(tree=one, **how), contract(tree=one, **how)) == []
    (change,) = changes(contract(tree=other, **how), contract(tree=one, **how))
    assert change.name == "zip"


def test_the_type_of_an_entity_counts_because_persons_are_counted_by_it() -> None:
    by_id = {"entity_id": "id"}
    assert changes(contract(with_type("id", pa.float64()), **by_id), contract(**by_id)) == []
    (change,) = changes(contract(with_type("id", pa.string()), **by_id), contract(**by_id))
    assert (
        str(change)
        == "column 'id' is text, tells persons apart, and was numbers, tells persons apart"
    )


def test_a_column_is_compared_in_the_type_in_which_it_is_published() -> None:
    zones = [pa.field("at", pa.timestamp("us", tz)) for tz in ("UTC", "Europe/Berlin")]
    job = Job.from_dict({**JOB, "unlisted": "publish"}, paths_required=False)
    utc, berlin = (contract_of(job, SCHEMA.append(zones[0]), {}, declared=[zone]) for zone in zones)
    (change,) = changes(berlin, utc)
    assert "tz=Europe/Berlin" in str(change)


def test_a_column_without_values_has_the_type_that_it_had() -> None:
    empty = contract(with_type("age", pa.null()))
    assert changes(empty, contract()) == changes(contract(), empty) == []
    last = decided(contract(), {"age": "interval"}, {})
    assert completed(empty, last) == last
    assert completed(empty, {}) == empty


ON_GRID = decided(contract(), {"age": "interval", "zip": "prefix"}, {"age": 20.0})


def test_what_values_decided_is_kept_and_no_change() -> None:
    assert ON_GRID["age"].chosen == "grid 20"
    assert changes(contract(), ON_GRID) == []
    assert completed(contract(), ON_GRID) == decided(ON_GRID, {"age": "interval"}, {}) == ON_GRID
    empty = completed(contract(with_type("age", pa.null())), ON_GRID)
    assert empty == decided(empty, {"age": "set"}, {}) == ON_GRID
    late = contract(with_type("age", pa.float64()))
    assert completed(late, contract(), decided(late, {}, {"age": 5.0}))["age"].chosen == "grid 5"


def test_what_is_not_decided_yet_is_left_to_the_next_release() -> None:
    waiting = decided(contract(), {}, {})
    assert waiting["age"].chosen == ""
    assert decided(completed(contract(), waiting), {}, {"age": 20.0}) == ON_GRID
    unknown = contract(with_type("age", pa.null()))
    assert decided(unknown, {"age": "set"}, {})["age"].chosen == ""


@pytest.mark.parametrize(
    ("now", "text"),
    [
        (decided(contract(), {}, {"age": 50.0}), "(interval, by its values grid 50)"),
        (decided(contract(), {"age": "interval"}, {}), "(interval)"),
        (contract(quasi_identifiers=["age=interval", "zip=prefix"]), "(interval)"),
        (contract(series={"boundaries": "stable"}, output="o/2025-06-01"), "(interval)"),
    ],
    ids=["another first release", "without a grid", "the job names intervals", "boundaries"],
)
def test_another_choice_is_a_change(now: dict[str, Column], text: str) -> None:
    before = "int64, quasi-identifier (interval, by its values grid 20)"
    assert texts(changes(now, ON_GRID)) == [
        f"column 'age' is int64, quasi-identifier {text}, and was {before}"
    ]
    assert completed(now, ON_GRID)["age"] == now["age"]


def test_a_change_is_the_same_before_and_after_values_decide() -> None:
    """Who accepts a change sees it before the rows are read."""
    other = contract(with_type("age", pa.float64()))
    read = decided(other, {"age": "interval"}, {"age": 5.0})
    assert changes(other, ON_GRID) == changes(read, ON_GRID) != []


def by_an_earlier_version(**keys: Any) -> dict[str, Column]:
    return {
        name: Column(each.role, each.type, each.generalization.removesuffix(" and hidden"))
        for name, each in contract(**keys).items()
    }


def test_intervals_of_an_earlier_version_get_no_grid_and_its_bounds_no_flag_unannounced() -> None:
    old = by_an_earlier_version()
    assert changes(contract(), old) == []
    assert completed(contract(), old)["age"].chosen == "interval"
    bounds = contract(interval_style="bounds")
    old = by_an_earlier_version(interval_style="bounds")
    assert texts(changes(bounds, old)) == [
        "column 'age' is int64, quasi-identifier (interval as bounds and hidden), and was int64, "
        "quasi-identifier (interval as bounds)"
    ]
    assert completed(bounds, old)["age"].chosen == "interval"
    asked = contract(quasi_identifiers=["age=grid:auto", "zip=prefix"])
    assert [each.name for each in changes(asked, old)] == ["age"]
    assert completed(asked, old)["age"].chosen is None


def test_columns_of_a_late_drop_may_be_those_of_the_night_before_it() -> None:
    then, last = contract(with_type("age", pa.string())), contract()
    assert changes(then, last, then) == []
    assert len(changes(then, last)) == 1
    without, new = contract(unlisted="publish"), contract(SSN, unlisted="publish")
    assert changes(without, new, without) == []
    assert changes(new, without, new) == []


def test_a_late_drop_takes_no_role_of_the_past() -> None:
    """What was published once, and is left out since, is not published by a drop of an old day."""
    then, last = contract(SSN, unlisted="publish"), contract(SSN, identifiers=["id", "ssn"])
    assert len(changes(then, last, then)) == 1


def test_changes_have_one_digest_only_if_all_of_them_are_the_same() -> None:
    first = changes(contract(with_type("age", pa.string())), contract())
    both = changes(
        contract(
            with_type("age", pa.string()).append(pa.field("ssn", pa.int64())), unlisted="publish"
        ),
        contract(),
    )
    again = [Change.from_json(each.to_json()) for each in first]
    digests = {Change.digest_of(each) for each in (first, both, both[1:], [])}
    assert len(digests) == 4
    assert Change.digest_of(again) == Change.digest_of(first)
    assert again == first


def test_of_many_changes_the_first_are_named() -> None:
    wide = pa.schema([*SCHEMA, *((f"c{at:02d}", pa.int64()) for at in range(30))])
    found = changes(contract(wide, unlisted="publish"), contract())
    text = Change.text_of(found)
    assert "'c19'" in text
    assert "'c20'" not in text
    assert text.endswith("; and 10 more")
