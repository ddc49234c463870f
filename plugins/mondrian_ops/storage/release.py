"""A release on disk: its parts written, its directory published as a whole, and read back.

Publication is crash-safe by its order. Everything of the new release is flushed to disk before the
one step that makes it visible: a rename onto nothing, or the atomic exchange of two directories
(``renameat2`` with ``RENAME_EXCHANGE``). Killed before this step, the old release stands; after
it, the new one does, and only the old release's remains, out of sight in the working directory,
wait to be removed. Where the file system knows no exchange, the old release steps aside by one
rename before the new one takes its place by another; killed between the two, the next
:func:`check_output` or :func:`publish` puts it back.
"""

from __future__ import annotations

import ctypes
import errno
import fnmatch
import json
import os
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mondrian_ops.core.errors import StorageError
from mondrian_ops.storage.locations import data_files, file_format, local_path, source_root
from mondrian_ops.storage.parquet_files import readable
from mondrian_ops.storage.workdir import remove_tree

__all__ = ["check_output", "publish", "published", "read_release", "write_part"]

REPORT = "_report.json"
SUCCESS = "_SUCCESS"
PART_PATTERN = "part-*.parquet"
_REPORT_KEYS = frozenset({"job", "equivalence_classes"})  # what tells our reports from others'
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_NO_EXCHANGE = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM})


def write_part(path: str, table: pa.Table) -> None:
    """Write one part of a release, flushed to disk, as a whole or not at all.

    Nothing but the rows is written: no schema or pandas metadata, no column statistics, and no
    dictionary entry that no row refers to, for a reader would find it in the file.

    Raises:
        StorageError: the working directory vanished.
    """
    directory, name = os.path.split(path)
    temporary = os.path.join(directory, f".{name}.tmp")
    clean = pa.table([_compact(column) for column in table.columns], names=table.column_names)
    try:
        with open(temporary, "wb") as file:
            pq.write_table(
                clean,
                file,
                compression="zstd",
                write_statistics=False,
                store_schema=False,
            )
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except FileNotFoundError:
        raise StorageError(
            f"{directory}: working files of this run vanished; run again from the partition task"
        ) from None


