"""Which files a source has, in a fixed order, and their format."""

from __future__ import annotations

import fnmatch
import glob
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from mondrian_ops.core.errors import InputError
from mondrian_ops.storage.access_policy import check_found, check_reading
from mondrian_ops.storage.files import (
    Entry,
    entries,
    entry,
    exists,
    input_errors,
    open_stream,
)
from mondrian_ops.storage.locations import (
    check_path,
    is_local,
    joined,
    local_path,
    remote_parts,
    shown,
)

__all__ = [
    "Format",
    "data_file",
    "data_files",
    "file_format",
    "linked_directories",
    "source_root",
]

Format = Literal["parquet", "csv"]

_WILDCARD = re.compile(r"[*?[]")
_PARQUET_MAGIC = b"PAR1"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_PARQUET_ENDINGS = (".parquet", ".parq", ".pq")
_CSV_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


def source_root(pattern: str) -> str:
    """The part of a location before its first wildcard: what matches is it or lies below it."""
    if is_local(pattern):
        path = local_path(pattern)
        if not _WILDCARD.search(path) or exists(path):
            return path
        parts = Path(path).parts
        return str(Path(*parts[: _first_wildcard(parts)]))
    base, path = remote_parts(pattern)
    if not _WILDCARD.search(path) or entry(pattern):
        return base + path
    names = path.split("/")
    return base + ("/".join(names[: _first_wildcard(names)]) or "/")


def _first_wildcard(names: Sequence[str]) -> int:
    return next(i for i, name in enumerate(names) if _WILDCARD.search(name))


def data_files(url: str) -> list[Entry]:
    """The data files of a file, directory (with its subdirectories) or glob, sorted by path.

    Names that start with ``_`` or ``.`` are left out, as dataset readers do.

    Raises:
        InputError: nothing is there, or a directory is Hive-partitioned (its columns would be
            lost without notice).
        JobError: no file can have the path, or a symbolic link leads to a hidden name or to where
            the access policy lets nobody read.
    """
    check_path("input", url)
    try:
        files = _local_files(url) if is_local(url) else _remote_files(url)
    except FileNotFoundError as error:
        raise InputError(
            f"{error.filename}: the file vanished; run again when nothing writes to `input` any "
            "more"
        ) from None
    except PermissionError as error:
        raise InputError(f"{error.filename}: permission denied; let this process read it") from None
    if not files:
        raise InputError(
            f"{shown(url)}: the directory has no data files; give one with Parquet or CSV files"
        )
    root = source_root(url)
    for file in files:
        check_found(file.url, root)
    return sorted(files, key=lambda file: file.url)


def data_file(url: str) -> Entry:
    """One data file as it is now; raises FileNotFoundError."""
    if is_local(url):
        return _local_file(local_path(url))
    file = entry(url)
    if file is None:
        raise FileNotFoundError(shown(url))
    return file


def file_format(path: str) -> Format:
    """Parquet or CSV: by the file's ending, or by its content if the ending says neither.

    Raises:
        InputError: the file cannot be read, or is neither.
    """
    lower = path.lower()
    if lower.endswith(_PARQUET_ENDINGS):
        return "parquet"
    if lower.endswith(_CSV_ENDINGS):
        return "csv"
    with input_errors(path), open_stream(path) as file:
        head = file.read(4096)
    if head.startswith(_PARQUET_MAGIC):
        return "parquet"
    if b"\x00" in head and not head.startswith(_UTF16_MARKS):
        raise InputError(f"{shown(path)}: neither Parquet nor CSV; remove the file or convert it")
    return "csv"


def _hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def _refuse_partitioned(directory: str, name: str) -> None:
    if "=" in name:
        raise InputError(
            f"{shown(directory)}: holds directories named column=value, which are not read as "
            "columns; give one of them as `input`, or write the column into the files"
        )


def _no_match(url: str, path: str) -> InputError:
    what = "no file matches the pattern" if _WILDCARD.search(path) else "no such file or directory"
    return InputError(f"{shown(url)}: {what}; check the path of `input`")


# On the local file system


