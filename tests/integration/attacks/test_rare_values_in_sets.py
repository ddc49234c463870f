"""Sets of values that few have name persons word for word, while the loss says next to nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mondrian_ops import anonymize
from mondrian_ops.errors import PrivacyError

K = 5
PEOPLE = 1000


def people() -> pa.Table:
    draw = np.random.default_rng(3)
    return pa.table(
        {
            "email": [f"user{number}@example.org" for number in draw.permutation(PEOPLE)],
            "country": draw.choice(["France", "Italy", "Spain"], PEOPLE),
            "age": draw.integers(18, 90, PEOPLE),
        }
    )


def released(*columns: str, **options: Any) -> tuple[pa.Table, dict[str, Any]]:
    job = {"k": K, "quasi_identifiers": list(columns), "sensitive": [], **options}
    table, report = anonymize(people(), job)
    return table, report


def test_by_default_no_address_is_in_the_release() -> None:
    table, report = released("email", "country", "age", dependencies="refuse")
    assert "dependencies" not in report
    assert report["attributes"]["email"]["generalization"] == "prefix"
    assert report["attributes"]["country"]["generalization"] == "set"
    assert not any("@" in text for text in table["email"].to_pylist())
    (note,) = report["notes"]
    assert note.startswith("column 'email': 100 % of the rows have values that fewer than k have")
    assert "user" not in note


def test_one_persons_rows_hide_nobody() -> None:
    """Each address has k rows, all of one person: who counts rows takes it for a common value."""
    rows = people().take(np.repeat(np.arange(PEOPLE), K))
    rows = rows.append_column("person", pa.array(np.repeat(np.arange(PEOPLE), K)))
    job: dict[str, Any] = {"k": K, "sensitive": []}
    _, report = anonymize(rows, job | {"quasi_identifiers": ["email", "age"]})
    assert report["attributes"]["email"]["generalization"] == "set"  # of rows without a person
    job |= {"entity_id": "person"}
    table, report = anonymize(rows, job | {"quasi_identifiers": ["email", "age"]})
    assert report["attributes"]["email"]["generalization"] == "prefix"
    assert not any("@" in text for text in table["email"].to_pylist())
    with pytest.raises(PrivacyError, match=r"'email' is published as sets"):
        anonymize(rows, job | {"quasi_identifiers": ["email=set"], "dependencies": "refuse"})
    _, report = anonymize(rows, job | {"quasi_identifiers": ["country"]})
    assert "dependencies" not in report


def test_who_searches_a_release_for_an_address_finds_its_class(
    caplog: pytest.LogCaptureFixture,
) -> None:
    table, report = released("email=set", "age")
    named = [text for text in table["email"].to_pylist() if "user7@" in text]
    assert K <= len(named) < 3 * K
    assert report["attributes"]["email"]["NCP"] < 0.05
    (note,) = report["dependencies"]["notes"]
    assert note.startswith("'email' is published as sets of its values, and fewer than k = 5 have")
    assert "100 % of the rows" in note
    assert note in caplog.text
    (finding,) = report["dependencies"]["findings"]
    assert (finding["column"], finding["how"], finding["share"]) == ("email", "set", 1)


def test_the_job_can_refuse_it_and_no_value_is_told() -> None:
    with pytest.raises(
        PrivacyError, match=r"dependencies: .*'email' is published as sets"
    ) as error:
        released("email=set", "age", dependencies="refuse")
    assert "@" not in str(error.value)


@pytest.mark.parametrize("columns", [("email=prefix", "age"), ("country", "age")])
def test_prefixes_and_common_values_are_not_named(columns: tuple[str, ...]) -> None:
    table, report = released(*columns, dependencies="refuse")
    assert "dependencies" not in report
    assert not any("user7@" in str(row) for row in table.to_pylist())


def test_with_global_recoding_a_value_is_shown_only_where_k_rows_have_it() -> None:
    samarati = {"algorithm": "samarati", "samarati": {"max_suppressed": 0}}
    table, report = released("email", "country", dependencies="refuse", **samarati)
    assert "dependencies" not in report
    assert set(table["email"].to_pylist()) == {"*"}
