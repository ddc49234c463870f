"""Which files a source has, in a fixed order, their format, and what would be read with them."""

from __future__ import annotations

import fnmatch
import os
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Literal

from mondrian_ops.errors import InputError
from mondrian_ops.stores.access_policy import (
    check_reading,
    check_source_file,
    current_policy,
)
from mondrian_ops.stores.files import (
    exists,
    file_info,
    input_errors,
    unreadable,
)
from mondrian_ops.stores.locations import (
    before_wildcard,
    check_path,
    has_wildcard,
    in_full,
    parent_of,
    parts_of,
    shown,
)
from mondrian_ops.stores.regular_files import refuse_special
from mondrian_ops.stores.store import FileInfo, store_of
from mondrian_ops.tables.table_formats import refuse_table, refuse_tables_above

Format = Literal["parquet", "csv"]

_PARQUET_MAGIC = b"PAR1"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_PARQUET_ENDINGS = (".parquet", ".parq", ".pq")
_CSV_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_ENDINGS = (*_PARQUET_ENDINGS, *_CSV_ENDINGS)


def source_root(pattern: str) -> str:
    """The part of a location before its first wildcard: what matches is it or lies below it."""
    path = "".join(parts_of(pattern))
    if not has_wildcard(path) or exists(path):
        return path
    return before_wildcard(path)


def data_files(url: str) -> list[FileInfo]:
    """The data files of a file, directory (with its subdirectories) or glob, sorted by path.

    Names that start with ``_`` or ``.`` are left out, as dataset readers do. A file that several
    names lead to (links, hard links) is one file, under the first of the names that are no links.

    Raises:
        InputError: there is no file, a directory is Hive-partitioned (its columns would be lost
            without notice), a directory here or above is a table of Delta, Hudi or Iceberg, a file
            found in a directory or by a glob has another name than data files have, or something
            is no regular file.
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
    if current_policy() is not None:
        for file in files:
            check_source_file(file.url, root)
    return sorted(_once(files, root), key=lambda file: file.url)


def data_file(url: str) -> FileInfo:
    """One data file as it is now; raises FileNotFoundError."""
    file = file_info(url)
    if file is None:
        raise FileNotFoundError(shown(url))
    return file


def file_format(path: str) -> Format:
    """Parquet or CSV: by the end of the file's name, or else by its content.

    Raises:
        InputError: the file cannot be read, or is neither.
    """
    named = _format_by_name(path)
    if named is not None:
        return named
    with input_errors(path), store_of(path).stream_data(path) as file:
        head = file.read(4096)
    if head.startswith(_PARQUET_MAGIC):
        return "parquet"
    if b"\x00" in head and not head.startswith(_UTF16_MARKS):
        raise InputError(f"{shown(path)}: neither Parquet nor CSV; remove the file or convert it")
    return "csv"


def _format_by_name(name: str) -> Format | None:
    lower = name.lower()
    if lower.endswith(_PARQUET_ENDINGS):
        return "parquet"
    return "csv" if lower.endswith(_CSV_ENDINGS) else None


def _refuse_partitioned(directory: FileInfo) -> None:
    if "=" in directory.name:
        raise InputError(
            f"{shown(directory.url)}: a directory NAME=VALUE is not read as a column; give one "
            "such directory as `input`, or write the column into the files"
        )


def _files(url: str) -> list[FileInfo]:
    """The files, each under every name that leads to it."""
    location = "".join(parts_of(url))
    named = file_info(location)
    matches = [named] if named else list(_matches(location))
    if not matches:
        what = "no file matches the pattern" if has_wildcard(url) else "no such file or directory"
        raise InputError(f"{shown(in_full(url))}: {what}; check the path of `input`")
    refuse_tables_above(_directories_of(matches))
    files = list(_walked(matches))
    refuse_tables_above(_directories_of(file for file in files if file.is_link))
    for file in files:
        if file.special:
            refuse_special(file.url, error=InputError)
        if file is not named and _format_by_name(file.url) is None:
            raise InputError(
                f"{shown(file.url)}: has no name of a data file, which ends in one of "
                f"{', '.join(_ENDINGS)}; move it elsewhere or rename it, or give a glob as "
                f"`input` that leaves it out, such as *{_PARQUET_ENDINGS[0]}"
            )
    return files


def _once(files: list[FileInfo], root: str) -> Iterator[FileInfo]:
    """Each file once, under the first of its names that are no links, if there is one."""
    names: dict[object, list[FileInfo]] = {}
    for file in files:
        # With its stamp: there are file systems that number two files alike.
        key = (file.identity, file.stamp) if file.identity else file.url
        names.setdefault(key, []).append(file)
    for same in names.values():
        yield same[0] if len(same) == 1 else min(same, key=lambda file: _order(file.url, root))


def _order(path: str, root: str) -> tuple[bool, str]:
    behind = os.path.relpath(path, root)
    return os.path.realpath(path) != os.path.join(os.path.realpath(root), behind), path


def _walked(matches: Iterable[FileInfo]) -> Iterator[FileInfo]:
    """The files among the matches, and those in the directories among them and below.

    A directory is walked once, before the links: the names of its files are those that it gives.
    """
    seen: set[object] = set()
    found, links = deque[FileInfo](), deque[FileInfo]()
    for match in matches:
        (links if match.is_link else found).append(match)
    while found or links:
        item = (found or links).popleft()
        if not item.is_directory:
            yield item
            continue
        check_reading(item.url)
        here = item.identity or item.url
        if here in seen:
            continue
        seen.add(here)
        if item.is_link:
            refuse_tables_above(_directories_of([item]))
        for inner in _listed(item.url):
            if inner.is_directory:
                _refuse_partitioned(inner)
            (links if inner.is_link else found).append(inner)


def _listed(directory: str) -> list[FileInfo]:
    """What a directory holds that is not hidden; raises InputError if it is a table."""
    names, items = store_of(directory).contents(directory)
    refuse_table(directory, names)
    return items


def _directories_of(items: Iterable[FileInfo]) -> set[str]:
    """The directories in which files lie, or which lead to them, and for directories themselves.

    Local ones with absolute path: as they are named, and with links followed.
    """
    named: set[str] = set()
    for item in items:
        store = store_of(item.url)
        for url in [store.absolute(item.url), *([store.real(item.url)] if item.is_link else [])]:
            named.add(url if item.is_directory else parent_of(url))
    return {form for url in named for form in (url, store_of(url).real(url))}


def _matches(location: str) -> Iterator[FileInfo]:
    """The files and directories that match a pattern, without hidden ones."""
    if has_wildcard(location):
        yield from store_of(location).matches(location)


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
    if any(lies_in(file, each) for each in store_of(input_url).linked_directories(input_url)):
        return True
    root = source_root(input_url)
    if not lies_in(file, root):
        return False
    names, patterns = _path(file).parts, _path(input_url).parts
    if _path(root) == _path(input_url) or "**" in patterns:
        return True
    return len(patterns) <= len(names) and all(map(fnmatch.fnmatchcase, names, patterns))


def _path(url: str) -> PurePosixPath:
    return PurePosixPath(parts_of(store_of(url).real(url))[1])


def _on_one_store(one: str, other: str) -> bool:
    bases = parts_of(one)[0], parts_of(other)[0]
    if not all(bases):  # one of them is local
        return bases[0] == bases[1]
    servers, others = (store_of(base).servers(base) for base in bases)
    return not servers.isdisjoint(others)
