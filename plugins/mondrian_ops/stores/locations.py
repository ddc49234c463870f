"""Where data lies: what the texts of paths and URLs say, before any file is touched.

A location is a plain path, a ``file://`` URL, or a URL of a remote store such as
``s3://[CONNECTION@]BUCKET/KEY`` (each store's module says what its URLs are). The part before ``@``
names an Airflow connection. It is not secret, but logs and errors leave it out (:func:`shown`). A
relative path starts at the :func:`home`.
"""

from __future__ import annotations

import os
import posixpath
import re
from itertools import takewhile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from mondrian_ops.errors import InputError, JobError
from mondrian_ops.stores.places import opener_of, place_of
from mondrian_ops.stores.store import URL, find_store, scheme_of, store_of
from mondrian_ops.stores.store import WAITING as WAITING
from mondrian_ops.stores.store import shown as shown

if TYPE_CHECKING:
    import pyarrow.fs as pa_fs

_WILDCARD = re.compile(r"[*?[]")
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
    return url if URL.match(url) else os.path.join(home(), url)


def is_local(url: str) -> bool:
    """Whether it is a plain path or a ``file://`` URL.

    Raises:
        InputError: the URL's scheme is not available.
    """
    return place_of(url) is find_store("file")


def is_of_table(url: str) -> bool:
    """Whether it is a table that another package opens, which no store holds."""
    return opener_of(url) is not None


def local_path(url: str) -> str:
    """The local path of a plain path or ``file://`` URL.

    Raises:
        InputError: it is not on the local file system.
    """
    if URL.match(url) is None:
        return os.fspath(url)
    if scheme_of(url) != "file":
        place_of(url)  # raises for a scheme that is not available
        raise InputError(f"{shown(url)}: not on the local file system; give a local path")
    return unquote(urlsplit(url).path)


def check_path(option: str, url: str, suffix_bytes: int = 0) -> None:
    """Raise JobError if no file can have this path on its store, or nothing be published there.

    ``suffix_bytes`` is what the names of working files add to the last name.
    """
    store, path = place_of(url), parts_of(url)[1]
    if option != "input" and is_of_table(url):
        if option != "output" or not store.publication:
            raise JobError(
                f"{option}: {shown(url)} is a table of a kind that can only be an input; give a "
                "location of a store"
            )
        if "@" in url.rpartition("/")[2]:
            raise JobError(
                f"{option}: {shown(url)} names an earlier state of a table, which no release can "
                "become; leave out the @ and what follows"
            )
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
    if longest > store.max_name_bytes and store.max_name_bytes < store.max_path_bytes:
        raise JobError(
            f"{option}: a name in the path is longer than {store.max_name_bytes - suffix_bytes} "
            "bytes; choose a shorter one"
        )
    most = store.max_path_bytes - suffix_bytes
    if len(encoded) > most:
        raise JobError(f"{option}: the path is longer than {most:,} bytes; choose a shorter one")


def has_wildcard(path: str) -> bool:
    """Whether a path, or a name in one, may be a pattern."""
    return _WILDCARD.search(path) is not None


def before_wildcard(pattern: str) -> str:
    """The directory that all matches lie below; all of a location without a wildcard."""
    base, path = parts_of(pattern)
    names = takewhile(lambda name: not has_wildcard(name), PurePosixPath(path).parts)
    return base + str(PurePosixPath(*names))


def is_hidden(name: str) -> bool:
    """Whether dataset readers leave out a file or directory of this name."""
    return name.startswith(("_", "."))


def with_connection(url: str, conn_id: str) -> str:
    """The location, reached through a connection if it is on a remote store and names none."""
    store, match = place_of(url), URL.match(url)
    if is_local(url) or is_of_table(url) or match is None or store.split_authority(match[2])[0]:
        return url
    return f"{match[1]}://{conn_id}@{match[2]}{match[3]}"


def joined(url: str, *names: str) -> str:
    """The location with these names below another location."""
    return place_of(url).joined(url, *names)


def parent_of(url: str) -> str:
    """The directory in which a location lies."""
    base, path = parts_of(url)
    return base + posixpath.dirname(path)


def name_of(url: str) -> str:
    """The last name of a location; empty for the root of a store."""
    return posixpath.basename(parts_of(url)[1])


def parts_of(url: str) -> tuple[str, str]:
    """The scheme and authority of a remote URL and its path; nothing and a local path."""
    return place_of(url).parts(url)


def filesystem(url: str) -> tuple[pa_fs.FileSystem, str]:
    """Arrow's file system of a location, and its path there.

    Raises:
        InputError: the scheme is not available, or it is unknown how to reach the store.
    """
    return store_of(url).arrow(url)
