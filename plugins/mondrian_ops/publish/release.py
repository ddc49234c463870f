"""A release: its parts written, its directory published as a whole, and read back.

How a release replaces the one before depends on what the store can do in one step: see
:mod:`~mondrian_ops.publish.local`, :mod:`~mondrian_ops.publish.hdfs` and
:mod:`~mondrian_ops.publish.objects`. In all of them the old release stays until the new one is
complete, and the next :func:`check_output` or :func:`publish` repairs what a killed process left.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property, partial
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mondrian_ops.data.column_types import as_declared, plain_schema
from mondrian_ops.data.small_integers import SmallIntegers
from mondrian_ops.errors import InputError, MondrianOpsError, StorageError
from mondrian_ops.late_methods import dataclass
from mondrian_ops.publish import manifest
from mondrian_ops.publish.publication import REPORT, Candidate, publication_of
from mondrian_ops.publish.table_folders import is_part
from mondrian_ops.stores.access_policy import check_writing
from mondrian_ops.stores.documents import json_value
from mondrian_ops.stores.files import (
    growing_file,
    read_file,
    remove_tree,
)
from mondrian_ops.stores.locations import (
    check_path,
    is_of_table,
    joined,
    name_of,
    shown,
)
from mondrian_ops.stores.places import place_of
from mondrian_ops.tables.discovery import (
    data_files,
    file_format,
    lies_in,
    source_root,
    would_be_read,
)
from mondrian_ops.tables.parquet_files import in_plain_types, parquet_file
from mondrian_ops.verify.truth import Read

if TYPE_CHECKING:
    from mondrian_ops.tables.table import Table

_SCHEMA = "ARROW:schema"
_LIMITS_PAGES = "max_rows_per_page" in signature(pq.ParquetWriter).parameters  # older Arrow: not
_BATCH_ROWS = 1 << 17  # small enough that the next batch reuses its memory, still in the caches
_READ_BACK_ROWS = 1 << 19  # of a column: the check has as much to do for a small batch


def write_part(
    path: str,
    table: pa.Table,
    grows_in: str | None = None,
    on_digest: Callable[[str], None] | None = None,
    declared: Iterable[pa.Field] = (),
    check: Callable[[Read], object] | None = None,
    required: Collection[str] = (),
) -> None:
    """Write one part of a release, flushed to disk, as a whole or not at all.

    A part that exists stays: it may have been checked already, and a stale attempt at the fragment
    must not replace it by the same rows in another order.

    ``grows_in``: a directory for the part until it is whole; one that is not published beneath it.
    ``on_digest``: called with the digest of its content before the part appears under its name.
    ``declared``: as :func:`as_declared` takes it.
    ``check``: called before that with a function that reads columns back from what was written,
    batch by batch; what it raises leaves no part.
    ``required``: columns that are declared to have no missing value, which makes them smaller, and
    faster to write and to read; those that the table has not are ignored.

    Only the rows and their types are written: no metadata of pandas or of a field, no column
    statistics, and no dictionary entry that no row refers to, for a reader would find it in the
    file.

    Raises:
        InputError: a required column has missing values.
        StorageError: the working directory vanished.
    """
    clean = pa.table([_compact(column) for column in table.columns], names=table.column_names)
    typed, schema = as_declared(clean, declared)
    typed, schema = _with_required(typed, required), _required_in(schema, required)
    try:
        with growing_file(path, durable=True, grows_in=grows_in, replace=False) as file:
            sink = file.sink if on_digest is None else manifest.DigestingSink(file.sink)
            _write_rows(typed, schema, sink)
            if check is not None:
                with file.written() as content, _parquet(content, clean.schema) as written:
                    check(partial(_read_back, written))
            if on_digest is not None:
                on_digest(sink.digest)
    except FileNotFoundError:
        raise _vanished(path) from None


def _with_required(table: pa.Table, required: Collection[str]) -> pa.Table:
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in required and column.null_count:
            raise InputError(
                f"column {name!r} has missing values, and had none when it was counted, so the "
                "input changed while it was read; run again from the partition task"
            )
    return pa.table(table.columns, schema=_required_in(table.schema, required))


def _required_in(schema: pa.Schema, required: Collection[str]) -> pa.Schema:
    fields = [field.with_nullable(field.name not in required) for field in schema]
    return pa.schema(fields, schema.metadata)


def _write_rows(table: pa.Table, schema: pa.Schema, sink: Any) -> None:
    options: dict[str, Any] = {
        "compression": "zstd",
        "write_statistics": False,
        "store_schema": False,
    }
    if _LIMITS_PAGES:  # by default to 20,000 rows, which take half as long again to read back
        options["max_rows_per_page"] = _BATCH_ROWS
    with pq.ParquetWriter(sink, table.schema, **options) as writer:
        writer.write_table(table)
        # Parquet itself has no durations, and of a time zone only whether there is one. Arrow would
        # store the schema of `table`, whose texts are dictionaries.
        writer.add_key_value_metadata({_SCHEMA: b64encode(schema.serialize())})


def _parquet(content: Any, schema: pa.Schema) -> pq.ParquetFile:
    text = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    return pq.ParquetFile(content, pre_buffer=False, read_dictionary=text)


def _read_back(file: pq.ParquetFile, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    yield from file.iter_batches(_READ_BACK_ROWS, columns=list(columns), use_threads=False)


def _vanished(path: str) -> StorageError:
    return StorageError(
        f"{shown(path)}: working files of this run vanished; run again from the partition task"
    )


def _compact(column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """The column without unused dictionary entries."""
    if not pa.types.is_dictionary(column.type):
        return column
    kind: Any = column.type
    return pa.chunked_array([_compact_chunk(chunk) for chunk in column.chunks], kind)


def _compact_chunk(chunk: Any) -> Any:
    used = SmallIntegers(chunk.indices, 0, len(chunk.dictionary)).occurs()[:-1]
    if used.all():
        return chunk
    moved = pa.array(np.cumsum(used, dtype=np.int64) - 1).cast(chunk.indices.type, safe=False)
    return pa.DictionaryArray.from_arrays(
        moved.take(chunk.indices), chunk.dictionary.filter(pa.array(used)), ordered=False
    ).cast(chunk.type)


def check_output(input_url: str, output: str) -> None:
    """Refuse an output that cannot be published, or whose publication would do harm.

    Raises:
        StorageError: the output would be read as part of the input, the input lies in it, it holds
            something that is not a release, or its directory is not writable.
        JobError: the access policy does not let jobs write there, or no file can have a path.
    """
    check_path("input", input_url)
    check_path("output", output)
    target = _target(output)
    publication = publication_of(target)
    with publication.lock(target):
        publication.recover(target)
    _refuse_overlap(input_url, output, target)
    publication.refuse_occupied(target)
    publication.refuse_unwritable(target)


@contextmanager
def staged(output: str, candidate: Candidate) -> Iterator[None]:
    """Check a release in this context as its readers will find it, where that is a table.

    After a final error (MondrianOpsError) nobody finds it any more.
    """
    target = _target(output)
    publication = publication_of(target)
    try:
        publication.stage(target, candidate)
        yield
    except MondrianOpsError:
        _unstage_if_possible(target, candidate.token)
        raise


def publication_lock(output: str) -> AbstractContextManager[None]:
    """Keep other processes from publishing to ``output``.

    Remote stores and catalogs have no locks: of two concurrent publications there both may
    succeed. Raises TimeoutError, which a retry may cure, if another process publishes for too long.
    """
    target = _target(output)
    return publication_of(target).lock(target)


def publish(
    staging: str,
    output: str,
    token: str = "",
    refuse: Callable[[], None] = lambda: None,
    progress: Callable[[int, int], None] = lambda copied, parts: None,
) -> None:
    """Make ``staging`` the release at ``output``; the release it replaces is removed.

    On a local file system, processes that publish to one output take turns.

    Args:
        staging: a directory on the same store, complete but for ``_SUCCESS``; it is moved.
        output: a release of this project, an empty directory, or nothing.
        token: identifies this attempt (:attr:`WorkDir.token`). A retry after a kill finds it in the
            output and has nothing to do; without it, ``staging`` could be the old release.
        refuse: called under the publication lock; raises if ``staging`` must not replace the
            current release.
        progress: called with the number of parts that are copied, and of all, where the store
            copies them (S3 and its like).

    Raises:
        StorageError: the staging directory vanished, or the output is something else.
        TimeoutError: another process publishes beside it for too long.
    """
    target = _target(output)
    publication = publication_of(target)
    with publication.lock(target):
        publication.recover(target, token)
        if token and published(output, token):
            remove_tree(staging)
            return

        def refuse_all() -> None:
            publication.refuse_occupied(target)
            refuse()

        try:
            publication.publish(staging, target, token, refuse_all, progress)
        except FileNotFoundError:
            raise _vanished(staging) from None
        except MondrianOpsError:
            _unstage_if_possible(target, token)
            raise


def _unstage_if_possible(target: str, token: str) -> None:
    """Remove the branch of a release after a final error, which matters more than one here."""
    with suppress(MondrianOpsError, OSError):
        publication_of(target).unstage(target, token)


def published(output: str, token: str) -> bool:
    """Whether the release at ``output`` is the one published with this token."""
    return current_token(output) == token


def current_token(output: str) -> str | None:
    """The token with which the release at ``output`` was published; None without a release."""
    target = _target(output)
    return publication_of(target).token(target)


def folder_of(release: str) -> str | None:
    """The directory in which a release lies, with its report; None for a table without one."""
    return publication_of(release).folder(release)


def beside_release(release: str, name: str) -> bytes:
    """The content of a file beside the parts of a release; raises FileNotFoundError."""
    folder = folder_of(release)
    if folder is None:
        raise FileNotFoundError(f"{shown(release)}: there is no release")
    return read_file(joined(folder, name))


def report_of(release: str) -> dict[str, Any] | None:
    """The report of a release, unchecked; None where there is none, or it is no JSON object."""
    try:
        report = json_value(beside_release(release, REPORT))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return report if isinstance(report, dict) else None


@dataclass(frozen=True)
class ReleaseFile:
    """A data file of a release; ``name`` is relative to the release, ``columns`` has all names.

    Raises InputError where it cannot be read.
    """

    name: str
    url: str

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        if not self._is_parquet:
            return list(self._source.schema.names)
        return list(self._schema.names)

    def batches(self, columns: Collection[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows in plain types, at least one batch; text as dictionaries, as it is counted.

        Only those of ``columns`` that the file has are read; all if None.
        """
        read = [name for name in self.columns if columns is None or name in columns]
        if not self._is_parquet:
            yield from self._source.batches(read)
            return
        schema = pa.schema([field for field in self._schema if field.name in read])
        text = [
            field.name
            for field in schema
            if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        ]
        footer, _ = self._footer
        with parquet_file(self.url, read_dictionary=text, metadata=footer) as file:
            yield from map(in_plain_types, file.iter_batches(_BATCH_ROWS, columns=read))
            if not file.metadata.num_rows:
                empty = [pa.nulls(0, field.type) for field in schema]
                yield pa.RecordBatch.from_arrays(empty, schema=schema)

    @property
    def _is_parquet(self) -> bool:
        return not is_of_table(self.url) and file_format(self.url) == "parquet"

    @cached_property
    def _footer(self) -> tuple[pq.FileMetaData, pa.Schema]:
        with parquet_file(self.url) as file:
            return file.metadata, plain_schema(file.schema_arrow)

    @property
    def _schema(self) -> pa.Schema:
        return self._footer[1]

    @cached_property
    def _source(self) -> Table:
        from mondrian_ops.tables.opening import open_table

        return open_table(self.url)


