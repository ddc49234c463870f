"""The proposed job is one that runs."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from mondrian_ops import pipeline, stores
from mondrian_ops.inspection.inspector import inspect
from mondrian_ops.inspection.starter_job import starter_job
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


def test_a_table_without_quasi_identifiers_says_so(tmp_path):
    text, job = job_of(pa.table({"x": [1, 2] * 20}), tmp_path)
    assert job["quasi_identifiers"] == []
    assert "list what others may know" in text
