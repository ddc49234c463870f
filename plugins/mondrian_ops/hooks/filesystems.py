"""HDFS for Airflow's ``ObjectStoragePath``, which has no filesystem for it.

Where this package is installed as a wheel, Airflow finds this module through an entry point, and
``ObjectStoragePath("hdfs://CONNECTION@NAMENODE/PATH")`` works. Where it is a folder in the plugins
directory there is no entry point: call :func:`attach_hdfs` first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.sdk.io.store import ObjectStore

    from mondrian_ops.stores.webhdfs import Hdfs

schemes = ["hdfs", "webhdfs"]
"""The URL schemes for which Airflow calls :func:`get_fs`."""


def get_fs(conn_id: str | None, storage_options: Mapping[str, Any] | None = None) -> Hdfs:
    """The HDFS of a connection; without one, that of ``webhdfs_default`` or of the environment.

    Raises InputError if there is no such connection, or the address of HDFS is unknown.
    """
    from mondrian_ops import stores
    from mondrian_ops.hooks.store_credentials import use_connections
    from mondrian_ops.stores.webhdfs import Hdfs

    use_connections()
    base = f"hdfs://{conn_id}@" if conn_id else "hdfs://"
    return Hdfs(**{**stores.options_of([base])[base], **(storage_options or {})})


def attach_hdfs(conn_id: str = "webhdfs_default") -> ObjectStore:
    """Let ``ObjectStoragePath`` reach HDFS through a connection, in this process.

    The path must name the connection, or it asks fsspec, not Airflow, for a filesystem. ::

        attach_hdfs("webhdfs_default")
        path = ObjectStoragePath("hdfs://webhdfs_default@namenode/data/people.parquet")
    """
    from airflow.sdk.io import attach

    stores = [attach(scheme, conn_id, fs=get_fs(conn_id)) for scheme in schemes]
    return stores[0]
