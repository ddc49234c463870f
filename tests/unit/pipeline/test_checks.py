"""What is checked before any work, and of the report."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from mondrian_ops import pipeline
from mondrian_ops.errors import InputError, JobError, PrivacyError
from mondrian_ops.job.job import Job
from mondrian_ops.pipeline import checks


def a_job(**keys: Any) -> Job:
    return Job.from_dict(
        {"k": 3, "quasi_identifiers": ["age"], **keys}, where="job", paths_required=False
    )


def with_columns(names: list[str]) -> Any:
    """What is asked of a source: its columns, all of a plain type."""
    schema = pa.schema([(name, pa.string()) for name in names])
    return SimpleNamespace(schema=schema, declared=pa.schema([]))


def test_rows_that_are_as_many_as_k_are_enough():
    checks.check_rows(a_job(), 3)
    with pytest.raises(PrivacyError, match="2 rows, fewer than k = 3"):
        checks.check_rows(a_job(), 2)
    with pytest.raises(InputError, match="no rows"):
        checks.check_rows(a_job(), 0)


@pytest.mark.parametrize(
    ("rows", "published", "suppressed", "wrong"),
    [
        (10, 10, 0, []),
        (10, 8, 2, []),
        (10, 7, 3, ["3 rows are suppressed, and at most 2 may be"]),
        (10, 9, 0, ["10 rows were read, but 9 are in the release"]),
        (10, 11, 0, ["10 rows were read, but 11 are in the release"]),
        (10, 8, 1, ["10 rows were read, but 8 are in the release, 1 were suppressed"]),
        (10, 9, 2, ["10 rows were read, but 9 are in the release, 2 were suppressed"]),
    ],
)
def test_every_row_is_accounted_for(rows, published, suppressed, wrong):
    job = a_job(algorithm="samarati", samarati={"max_suppressed": 2})
    assert checks.lost_rows(job, rows, published, suppressed) == wrong


def test_only_samarati_may_suppress():
    assert checks.lost_rows(a_job(), 10, 9, 1) == ["1 rows are suppressed, and at most 0 may be"]


def test_a_column_of_every_role_must_be_there():
    job = a_job(identifiers=["name"], sensitive=["illness"])
    checks.check_columns(job, with_columns(["age", "name", "illness"]))
    for missing, role in (("age", "quasi_"), ("name", "identifiers"), ("illness", "sensitive")):
        others = [f"{name}s" if name == missing else name for name in ("age", "name", "illness")]
        with pytest.raises(JobError, match=f"^{role}.*{missing!r} .did you mean '{missing}s'"):
            checks.check_columns(job, with_columns(others))
    with pytest.raises(JobError, match=r"'name', nor any other .* has a header$"):
        checks.check_columns(job, with_columns(["ages", "names"]))


def test_bounds_take_no_name_that_is_taken():
    names = ["age", "age_min", "sex", "sex_max", "pay", "pay_hidden", "other"]
    for column, taken in (("age", "age_min"), ("sex", "sex_max"), ("pay", "pay_hidden")):
        job = a_job(quasi_identifiers=[column], interval_style="bounds", unlisted="publish")
        with pytest.raises(JobError, match=f"{column!r} would be published as {taken!r}"):
            checks.check_columns(job, with_columns(names))
        checks.check_columns(
            a_job(quasi_identifiers=[column], unlisted="publish"), with_columns(names)
        )
        dropped = a_job(quasi_identifiers=[column], interval_style="bounds")
        checks.check_columns(dropped, with_columns(names))


def test_columns_that_arrow_keeps_for_itself_are_refused_where_they_are_published():
    names = ["age", "__batch_index"]
    with pytest.raises(InputError, match="'__batch_index'"):
        checks.check_columns(a_job(unlisted="publish"), with_columns(names))
    checks.check_columns(a_job(), with_columns(names))


def test_a_column_of_a_type_of_others_is_no_quasi_identifier():
    names = {b"ARROW:extension:name": b"arrow.json"}, {b"ARROW:extension:name": b"arrow.uuid"}
    source = with_columns(["age", "id", "note"])
    source.declared = pa.schema(
        [
            pa.field("age", pa.string(), metadata=names[0]),
            pa.field("id", pa.binary(16), metadata=names[1]),
            pa.field("note", pa.string()),
        ]
    )
    checks.check_columns(a_job(quasi_identifiers=["age", "note"]), source)
    with pytest.raises(
        JobError, match=r"^quasi_identifiers: column 'id' of type arrow.uuid cannot"
    ):
        checks.check_columns(a_job(quasi_identifiers=["note", "id"]), source)


def test_a_type_of_a_column_that_is_not_there_is_refused():
    checks.check_columns(a_job(types={"age": "text"}), with_columns(["age"]))
    with pytest.raises(JobError, match=r"^types: the input has no column 'agee' .*'age'.+; remove"):
        checks.check_columns(a_job(types={"age": "text", "agee": "text"}), with_columns(["age"]))


FOLLOWED = {
    "input": "in/2025-01-01", "output": "out/2025-01-01", "k": 3, "l": 2, "sensitive": ["ill"],
    "entity_id": "who", "series": {"kind": "snapshots", "protect": "intersection"},
}  # fmt: skip


def test_a_series_that_follows_persons_publishes_no_column_beside():
    """Neither raw, nor one that would be taken for the number of rows that are made up."""
    names = ["age", "ill", "who", "counterfeits"]
    makes_up = {**FOLLOWED["series"], "unmatched": "counterfeit"}
    taken = {"quasi_identifiers": ["age", "counterfeits"]}
    checks.check_columns(a_job(**FOLLOWED), with_columns(names))
    checks.check_columns(a_job(**FOLLOWED | taken), with_columns(names))
    checks.check_columns(a_job(**FOLLOWED | {"series": makes_up}), with_columns(names))
    with pytest.raises(JobError, match=r"^series\.unmatched: .*rename the quasi-identifier"):
        checks.check_columns(a_job(**FOLLOWED | taken | {"series": makes_up}), with_columns(names))
    with pytest.raises(JobError, match=r"^series\.protect: .* leave 'counterfeits' out"):
        checks.check_columns(a_job(**FOLLOWED, unlisted="publish"), with_columns(names))


def test_an_input_may_be_empty_unless_it_may_not(tmp_path):
    (tmp_path / "in.csv").write_text("age\n")
    job = Job.from_dict({"k": 3, "quasi_identifiers": ["age"], "input": str(tmp_path / "in.csv"),
                         "output": str(tmp_path / "out")})  # fmt: skip
    assert checks.open_input(job).schema.names == ["age"]
    with pytest.raises(InputError, match="no rows"):
        checks.open_input(job, may_be_empty=False)


def test_the_roles_of_columns_are_told():
    job = a_job(identifiers=["name"], sensitive=["illness"])
    assert checks.column_roles(job, ["age", "name", "illness", "row"], ["place"]) == {
        "identifiers": ["name"],
        "identifier_policy": "drop",
        "quasi_identifiers": ["age"],
        "sensitive": ["illness"],
        "unlisted": ["row"],
        "unlisted_policy": "drop",
        "index": ["place"],
    }


def test_the_hierarchies_of_a_job_and_of_its_sensitive_columns(tmp_path):
    (tmp_path / "ages.csv").write_text("1;*\n2;*\n")
    (tmp_path / "ills.csv").write_text("flu;*\ncold;*\n")
    job = {
        "input": "in",
        "output": "out",
        "k": 3,
        "quasi_identifiers": ["age=hierarchy:ages.csv", "zip=prefix"],
        "sensitive": ["illness"],
        "t": 0.5,
        "t_distance": "hierarchical",
        "sensitive_hierarchy": {"illness": "ills.csv"},
    }
    (tmp_path / "job.json").write_text(json.dumps(job))
    read = pipeline.load_job(tmp_path / "job.json")
    assert set(checks.hierarchies_of(read)) == {"age", "illness"}
    assert {n: h.name for n, h in checks.hierarchies_of(read, of_sensitive=True).items()} == {
        "illness": "ills.csv"
    }


def test_columns_of_one_value_are_noted():
    assert checks.constant_note([]) == ""
    assert checks.constant_note(["c", "t"]) == (
        "quasi-identifiers with the same value in all rows, which tell nobody apart: 'c', 't'"
    )


def of_types(**types: pa.DataType) -> Any:
    """What is asked of a source with columns of these types."""
    return SimpleNamespace(schema=pa.schema(types.items()), declared=pa.schema([]))


PAID = {"sensitive": ["pay", "since"], "l": 2}


def test_a_width_has_to_fit_the_type_of_its_column():
    source = of_types(age=pa.int64(), pay=pa.float64(), since=pa.date32())
    widths = {"pay": "10 %", "since": "30 days"}
    checks.check_columns(a_job(**PAID, l_width=widths), source)
    with pytest.raises(JobError, match=r"^l_width\.since: 5 is no span of time"):
        checks.check_columns(a_job(**PAID, l_width={**widths, "since": "5"}), source)
    text = of_types(age=pa.int64(), pay=pa.string(), since=pa.date32())
    with pytest.raises(JobError, match=r"^l_width\.pay: the column is string, .* the job's types"):
        checks.check_columns(a_job(**PAID, l_width=widths), text)


def test_a_number_or_date_without_a_width_is_warned_of(caplog):
    source = of_types(age=pa.int64(), pay=pa.dictionary(pa.int8(), pa.int64()), since=pa.date32())
    checks.warn_of_numbers(a_job(**PAID), source)
    assert caplog.messages == [
        "l counts the different values of 'pay', however close to one another; set a width in "
        "l_width, such as 10 %",
        "l counts the different values of 'since', however close to one another; set a width in "
        "l_width, such as 30 days",
    ]
    caplog.clear()
    checks.warn_of_numbers(a_job(**PAID, l_width={"pay": "5", "since": "1 day"}), source)
    checks.warn_of_numbers(a_job(sensitive=["pay"], t=0.5), source)
    checks.warn_of_numbers(a_job(sensitive=["ill"], l=2), of_types(age=pa.int64(), ill=pa.string()))
    assert not caplog.messages
