"""That the benchmarks run and keep what they find, at sizes where the figures mean nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def benchmarks(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )


def test_every_part_without_airflow_runs(tmp_path: Path) -> None:
    results = tmp_path / "results"
    committed = ROOT / "benchmarks" / "RESULTS.md"
    before = committed.read_bytes() if committed.exists() else None
    result = benchmarks(
        *("--quick", "--rows", 2000, "--sizes", 500, 1000),
        *("--only", "speed", "whole", "loss", "distribution"),
        *("--scratch", tmp_path, "--results", results),
    )
    assert result.returncode == 0, result.stderr
    kept = json.loads((results / "results.json").read_text("utf-8"))
    assert len(kept["tables"]) == 5
    for table in kept["tables"]:
        assert table["title"] in result.stdout
        assert table["title"] in (results / "results.md").read_text("utf-8")
        assert table["rows"]
        assert all(len(row) == len(table["head"]) for row in table["rows"])
    assert (committed.read_bytes() if committed.exists() else None) == before
    assert list(tmp_path.iterdir()) == [results]


def test_classifiers_on_releases_of_di_mondrian(tmp_path: Path) -> None:
    results = tmp_path / "results"
    result = benchmarks(
        *("--quick", "--rows", 1000, "--only", "di_mondrian", "--data", tmp_path),
        *("--scratch", tmp_path, "--results", results),
    )
    assert result.returncode == 0, result.stderr
    assert "give one with --data" in result.stderr
    losses, table = json.loads((results / "results.json").read_text("utf-8"))["tables"]
    assert len(losses["rows"]) == 18
    head, (original, *others) = table["head"], table["rows"]
    assert original[:4] == ["original rows", "", "", ""]
    assert len(others) == 36
    for row in others:
        found = dict(zip(head[1:], row[1:], strict=True))
        assert float(found["NCP"].replace(",", "")) > 0
        assert all(0 < float(found[name]) < 1 for name in head[4:])


def test_adult_needs_its_data(tmp_path: Path) -> None:
    result = benchmarks("--quick", "--only", "adult", "--data", tmp_path, "--results", tmp_path)
    assert result.returncode == 0, result.stderr
    assert "give one with --data" in result.stderr


def test_an_unknown_part() -> None:
    assert benchmarks("--only", "nonsense").returncode == 2
