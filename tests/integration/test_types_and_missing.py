"""What a job says of its columns, ``types`` and ``csv``, from the file to the release."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops import anonymize, pipeline
from mondrian_ops.errors import HierarchyError, InputError, JobError, PrivacyError
from mondrian_ops.job.job import Job
from mondrian_ops.job.source_options import Csv
from tiers import one_here, one_in

CODES = st.one_of(
    st.sampled_from(["+491701234500", "1E5", "1e999", "007", "250.10", "250.1", "V70.0", "nan"]),
    st.sampled_from(["70.0", "71.25", "70", "71.5", "12.50", "3.00", "true", "TRUE", "2024-01-31"]),
    st.floats(allow_nan=False, allow_infinity=False).map(str),
    st.integers(-(2**64), 2**64).map(str),
    st.text("0123456789.,+-eEx ", min_size=1, max_size=6),
)


def job_of(folder, name, **keys):
    """A job on a file in a folder, with quasi-identifier code and sensitive column illness."""
    described = {
        "input": str(folder / name),
        "output": str(folder / "out"),
        "k": 2,
        "quasi_identifiers": ["code"],
        "sensitive": ["illness"],
        "replace": "any",
        **keys,
    }
    return Job.from_dict(described)


def released(job):
    """The released table, and the report."""
    report = pipeline.run(job)
    return pq.read_table(job.output), report


@examples(100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    codes=st.one_of(
        st.lists(each, min_size=2, max_size=4, unique=True)
        for each in (CODES, st.floats(0, 100).map(str), st.decimals(0, 300, places=2).map(str))
    ),
    algorithm=st.sampled_from(["mondrian", "tds"]),
)
def test_a_class_of_one_text_is_published_as_that_text(tmp_path, codes, algorithm):
    rows = {"code": codes * 2, "illness": ["flu"] * len(codes) + ["gout"] * len(codes)}
    pa_csv.write_csv(pa.table(rows), tmp_path / "codes.csv")
    table, _ = released(job_of(tmp_path, "codes.csv", algorithm=algorithm))
    assert sorted(table["code"].to_pylist()) == sorted(codes * 2)


@pytest.mark.parametrize("form", ["csv", "parquet", "table", "frame", "dictionary"])
def test_texts_that_stand_for_missing_values_are_no_values(tmp_path, form):
    table = pa.table({"code": ["a", "b"] * 10, "illness": ["HIV", "HIV", "unknown", "unknown"] * 5})
    keys = {"l": 2, "csv": {"missing": ["NA", "unknown"]}}

    def attempt(**keys):
        if form in ("csv", "parquet"):
            write = pa_csv.write_csv if form == "csv" else pq.write_table
            write(table, tmp_path / f"p.{form}")
            return released(job_of(tmp_path, f"p.{form}", **keys))[0]
        job = {"k": 2, "quasi_identifiers": ["code"], "sensitive": ["illness"], **keys}
        if form == "frame":
            return pa.Table.from_pandas(anonymize(table.to_pandas(), job)[0])
        if form == "dictionary":
            encoded = table["illness"].dictionary_encode()
            return anonymize(table.set_column(1, "illness", encoded), job)[0]
        return anonymize(table, job)[0]

    assert attempt(l=2)["illness"].null_count == 0
    assert attempt(**{**keys, "l": None})["illness"].null_count == 10
    with pytest.raises(PrivacyError, match="illness"):
        attempt(**keys)


def test_an_empty_text_of_parquet_is_no_leaf_and_becomes_missing(tmp_path):
    """The remedy that the error names."""
    rows = {"code": ["a", "b", "", None] * 2, "illness": ["flu"] * 4 + ["gout"] * 4}
    pq.write_table(pa.table(rows), tmp_path / "p.parquet")
    (tmp_path / "h.csv").write_text("a,*\nb,*\n")
    job = job_of(tmp_path, "p.parquet", quasi_identifiers=["code=hierarchy:h.csv"])
    job = replace(job, base_dir=str(tmp_path))
    with pytest.raises(HierarchyError, match=r"which no hierarchy can list; csv\.missing: \[''\]"):
        pipeline.run(job)
    table, _ = released(replace(job, csv=Csv(missing=("",))))
    assert sorted(table["code"].to_pylist(), key=str) == [None] * 4 + ["a"] * 2 + ["b"] * 2


@pytest.mark.parametrize("retrieval", ["pushdown", "scatter"])
def test_parquet_columns_are_read_in_the_types_that_the_job_names(tmp_path, retrieval):
    days = [str(datetime.date(2024, 1, 1) + datetime.timedelta(at % 50)) for at in range(400)]
    days[7] = days[11] = "unknown"
    table = pa.table(
        {
            "code": [10_000 + at % 80 for at in range(400)],
            "day": days,
            "illness": [f"i{at % 5}" for at in range(400)],
        }
    )
    pq.write_table(table, tmp_path / "p.parquet", row_group_size=50)
    job = job_of(
        tmp_path,
        "p.parquet",
        quasi_identifiers=["day", "code=prefix"],
        types={"code": "text", "day": "date"},
        csv={"missing": ["unknown"]},
        retrieval=retrieval,
        partitioning={"fragments": 4, "sample": 1.0},
    )
    rows, report = released(job)
    assert report["rows"] == {"input": 400, "published": 400, "suppressed": 0}
    assert report["attributes"]["day"]["generalization"] == "interval"
    assert report["source"]["types"] == {"code": "text", "day": "date"}
    assert rows["day"].null_count + rows["day"].to_pylist().count("*") >= 2
    assert not any("unknown" in text for text in rows["day"].to_pylist() if text)


@pytest.mark.parametrize("series", [None, {"boundaries": "stable"}])
@pytest.mark.parametrize("style", one_in(2, ["text", "bounds"]))
def test_columns_without_missing_values_are_declared_so_in_every_part(tmp_path, series, style):
    """Not in a series: its releases have to be alike, and the next one may have some."""
    rows = pa.table(
        {
            "name": [f"n{at}" for at in range(400)],
            "code": [at % 97 for at in range(400)],
            "gap": pa.array([None if at == 7 else at % 5 for at in range(400)]),
            "illness": [f"i{at % 5}" for at in range(400)],
            "stage": pa.array([None if at == 300 else at % 3 for at in range(400)]),
            "raw": [at % 2 for at in range(400)],
        }
    )
    pq.write_table(rows, tmp_path / "p.parquet")
    keys = {
        "quasi_identifiers": ["code", "gap"],
        "identifiers": ["name"],
        "identifier_policy": "redact",
        "sensitive": ["illness", "stage"],
        "unlisted": "publish",
        "interval_style": style,
        "partitioning": {"fragments": 4, "sample": 1.0},
    }
    if series is not None:
        keys |= {"series": series, "output": str(tmp_path / "out" / "2025-06-01")}
    table, report = released(job_of(tmp_path, "p.parquet", **keys))
    parts = sorted((tmp_path / "out").rglob("part-*"))
    assert len(parts) == len(report["fragments"]) == 4
    schemas = [pq.read_schema(each) for each in parts]
    assert all(schema.equals(schemas[0]) for schema in schemas)
    required = {field.name for field in schemas[0] if not field.nullable}
    whole = {"name", "illness", *(["code"] if style == "text" else [])}
    assert required == (set() if series else whole)
    assert table.num_rows == 400


@pytest.mark.parametrize(
    ("types", "error", "message"),
    [
        (
            {"day": "date"},
            InputError,
            r"p\.parquet, row 3: column 'day' holds a value that is no d",
        ),
        ({"code": "date"}, JobError, r"types\.code: .*p\.parquet holds the column as int64"),
        ({"cod": "text"}, JobError, r"types: the input has no column 'cod' \(did you mean 'code'"),
    ],
)
def test_what_no_type_fits_is_refused_without_the_value(tmp_path, types, error, message):
    table = pa.table(
        {
            "code": [1, 2, 3, 4],
            "day": ["2024-01-01", None, "Canary", "2024-01-01"],
            "illness": ["a", "b", "c", "d"],
        }
    )
    pq.write_table(table, tmp_path / "p.parquet")
    job = job_of(tmp_path, "p.parquet", quasi_identifiers=["code", "day"], types=types)
    with pytest.raises(error, match=message) as caught:
        pipeline.run(job)
    assert "Canary" not in str(caught.value)
    assert not (tmp_path / "out").exists()
    memory = {"k": 2, "quasi_identifiers": ["code", "day"], "types": types}
    with pytest.raises(error, match=message.replace(r"p\.parquet", "the table")):
        anonymize(table, memory)


def test_a_table_in_memory_takes_types_and_stays_as_it_is(tmp_path):
    frame = pd.DataFrame({"code": ["07", "7", "x", "x"], "n": [1.0, 1.0, 2.0, 2.0]})
    before = frame.copy()
    job = {"k": 2, "quasi_identifiers": ["code"], "sensitive": ["n"], "types": {"n": "integer"}}
    rows, _ = anonymize(frame, job)
    assert sorted(rows["n"]) == [1, 1, 2, 2]
    assert pa.types.is_integer(pa.Table.from_pandas(rows).schema.field("n").type)
    pd.testing.assert_frame_equal(frame, before)
    with pytest.raises(InputError, match="the table, row 3: column 'code'"):
        anonymize(frame, {**job, "types": {"code": "integer"}})


def test_a_later_night_is_read_in_the_types_of_the_first(tmp_path):
    (tmp_path / "one.csv").write_text("code,n,illness\n250.10,7,a\n401.90,8,b\n")
    (tmp_path / "two.csv").write_text("code,n,illness\n250.1,7.0,a\n401.9,8.0,b\n")
    first = job_of(tmp_path, "one.csv", quasi_identifiers=["code", "n"])
    _, report = released(first)
    types = report["source"]["types"]
    assert types == {"code": "decimal", "n": "integer", "illness": "text"}
    second = job_of(tmp_path, "two.csv", quasi_identifiers=["code", "n"], types=types)
    rows, report = released(second)
    assert report["source"]["types"] == types
    assert set(rows["n"].to_pylist()) == {"[7, 8]"}


def test_the_report_says_how_the_file_was_read(tmp_path):
    content = "code;n;illness\n1,5;007;a\n2,5;008;-\n"
    (tmp_path / "p.csv").write_bytes(content.encode("utf-16"))
    job = job_of(tmp_path, "p.csv", csv={"decimal": ",", "missing": ["-"]}, unlisted="publish")
    rows, report = released(job)
    assert report["source"] == {
        "format": "csv",
        "files": 1,
        "types": {"code": "number", "n": "text", "illness": "text"},
        "missing": ["-"],
        "separators": [";"],
        "encodings": ["utf-16"],
        "decimal": ",",
        "numberlike": ["n"],
    }
    assert sorted(rows["n"].to_pylist()) == ["007", "008"]
    assert any("look like numbers but are text: 'n'" in note for note in report["notes"])
    html = (tmp_path / "out" / "_report.html").read_text("utf-8")
    for text in ("separator &#39;;&#39;", "encoding utf-16", "code: number, n: text"):
        assert text in html


@pytest.mark.parametrize("how", ["prefix", "set", "hierarchy:weights.csv", "ladder:5/10", "grid:5"])
@pytest.mark.parametrize("algorithm", one_here(["mondrian", "tds"]))
def test_floats_of_python_are_generalized_as_they_are_written(tmp_path, how, algorithm):
    if how.startswith("grid") and algorithm == "tds":
        return
    (tmp_path / "weights.csv").write_text("70.0;light;*\n71.25;light;*\n80.0;heavy;*\n")
    weights = ["70.0", "71.25", "80.0"]
    lines = [f"{weight},{illness}\n" for weight in weights for illness in ("a", "b")]
    (tmp_path / "p.csv").write_text("code,illness\n" + "".join(lines))
    job = job_of(tmp_path, "p.csv", quasi_identifiers=[f"code={how}"], algorithm=algorithm)
    rows, report = released(replace(job, base_dir=str(tmp_path)))
    assert report["source"]["types"]["code"] == "float"
    if not how.startswith("grid"):
        assert sorted(rows["code"].to_pylist()) == sorted(weights * 2)
