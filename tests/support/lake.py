"""An Iceberg catalog of its own, in an SQLite file, and deletes as Spark or Flink write them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate
from pyiceberg.typedef import Record

NAME = "lake"


def lake_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    """An empty catalog ``lake`` in PyIceberg's settings, with a namespace ``clinic``."""
    properties = {
        "type": "sql",
        "uri": f"sqlite:///{folder}/catalog.db",
        "warehouse": f"file://{folder}/warehouse",
    }
    for key, value in properties.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{NAME.upper()}__{key.upper()}", value)
    catalog = load_catalog(NAME, **properties)
    catalog.create_namespace("clinic")
    return catalog


class _Deletes(ManifestWriterV2):
    """Writes the list of a snapshot's files of deletes; PyIceberg itself writes none."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


def delete_positions(table: Table, file: str, positions: Sequence[int]) -> None:
    """Delete rows of a data file by their numbers, in a commit of its own (merge on read)."""
    path = f"{table.location()}/data/{uuid.uuid4()}-deletes.parquet"
    schema = pa.schema(
        [
            _field("file_path", pa.string(), 2147483546),
            _field("pos", pa.int64(), 2147483545),
        ]
    )
    rows = pa.table([[file] * len(positions), list(positions)], schema=schema)
    pq.write_table(rows, path.removeprefix("file://"))
    _commit(table, path, len(positions), DataFileContent.POSITION_DELETES)


def delete_equal(table: Table, column: str, values: Sequence[Any]) -> None:
    """Delete the rows with one of these values in a column, as Flink does."""
    path = f"{table.location()}/data/{uuid.uuid4()}-equal.parquet"
    of_column = table.schema().find_field(column)
    array = pa.array(values)
    rows = pa.table([array], schema=pa.schema([_field(column, array.type, of_column.field_id)]))
    pq.write_table(rows, path.removeprefix("file://"))
    _commit(table, path, len(values), DataFileContent.EQUALITY_DELETES, [of_column.field_id])


def _field(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind, False, {"PARQUET:field_id": str(number)})


def _commit(
    table: Table,
    path: str,
    rows: int,
    content: DataFileContent,
    equality_ids: Sequence[int] | None = None,
) -> None:
    current = table.current_snapshot()
    assert current is not None
    number, sequence = current.snapshot_id + 1, table.metadata.last_sequence_number + 1
    size = Path(path.removeprefix("file://")).stat().st_size
    file = DataFile.from_args(
        content=content,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=rows,
        file_size_in_bytes=size,
        equality_ids=equality_ids,
    )
    file.spec_id = table.spec().spec_id
    manifest = f"{table.location()}/metadata/{uuid.uuid4()}-m0.avro"
    output = table.io.new_output(manifest)
    with _Deletes(table.spec(), table.schema(), output, number, "deflate") as writer:
        writer.add(
            ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED, snapshot_id=number, data_file=file
            )
        )
    manifests: list[ManifestFile] = [writer.to_manifest_file(), *current.manifests(table.io)]
    listed = f"{table.location()}/metadata/snap-{number}.avro"
    with write_manifest_list(
        2, table.io.new_output(listed), number, current.snapshot_id, sequence, "deflate"
    ) as lists:
        lists.add_manifests(manifests)
    snapshot = Snapshot(
        snapshot_id=number,
        parent_snapshot_id=current.snapshot_id,
        sequence_number=sequence,
        timestamp_ms=int(time.time() * 1000),
        manifest_list=listed,
        summary=Summary(Operation.DELETE),
        schema_id=table.schema().schema_id,
    )
    reference = SetSnapshotRefUpdate(ref_name="main", type="branch", snapshot_id=number)
    table._do_commit((AddSnapshotUpdate(snapshot=snapshot), reference), ())