def release_files(path: str) -> Iterator[ReleaseFile]:
    """Each data file of a release, or of any directory, file or glob.

    On object stores, the files of a release are those that its ``_SUCCESS`` names. The rows of a
    table come as one file.

    Raises:
        InputError: nothing is there, or a file that ``_SUCCESS`` names is missing.
    """
    if is_part(path) or is_of_table(path):
        yield ReleaseFile(name_of(path), path)
        return
    root = source_root(path)
    for file in _release_files(path, root):
        yield ReleaseFile(name_of(file) if file == root else os.path.relpath(file, root), file)


def _release_files(path: str, root: str) -> list[str]:
    files = [file.url for file in data_files(path)]
    current = None if files == [root] else manifest.read(root)
    if current is None:
        return files
    named = sorted(joined(root, name) for name in current.names)
    for file in named:
        if file not in files:
            raise InputError(
                f"{shown(file)}: missing, though _SUCCESS names it; the release is damaged, or "
                "was replaced while it was read"
            )
    return named if publication_of(path).manifest_tells else files


def _target(output: str) -> str:
    # Symbolic links are followed: exchanging a link itself would leave its target as it was.
    target = place_of(output).real(output)
    if not name_of(target):
        raise StorageError(
            "output: the root of the file system cannot be a release; name a directory below it"
        )
    check_writing(target)
    return target


def _refuse_overlap(input_url: str, output: str, target: str) -> None:
    if is_of_table(input_url):
        if place_of(input_url).real(input_url).casefold() == target.casefold():
            raise StorageError(
                f"output: {shown(output)} is the table that is the input, which the release would "
                "replace; choose another `output`"
            )
        return
    remedy = "choose an `output` outside the input"
    if lies_in(source_root(input_url), target):
        raise StorageError(
            f"output: the input lies inside {shown(output)}, which the release would replace; "
            f"{remedy}"
        )
    if would_be_read(joined(target, "part-00000.parquet"), input_url):
        raise StorageError(
            f"output: {shown(output)} lies inside the input, and the next run would read it as "
            f"data; {remedy}"
        )
