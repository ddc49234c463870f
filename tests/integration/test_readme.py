"""What the README shows is what the program does."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from jsonschema import Draft7Validator

from mondrian_ops import cli
from mondrian_ops.job.schema import job_schema

ROOT = Path(__file__).resolve().parents[2]
ROWS = 700
README = (ROOT / "README.md").read_text("utf-8")


def test_the_job_runs_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = re.search(r"```yaml\n(.*?)```", README, re.DOTALL)
    assert found is not None
    Draft7Validator(job_schema()).validate(yaml.safe_load(found.group(1)))
    (tmp_path / "people.yaml").write_text(found.group(1), "utf-8")
    generated = ("generate", "people", "--rows", ROWS, "--output", "data/people.parquet")
    (tmp_path / "data").mkdir()
    for command in (
        generated,
        ("run", "people.yaml"),
        ("run", "people.yaml", "--set", "k=10", "--set", "partitioning.fragments=8"),
        ("plan", "people.yaml"),
        ("verify", "out/people", "--job", "people.yaml"),
        ("frontier", "people.yaml", "--k", "2,10", "--l", "1,2"),
    ):
        assert cli.main(list(map(str, command))) == 0, command
    release = pq.read_table(tmp_path / "out" / "people")
    assert release.num_rows == ROWS
    assert set(release.column_names) == {
        *("age", "sex", "zip", "country", "occupation", "visit_date"),
        *("diagnosis", "income"),
    }


def test_python_of_the_readme_compiles() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert blocks
    for block in blocks:
        compile(block, "README.md", "exec")
