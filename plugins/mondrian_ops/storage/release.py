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
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

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
    part = Path(path)
    # A name of its own: an attempt that was given up for dead may still write beside its retry.
    temporary = part.with_name(f".{part.name}.{uuid.uuid4().hex[:8]}.tmp")
    clean = pa.table([_compact(column) for column in table.columns], names=table.column_names)
    try:
        with temporary.open("wb") as file:
            pq.write_table(
                clean,
                file,
                compression="zstd",
                write_statistics=False,
                store_schema=False,
            )
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(part)
    except FileNotFoundError:
        raise _vanished(part.parent) from None


def _vanished(directory: Path) -> StorageError:
    return StorageError(
        f"{directory}: working files of this run vanished; run again from the partition task"
    )


def _compact(column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    if not pa.types.is_dictionary(column.type):
        return column
    kind: Any = column.type
    return pa.chunked_array([_compact_chunk(chunk) for chunk in column.chunks], kind)


def _compact_chunk(chunk: Any) -> Any:
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
    ancestor = target.parent
    while not os.path.lexists(ancestor):
        ancestor = ancestor.parent
    if not ancestor.is_dir() or not os.access(ancestor, os.W_OK | os.X_OK):
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
    _complete(Path(staging), token)
    _swap(Path(staging), target)
    _sync(target.parent)
    remove_tree(staging)  # by now the old release, if there was one


def published(output: str, token: str) -> bool:
    """Whether the release at ``output`` is the one published with this token."""
    try:
        return (_target(output) / SUCCESS).read_text(encoding="utf-8") == token
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
        yield Path(file).name if name == "." else name, _read_table(file, columns)


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


def _target(output: str) -> Path:
    # Through symbolic links: exchanging a link itself would leave its target as it was.
    target = Path(local_path(output)).resolve()
    if not target.name:
        raise StorageError("output: the root of the file system cannot be a release; name one")
    return target


def _refuse_overlap(input_url: str, output: str, target: Path) -> None:
    remedy = "choose an `output` outside the input"
    pattern = Path(local_path(input_url)).resolve()
    root = Path(source_root(local_path(input_url))).resolve()
    if root.is_relative_to(target):
        raise StorageError(f"output: the input lies in {output}, and would be replaced; {remedy}")
    if target.is_relative_to(root) and _would_be_read(target, pattern, root):
        raise StorageError(f"output: {output} lies in the input, would be read with it; {remedy}")


def _would_be_read(target: Path, pattern: Path, root: Path) -> bool:
    wildcards = pattern.parts
    if root == pattern or "**" in wildcards:
        return True
    part = (target / PART_PATTERN.replace("*", "00000")).parts
    below = zip(wildcards, part, strict=False)
    return len(wildcards) <= len(part) and all(fnmatch.fnmatchcase(n, w) for w, n in below)


def _refuse_occupied(target: Path) -> None:
    if not os.path.lexists(target):
        return
    remedy = "choose another `output`, or remove it yourself"
    if not target.is_dir():
        raise StorageError(f"output: {target} is a file, not a release; {remedy}")
    names = [path.name for path in target.iterdir()]
    if names and not _is_release(target):
        raise StorageError(f"output: {target} holds something that is not a release; {remedy}")
    for name in names:
        if not name.startswith(("_", ".")) and not fnmatch.fnmatchcase(name, PART_PATTERN):
            raise StorageError(
                f"output: {target / name} is no part of a release and would be lost; "
                "move it elsewhere"
            )


def _is_release(target: Path) -> bool:
    try:
        report = json.loads((target / REPORT).read_bytes())
    except (OSError, ValueError):
        return False
    has_success = (target / SUCCESS).exists()
    return has_success and isinstance(report, dict) and report.keys() >= _REPORT_KEYS


def _complete(staging: Path, token: str) -> None:
    """Add ``_SUCCESS`` and flush everything to disk: what becomes visible must be durable.

    Parts that a killed attempt left unfinished are no part of the release.
    """
    try:
        (staging / SUCCESS).write_text(token, encoding="utf-8")
        for path in list(staging.iterdir()):
            if path.name.startswith("."):
                path.unlink(missing_ok=True)
            else:
                _sync(path)
        _sync(staging)
    except FileNotFoundError:
        raise _vanished(staging) from None


def _swap(staging: Path, target: Path) -> None:
    try:
        if not target.is_dir() or not any(target.iterdir()):
            staging.rename(target)
        elif not _exchange(staging, target):
            _step_aside(staging, target)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EBUSY):
            raise
        raise StorageError(
            f"output: {target} is a mount point or on another file system than its directory, "
            "so it cannot be replaced in one step; choose a directory below it"
        ) from None


def _exchange(one: Path, other: Path) -> bool:
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
    raise OSError(code, os.strerror(code), str(other))


def _step_aside(staging: Path, target: Path) -> None:
    aside = _aside(target)
    target.rename(aside)
    try:
        staging.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    remove_tree(str(aside))


def _recover(target: Path) -> None:
    """Put back a release that stepped aside for one that never came."""
    aside = _aside(target)
    if not os.path.lexists(aside):
        return
    if os.path.lexists(target):
        remove_tree(str(aside))
    else:
        aside.rename(target)


def _aside(target: Path) -> Path:
    return target.with_name(f".{target.name}.mondrian_ops-previous")


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
