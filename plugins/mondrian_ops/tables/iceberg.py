"""A snapshot of an Iceberg table: ``iceberg://CATALOG/NAMESPACE.TABLE``, perhaps with ``@TIME``.

PyIceberg reads the table, with its deletes, its partitions and the columns that were renamed or
added since a file was written. All tasks of a run read the snapshot that is current when the run
begins. Later commits change nothing in the run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.parquet as pq

from mondrian_ops.data.column_types import declared_fields, plain_schema
from mondrian_ops.errors import InputError, MondrianOpsError
from mondrian_ops.late_methods import dataclass
from mondrian_ops.stores import store_access
from mondrian_ops.stores.locations import shown
from mondrian_ops.stores.store import URL
from mondrian_ops.tables.parquet_files import common, conform
from mondrian_ops.tables.table import Table

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.schema import Schema
    from pyiceberg.table import DataScan, FileScanTask
    from pyiceberg.table import Table as Iceberg
    from pyiceberg.table.name_mapping import NameMapping

_NUMBER = b"PARQUET:field_id"  # in the metadata of a column of a file


@dataclass(frozen=True, kw_only=True)
class IcebergTable(Table):
    """A snapshot of a table: each data file is a part of one piece, sorted by location.

    Attributes:
        snapshot: its number in the table's metadata.
        files: the data files.
    """

    snapshot: int
    files: Sequence[str] = field(repr=False)

    @classmethod
    def open(cls, url: str) -> Self:
        """The table as it is now, or as it was at a snapshot or a time.

        Raises InputError where PyIceberg is not installed, knows no such catalog, or cannot read
        the table.
        """
        with catalog_errors(url):
            table = _loaded(url)
            number = _snapshot(url, table)
            scan = table.scan(snapshot_id=number)
            tasks = _tasks(scan)
            own = _arrow_schema(scan.projection())
            sizes = [(_rows(table, scan, task),) for task in tasks.values()]
        committed = table.snapshot_by_id(number)
        assert committed is not None  # noqa: S101 - it was found by this number
        when = datetime.fromtimestamp(committed.timestamp_ms / 1000, UTC)
        return cls(
            url=url,
            schema=common(plain_schema(own)),
            declared=pa.schema(declared_fields(own)),
            sizes=sizes or [(0,)],
            snapshot=number,
            files=list(tasks) or [""],
            read_as={
                "snapshot": str(number),  # too large for a number of JavaScript
                "committed": when.isoformat(timespec="seconds"),
                "files": len(tasks),
            },
        )

    @property
    def locations(self) -> Sequence[str]:
        """The table, and its files, which a policy may name as well."""
        return [self.url, *filter(None, self.files)]

    def read(
        self,
        part: int,
        columns: Sequence[str],
        pieces: Sequence[int] | None,
        batch_rows: int,
        dictionaries: bool,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a data file that are not deleted; see :meth:`Table.read`."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        if not self.files[part]:
            return
        with catalog_errors(self.url):
            table, scan, tasks = self._opened
            names = tuple(columns)
            if names not in self._projections:  # which takes as long as some thousand rows
                self._projections[names] = scan.select(*names).projection()
            projection, task = self._projections[names], tasks[self.files[part]]
            rows = _as_written(table, projection, task, schema, batch_rows)
            for batch in _batches(table, projection, task) if rows is None else rows:
                for first in range(0, batch.num_rows, batch_rows):
                    yield conform(batch.slice(first, batch_rows), schema)

    def changed(self, part: int | None = None) -> str | None:
        """A snapshot never changes, but one that has expired cannot be read."""
        with catalog_errors(self.url):
            is_there = _loaded(self.url).snapshot_by_id(self.snapshot) is not None
        return None if is_there else self.url

    @cached_property
    def _projections(self) -> dict[tuple[str, ...], Schema]:
        """The part of the schema for some columns, found out once for all files."""
        return {}

    @cached_property
    def _opened(self) -> tuple[Iceberg, DataScan, Mapping[str, FileScanTask]]:
        table = _loaded(self.url)
        if table.snapshot_by_id(self.snapshot) is None:
            self.refuse_change()
        scan = table.scan(snapshot_id=self.snapshot)
        return table, scan, _tasks(scan)


def catalog_of(url: str) -> tuple[Catalog, str]:
    """The catalog of a table, and the table's name there; nothing is asked of the catalog.

    Raises InputError where nothing says how to reach it.
    """
    catalog, name, _ = _parts(url)
    options = dict(store_access.options(f"iceberg://{catalog}"))
    try:
        return _catalog(catalog, json.dumps(options, sort_keys=True), os.getpid()), name
    except ValueError:
        raise InputError(
            f"{shown(url)}: nothing says how to reach the catalog {catalog!r}; describe it in "
            f"PyIceberg's configuration (PYICEBERG_CATALOG__{catalog.upper()}__URI), or in Airflow "
            "as a connection of this name and of the type Iceberg"
        ) from None


@lru_cache(maxsize=8)
def _catalog(name: str, options: str, _process: int) -> Catalog:
    from pyiceberg.catalog import load_catalog

    return load_catalog(name, **json.loads(options))


def tables_below(catalog: str, namespace: str) -> list[str]:
    """The URLs of the tables in a namespace of a catalog, at any depth; none if it is not there.

    ``namespace``: empty for all of the catalog.
    """
    from pyiceberg.exceptions import NoSuchNamespaceError

    url = f"iceberg://{catalog}/{namespace}."
    with catalog_errors(url):
        opened, _ = catalog_of(f"iceberg://{catalog}/{namespace or 'all'}.tables")
        pending, tables = [tuple(filter(None, namespace.split(".")))], list[str]()
        while pending:
            here = pending.pop()
            with suppress(NoSuchNamespaceError):
                pending += [each for each in opened.list_namespaces(here) if len(each) > len(here)]
                tables += [".".join(each) for each in (opened.list_tables(here) if here else ())]
    return [f"iceberg://{catalog}/{name}" for name in tables]


def _loaded(url: str) -> Iceberg:
    catalog, name = catalog_of(url)
    return catalog.load_table(name)


def _parts(url: str) -> tuple[str, str, str]:
    """Catalog, table with its namespaces, and what follows the @, or nothing."""
    match = URL.match(url)
    assert match is not None  # noqa: S101 - a URL led here
    name, _, when = match[3].strip("/").partition("@")
    name = name.replace("/", ".")  # as a location below a namespace
    if not match[2] or "." not in name.strip("."):
        raise InputError(
            f"{shown(url)}: names no table; write iceberg://CATALOG/NAMESPACE.TABLE, and behind it "
            "@SNAPSHOT or @DATE for an earlier state"
        )
    return match[2], name, when


def _snapshot(url: str, table: Iceberg) -> int:
    """The number of the snapshot to read; raises InputError where there is none."""
    when = _parts(url)[2]
    if not when:
        snapshot = table.current_snapshot()
        remedy = "the table has no rows yet; write some"
    elif when.isdecimal():
        snapshot = table.snapshot_by_id(int(when))
        remedy = "the table has no such snapshot, or it has expired; give another"
    else:
        snapshot = table.snapshot_as_of_timestamp(_milliseconds(url, when))
        remedy = "the table had no snapshot then, or it has expired; give a later time"
    if snapshot is None:
        raise InputError(f"{shown(url)}: {remedy}")
    return snapshot.snapshot_id


def _milliseconds(url: str, when: str) -> int:
    """The end of a day, or a time, in UTC where it has no zone."""
    try:
        time = datetime.fromisoformat(when)
    except ValueError:
        raise InputError(
            f"{shown(url)}: what follows the @ is neither the number of a snapshot nor a date; "
            "write for example @2026-11-01 or @2026-11-01T06:00"
        ) from None
    if len(when) <= len("2026-11-01"):
        time = time.replace(hour=23, minute=59, second=59, microsecond=999_999)
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def _tasks(scan: DataScan) -> dict[str, FileScanTask]:
    """What to read by data file, in the order of their locations."""
    tasks = {task.file.file_path: task for task in scan.plan_files()}
    return {path: tasks[path] for path in sorted(tasks)}


def _rows(table: Iceberg, scan: DataScan, task: FileScanTask) -> int:
    """The exact number of rows; only of a file with deletes it has to be counted."""
    if not task.delete_files:
        return int(task.file.record_count)
    first = scan.projection().fields[0].name
    return sum(batch.num_rows for batch in _batches(table, scan.select(first).projection(), task))


def _batches(table: Iceberg, projection: Schema, task: FileScanTask) -> Iterator[pa.RecordBatch]:
    """The rows of a data file, one batch in memory at a time.

    PyIceberg's own ``to_record_batches`` holds all rows of a file.
    """
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan, _read_all_delete_files

    reader = ArrowScan(table.metadata, table.io, projection, AlwaysTrue())
    deletes = _read_all_delete_files(table.io, [task])
    wanted = [each.name for each in projection.fields]
    for batch in reader._record_batches_from_scan_tasks_and_deletes([task], deletes):
        yield batch.select(wanted)


def _as_written(
    table: Iceberg, projection: Schema, task: FileScanTask, schema: pa.Schema, batch_rows: int
) -> Iterator[pa.RecordBatch] | None:
    """The rows of a data file that is read as it is: nothing is deleted, no column has changed.

    None for any other, which PyIceberg reads; it looks at the schemas for as long as it takes to
    read ten thousand rows.
    """
    from pyiceberg.manifest import FileFormat

    is_parquet = task.file.file_format is FileFormat.PARQUET
    if task.delete_files or not (is_parquet and schema.names):
        return None
    file = pq.ParquetFile(table.io.new_input(task.file.file_path).open())
    there = file.schema_arrow
    has_numbers = any(_NUMBER in (field.metadata or {}) for field in there)
    mapping = None if has_numbers else table.name_mapping()
    for wanted in projection.fields:
        if there.names.count(wanted.name) != 1:
            return None
        field = there.field(wanted.name)
        number = (field.metadata or {}).get(_NUMBER, b"")
        if mapping is not None:
            number = str(_number_of(mapping, wanted.name)).encode()
        if number != str(wanted.field_id).encode() or field.type != schema.field(wanted.name).type:
            return None
    return (
        batch.select(schema.names) for batch in file.iter_batches(batch_rows, columns=schema.names)
    )


def _number_of(mapping: NameMapping, name: str) -> int | None:
    """The number of a column in files that have names only."""
    return next((each.field_id for each in mapping if name in each.names), None)


def snapshot_rows(table: Iceberg, snapshot: int, file: str) -> pa.Table:
    """The rows that a snapshot has of one of its data files, in plain types."""
    scan = table.scan(snapshot_id=snapshot)
    schema = common(plain_schema(_arrow_schema(scan.projection())))
    rows = _batches(table, scan.projection(), _tasks(scan)[file])
    return pa.Table.from_batches((conform(batch, schema) for batch in rows), schema=schema)


def _arrow_schema(schema: Schema) -> pa.Schema:
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    return schema_to_pyarrow(schema, include_field_ids=False)


@contextmanager
def catalog_errors(url: str) -> Iterator[None]:
    """Raise what PyIceberg raises as InputError or OSError, without its text.

    An error of this package passes.
    """
    try:
        import pyiceberg.exceptions as known
    except ModuleNotFoundError:
        raise InputError(
            f"{shown(url)}: PyIceberg, which reads and writes it, is not installed; install the "
            "package pyiceberg wherever tasks of a run work"
        ) from None
    try:
        yield
    except (known.NoSuchTableError, known.NoSuchNamespaceError, known.NoSuchIdentifierError):
        raise InputError(
            f"{shown(url)}: the catalog has no such table; correct the namespace or the name"
        ) from None
    except (known.ServerError, known.RESTError, ConnectionError) as error:
        name = type(error).__name__
        raise OSError(f"{shown(url)}: the catalog does not answer ({name})") from None
    except MondrianOpsError:
        raise
    except (ValueError, NotImplementedError) as error:
        if "equality deletes" in str(error):
            raise InputError(
                f"{shown(url)}: a writer such as Flink deletes rows by their values, which "
                "PyIceberg cannot apply; compact the table, for example with Spark's "
                "rewrite_data_files, and run again"
            ) from None
        raise InputError(
            f"{shown(url)}: PyIceberg cannot read the table ({type(error).__name__}); write its "
            "data files as Parquet, in types of Iceberg's version 2"
        ) from None
    except Exception as error:
        if not type(error).__module__.startswith("sqlalchemy."):
            raise
        name = type(error).__name__
        raise OSError(f"{shown(url)}: the database of the catalog fails ({name})") from None
