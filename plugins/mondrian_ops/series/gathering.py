"""The first step of a night: the rows of its drop and the rows that wait, as one source.

The pool is a file of the run's working files, so all that follows reads it as it reads any input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mondrian_ops import publish, stores, tables
from mondrian_ops.cut.anonymizer import columns_to_read
from mondrian_ops.data.column_types import plain_type
from mondrian_ops.data.pool import HIDDEN, NIGHT
from mondrian_ops.engines.handover import SeriesNight
from mondrian_ops.errors import InputError, StorageError
from mondrian_ops.job.job import Job
from mondrian_ops.series import history, keyed_hashes, nights
from mondrian_ops.series.naming import series_name
from mondrian_ops.series.terms import refuse_other_types
from mondrian_ops.series.waiting import arrivals_in, directory_of
from mondrian_ops.stores.files import new_file, open_file

_POOL = "pool.parquet"


def gather(
    job: Job, drop: tables.Table, work: publish.WorkDir
) -> tuple[Job, SeriesNight, tables.Table]:
    """The next night of the job's series, and a source of its rows: ``drop`` and those that wait.

    The job comes back as the policies of the rows that wait have it, too.

    Raises JobError where it asks less than these require; InputError where a column of the drop has
    a name of ours, or another type than in the rows that wait; StorageError where the rows that
    wait, or the releases, are not those that the catalogue knows of; TimeoutError, which a retry
    cures, where another night took them meanwhile.
    """
    _refuse_names(drop)
    nights.refuse_forgotten(job)
    name = series_name(job)
    state = history.current(name)
    try:
        return _gathered(job, drop, work, name, state)
    except (InputError, StorageError):
        if history.current(name).last == state.last:
            raise
        raise TimeoutError(
            "series: another night was published while the rows of this one were gathered; run "
            "again"
        ) from None


def check_types(job: Job, drop: tables.Table) -> None:
    """Raise InputError where persons, or their values, are of another type than in the nights
    before: nobody can accept that."""
    if drop.rows:  # the types of a CSV file without rows mean nothing
        refuse_other_types(series_name(job), keyed_hashes.types_of(job, drop.schema))


def _gathered(
    job: Job, drop: tables.Table, work: publish.WorkDir, name: str, state: history.Current
) -> tuple[Job, SeriesNight, tables.Table]:
    number = state.last + 1
    policies = [policy.to_dict() for policy in stores.policies_of(job)]
    arrivals = history.arrivals_of(name, state)
    publish.note_arrivals(work.root, arrivals)
    if arrivals:
        job = publish.check_job(job, work=work.root)
    files = dict.fromkeys(each.file for each in state.waiting)
    waiting = [_opened(file, directory_of(name)) for file in files]
    signatures = {came.number: str(came.signature) for came in state.came}
    for file in files:
        _refuse_older(signatures, arrivals_in(file))
    schema = _schema_of_pool(job, drop, waiting)
    of_rows = pa.schema([each for each in schema if each.name not in HIDDEN])
    publish.check_columns(job, of_rows, work.root)
    path, counts = work.path(_POOL), Counter[int]()
    with new_file(path) as sink, pq.ParquetWriter(sink, schema) as writer:
        for source in waiting:
            for batch in _batches(source, schema):
                counts.update(batch.column(NIGHT).to_pylist())
                writer.write_batch(batch)
        _refuse_others(counts, state.waiting)
        for batch in _batches(drop, schema, number):
            writer.write_batch(batch)
    if job.follows_persons:
        from mondrian_ops.series.intersection import night as of_persons

        with open_file(path) as file:
            table = pq.read_table(file)
        with new_file(path) as sink:
            pq.write_table(of_persons.signed(job, name, table, work), sink)
    waited = [[each.origin, each.rows] for each in state.waiting]
    shared = state.boundaries, state.refit
    came = [*signatures.items()]
    night = SeriesNight(name, number, drop.rows, waited, *shared, policies, came)
    pool = tables.open_table(path, may_be_empty=True)
    kept = [each for each in drop.declared if each.name in pool.schema.names]
    declared = [each for each in kept if pool.schema.field(each.name).type == plain_type(each.type)]
    as_read = replace(pool, types=drop.types, read_as=drop.read_as)
    return job, night, replace(as_read, declared=pa.schema(declared))


def _batches(
    source: tables.Table, schema: pa.Schema, number: int | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a source as the pool has them; those of a drop came in the night ``number``."""
    names = [name for name in schema.names if name in source.schema.names]
    for batch in source.batches(names):
        rows, columns = batch.num_rows, dict(zip(names, batch.columns, strict=True))
        if number is not None:
            columns[NIGHT] = pa.array(np.full(rows, number, np.int32))
        yield pa.RecordBatch.from_arrays(
            [
                _cast(field.name, columns[field.name], field.type)
                if field.name in columns
                else pa.nulls(rows, field.type)
                for field in schema
            ],
            schema=schema,
        )


