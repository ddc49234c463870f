"""Where data lies: paths and URLs, and the file systems behind them.

A location is a plain path, a ``file://`` URL, or a URL of a remote store::

    hdfs://[CONNECTION@]NAMENODE[:PORT]/PATH     HDFS, over WebHDFS
    webhdfs://[CONNECTION@]HOST:PORT/PATH        HDFS, by the HTTP address of its NameNode
    swebhdfs://…                                 the same over HTTPS
    s3://[CONNECTION@]BUCKET/KEY                 S3 and what speaks its protocol

The part before ``@`` names an Airflow connection. It is no secret, but nobody's business either:
what is shown of a URL is :func:`shown`.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote, urlsplit

from mondrian_ops.core.errors import InputError
from mondrian_ops.storage import connections

if TYPE_CHECKING:
    import pyarrow.fs as pa_fs

__all__ = [
    "filesystem",
    "is_local",
    "is_s3",
    "joined",
    "local_path",
    "name_of",
    "parent_of",
    "remote_parts",
    "shown",
]

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/]*)(.*)", re.DOTALL)


def is_local(url: str) -> bool:
    """Whether it is a plain path or a ``file://`` URL.

    Raises:
        InputError: the URL's scheme is not known.
    """
    match = _URL.match(url)
    if match is None or match[1].lower() == "file":
        return True
    if match[1].lower() not in connections.SCHEMES:
        raise InputError(
            f"{shown(url)}: the scheme {match[1]!r} is not available; give a local path, or a URL "
            f"that starts with file://, {', '.join(f'{each}://' for each in connections.SCHEMES)}"
        )
    return False


def is_s3(url: str) -> bool:
    """Whether it lies on an object store, where nothing can be renamed."""
    return not is_local(url) and url.lower().startswith("s3://")


def local_path(url: str) -> str:
    """The path a URL or plain path names on the local file system.

    Raises:
        InputError: it is not on the local file system.
    """
    if not is_local(url):
        raise InputError(f"{shown(url)}: not on the local file system; give a local path")
    return unquote(urlsplit(url).path) if _URL.match(url) else os.fspath(url)


def shown(url: str) -> str:
    """The location as errors and logs name it: without the connection."""
    match = _URL.match(url)
    if match is None:
        return url
    return f"{match[1]}://{match[2].rpartition('@')[2]}{match[3]}"


def joined(url: str, *names: str) -> str:
    """The location of something below another."""
    if is_local(url):
        return str(Path(local_path(url), *names))
    return "/".join([url.rstrip("/"), *names])


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
        InputError: the scheme is not known, or nothing says how to reach the store.
    """
    if is_local(url):
        import pyarrow.fs as pa_fs

        return pa_fs.LocalFileSystem(), local_path(url)
    base, path = remote_parts(url)
    bucket = base.rpartition("/")[2].rpartition("@")[2] if is_s3(url) else ""
    return connections.connected(base), (bucket + path).rstrip("/") or "/"
