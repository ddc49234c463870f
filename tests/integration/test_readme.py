"""What the README shows is what the program does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import yaml
from jsonschema import Draft7Validator

from mondrian_ops.core.json_schema import job_schema

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def mondrian_ops(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mondrian_ops", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT / "plugins")},
        check=False,
    )


def test_the_job_runs_as_shown(tmp_path: Path) -> None:
    found = re.search(r"```yaml\n(.*?)```", README, re.DOTALL)
    assert found is not None
    Draft7Validator(job_schema()).validate(yaml.safe_load(found.group(1)))
    (tmp_path / "people.yaml").write_text(found.group(1), "utf-8")
    generated = ("generate", "people", "--rows", 1500, "--output", "data/people.parquet")
    (tmp_path / "data").mkdir()
    for command in (
        generated,
        ("run", "people.yaml"),
        ("run", "people.yaml", "--set", "k=10", "--set", "partitioning.fragments=8"),
        ("plan", "people.yaml"),
        ("verify", "out/people", "--job", "people.yaml"),
        ("frontier", "people.yaml", "--k", "2,5,10,25", "--l", "1,2"),
    ):
        result = mondrian_ops(*command, cwd=tmp_path)
        assert result.returncode == 0, (command, result.stderr)
    release = pq.read_table(tmp_path / "out" / "people")
    assert release.num_rows == 1500
    assert set(release.column_names) == {
        *("age", "sex", "zip", "country", "occupation", "visit_date"),
        *("diagnosis", "income"),
    }


def test_python_of_the_readme_compiles() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert blocks
    for block in blocks:
        compile(block, "README.md", "exec")