def _schema_of_pool(job: Job, drop: tables.Table, waiting: Iterable[tables.Table]) -> pa.Schema:
    """The columns that the release needs, each in a type that has room for all its values.

    A column that is published without being named may be missing in some of the rows.
    """
    columns = columns_to_read(job, drop.schema.names)
    # The types of a CSV file without rows mean nothing.
    types = {name: drop.schema.field(name).type if drop.rows else pa.null() for name in columns}
    types[NIGHT] = pa.int32()
    for source in waiting:
        for field in source.schema:
            types[field.name] = _common(field.name, types.get(field.name, pa.null()), field.type)
    return pa.schema(list(types.items()))


def _common(name: str, one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type that has room for the values of two; that of a text may have no value at all."""
    try:
        fields = [pa.schema([(name, each)]) for each in (one, other)]
        return pa.unify_schemas(fields, promote_options="permissive").field(name).type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        others = [each for each in (one, other) if not pa.types.is_string(each)]
        if len(others) == 1:  # a column without values is read as text from CSV
            return others[0]
        raise _other_type(name) from None


def _cast(name: str, column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The column in the pool's type; raises InputError for texts that are to be no text."""
    if column.null_count == len(column):
        return pa.nulls(len(column), kind)
    if pa.types.is_string(column.type) and not _is_text(kind):
        raise _other_type(name)
    return column.cast(kind)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _other_type(name: str) -> InputError:
    return InputError(
        f"column {name!r} has another type than in the rows that wait since an earlier night; "
        "deliver it in the type that it had, or end the series first (docs/operate.md says how)"
    )


def _opened(file: str, directory: str) -> tables.Table:
    """The rows that wait in a file; raises StorageError where it is missing, or of another series.

    The rows of another series came under other policies.
    """
    if file.rpartition("/")[0] != directory:
        raise StorageError(
            f"{stores.shown(file)}: is not in the directory of this series' waiting rows, so "
            "somebody has changed the catalogue; nothing is published; find out who may write to "
            "it, and restore it from a backup"
        )
    try:
        return tables.open_table(file)
    except InputError:
        raise StorageError(
            f"{stores.shown(file)}: rows that wait are missing or cannot be read; restore the file"
        ) from None


def _refuse_others(counts: Counter[int], waiting: Iterable[history.Waiting]) -> None:
    """Raise StorageError unless as many rows wait, since each night, as the catalogue says."""
    if dict(counts) != {each.origin: each.rows for each in waiting}:
        raise StorageError(
            "series: the files of the rows that wait are not those that the catalogue knows of; "
            "restore both from backups of the same time"
        )


def _refuse_older(signatures: dict[int, str], kept: dict[int, str]) -> None:
    """Raise StorageError unless the rows came as the catalogue says: ``kept`` is in their file."""
    for number, signature in signatures.items():
        if kept.get(number) != signature:
            raise StorageError(
                f"series: rows wait since night {number}, and the catalogue tells of another "
                "arrival than their file: somebody has put back an older entry, or an earlier "
                "version kept the rows; nothing is published; find out who may write to the "
                "catalogue, and restore it from a backup; or begin another series with another "
                "output, and deliver the drop of that night there"
            )


def _refuse_names(drop: tables.Table) -> None:
    for name in HIDDEN:
        if name in drop.schema.names:
            raise InputError(
                f"column {name!r} has a name that a series reserves for itself; rename it"
            )
