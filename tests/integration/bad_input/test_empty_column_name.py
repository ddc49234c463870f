"""A column whose name is empty is a column like any other."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from mondrian_ops import anonymize, pipeline
from mondrian_ops.report import render_html, render_markdown, render_text
from tiers import one_in

ROWS = 240
PEOPLE = pa.table(
    {
        "": [str(10_000 + at * 7919 % 900) for at in range(ROWS)],
        "age": [at * 31 % 70 for at in range(ROWS)],
        "ill": [f"d{at % 9}" for at in range(ROWS)],
    }
)


def run(tmp_path, source: str = "in.parquet", table: pa.Table = PEOPLE, **keys):
    write = pq.write_table if source.endswith("parquet") else pa_csv.write_csv
    write(table, tmp_path / source)
    job = {
        "input": str(tmp_path / source),
        "output": str(tmp_path / "out"),
        "k": 5,
        "unlisted": "publish",
        "partitioning": {"fragments": 3, "sample": 1.0},
        **keys,
    }
    report = pipeline.run(pipeline.load_job(job))
    return report, pq.read_table(tmp_path / "out")


@pytest.mark.parametrize("source", ["in.parquet", "in.csv"])
@pytest.mark.parametrize("retrieval", ["pushdown", "scatter"])
@pytest.mark.parametrize("algorithm", one_in(2, ["mondrian", "tds"]))
def test_as_a_quasi_identifier(tmp_path, source, retrieval, algorithm):
    quasi = [{"name": "", "generalization": "set"}, "age"]
    report, release = run(
        tmp_path, source, retrieval=retrieval, quasi_identifiers=quasi, algorithm=algorithm
    )
    assert list(report["attributes"]) == ["", "age"]
    assert report["achieved"]["k"] >= 5
    assert set(release[""].to_pylist()) != set(PEOPLE[""].to_pylist())


@pytest.mark.parametrize("policy", ["drop", "redact"])
def test_as_an_identifier(tmp_path, policy):
    keys = {"identifiers": [""], "identifier_policy": policy, "quasi_identifiers": ["age"]}
    report, release = run(tmp_path, **keys)
    assert report["columns"]["identifiers"] == [""]
    assert "" not in release.column_names or {*release[""].to_pylist()} == {"*"}


def test_as_a_sensitive_column(tmp_path):
    table = PEOPLE.rename_columns(["zip", "age", ""])
    keys = {"sensitive": [""], "quasi_identifiers": ["zip", "age"], "l": 3}
    report, release = run(tmp_path, table=table, **keys)
    assert report["achieved"]["l"] >= 3
    assert sorted(release[""].to_pylist()) == sorted(table[""].to_pylist())


def test_in_memory():
    release, _ = anonymize(PEOPLE, {"k": 5, "quasi_identifiers": ["=prefix", "age"]})
    assert all(each.endswith("*") for each in release[""].to_pylist())


def test_a_report_shows_two_quotes(tmp_path):
    report, _ = run(tmp_path, quasi_identifiers=["=prefix", "age"], sensitive=["ill"])
    assert "\n''  " in render_text(report)
    assert "&#39;&#39;<" in render_html(report)
    assert "''" in render_markdown(report)