def _compact(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(column.type):
        return column
    return pa.chunked_array([_compact_chunk(chunk) for chunk in column.chunks], column.type)


def _compact_chunk(chunk: pa.DictionaryArray) -> pa.DictionaryArray:
    indices = chunk.indices.drop_null().to_numpy(zero_copy_only=False)
    used = np.zeros(len(chunk.dictionary), dtype=bool)
    used[indices] = True
    if used.all():
        return chunk
    moved = pa.array(np.cumsum(used, dtype=np.int64) - 1).cast(chunk.indices.type, safe=False)
    return pa.DictionaryArray.from_arrays(
        moved.take(chunk.indices), chunk.dictionary.filter(pa.array(used)), ordered=False
    ).cast(chunk.type)


def check_output(input_url: str, output: str) -> None:
    """Refuse an output that could not be published, or whose publication would harm something.

    Raises:
        StorageError: it would be read as part of the input, the input lies in it, it is not a
            release of this project, or its directory is not writable.
    """
    target = _target(output)
    _recover(target)
    _refuse_overlap(input_url, output, target)
    _refuse_occupied(target)
    ancestor = os.path.dirname(target)
    while not os.path.lexists(ancestor):
        ancestor = os.path.dirname(ancestor)
    if not os.path.isdir(ancestor) or not os.access(ancestor, os.W_OK | os.X_OK):
        raise StorageError(
            f"output: {ancestor} is not a directory this process may write to; "
            "choose another `output`, or grant the permission"
        )


def publish(staging: str, output: str, token: str = "") -> None:
    """Make ``staging`` the release at ``output`` in one step; the release it replaces is removed.

    Args:
        staging: a directory on the same file system, complete but for ``_SUCCESS``; afterwards
            it is gone.
        output: a release of this project, an empty directory, or nothing.
        token: names this attempt (:attr:`WorkDir.token`). A retry after a kill finds it in the
            output and has nothing to do; without it, ``staging`` could be the old release.

    Raises:
        StorageError: the staging directory vanished, or the output is something else.
    """
    target = _target(output)
    _recover(target)
    if token and published(output, token):
        remove_tree(staging)
        return
    _refuse_occupied(target)
    _complete(staging, token)
    _swap(staging, target)
    _sync(os.path.dirname(target))
    remove_tree(staging)  # by now the old release, if there was one


def published(output: str, token: str) -> bool:
    """Whether the release at ``output`` is the one published with this token."""
    try:
        with open(os.path.join(_target(output), SUCCESS), encoding="utf-8") as file:
            return file.read() == token
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
        return False


def read_release(path: str, columns: Sequence[str] | None = None) -> Iterator[tuple[str, pa.Table]]:
    """Each data file of a release, or of any directory, file or glob, as (file name, table).

    Text comes as dictionaries, the form in which it is counted.

    Raises:
        InputError: nothing is there, or a file cannot be read.
    """
    for file in data_files(path):
        name = os.path.relpath(file, source_root(local_path(path)))
        yield os.path.basename(file) if name == "." else name, _read_table(file, columns)


def _read_table(path: str, columns: Sequence[str] | None) -> pa.Table:
    wanted = None if columns is None else list(columns)
    if file_format(path) == "csv":
        from mondrian_ops.storage.source import open_source

        source = open_source(path)
        return pa.Table.from_batches(source.batches(wanted))
    with readable(path):
        with pq.ParquetFile(path) as file:
            text = [
                field.name
                for field in file.schema_arrow
                if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
            ]
        with pq.ParquetFile(path, read_dictionary=text) as file:
            return file.read(wanted).replace_schema_metadata()


def _target(output: str) -> str:
    # Through symbolic links: exchanging a link itself would leave its target as it was.
    target = os.path.realpath(local_path(output))
    if not os.path.basename(target):
        raise StorageError("output: the root of the file system cannot be a release; name one")
    return target


def _refuse_overlap(input_url: str, output: str, target: str) -> None:
    remedy = "choose an `output` outside the input"
    pattern = os.path.realpath(local_path(input_url))
    root = os.path.realpath(source_root(local_path(input_url)))
    if _within(root, target):
        raise StorageError(f"output: the input lies in {output}, and would be replaced; {remedy}")
    if _within(target, root) and _would_be_read(target, pattern, root):
        raise StorageError(f"output: {output} lies in the input, would be read with it; {remedy}")


def _would_be_read(target: str, pattern: str, root: str) -> bool:
    if root == pattern or "**" in pattern:
        return True
    wildcards = pattern.split(os.sep)
    part = os.path.join(target, PART_PATTERN.replace("*", "00000")).split(os.sep)
    below = zip(wildcards, part, strict=False)
    return len(wildcards) <= len(part) and all(fnmatch.fnmatchcase(n, w) for w, n in below)


def _within(path: str, directory: str) -> bool:
    return os.path.commonpath([path, directory]) == directory


def _refuse_occupied(target: str) -> None:
    if not os.path.lexists(target):
        return
    remedy = "choose another `output`, or remove it yourself"
    if not os.path.isdir(target):
        raise StorageError(f"output: {target} is a file, not a release; {remedy}")
    names = os.listdir(target)
    if names and not _is_release(target):
        raise StorageError(f"output: {target} holds something that is not a release; {remedy}")
    for name in names:
        if not name.startswith(("_", ".")) and not fnmatch.fnmatchcase(name, PART_PATTERN):
            raise StorageError(
                f"output: {os.path.join(target, name)} is no part of a release and would be lost; "
                "move it elsewhere"
            )


def _is_release(target: str) -> bool:
    try:
        with open(os.path.join(target, REPORT), encoding="utf-8") as file:
            report = json.load(file)
    except (OSError, ValueError):
        return False
    has_success = os.path.exists(os.path.join(target, SUCCESS))
    return has_success and isinstance(report, dict) and report.keys() >= _REPORT_KEYS


def _complete(staging: str, token: str) -> None:
    """Add ``_SUCCESS`` and flush everything to disk: what becomes visible must be durable."""
    try:
        with open(os.path.join(staging, SUCCESS), "w", encoding="utf-8") as file:
            file.write(token)
        for name in os.listdir(staging):
            _sync(os.path.join(staging, name))
        _sync(staging)
    except FileNotFoundError:
        raise StorageError(
            f"{staging}: working files of this run vanished; run again from the partition task"
        ) from None


def _swap(staging: str, target: str) -> None:
    try:
        if not os.path.isdir(target) or not os.listdir(target):
            os.rename(staging, target)
        elif not _exchange(staging, target):
            _step_aside(staging, target)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EBUSY):
            raise
        raise StorageError(
            f"output: {target} is a mount point or on another file system than its directory, "
            "so it cannot be replaced in one step; choose a directory below it"
        ) from None


def _exchange(one: str, other: str) -> bool:
    """Exchange two directories atomically; False where the system or file system cannot."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    arguments = (_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    if renameat2(*arguments) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NO_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), other)


def _step_aside(staging: str, target: str) -> None:
    aside = _aside(target)
    remove_tree(aside)
    os.rename(target, aside)
    try:
        os.rename(staging, target)
    except BaseException:
        os.rename(aside, target)
        raise
    remove_tree(aside)


def _recover(target: str) -> None:
    """Put back a release that stepped aside for one that never came."""
    aside = _aside(target)
    if not os.path.lexists(aside):
        return
    if os.path.lexists(target):
        remove_tree(aside)
    else:
        os.rename(aside, target)


def _aside(target: str) -> str:
    parent, name = os.path.split(target)
    return os.path.join(parent, f".{name}.mondrian_ops-previous")


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
