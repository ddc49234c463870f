"""HDFS, over WebHDFS.

``hdfs://[CONNECTION@]NAMENODE[:PORT]/PATH``, or by the HTTP address of its NameNode
``webhdfs://[CONNECTION@]HOST:PORT/PATH``, and ``swebhdfs://…``, the same over HTTPS. Outside
Airflow, ``MONDRIAN_OPS_WEBHDFS`` (the NameNodes' HTTP addresses, separated by commas) and
``HADOOP_USER_NAME`` tell how to reach it.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mondrian_ops.errors import InputError, StorageError
from mondrian_ops.stores import store_access
from mondrian_ops.stores.locations import shown
from mondrian_ops.stores.remote import RemoteStore

if TYPE_CHECKING:
    import pyarrow.fs as pa_fs

    from mondrian_ops.stores.webhdfs import Hdfs

_NAMENODE_PORT = 8020
WEBHDFS_VARIABLE = "MONDRIAN_OPS_WEBHDFS"


class HdfsStore(RemoteStore):
    """An HDFS: it renames in one step, and its directories have owners, but it has no locks."""

    name = "hdfs"
    publication = "mondrian_ops.publish.hdfs:HdfsPublication"
    default_connection = "webhdfs_default"

    def options(self, base: str) -> Mapping[str, Any]:
        scheme, name, authority = store_access.split(base)
        if scheme != "hdfs" and authority:
            options = store_access.connection(base, self.name, name) if name else _anonymous()
            server = f"http{'s' if scheme == 'swebhdfs' else ''}://{authority}"
            return {**options, "servers": [server]}
        if name:
            return store_access.connection(base, self.name, name)
        known = store_access.looked_up(self.name, None) or _of_environment()
        if known is None:
            raise InputError(
                f"hdfs://{authority}: the HTTP address of its NameNode is unknown; name an Airflow "
                f"connection in the URL (hdfs://CONNECTION@{authority}/…), create the connection "
                f"{self.default_connection}, set {WEBHDFS_VARIABLE}, or give webhdfs://HOST:PORT/…"
            )
        _refuse_other_cluster(authority, known["servers"])
        return known

    def servers(self, base: str) -> set[str]:
        return {server.lower() for server in store_access.options(base)["servers"]}

    def known_as(self, base: str) -> set[str]:
        hosts = {urlsplit(f"//{store_access.split(base)[2]}").hostname}
        with suppress(InputError):  # unknown servers cannot be read from either
            hosts |= {urlsplit(server).hostname for server in self.servers(base)}
        return {f"hdfs://{host}" for host in hosts}

    def lineage_name(self, url: str) -> tuple[str, str]:
        """By host and port of the NameNode, as clients of HDFS know it.

        The port of a WebHDFS URL is another one; a URL without a host means the default connection.
        """
        base, path = self.parts(url)
        parts = urlsplit(base)
        host = parts.hostname or min(str(urlsplit(url).hostname) for url in self.servers(base))
        port = parts.port if parts.scheme == "hdfs" else None
        return f"hdfs://{host}:{port or _NAMENODE_PORT}", path

    def connect(self, options: Mapping[str, Any]) -> pa_fs.FileSystem:
        try:
            from mondrian_ops.stores import webhdfs
        except ModuleNotFoundError as error:
            raise InputError(
                f"hdfs: the module {error.name!r} is not installed; install the extra 'hdfs' of "
                "this project's wheel"
            ) from None
        return webhdfs.arrow_filesystem(options)

    def upload(self, url: str, content: IO[bytes]) -> None:
        hdfs_client(url).upload(self.arrow(url)[1], content)

    def make_private(self, url: str) -> None:
        hdfs_client(url).mkdir(self.arrow(url)[1], permission="700")

    def move(self, source: str, target: str) -> bool:
        hdfs_client(source).mv(self.arrow(source)[1], self.arrow(target)[1])
        return True

    def keep_private(self, url: str) -> None:
        """HDFS leaves the mode of a directory that is there already, such as a restored one."""
        try:
            hdfs_client(url).chmod(self.arrow(url)[1], "700")
        except PermissionError:
            raise StorageError(
                f"{shown(url)}: belongs to another user, so rows that wait would not be "
                "private there; make this user its owner"
            ) from None


def hdfs_client(url: str) -> Hdfs:
    """The client behind the file system of an HDFS location."""
    client: Hdfs = store_access.connected(HdfsStore().parts(url)[0]).handler.fs
    return client


def _of_environment() -> dict[str, Any] | None:
    servers = [
        server.strip().rstrip("/") for server in os.environ.get(WEBHDFS_VARIABLE, "").split(",")
    ]
    if not any(servers):
        return None
    return {**_anonymous(), "servers": [server for server in servers if server]}


def _anonymous() -> dict[str, Any]:
    user = os.environ.get("HADOOP_USER_NAME")
    if not user:
        with suppress(KeyError, OSError):  # a container's user id may have no name
            user = getpass.getuser()
    return {"user": user} if user else {}


def _refuse_other_cluster(authority: str, servers: Iterable[str]) -> None:
    """Raise InputError for a host and port of another cluster, where the data must not go."""
    host = authority.rpartition(":")[0]
    if host and host not in {urlsplit(server).hostname for server in servers}:
        raise InputError(
            f"hdfs://{authority}: {host} is not one of the known NameNodes "
            f"({', '.join(servers)}); name the connection of that cluster in the URL"
        )
