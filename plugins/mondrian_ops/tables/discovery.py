"""Which files a source has, in a fixed order, their format, and what would be read with them."""

from __future__ import annotations

import fnmatch
import glob
import os
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, Literal

from mondrian_ops.errors import InputError
from mondrian_ops.stores import store_access
from mondrian_ops.stores.access_policy import (
    check_reading,
    check_source_file,
    current_policy,
)
from mondrian_ops.stores.files import (
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
from mondrian_ops.stores.locations import (
    before_wildcard,
    check_path,
    has_wildcard,
    in_full,
    is_local,
    joined,
    local_path,
    parent_of,
    remote_parts,
    shown,
)
from mondrian_ops.stores.regular_files import open_data, refuse_special
from mondrian_ops.tables.table_formats import refuse_table, refuse_tables_above

Format = Literal["parquet", "csv"]

_PARQUET_MAGIC = b"PAR1"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_PARQUET_ENDINGS = (".parquet", ".parq", ".pq")
_CSV_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_ENDINGS = (*_PARQUET_ENDINGS, *_CSV_ENDINGS)


def source_root(pattern: str) -> str:
    """The part of a location before its first wildcard: what matches is it or lies below it."""
    path = local_path(pattern) if is_local(pattern) else "".join(remote_parts(pattern))
    if not has_wildcard(path) or (exists(path) if is_local(path) else file_info(path)):
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
    named = _format_by_name(path)
    if named is not None:
        return named
    with input_errors(path), _opened(path) as file:
        head = file.read(4096)
    if head.startswith(_PARQUET_MAGIC):
        return "parquet"
    if b"\x00" in head and not head.startswith(_UTF16_MARKS):
        raise InputError(f"{shown(path)}: neither Parquet nor CSV; remove the file or convert it")
    return "csv"


def _opened(path: str) -> IO[bytes]:
    return os.fdopen(open_data(local_path(path)), "rb") if is_local(path) else open_stream(path)


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
    location = local_path(url) if is_local(url) else "".join(remote_parts(url))
    named = _named(location)
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
        if file is not named and _format_by_name(file.name) is None:
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


def _named(location: str) -> FileInfo | None:
    if not is_local(location):
        return file_info(location)
    if not (Path(location).is_dir() or exists(location)):
        return None
    return local_info(location, os.path.islink(location))


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
    if is_local(directory):
        refuse_table(directory, os.listdir(local_path(directory)))
        return list_directory(directory, hidden=False)
    items = list_directory(directory)
    refuse_table(directory, [item.name for item in items])
    return [item for item in items if not is_hidden(item.name)]


def _directories_of(items: Iterable[FileInfo]) -> set[str]:
    """The directories in which files lie, or which lead to them, and for directories themselves.

    Local ones with absolute path: as they are named, and with links followed.
    """
    named: set[str] = set()
    for item in items:
        url = os.path.abspath(item.url) if is_local(item.url) else item.url
        named.add(url if item.is_directory else _above(url))
        if item.is_link:
            real = os.path.realpath(url)
            named.add(real if item.is_directory else _above(real))
    return {form for url in named for form in (_forms(url) if is_local(url) else (url,))}


def _above(url: str) -> str:
    return os.path.dirname(url) if is_local(url) else parent_of(url)


def _forms(path: str) -> tuple[str, str]:
    return path, os.path.realpath(path)


def _matches(location: str) -> Iterator[FileInfo]:
    """The files and directories that match a pattern, without hidden ones."""
    if not has_wildcard(location):
        return
    if is_local(location):
        # Unlike pathlib's glob, this one skips names that start with a dot.
        for path in glob.iglob(location, recursive=True):
            # A directory's name may end in a slash, and the directory itself may match as "".
            path = str(Path(path))
            if not is_hidden(os.path.basename(path)):
                yield local_info(path, os.path.islink(path))
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
