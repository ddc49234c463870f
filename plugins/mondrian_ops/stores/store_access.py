"""How to reach a remote store: by its URL, an Airflow connection or the environment.

Inside Airflow, the function given to :func:`look_up_with` looks up connections. Outside, the AWS
environment variables apply to S3, and to HDFS ``MONDRIAN_OPS_WEBHDFS`` (the NameNodes' HTTP
addresses, separated by commas) and ``HADOOP_USER_NAME``. A Spark executor has neither: there,
:func:`use_options` takes the options that :func:`options_of` returned in the driver.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mondrian_ops.errors import InputError

if TYPE_CHECKING:
    import pyarrow.fs as pa_fs

SCHEMES = ("hdfs", "webhdfs", "swebhdfs", "s3")
WEBHDFS_VARIABLE = "MONDRIAN_OPS_WEBHDFS"

Options = Mapping[str, Any]
LookUp = Callable[[str, str | None], Options | None]
"""The options of a connection: of kind ``hdfs`` or ``s3``, by name or (None) the default one."""

_BASE = re.compile(r"([a-z0-9+.-]+)://(?:([^@]*)@)?(.*)", re.IGNORECASE)

# Timeouts in seconds; a delayed open sends a small file in one request instead of three.
_S3_DEFAULTS = {"connect_timeout": 10, "request_timeout": 60, "allow_delayed_open": True}

# How long a connection is cached; the keys of a role are valid for longer.
_CACHED_S = 300.0

_look_up: LookUp | None = None
_cache: dict[tuple[str, str | None], tuple[float, Options | None]] = {}
_given: dict[str, Options] = {}


def look_up_with(lookup: LookUp | None) -> None:
    """Look up connections with this function; None: there are no connections."""
    global _look_up
    _look_up = lookup
    _cache.clear()


def options_of(urls: Iterable[str]) -> dict[str, Any]:
    """The options that reach these locations, as a JSON value for :func:`use_options`.

    They may contain secrets: send them as such.
    """
    bases = set()
    for url in urls:
        scheme, mark, rest = url.partition("://")
        if mark and scheme.lower() in SCHEMES:
            bases.add(f"{scheme.lower()}://{rest.partition('/')[0]}")
    return {base: dict(_options(base)) for base in sorted(bases)}


def use_options(options: Mapping[str, Any]) -> None:
    """Use the options that :func:`options_of` returned in another process."""
    _given.update(options)


def connected(base: str) -> pa_fs.FileSystem:
    """The file system of a remote URL's scheme and authority.

    Raises:
        InputError: the URL, the connections and the environment do not tell how to reach it.
    """
    scheme = base.partition(":")[0]
    options = json.dumps(_options(base), sort_keys=True)
    return _connected("s3" if scheme == "s3" else "hdfs", options, os.getpid())


def servers_of(base: str) -> set[str]:
    """The servers or the bucket; two remote URLs with one in common are on the same store."""
    scheme, _, authority = _split(base)
    if scheme == "s3":
        return {f"s3://{authority}"}
    return {server.lower() for server in _options(base)["servers"]}


@lru_cache(maxsize=32)
def _connected(kind: str, options: str, _process: int) -> pa_fs.FileSystem:
    if kind == "s3":
        import pyarrow.fs as pa_fs

        return pa_fs.S3FileSystem(**{**_S3_DEFAULTS, **json.loads(options)})
    try:
        from mondrian_ops.stores import hdfs
    except ModuleNotFoundError as error:
        raise InputError(
            f"hdfs: the module {error.name!r} is not installed; install the extra 'hdfs' of this "
            "project's wheel"
        ) from None
    return hdfs.arrow_filesystem(json.loads(options))


def _options(base: str) -> Options:
    if base in _given:
        return _given[base]
    scheme, name, authority = _split(base)
    if scheme == "s3":
        return _s3_options(base, name, authority)
    if scheme != "hdfs" and authority:
        options = _connection(base, "hdfs", name) if name else _anonymous()
        server = f"http{'s' if scheme == 'swebhdfs' else ''}://{authority}"
        return {**options, "servers": [server]}
    return _hdfs_options(base, name, authority)


def _split(base: str) -> tuple[str, str, str]:
    """Scheme, name of the connection (or empty), host and port or bucket."""
    match = _BASE.fullmatch(base)
    assert match is not None  # noqa: S101 - every caller has checked the scheme
    scheme, name, authority = match[1].lower(), match[2] or "", match[3]
    if ":" in name:
        raise InputError(
            f"{scheme}://{authority}: the URL holds a password; put it into an Airflow connection "
            "and name that before the @"
        )
    return scheme, name, authority


def _hdfs_options(base: str, name: str, authority: str) -> Options:
    if name:
        return _connection(base, "hdfs", name)
    options = _looked_up("hdfs", None)
    servers = [
        server.strip().rstrip("/") for server in os.environ.get(WEBHDFS_VARIABLE, "").split(",")
    ]
    if options is None and any(servers):
        options = {**_anonymous(), "servers": [server for server in servers if server]}
    if options is None:
        raise InputError(
            f"hdfs://{authority}: the HTTP address of its NameNode is unknown; name an Airflow "
            f"connection in the URL (hdfs://CONNECTION@{authority}/…), create the connection "
            f"webhdfs_default, set {WEBHDFS_VARIABLE}, or give webhdfs://HOST:PORT/…"
        )
    _refuse_other_cluster(authority, options["servers"])
    return options


def _refuse_other_cluster(authority: str, servers: Iterable[str]) -> None:
    """Raise InputError for a host and port of another cluster, where the data must not go."""
    host = authority.rpartition(":")[0]
    if host and host not in {urlsplit(server).hostname for server in servers}:
        raise InputError(
            f"hdfs://{authority}: {host} is not one of the known NameNodes "
            f"({', '.join(servers)}); name the connection of that cluster in the URL"
        )


def _s3_options(base: str, name: str, bucket: str) -> Options:
    if not bucket:
        raise InputError("s3:///: the URL names no bucket; give s3://BUCKET/KEY")
    if name:
        return _connection(base, "s3", name)
    options = _looked_up("s3", None)
    return options or _s3_environment()


def _connection(base: str, kind: str, name: str) -> Options:
    scheme, _, authority = _split(base)
    if _look_up is None:
        raise InputError(
            f"{scheme}://{authority}: the URL names an Airflow connection, but this process runs "
            "outside Airflow; leave it out, and set the environment variables that "
            "docs/deploy.md names"
        )
    options = _looked_up(kind, name)
    if options is None:
        raise InputError(
            f"{scheme}://{authority}: there is no Airflow connection {name!r}, which the URL "
            "names; create it, or name another"
        )
    return options


def _looked_up(kind: str, name: str | None) -> Options | None:
    if _look_up is None:
        return None
    since, options = _cache.get((kind, name), (-_CACHED_S, None))
    if time.monotonic() - since > _CACHED_S:
        options = _look_up(kind, name)
        _cache[kind, name] = time.monotonic(), options
    return options


def _anonymous() -> dict[str, Any]:
    user = os.environ.get("HADOOP_USER_NAME")
    if not user:
        with suppress(KeyError, OSError):  # a container's user id may have no name
            user = getpass.getuser()
    return {"user": user} if user else {}


def _s3_environment() -> dict[str, Any]:
    """The AWS variables' options; without them, Arrow looks where AWS's own tools look."""
    options = {
        "access_key": os.environ.get("AWS_ACCESS_KEY_ID"),
        "secret_key": os.environ.get("AWS_SECRET_ACCESS_KEY"),
        "session_token": os.environ.get("AWS_SESSION_TOKEN"),
        "region": os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"),
    }
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    return {k: v for k, v in {**options, **s3_endpoint(endpoint)}.items() if v}


def s3_endpoint(url: str | None) -> dict[str, str]:
    """The options for a server that is not Amazon's, such as ``http://localhost:9000``."""
    if not url:
        return {}
    parts = urlsplit(url if "://" in url else f"https://{url}")
    return {"scheme": parts.scheme, "endpoint_override": parts.netloc}
