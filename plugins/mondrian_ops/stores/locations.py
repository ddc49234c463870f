"""Where data lies: paths and URLs, and the file systems behind them.

A location is a plain path, a ``file://`` URL, or a URL of a remote store::

    hdfs://[CONNECTION@]NAMENODE[:PORT]/PATH     HDFS, over WebHDFS
    webhdfs://[CONNECTION@]HOST:PORT/PATH        HDFS, by the HTTP address of its NameNode
    swebhdfs://…                                 the same over HTTPS
    s3://[CONNECTION@]BUCKET/KEY                 S3 and what speaks its protocol

The part before ``@`` names an Airflow connection. It is not secret, but logs and errors leave it
out (:func:`shown`). A relative path starts at the :func:`home`.
"""

from __future__ import annotations

import os
import posixpath
import re
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote, urlsplit

from mondrian_ops.errors import InputError, JobError
from mondrian_ops.stores import store_access

if TYPE_CHECKING:
    import pyarrow.fs as pa_fs

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/]*)(.*)", re.DOTALL)
_WILDCARD = re.compile(r"[*?[]")
WAITING = ".mondrian_waiting"
"""The name of the directories with rows that wait for a night of a series."""
_WAITING_BELOW = re.compile(rf"(/{re.escape(WAITING)}/)(.*)", re.DOTALL)
_DIGEST = re.compile(r"[0-9a-f]{8,}")
_MAX_NAME_BYTES = 255  # of the file systems of Linux, and of HDFS
_MAX_PATH_BYTES = 4095
_MAX_KEY_BYTES = 1024  # of S3, where a name has no limit of its own

_HOME_VARIABLE = "AIRFLOW__MONDRIAN_OPS__HOME"
_home: str | None = None


def use_home(folder: str | None) -> None:
    """Start relative paths at this directory in this process; None: where the environment says."""
    global _home
    _home = folder


def home() -> str:
    """Where relative paths start: in Airflow `[mondrian_ops] home`, else the working directory.

    Outside Airflow the environment variable of that setting replaces the working directory.
    """
    return _home or os.environ.get(_HOME_VARIABLE) or os.getcwd()


def resolved(url: str) -> str:
    """The location, which starts at the home if it is a relative path.

    It stays relative if the home is the working directory.
    """
    return in_full(url) if _home or os.environ.get(_HOME_VARIABLE) else url


def in_full(url: str) -> str:
    """The location as an error names it: a relative path with the directory where it starts."""
    return url if _URL.match(url) else os.path.join(home(), url)


def is_local(url: str) -> bool:
    """Whether it is a plain path or a ``file://`` URL.

    Raises:
        InputError: the URL's scheme is not available.
    """
    match = _URL.match(url)
    if match is None or match[1].lower() == "file":
        return True
    if match[1].lower() not in store_access.SCHEMES:
        remote = ", ".join(f"{scheme}://" for scheme in store_access.SCHEMES)
        raise InputError(
            f"{shown(url)}: the scheme {match[1]!r} is not available; give a local path, or a URL "
            f"that starts with file://, {remote}"
        )
    return False


def is_s3(url: str) -> bool:
    """Whether it is on S3, where nothing can be renamed."""
    return not is_local(url) and url.lower().startswith("s3://")


def local_path(url: str) -> str:
    """The local path of a plain path or ``file://`` URL.

    Raises:
        InputError: it is not on the local file system.
    """
    if not is_local(url):
        raise InputError(f"{shown(url)}: not on the local file system; give a local path")
    return unquote(urlsplit(url).path) if _URL.match(url) else os.fspath(url)


def check_path(option: str, url: str, suffix_bytes: int = 0) -> None:
    """Raise JobError if no file can have this path on its store.

    ``suffix_bytes`` is what the names of working files add to the last name.
    """
    path = local_path(url) if is_local(url) else remote_parts(url)[1]
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError:
        raise JobError(f"{option}: the path holds an unpaired surrogate; correct it") from None
    if b"\0" in encoded:
        raise JobError(
            f"{option}: the path holds a NUL byte, which no file name may contain; remove it"
        )
    names = encoded.rstrip(b"/").split(b"/")
    longest = max(len(names[-1]) + suffix_bytes, *map(len, names))
    if longest > _MAX_NAME_BYTES and not is_s3(url):
        raise JobError(
            f"{option}: a name in the path is longer than {_MAX_NAME_BYTES - suffix_bytes} bytes; "
            "choose a shorter one"
        )
    most = (_MAX_KEY_BYTES if is_s3(url) else _MAX_PATH_BYTES) - suffix_bytes
    if len(encoded) > most:
        raise JobError(f"{option}: the path is longer than {most:,} bytes; choose a shorter one")


def has_wildcard(path: str) -> bool:
    """Whether a path, or a name in one, may be a pattern."""
    return _WILDCARD.search(path) is not None


def before_wildcard(pattern: str) -> str:
    """The directory that all matches lie below; all of a location without a wildcard."""
    base, path = ("", local_path(pattern)) if is_local(pattern) else remote_parts(pattern)
    names = takewhile(lambda name: not has_wildcard(name), PurePosixPath(path).parts)
    return base + str(PurePosixPath(*names))


def shown(url: str) -> str:
    """The location as errors and logs name it: without the connection.

    What tells the series of rows that wait, or an attempt at a night, is left out, too: whoever
    knows it knows where the next night will look for a file.
    """
    url = _WAITING_BELOW.sub(lambda found: found[1] + _DIGEST.sub("…", found[2]), url)
    match = _URL.match(url)
    if match is None:
        return url
    return f"{match[1]}://{match[2].rpartition('@')[2]}{match[3]}"


def with_connection(url: str, conn_id: str) -> str:
    """The location, reached through a connection if it is remote and names none itself."""
    match = _URL.match(url)
    if is_local(url) or match is None or "@" in match[2]:
        return url
    return f"{match[1]}://{conn_id}@{match[2]}{match[3]}"


def joined(url: str, *names: str) -> str:
    """The location with these names below another location."""
    if is_local(url):
        return str(Path(local_path(url), *names))
    base, path = remote_parts(url)
    return "/".join([base + path.rstrip("/"), *names])


def parent_of(url: str) -> str:
    """The directory in which a remote location lies."""
    base, path = remote_parts(url)
    return base + posixpath.dirname(path)


def name_of(url: str) -> str:
    """The last name of a location; empty for the root of a store."""
    return posixpath.basename(local_path(url) if is_local(url) else remote_parts(url)[1])


def remote_parts(url: str) -> tuple[str, str]:
    """The scheme and authority of a remote URL, and its path without double or trailing slashes."""
    match = cast("re.Match[str]", _URL.match(url))
    return f"{match[1].lower()}://{match[2]}", posixpath.normpath("/" + match[3].lstrip("/"))


def filesystem(url: str) -> tuple[pa_fs.FileSystem, str]:
    """The file system of a location, and its path there.

    Raises:
        InputError: the scheme is not available, or it is unknown how to reach the store.
    """
    if is_local(url):
        import pyarrow.fs as pa_fs

        return pa_fs.LocalFileSystem(), local_path(url)
    base, path = remote_parts(url)
    bucket = base.rpartition("/")[2].rpartition("@")[2] if is_s3(url) else ""
    return store_access.connected(base), (bucket + path).rstrip("/") or "/"
