"""What decides that a table in memory may be released; the cases come from mutation testing."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ill_people import JOB, ROWS, people
from mondrian_ops import anonymize
from mondrian_ops.cut.anonymizer import Anonymizer, Released
from mondrian_ops.errors import (
    ApprovalError,
    InputError,
    JobError,
    MondrianOpsError,
    PrivacyError,
)
from mondrian_ops.verify.truth import PartTruth

SAMARATI = {"k": 3, "quasi_identifiers": ["age=ladder:2/4"], "algorithm": "samarati"}
TWO_PERSONS = pa.array([at % 2 for at in range(ROWS)])


def test_a_table_is_released_with_its_report(monkeypatch):
    table = people()
    released, report = anonymize(table, {**JOB, "l": 2, "sensitive": ["ill"]})
    assert isinstance(released, pa.Table)
    assert released.schema.types == [pa.string(), pa.string(), pa.int64()]
    expected = zip(*(map(str, table["age"].to_pylist()), *table.to_pydict().values()), strict=True)
    rows = zip(*released.to_pydict().values(), strict=True)
    assert sorted(rows) == sorted((age, ill, row) for age, _, ill, row in expected)
    assert table == people()
    assert report["rows"] == {"input": ROWS, "published": ROWS, "suppressed": 0}
    assert report["achieved"] == {"k": 3, "l": 2}
    assert report["equivalence_classes"] == 8
    assert report["columns"]["unlisted"] == ["row"]
    assert report["cut"]["used"] == "median"
    assert report["retrieval"] == {"asked": "auto", "used": "memory"}
    assert report["attributes"]["age"]["generalization"] == "interval"
    assert report["verification"]["passed"] is True
    assert report["verification"]["failures"] == []
    assert report["verification"]["files"] == 1
    divided = {"strategy": "multidimensional", "asked": "auto", "fragments": 1, "sample_rows": 0}
    assert report["partitioning"] == {**divided, "merged": 0, "reason": "in memory", "note": ""}
    (fragment,) = report["fragments"]
    counted = {"id": 0, "where": "", "rows": ROWS, "equivalence_classes": 8, "DP": 72}
    assert counted.items() <= fragment.items()
    assert "levels" not in report
    assert all(0 <= seconds < 600 for seconds in report["timings_s"].values())
    assert {"anonymize", "wrap_up"} <= report["timings_s"].keys()


def test_a_frame_comes_back_as_one(tmp_path):
    frame = people().to_pandas()
    before = frame.copy()
    released, _ = anonymize(frame, JOB)
    assert isinstance(released, pd.DataFrame)
    assert sorted(released["age"]) == sorted(frame["age"].astype(str))
    pd.testing.assert_frame_equal(frame, before)


def test_a_job_file_brings_the_hierarchies_beside_it(tmp_path):
    ages = "".join(f"{age};{age // 10}*;*\n" for age in sorted({*people()["age"].to_pylist()}))
    (tmp_path / "ages.csv").write_text(ages)
    job = {**JOB, "quasi_identifiers": ["age=hierarchy:ages.csv"]}
    (tmp_path / "job.yaml").write_text(json.dumps(job))  # JSON is YAML
    _, report = anonymize(people(), tmp_path / "job.yaml")
    assert report["attributes"]["age"]["generalization"] == "hierarchy"


def test_the_whole_column_is_recoded_by_what_all_rows_have():
    released, report = anonymize(people(), SAMARATI)
    assert report["levels"] == {"age": 0}
    assert report["equivalence_classes"] == len(set(released["age"].to_pylist())) == 8


def spoiled(monkeypatch: pytest.MonkeyPatch, spoil: Any) -> None:
    """What the cutting hands out is changed before it is checked."""
    release = Anonymizer.release
    monkeypatch.setattr(Anonymizer, "release", lambda *a, **more: spoil(release(*a, **more)))


def test_a_class_that_fails_is_handed_to_nobody(monkeypatch):
    def one_is_alone(released: Released) -> Released:
        ages = pa.array(["*", *released.table["age"].cast(pa.string()).to_pylist()[1:]])
        return released._replace(table=released.table.set_column(0, "age", ages))

    spoiled(monkeypatch, one_is_alone)
    with pytest.raises(PrivacyError, match=r"^the release is refused: .*k-anonymity") as caught:
        anonymize(people(), JOB)
    assert caught.value.report["achieved"]["k"] == 1
    assert caught.value.report["verification"]["passed"] is False
    assert len(caught.value.report["verification"]["failures"]) == 1


@pytest.mark.parametrize(
    ("rows", "suppressed", "error"),
    [
        (ROWS - 3, 0, "24 rows were read, but 21 are in the release"),
        (ROWS - 3, 3, "3 rows are suppressed, and at most 0 may be"),
    ],
)
def test_rows_that_were_lost_are_noticed(monkeypatch, rows, suppressed, error):
    def fewer(released: Released) -> Released:
        table, summary = released.table.slice(0, rows), {**released.summary}
        summary["suppressed"] = suppressed
        return released._replace(table=table, summary=summary, order=released.order[:rows])

    spoiled(monkeypatch, fewer)
    monkeypatch.setattr(PartTruth, "check", lambda *_, **__: {})  # it would see it before
    with pytest.raises(PrivacyError, match=f"refused: {error}") as caught:
        anonymize(people(), JOB)
    assert caught.value.report["verification"]["passed"] is False


def test_persons_are_counted_where_they_are_asked_for(monkeypatch):
    job = {**JOB, "entity_id": "row"}
    assert anonymize(people(), job)[1]["achieved"]["k"] == 3
    twice = people(row=pa.array([at // 3 * 3 + at % 2 for at in range(ROWS)]))
    assert anonymize(twice, job)[1]["achieved"]["k"] >= 3

    def of_one(released: Released) -> Released:
        return released._replace(persons=released.persons.take(np.zeros(ROWS, np.int64)))

    spoiled(monkeypatch, of_one)
    with pytest.raises(PrivacyError, match="column 'row': some rows have values of other rows"):
        anonymize(people(), job)
    monkeypatch.setattr(PartTruth, "check", lambda *_, **__: {})
    with pytest.raises(PrivacyError, match="k = 3 persons by row"):
        anonymize(people(), job)


def test_a_limit_refuses_or_asks_and_who_is_asked_decides():
    with pytest.raises(PrivacyError, match="max_risk"):
        anonymize(people(), {**JOB, "max_risk": 0.1}, approve=lambda _: "jane")
    for asking in ({"require_approval": True}, {"max_risk": 0.1, "on_exceeded": "ask"}):
        job = {**JOB, **asking}
        for approve in (None, lambda _: None):
            with pytest.raises(ApprovalError, match="needs an approval and got none; pass approve"):
                anonymize(people(), job, approve)
        seen: list[dict] = []
        _, report = anonymize(
            people(), job, approve=lambda shown, to=seen: to.append(shown) or "jo"
        )
        assert report["outcome"]["decided_by"] == "jo"
        assert report["outcome"]["decision"] == "approved"
        assert seen == [report]


def test_nobody_is_asked_about_what_needs_no_approval():
    def approve(_report: dict) -> str:
        raise AssertionError("asked")

    assert "decision" not in anonymize(people(), JOB, approve)[1]["outcome"]


@pytest.mark.parametrize(
    ("table", "keys", "kind", "error"),
    [
        (people(), {"overlap": "warn"}, JobError, "overlap: a release in memory is not recorded"),
        (people(), {"quasi_identifiers": ["size"]}, MondrianOpsError, "size"),
        (people()[:0], {}, InputError, "no rows"),
        (people()[:2], {}, PrivacyError, "2 rows, fewer than k = 3"),
        (people(), {"l": 3, "sensitive": ["ill"]}, PrivacyError, "2 distinct value"),
        (people(row=TWO_PERSONS), {"entity_id": "row"}, PrivacyError, r"has 2 person\(s\)"),
        (people().append_column("age", people()["age"]), {}, InputError, "duplicate column 'age'"),
    ],
)
def test_what_cannot_be_released_is_refused_before(monkeypatch, table, keys, kind, error):
    def late(*_args: Any) -> None:
        raise AssertionError("it was cut")

    monkeypatch.setattr(Anonymizer, "release", late)
    with pytest.raises(kind, match=error):
        anonymize(table, {**JOB, **keys})


def test_text_is_plain_whatever_it_came_as():
    views = people().set_column(1, "ill", people()["ill"].cast(pa.string_view()))
    coded = people().set_column(1, "ill", people()["ill"].dictionary_encode())
    for table in (views, coded):
        released, _ = anonymize(table.replace_schema_metadata({"of": "ours"}), JOB)
        assert released.schema.field("ill").type == pa.string()
        assert sorted(released["ill"].to_pylist()) == sorted(people()["ill"].to_pylist())
        assert not released.schema.metadata
