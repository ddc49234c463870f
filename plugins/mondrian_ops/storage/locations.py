"""Where data lies: URLs to paths, and a source's files in a fixed order."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from mondrian_ops.core.errors import InputError

__all__ = ["data_files", "file_format", "local_path", "source_root"]

Format = Literal["parquet", "csv"]

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+)://")
_WILDCARD = re.compile(r"[*?[]")
_PARQUET_MAGIC = b"PAR1"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_PARQUET_ENDINGS = (".parquet", ".parq", ".pq")
_CSV_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


def local_path(url: str) -> str:
    """The path a URL or plain path names on the local file system.

    Raises:
        InputError: the URL's scheme is not one this version reads.
    """
    match = _SCHEME.match(url)
    if match is None:
        return os.fspath(url)
    if match[1].lower() != "file":
        raise InputError(
            f"{url}: the scheme {match[1]!r} is not available in this version; "
            "give a local path or a file:// URL"
        )
    return unquote(urlsplit(url).path)


def source_root(pattern: str) -> str:
    """The part of a path before its first wildcard: every matching file lies in or under it."""
    if not _WILDCARD.search(pattern) or os.path.lexists(pattern):
        return pattern
    parts = Path(pattern).parts
    first = next(i for i, part in enumerate(parts) if _WILDCARD.search(part))
    return str(Path(*parts[:first]))


def data_files(url: str) -> list[str]:
    """The data files of a file, directory (with its subdirectories) or glob, sorted by path.

    Names that start with ``_`` or ``.`` are hidden and left out, as dataset readers do.

    Raises:
        InputError: nothing is there, or a directory is Hive-partitioned (its columns would be
            lost without notice).
    """
    path = local_path(url)
    if Path(path).is_dir():
        files = list(_walk(Path(path)))
    elif os.path.lexists(path):
        files = [path]
    else:
        files = _glob(url, path)
    if not files:
        raise InputError(f"{url}: the directory holds no data file; give Parquet or CSV files")
    return sorted(files)


def _glob(url: str, pattern: str) -> list[str]:
    if not _WILDCARD.search(pattern):
        raise InputError(f"{url}: no such file or directory; check the path of `input`")
    # Unlike pathlib's, this one passes over names that start with a dot.
    found = map(Path, glob.glob(pattern, recursive=True))
    matches = [match for match in found if not _hidden(match.name)]
    if not matches:
        raise InputError(f"{url}: no file matches the pattern; check the path of `input`")
    files: set[str] = set()
    for match in matches:
        files.update(_walk(match) if match.is_dir() else [str(match)])
    return list(files)


def _walk(directory: Path, above: frozenset[Path] = frozenset()) -> Iterator[str]:
    real = directory.resolve()
    if real in above:  # a symbolic link that leads back up
        return
    try:
        paths = sorted(directory.iterdir())
    except PermissionError:
        raise InputError(f"{directory}: permission denied; let this process read it") from None
    for path in paths:
        if _hidden(path.name):
            continue
        if not path.is_dir():
            yield str(path)
            continue
        if "=" in path.name:
            raise InputError(
                f"{path}: directories named column=value are not read as columns; give one of "
                "them as `input`, or write the column into the files"
            )
        yield from _walk(path, above | {real})


def _hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def file_format(path: str) -> Format:
    """Parquet or CSV, by the file's ending, and by its content where the ending says nothing.

    Raises:
        InputError: the file cannot be read, or is neither.
    """
    lower = path.lower()
    if lower.endswith(_PARQUET_ENDINGS):
        return "parquet"
    if lower.endswith(_CSV_ENDINGS):
        return "csv"
    try:
        with Path(path).open("rb") as file:
            head = file.read(4096)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the path of `input`") from None
    except PermissionError:
        raise InputError(f"{path}: permission denied; let this process read it") from None
    if head.startswith(_PARQUET_MAGIC):
        return "parquet"
    if b"\x00" in head and not head.startswith(_UTF16_MARKS):
        raise InputError(f"{path}: neither Parquet nor CSV; remove the file or convert it")
    return "csv"
