"""The snapshot of Iceberg that has the parts of a release and nothing else; is it as written?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mondrian_ops.errors import StorageError
from mondrian_ops.publish import table_folders
from mondrian_ops.publish.iceberg_commits import commit
from mondrian_ops.publish.iceberg_schema import mapping_of, next_schema
from mondrian_ops.publish.publication import REPORT, Candidate
from mondrian_ops.stores.files import list_directory
from mondrian_ops.stores.locations import name_of, parent_of, shown
from mondrian_ops.tables.iceberg import snapshot_rows
from mondrian_ops.tables.parquet_files import in_plain_types, parquet_file

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.types import IcebergType

MARK = "mondrian_ops."
"""Begins the keys in the summary of a snapshot."""


def stage(table: Table, target: str, branch: str, candidate: Candidate) -> None:
    """Commit a snapshot of the parts alone, and a branch that names it.

    Raises CommitFailedException where somebody else commits meanwhile; then nothing is left, unless
    the commit was made and its answer lost. A process that is killed before the commit leaves
    manifests that no snapshot names.
    """
    from pyiceberg.exceptions import CommitFailedException
    from pyiceberg.table import TableProperties
    from pyiceberg.table.update import AddSchemaUpdate, SetCurrentSchemaUpdate, TableUpdate

    metadata = table.metadata
    schema = next_schema(target, metadata, candidate)
    changes: list[dict[str, Any] | TableUpdate] = []
    requirements = []
    # The snapshot is written as if the schema were current, which it becomes with the release.
    transaction = table.transaction()
    current = SetCurrentSchemaUpdate.model_validate({"schema-id": schema.schema_id})
    if metadata.schema_by_id(schema.schema_id) is not None:
        transaction._stage((current,))
    else:
        added = AddSchemaUpdate.model_validate({"schema": schema})
        transaction._stage((added, current))
        changes.append(added)
        last = {"last-assigned-field-id": metadata.last_column_id}
        requirements.append({"type": "assert-last-assigned-field-id", **last})
    names = mapping_of(metadata, schema)
    mapping = {TableProperties.DEFAULT_NAME_MAPPING: names}
    changes.append({"action": "set-properties", "updates": mapping})
    producer = transaction.update_snapshot(
        snapshot_properties=_summary_of(table, candidate), branch=None
    ).overwrite()
    for file in _files_now(table):
        producer.delete_data_file(file)
    for file in _new_files(table, candidate):
        producer.append_data_file(file)
    snapshot, _ = producer._commit()
    named = {"action": "set-snapshot-ref", "ref-name": branch, "type": "branch"}
    changes += [*snapshot, {**named, "snapshot-id": producer.snapshot_id}]
    try:
        commit(table, changes, {}, *requirements)
    except CommitFailedException:
        if table.refresh().snapshot_by_id(producer.snapshot_id) is None:
            producer._clean_all_uncommitted()
        raise


def is_staged(table: Table, branch: str, candidate: Candidate) -> bool:
    """Whether a branch has the parts of a release already, and nothing else."""
    return branch in table.refs() and _found(table, branch) == _expected(table, candidate)


def audit(table: Table, target: str, branch: str, candidate: Candidate) -> None:
    """Raise StorageError unless readers of the branch find the parts as they were written.

    Of each data file its path, its size and its number of rows are compared. The rows are compared
    for the smallest part alone: the schema and the name mapping decide how a reader finds them, and
    all parts have the same ones.
    """
    expected, found = _expected(table, candidate), _found(table, branch)
    if found != expected:
        differing = len(found.items() ^ expected.items())
        raise _differs(target, f"{differing} of its data files are not those that were written")
    number = table.refs()[branch].snapshot_id
    if _columns(_schema_of(table, number)) != _columns(
        next_schema(target, table.metadata, candidate)
    ):
        raise _differs(target, "its columns have other types or numbers")
    smallest = min(candidate.rows, key=lambda url: (candidate.rows[url], url))
    with parquet_file(smallest) as file:
        written = pa.Table.from_batches(map(in_plain_types, file.iter_batches()), schema=None)
    read = snapshot_rows(table, number, _path(table, smallest))
    if set(read.column_names) != set(written.column_names):
        raise _differs(target, "it has other columns")
    for name in written.column_names:
        if not _is_equal(read[name], written[name]):
            raise _differs(target, f"the column {name!r} has other values than were written")


def _schema_of(table: Table, number: int) -> Schema | None:
    """The schema with which readers read a snapshot."""
    snapshot = table.snapshot_by_id(number)
    if snapshot is None or snapshot.schema_id is None:
        return None
    return table.metadata.schema_by_id(snapshot.schema_id)


def _columns(schema: Schema | None) -> dict[str, tuple[int, IcebergType, bool]]:
    """What decides how a column is read; neither the order of columns nor a comment does."""
    fields = () if schema is None else schema.fields
    return {each.name: (each.field_id, each.field_type, each.required) for each in fields}


def _differs(target: str, how: str) -> StorageError:
    return StorageError(
        f"output: a reader of {shown(target)} would not find the release as it was checked: {how}; "
        "nothing is published; run again, and if that ends alike, choose another table"
    )


def _is_equal(read: pa.ChunkedArray, written: pa.ChunkedArray) -> bool:
    return bool(read.cast(written.type).combine_chunks().equals(written.combine_chunks()))


def _summary_of(table: Table, candidate: Candidate) -> dict[str, str]:
    """What the summary of the snapshot says of the release."""
    report = _path(table, f"{parent_of(next(iter(candidate.rows)))}/{REPORT}")
    summary = {"token": candidate.token, **candidate.about, "report": report}
    return {f"{MARK}{key}": text for key, text in summary.items()}


def _path(table: Table, url: str) -> str:
    """A file of an attempt, as the table names it."""
    token, name = name_of(parent_of(url)), name_of(url)
    return f"{table.location().rstrip('/')}/{table_folders.FOLDER}/{token}/{name}"


def _expected(table: Table, candidate: Candidate) -> dict[str, tuple[int, int]]:
    """The path of each part, with its rows and its bytes.

    The parts come in the order of their names, which does not tell the order of the fragments.
    """
    listed = list_directory(parent_of(next(iter(candidate.rows))), hidden=False)
    sizes = {file.name: file.bytes for file in listed}
    return {
        _path(table, url): (rows, sizes.get(name_of(url), -1))
        for url, rows in sorted(candidate.rows.items())
    }


def _found(table: Table, branch: str) -> dict[str, tuple[int, int]]:
    """By the path of each data file of a branch, its rows and bytes; -1 rows if some are gone."""
    scan = table.scan(snapshot_id=table.refs()[branch].snapshot_id)
    return {
        task.file.file_path: (
            -1 if task.delete_files else task.file.record_count,
            task.file.file_size_in_bytes,
        )
        for task in scan.plan_files()
    }


def _files_now(table: Table) -> list[DataFile]:
    """The data files of ``main``, and those of deleted rows."""
    snapshot = table.current_snapshot()
    return [
        entry.data_file
        for manifest in ([] if snapshot is None else snapshot.manifests(table.io))
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
    ]


def _new_files(table: Table, candidate: Candidate) -> list[DataFile]:
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    return [
        DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=path,
            file_format=FileFormat.PARQUET,
            partition=Record(),
            record_count=rows,
            file_size_in_bytes=size,
            spec_id=table.spec().spec_id,
        )
        for path, (rows, size) in _expected(table, candidate).items()
    ]
