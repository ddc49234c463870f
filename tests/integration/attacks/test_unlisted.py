"""What a job does not name: a function of a quasi-identifier, a pandas index, and a k of no use.

A column that nobody thought of is the first that an attacker looks at.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adversary import ALGORITHMS, Release, name_of, opened, population
from mondrian_ops import anonymize, pipeline, tables
from mondrian_ops.errors import InputError
from mondrian_ops.report import render_html, render_markdown, render_text
from mondrian_ops.stores import load_job
from tiers import in_soak

QUASI = ["age", "sex"]
K = 5


def people() -> pa.Table:
    """People whose logarithm of the age, to be computed with, is a column too."""
    table = population(1000).select(["name", "age", "sex", "diagnosis"])
    table = table.filter(table["age"].is_valid())
    logarithms = [math.log10(age) if age else -1.0 for age in table["age"].to_pylist()]
    return table.append_column("log_age", pa.array(logarithms))


def released(folder: Path, *tables: pa.Table, **keys: Any) -> Release:
    """The release of some files, of a job that says nothing of unlisted columns by itself."""
    (folder / "in").mkdir(parents=True)
    for number, table in enumerate(tables):
        pq.write_table(table, folder / "in" / f"{number}.parquet")
    job = {
        "input": str(folder / "in"),
        "output": str(folder / "release"),
        "k": K,
        "identifiers": ["name"],
        "quasi_identifiers": QUASI,
        "sensitive": ["diagnosis"],
        "partitioning": {"fragments": 2},
        **keys,
    }
    return opened(folder / "release", pipeline.run(load_job(job)))


def ages_read_off(release: Release) -> int:
    """How many published rows tell their exact age by the logarithm beside it."""
    found = [round(10 ** row["log_age"]) for row in release.rows if "log_age" in row]
    return len(found)


# A function of a quasi-identifier


@pytest.mark.parametrize("keys", [*ALGORITHMS[1:4:2], *in_soak(ALGORITHMS[:4:2])], ids=name_of)
def test_a_function_of_a_quasi_identifier_is_left_out_unless_it_is_asked_for(tmp_path, keys):
    release = released(tmp_path / "by default", people(), **keys)
    assert ages_read_off(release) == 0
    assert set(release.rows[0]) == {"age", "sex", "diagnosis"}
    assert release.report["columns"]["unlisted"] == ["log_age"]
    assert "published_raw" not in release.report
    asked_for = released(tmp_path / "asked for", people(), unlisted="publish", **keys)
    assert ages_read_off(asked_for) == people().num_rows
    assert asked_for.report["published_raw"]["columns"] == ["log_age"]


def test_the_report_begins_with_the_columns_published_raw(tmp_path):
    release = released(tmp_path, people(), unlisted="publish")
    report = release.report
    note = "The job publishes 1 column raw (unlisted: publish): log_age."
    covered = "the risks in this report cover only the columns that the job names"
    assert [*report][:2] == ["outcome", "published_raw"]
    assert report["published_raw"]["note"].startswith(note)
    assert covered in report["published_raw"]["note"]
    first, *text = render_text(report, 120).splitlines()
    assert first.startswith("PUBLISHED") and any(line.startswith(note) for line in text[:3])
    assert covered in " ".join(text)
    headline, _when, beneath, *_ = filter(None, render_markdown(report).splitlines())
    assert headline == "**Published**"
    assert re.sub(r"\\", "", beneath).startswith(f"**{note}")
    page = render_html(report)
    assert page.index(note) < page.index("Every requirement was checked again")
    assert page.index(note) < page.index("Highest risk")
    assert "of picking a person&#39;s row by the columns that the job names" in page
    assert "no risk in this report covers that" in report["limits"]


def test_a_report_without_such_columns_says_nothing_of_them(tmp_path):
    for name, table in {"none": people().drop_columns("log_age"), "dropped": people()}.items():
        policy = "publish" if name == "none" else "drop"
        report = released(tmp_path / name, table, unlisted=policy).report
        for shown in (render_text(report), render_html(report), json.dumps(report)):
            assert "raw (unlisted" not in shown


def test_sensitive_columns_are_published_by_design_and_are_not_meant(tmp_path):
    report = released(tmp_path, people(), unlisted="publish").report
    assert "diagnosis" not in report["published_raw"]["note"]


# A pandas index


def numbered(name: str | None) -> pd.DataFrame:
    """People whose index is their social security number."""
    frame = people().drop_columns("log_age").to_pandas()
    return frame.set_index(pd.Index([f"ssn{at:06}" for at in range(len(frame))], name=name))


@pytest.mark.parametrize("name", [None, "ssn", "age_in_days"])
@pytest.mark.parametrize("policy", ["drop", "publish"])
def test_an_index_of_social_security_numbers_is_not_published(tmp_path, name, policy):
    table = pa.Table.from_pandas(numbered(name))
    column = name or "__index_level_0__"
    assert column in table.column_names
    release = released(tmp_path, table, unlisted=policy)
    assert set(release.rows[0]) == {"age", "sex", "diagnosis"}
    assert not any("ssn0" in str(row) for row in release.rows)
    assert release.report["columns"]["index"] == [column]
    assert release.report["columns"]["unlisted"] == []
    assert f"{column}: left out" in render_text(release.report)
    assert "pandas index" in render_html(release.report)


def test_an_index_of_some_of_the_files_is_none_of_the_others_data(tmp_path):
    with_index = pa.Table.from_pandas(numbered("ssn"))
    plain = with_index.replace_schema_metadata()
    for order, files in enumerate(([with_index, plain], [plain, with_index])):
        release = released(tmp_path / str(order), *files, unlisted="publish")
        assert "ssn" not in release.rows[0]
        assert release.report["columns"]["index"] == ["ssn"]
        assert len(release.rows) == 2 * with_index.num_rows


def test_several_levels_and_other_writers(tmp_path):
    """Some software keeps the column and leaves out the metadata; its name tells all the same."""
    frame = numbered(None).set_index([numbered("ssn").index, numbered(None).index])
    table = pa.Table.from_pandas(frame)
    assert table.column_names[-2:] == ["ssn", "__index_level_1__"]
    release = released(tmp_path / "levels", table, unlisted="publish")
    assert release.report["columns"]["index"] == ["ssn", "__index_level_1__"]
    bare = pa.Table.from_pandas(numbered(None)).replace_schema_metadata()
    release = released(tmp_path / "bare", bare, unlisted="publish")
    assert release.report["columns"]["index"] == ["__index_level_0__"]
    assert "ssn0" not in str(release.rows)


def test_an_index_that_the_job_names_is_a_column(tmp_path):
    table = pa.Table.from_pandas(numbered("ssn"))
    keys: list[dict[str, Any]] = [
        {"entity_id": "ssn"},
        {"identifiers": ["name", "ssn"], "identifier_policy": "redact"},
        {"quasi_identifiers": [*QUASI, "ssn=prefix"]},
        {"sensitive": ["diagnosis", "ssn"]},
    ]
    for number, named in enumerate(keys):
        release = released(tmp_path / str(number), table, **named)
        assert release.report["columns"]["index"] == []
        assert release.report["achieved"]["k"] >= K
        assert ("ssn" in release.rows[0]) is (number > 0)


@pytest.mark.parametrize("named", [[], ["ssn"]])
def test_other_processes_take_the_same_columns_for_the_data(tmp_path, named):
    pq.write_table(pa.Table.from_pandas(numbered("ssn")), tmp_path / "in.parquet")
    source = tables.open_table(str(tmp_path / "in.parquet"), named)
    other = tables.FileTable.from_json(json.loads(json.dumps(source.to_json())))
    assert other == source
    assert ("ssn" in other.schema.names) is ("ssn" in named) is (not other.index)
    assert all(batch.schema.names == source.schema.names for batch in other.batches())


def test_metadata_that_makes_no_sense_takes_no_column_away(tmp_path):
    """Whoever may write the file may say so of any column; the report names what is left out."""
    for number, metadata in enumerate(
        [
            b"{",
            b"[]",
            b'{"index_columns": 7}',
            b'{"index_columns": [{"kind": "range"}, 5]}',
            b"\xff",
        ]
    ):
        table = people().replace_schema_metadata({b"pandas": metadata})
        release = released(tmp_path / str(number), table, unlisted="publish")
        assert release.report["columns"]["index"] == []
        assert ages_read_off(release) == table.num_rows


@pytest.mark.parametrize("as_frame", [False, True])
def test_in_memory_an_index_is_no_column_either(as_frame):
    frame = numbered("ssn")
    table = frame if as_frame else pa.Table.from_pandas(frame)
    job = {"k": K, "identifiers": ["name"], "quasi_identifiers": QUASI, "unlisted": "publish"}
    release, report = anonymize(table, job)
    assert list(release if as_frame else release.column_names) == ["age", "sex", "diagnosis"]
    assert report["columns"]["index"] == ["ssn"]
    named = {**job, "identifiers": ["name", "ssn"], "identifier_policy": "redact"}
    release, report = anonymize(table, named)
    assert set(release["ssn"] if as_frame else release["ssn"].to_pylist()) == {"*"}
    assert report["columns"]["index"] == []
    assert list(frame.columns) == ["name", "age", "sex", "diagnosis"]  # the caller's is as it was


# A k that protects nobody


CONSTANT = {
    "a number": pa.array([30] * 1000),
    "a text": pa.array(["Ruritania"] * 1000),
    "a date": pa.array([19_000] * 1000, pa.int32()).cast(pa.date32()),
    "nothing": pa.nulls(1000, pa.int64()),
    "NaN and missing": pa.array([float("nan"), None] * 500),
    "zeros of both signs": pa.array([0.0, -0.0] * 500),
}


@pytest.mark.parametrize(
    "keys",
    [
        *(ALGORITHMS[0], {"algorithm": "samarati"}, {"algorithm": "tds"}),
        *in_soak(ALGORITHMS[1:4]),
    ],
    ids=name_of,
)
@pytest.mark.parametrize("what", CONSTANT)
def test_quasi_identifiers_that_are_all_constant_are_refused(tmp_path, keys, what):
    """k = 1,000 and a risk of 0.1 % were reported, and every raw value went out."""
    table = pa.table({"country": CONSTANT[what], "c": ["x"] * 1000, "name": range(1000)})
    job = {"k": K, "quasi_identifiers": ["country", "c"], "unlisted": "publish", **keys}
    with pytest.raises(InputError) as of_memory:
        anonymize(table, job)
    with pytest.raises(InputError) as of_files:
        released(tmp_path, table, identifiers=[], sensitive=[], **job)
    assert str(of_memory.value) == str(of_files.value)
    assert "'country', 'c'" in str(of_files.value)
    assert "name the columns that others may know" in str(of_files.value)
    for value in ("30", "Ruritania", "2022", "nan"):
        assert value not in str(of_files.value)
    assert not (tmp_path / "release").exists()


@pytest.mark.parametrize("keys", [{}, {"algorithm": "samarati"}], ids=str)
def test_one_that_differs_is_enough_and_the_others_are_named(keys):
    for differing in (pa.array([1] * 500 + [2] * 500), pa.array([1] * 500 + [None] * 500)):
        table = pa.table({"a": differing, "c": ["x"] * 1000, "d": [7] * 1000})
        job = {"k": K, "quasi_identifiers": ["c", "a", "d"], **keys}
        _, report = anonymize(table, job)
        (note,) = [note for note in report["notes"] if "same value" in note]
        assert note.endswith(": 'c', 'd'")
        assert note in render_text(report, 120) or "'c', 'd'" in render_html(report)
