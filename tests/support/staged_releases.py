"""Releases of one version each: staged on any store, and read back as their readers do."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mondrian_ops.publish import write_part
from mondrian_ops.stores import filesystem, write_file


def stage(place: Any, version: int, parts: int = 2) -> Any:
    """Stage a release at a path or URL, which is returned; every row holds the version."""
    store, path = filesystem(str(place))
    store.create_dir(path)
    for part in range(parts):
        table = pa.table({"version": [version] * 10, "part": [part] * 10})
        write_part(f"{place}/part-{part:05d}-v{version}.parquet", table)
    report = {"job": {}, "equivalence_classes": 1, "version": version, "parts": parts}
    write_file(f"{place}/_report.json", json.dumps(report).encode())
    return place


def names(directory: Path) -> list[str]:
    """The sorted names in a directory."""
    return sorted(path.name for path in directory.iterdir())


def version_of(output: Path) -> int:
    """The version of a whole release in a local directory; fails on anything else."""
    report = json.loads((output / "_report.json").read_text())
    assert (output / "_SUCCESS").exists()
    table = pq.read_table(output)
    assert table.num_rows == report["parts"] * 10
    assert set(table["version"].to_pylist()) == {report["version"]}
    return report["version"]


def version_on(store: Any, name: str = "out") -> int:
    """The version of a whole release on a server's store, read without this project's code."""
    files = json.loads(store.fetch(f"{name}/_SUCCESS"))["files"]
    versions = set()
    for file in files:
        content = store.fetch(f"{name}/{file['name']}")
        assert file["bytes"] == len(content)
        table = pq.read_table(io.BytesIO(content))
        versions |= set(table["version"].to_pylist())
    (version,) = versions
    return version