def _local_files(url: str) -> list[Entry]:
    path = local_path(url)
    if Path(path).is_dir():
        paths = list(_walk(Path(path)))
    elif exists(path):
        paths = [path]
    else:
        paths = _glob(url, path)
    return [_local_file(path) for path in paths]


def _local_file(path: str) -> Entry:
    status = Path(path).stat()
    # A program can set the time of modification (mtime), but not that of the last change (ctime).
    stamp = f"{status.st_size}-{status.st_mtime_ns}-{status.st_ctime_ns}"
    return Entry(path, False, status.st_size, stamp)


def _glob(url: str, pattern: str) -> list[str]:
    # Unlike pathlib's glob, this one skips names that start with a dot.
    paths = map(Path, glob.glob(pattern, recursive=True) if _WILDCARD.search(pattern) else [])
    matches = [match for match in paths if not _hidden(match.name)]
    if not matches:
        raise _no_match(url, pattern)
    files: set[str] = set()
    for match in matches:
        files.update(_walk(match) if match.is_dir() else [str(match)])
    return list(files)


def _walk(directory: Path, above: frozenset[Path] = frozenset()) -> Iterator[str]:
    real = directory.resolve()
    if real in above:  # a symbolic link that leads back up
        return
    check_reading(str(directory))
    for path in sorted(directory.iterdir()):
        if _hidden(path.name):
            continue
        if not path.is_dir():
            yield str(path)
            continue
        _refuse_partitioned(str(path), path.name)
        yield from _walk(path, above | {real})


def linked_directories(url: str) -> Iterator[Path]:
    """The targets of symbolic links to directories, in a local directory or what a glob matches."""
    path = local_path(url)
    starts = [path] if exists(path) else glob.glob(path, recursive=True)
    for start in map(Path, starts):
        if start.is_symlink() and start.is_dir():
            yield start.resolve()
        yield from _links_below(start)


def _links_below(directory: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    real = directory.resolve()
    if real in above or not directory.is_dir():
        return
    with suppress(PermissionError, FileNotFoundError):  # reading the source will report it
        for path in directory.iterdir():
            if _hidden(path.name) or not path.is_dir():
                continue
            if path.is_symlink():
                yield path.resolve()
            yield from _links_below(path, above | {real})


# On a remote store


def _remote_files(url: str) -> list[Entry]:
    base, path = remote_parts(url)
    named = entry(base + path)
    matches = [named] if named else list(_matches(base, path))
    if not matches:
        raise _no_match(url, path)
    files: dict[str, Entry] = {}
    for match in matches:
        inside = _files_in(match) if match.is_directory else [match]
        files.update((file.url, file) for file in inside)
    return list(files.values())


def _files_in(directory: Entry) -> Iterator[Entry]:
    for item in entries(directory.url):
        if _hidden(item.name):
            continue
        if not item.is_directory:
            yield item
            continue
        _refuse_partitioned(item.url, item.name)
        yield from _files_in(item)


def _matches(base: str, pattern: str) -> Iterator[Entry]:
    """What matches a pattern, by the rules of the local glob."""
    if not _WILDCARD.search(pattern):
        return
    names = pattern.split("/")
    first = _first_wildcard(names)
    root = entry(base + ("/".join(names[:first]) or "/"))
    if root is not None and root.is_directory:
        yield from (item for item in _below(root, names[first:]) if not _hidden(item.name))


def _below(directory: Entry, names: list[str]) -> Iterator[Entry]:
    """What lies below a directory under ``names``, which may hold wildcards."""
    name, rest = names[0], names[1:]
    if name == "**":
        if rest:
            yield from _below(directory, rest)
        for item in _visible(directory):
            if not rest:
                yield item
            if item.is_directory:
                yield from _below(item, names)
        return
    for item in _named(directory, name):
        if not rest:
            yield item
        elif item.is_directory:
            yield from _below(item, rest)


def _named(directory: Entry, name: str) -> list[Entry]:
    if _WILDCARD.search(name):
        return [item for item in _visible(directory) if fnmatch.fnmatchcase(item.name, name)]
    item = entry(joined(directory.url, name))
    return [item] if item else []


def _visible(directory: Entry) -> list[Entry]:
    return [item for item in entries(directory.url) if not item.name.startswith(".")]
