"""Releases of one version each, staged and published."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mondrian_ops.storage import write_part

__all__ = ["names", "stage", "version_of"]


def stage(directory: Path, version: int, parts: int = 3) -> Path:
    """A staging directory with a release of this version; every row says it."""
    directory.mkdir(parents=True)
    for part in range(parts):
        table = pa.table({"version": [version] * 10, "part": [part] * 10})
        write_part(str(directory / f"part-{part:05d}-v{version}.parquet"), table)
    report = {"job": {}, "equivalence_classes": 1, "version": version, "parts": parts}
    (directory / "_report.json").write_text(json.dumps(report))
    return directory


def names(directory: Path) -> list[str]:
    """What lies in a directory, sorted."""
    return sorted(path.name for path in directory.iterdir())


def version_of(output: Path) -> int:
    """The version of a release that stands whole; fails on anything else."""
    report = json.loads((output / "_report.json").read_text())
    assert (output / "_SUCCESS").exists()
    table = pq.read_table(output)
    assert table.num_rows == report["parts"] * 10
    assert set(table["version"].to_pylist()) == {report["version"]}
    return report["version"]
