"""Which files a source has, in a fixed order, their format, and what would be read with them."""

from __future__ import annotations

import fnmatch
import glob
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePath, PurePosixPath
from typing import Literal

from mondrian_ops.core.errors import InputError
from mondrian_ops.storage import store_access
from mondrian_ops.storage.access_policy import check_reading, check_source_file
from mondrian_ops.storage.files import (
    FileInfo,
    exists,
    file_info,
    input_errors,
    is_hidden,
    list_directory,
    local_info,
    open_stream,
    unreadable,
)
from mondrian_ops.storage.locations import (
    before_wildcard,
    check_path,
    has_wildcard,
    in_full,
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
    "lies_in",
    "source_root",
    "would_be_read",
]

Format = Literal["parquet", "csv"]

_PARQUET_MAGIC = b"PAR1"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_PARQUET_ENDINGS = (".parquet", ".parq", ".pq")
_CSV_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


def source_root(pattern: str) -> str:
    """The part of a location before its first wildcard: what matches is it or lies below it."""
    path = local_path(pattern) if is_local(pattern) else "".join(remote_parts(pattern))
    if not has_wildcard(path) or (exists(path) if is_local(path) else file_info(path)):
        return path
    return before_wildcard(path)


def data_files(url: str) -> list[FileInfo]:
    """The data files of a file, directory (with its subdirectories) or glob, sorted by path.

    Names that start with ``_`` or ``.`` are left out, as dataset readers do.

    Raises:
        InputError: there is no file, or a directory is Hive-partitioned (its columns would be
            lost without notice).
        JobError: no file can have the path, or a symbolic link leads to a hidden name or to a
            location that the access policy does not let jobs read.
    """
    check_path("input", url)
    try:
        files = _files(url)
    except (FileNotFoundError, PermissionError) as error:
        raise unreadable(error.filename or url, error) from None
    if not files:
        raise InputError(
            f"{shown(url)}: the directory has no data files; give one with Parquet or CSV files"
        )
    root = source_root(url)
    for file in files:
        check_source_file(file.url, root)
    return sorted(files, key=lambda file: file.url)


def data_file(url: str) -> FileInfo:
    """One data file as it is now; raises FileNotFoundError."""
    if is_local(url):
        return local_info(local_path(url))
    file = file_info(url)
    if file is None:
        raise FileNotFoundError(shown(url))
    return file


def file_format(path: str) -> Format:
    """Parquet or CSV: by the end of the file's name, or else by its content.

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


def _refuse_partitioned(directory: FileInfo) -> None:
    if "=" in directory.name:
        raise InputError(
            f"{shown(directory.url)}: a directory NAME=VALUE is not read as a column; give one "
            "such directory as `input`, or write the column into the files"
        )


def _files(url: str) -> list[FileInfo]:
    location = local_path(url) if is_local(url) else "".join(remote_parts(url))
    named = _named(location)
    matches = [named] if named else list(_matches(location))
    if not matches:
        what = "no file matches the pattern" if has_wildcard(url) else "no such file or directory"
        raise InputError(f"{shown(in_full(url))}: {what}; check the path of `input`")
    files = (file for match in matches for file in _files_in(match))
    return list({file.url: file for file in files}.values())


def _named(location: str) -> FileInfo | None:
    if not is_local(location):
        return file_info(location)
    return local_info(location) if Path(location).is_dir() or exists(location) else None


def _files_in(item: FileInfo, above: frozenset[PurePath] = frozenset()) -> Iterator[FileInfo]:
    """The file itself, or the files in a directory and its subdirectories."""
    if not item.is_directory:
        yield item
        return
    path = _path(item.url)
    if path in above:  # a symbolic link that leads back up
        return
    check_reading(item.url)
    for inner in list_directory(item.url, hidden=False):
        if inner.is_directory:
            _refuse_partitioned(inner)
        yield from _files_in(inner, above | {path})


def _matches(location: str) -> Iterator[FileInfo]:
    """The files and directories that match a pattern, without hidden ones."""
    if not has_wildcard(location):
        return
    if is_local(location):
        # Unlike pathlib's glob, this one skips names that start with a dot.
        paths = map(Path, glob.glob(location, recursive=True))
        yield from (local_info(str(path)) for path in paths if not is_hidden(path.name))
        return
    root = file_info(before_wildcard(location))
    if root is not None and root.is_directory:
        names = location.removeprefix(root.url).lstrip("/").split("/")
        yield from (item for item in _below(root, names) if not is_hidden(item.name))


# A glob on a remote store, by the rules of the local one


def _below(directory: FileInfo, names: list[str]) -> Iterator[FileInfo]:
    """The files and directories below a directory whose names match ``names`` one by one."""
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
    for item in _inside(directory, name):
        if not rest:
            yield item
        elif item.is_directory:
            yield from _below(item, rest)


def _inside(directory: FileInfo, name: str) -> list[FileInfo]:
    if has_wildcard(name):
        return [item for item in _visible(directory) if fnmatch.fnmatchcase(item.name, name)]
    item = file_info(joined(directory.url, name))
    return [item] if item else []


def _visible(directory: FileInfo) -> list[FileInfo]:
    return [item for item in list_directory(directory.url) if not item.name.startswith(".")]


# Whether a location lies in another, or in an input; symbolic links are followed


def lies_in(url: str, other: str) -> bool:
    """Whether a location is the other one or lies below it.

    Two remote locations are on one store if they have a server or the bucket in common.
    """
    return _on_one_store(url, other) and _path(url).is_relative_to(_path(other))


def would_be_read(file: str, input_url: str) -> bool:
    """Whether a file lies in an input (a file, a directory or a glob).

    That includes files below the target of a symbolic link in the input.
    """
    if is_local(file) and is_local(input_url):
        path = _path(file)
        if any(path.is_relative_to(directory) for directory in _linked_directories(input_url)):
            return True
    root = source_root(input_url)
    if not lies_in(file, root):
        return False
    names, patterns = _path(file).parts, _path(input_url).parts
    if _path(root) == _path(input_url) or "**" in patterns:
        return True
    return len(patterns) <= len(names) and all(map(fnmatch.fnmatchcase, names, patterns))


def _path(url: str) -> PurePath:
    if is_local(url):
        return Path(local_path(url)).resolve()
    return PurePosixPath(remote_parts(url)[1])


def _on_one_store(one: str, other: str) -> bool:
    if is_local(one) or is_local(other):
        return is_local(one) and is_local(other)
    one_base, other_base = remote_parts(one)[0], remote_parts(other)[0]
    return not store_access.servers_of(one_base).isdisjoint(store_access.servers_of(other_base))


def _linked_directories(url: str) -> Iterator[Path]:
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
            if is_hidden(path.name) or not path.is_dir():
                continue
            if path.is_symlink():
                yield path.resolve()
            yield from _links_below(path, above | {real})
