"""Releases of a version on a store: staged, and found as a reader finds them."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq

from mondrian_ops.storage import filesystem, write_file, write_part

__all__ = ["stage", "version_of"]


def stage(url: str, version: int, parts: int = 2) -> None:
    store, path = filesystem(url)
    store.create_dir(path)
    for part in range(parts):
        rows = pa.table({"version": [version] * 10, "part": [part] * 10})
        write_part(f"{url}/part-{part:05d}-v{version}.parquet", rows)
    report = {"job": {}, "equivalence_classes": 1, "version": version}
    write_file(f"{url}/_report.json", json.dumps(report).encode())


def version_of(store, name: str = "out") -> int:
    """The version of the release as its readers find it, who know nothing of this project."""
    told = json.loads(store.fetch(f"{name}/_SUCCESS"))
    parts = {each["name"]: store.fetch(f"{name}/{each['name']}") for each in told["files"]}
    for each in told["files"]:
        assert each["bytes"] == len(parts[each["name"]])
        assert each["rows"] == pq.read_table(io.BytesIO(parts[each["name"]])).num_rows
    (version,) = {
        version
        for content in parts.values()
        for version in pq.read_table(io.BytesIO(content))["version"].to_pylist()
    }
    return version
