"""How to reach a remote store: by its URL, an Airflow connection or the environment.

Inside Airflow, the function given to :func:`look_up_with` looks up connections. Outside, each store
has environment variables of its own. A Spark executor has neither: there, :func:`use_options` takes
the options that :func:`options_of` returned in the driver.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, cast

from mondrian_ops.errors import InputError
from mondrian_ops.stores.store import CATALOGS, find_store, store_of

if TYPE_CHECKING:
    import pyarrow.fs as pa_fs

Options = Mapping[str, Any]
LookUp = Callable[[str, str | None], Options | None]
"""The options of a connection: for a store's name, by the connection's or (None) the default."""


class _Remote(Protocol):
    """A remote store, as it is asked here."""

    def __hash__(self) -> int:
        """Of the one object that serves its schemes."""

    def options(self, base: str) -> Options:
        """How to reach a scheme and authority."""

    def connect(self, options: Options) -> pa_fs.FileSystem:
        """The file system that is reached so."""


_BASE = re.compile(r"([a-z0-9+.-]+)://(.*)", re.IGNORECASE)

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
        is_remote = scheme.lower() in CATALOGS or find_store(scheme) is not None
        if mark and scheme.lower() != "file" and is_remote:
            bases.add(f"{scheme.lower()}://{rest.partition('/')[0]}")
    return {base: dict(options(base)) for base in sorted(bases)}


def use_options(given: Mapping[str, Any]) -> None:
    """Use the options that :func:`options_of` returned in another process."""
    _given.update(given)


def options(base: str) -> Options:
    """The options that reach a scheme and authority.

    Raises:
        InputError: the URL, the connections and the environment do not tell how to reach it.
    """
    if base in _given:
        return _given[base]
    scheme, _, name = base.partition("://")
    return _of_catalog(name) if scheme in CATALOGS else _remote(base).options(base)


def _of_catalog(name: str) -> Options:
    """The properties of an Iceberg catalog: of the connection, or of PyIceberg's own settings."""
    found = looked_up("iceberg", name)
    if found is not None:
        return found
    from pyiceberg.utils.config import Config

    return Config().get_catalog_config(name) or {}


def connected(base: str) -> pa_fs.FileSystem:
    """The file system of a remote URL's scheme and authority; raises as :func:`options` does."""
    return _connected(_remote(base), json.dumps(options(base), sort_keys=True), os.getpid())


def _remote(base: str) -> _Remote:
    return cast("_Remote", store_of(base))


@lru_cache(maxsize=32)
def _connected(store: _Remote, options: str, _process: int) -> pa_fs.FileSystem:
    return store.connect(json.loads(options))


def split(base: str) -> tuple[str, str, str]:
    """Scheme, name of the connection (or empty), host and port or bucket."""
    match = _BASE.fullmatch(base)
    assert match is not None  # noqa: S101 - every caller has checked the scheme
    scheme = match[1].lower()
    name, authority = store_of(base).split_authority(match[2])
    if ":" in name:
        raise InputError(
            f"{scheme}://{authority}: the URL holds a password; put it into an Airflow connection "
            "and name that before the @"
        )
    return scheme, name, authority


def connection(base: str, store: str, name: str) -> Options:
    """The options of a connection for the store of this name; raises InputError without it."""
    scheme, _, authority = split(base)
    if _look_up is None:
        raise InputError(
            f"{scheme}://{authority}: the URL names an Airflow connection, but this process runs "
            "outside Airflow; leave it out, and set the environment variables that "
            "docs/deploy.md names"
        )
    found = looked_up(store, name)
    if found is None:
        raise InputError(
            f"{scheme}://{authority}: there is no Airflow connection {name!r}, which the URL "
            "names; create it, or name another"
        )
    return found


def looked_up(store: str, name: str | None) -> Options | None:
    """The options of a connection, or of the default one; None if there is none."""
    if _look_up is None:
        return None
    since, found = _cache.get((store, name), (-_CACHED_S, None))
    if time.monotonic() - since > _CACHED_S:
        found = _look_up(store, name)
        _cache[store, name] = time.monotonic(), found
    return found
