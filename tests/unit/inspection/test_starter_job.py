"""The proposed job is one that runs."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from mondrian_ops import pipeline, stores
from mondrian_ops.inspection.inspector import Inspection, inspect
from mondrian_ops.inspection.starter_job import starter_job
from mondrian_ops.inspection.unique_rows import UniqueRows
from unknown_tables import patients


def job_of(table: pa.Table, folder) -> tuple[str, dict]:
    path = folder / "people.parquet"
    pq.write_table(table, path)
    text = starter_job(inspect(str(path)), str(folder / "out"))
    return text, yaml.safe_load(text)


def test_each_role_has_its_place_and_the_job_runs(tmp_path):
    text, job = job_of(patients(), tmp_path)
    assert job["identifiers"] == ["MRN", "last_name", "contact"]
    assert job["quasi_identifiers"] == ["V1", "birthDate=ladder:year/decade", "zip=ladder:postal"]
    assert job["sensitive"] == ["diagnosis", "salary"]
    assert (job["k"], job["l"], job["l_width"]) == (5, 2, {"salary": "10 %"})
    assert job["types"] == {"zip": "text"}
    assert "#  - remark  # free text" in text
    (tmp_path / "job.yaml").write_text(text)
    report = pipeline.run(stores.load_job(str(tmp_path / "job.yaml")))
    assert report["rows"]["published"] == 600


@pytest.mark.parametrize("name", ["age: old", "yes", "a#b", '"age"', "age\n", "größe age", "- age"])
def test_odd_names_are_read_back(name, tmp_path):
    text, job = job_of(pa.table({name: [20, 30] * 20, "sex": ["m", "f"] * 20}), tmp_path)
    listed = [each["name"] if isinstance(each, dict) else each for each in job["quasi_identifiers"]]
    rest = yaml.safe_load(text.replace("#  - ", "rest: ")) if name not in listed else {}
    assert name in listed or rest["rest"] == name


@pytest.mark.parametrize(
    ("url", "output"),
    [
        ("d/people.csv.gz", "out/people"),
        ("d/people/*.parquet", "out/people"),
        ("*.csv", "out/release"),
        ("out/people.csv", "released/people"),
        ("./out", "released/out"),
        ("iceberg://lake/clinic.patients@2026-11-01", "out/clinic"),
    ],
)
def test_the_output_is_named_after_the_input(url, output):
    assert (
        yaml.safe_load(starter_job(Inspection(url, 0, 0, [], UniqueRows(), [])))["output"] == output
    )


def test_a_name_that_could_be_a_short_form_is_a_mapping(tmp_path):
    text, job = job_of(pa.table({"a=b zip": [94103, 10001] * 20}), tmp_path)
    assert job["quasi_identifiers"] == [{"ladder": ["postal"], "origin": "", "name": "a=b zip"}]
    (tmp_path / "job.yaml").write_text(text)
    assert pipeline.run(stores.load_job(str(tmp_path / "job.yaml")))["rows"]["published"] == 40


def test_names_of_fields_write_no_lines(tmp_path):
    nested = pa.array([{"x\nk: 1": 1}] * 40)
    text, job = job_of(pa.table({"age": [20, 30] * 20, "visits": nested}), tmp_path)
    assert (job["k"], text.count("\nk: ")) == (5, 1)


def test_a_table_without_quasi_identifiers_says_so(tmp_path):
    text, job = job_of(pa.table({"x": [1, 2] * 20}), tmp_path)
    assert job["quasi_identifiers"] == []
    assert "list what others may know" in text
